//! How long removed instance directories stay in the trash.

use std::time::Duration;

use crate::decide::Decided;
use crate::time::Timestamp;

/// An instance directory in the trash, as far as its time there depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrashedDir {
    /// When it was removed.
    pub since: Timestamp,
    /// How much room it takes, in bytes.
    pub bytes: u64,
    /// Whether it may hold something that exists nowhere else.
    pub contents: TrashContents,
}

/// What is known of what an instance directory in the trash holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrashContents {
    /// It was examined before it was removed, and certainly holds nothing that exists nowhere else.
    NoWork,
    /// It holds work, it could not be examined, or something in it was only taken for no work, say because of its name.
    PerhapsWork,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub keep: Duration,
    /// How much of it, in bytes.
    pub bytes: u64,
}

/// Which of `held`, given oldest first, have had their time: what is too old, then the oldest of what is too much. What
/// may be work goes by age only: the operator has seen for how long it is kept, and a guess may be wrong. So does the youngest: what was removed a moment ago
/// can be restored however large it is.
pub fn expired(held: &[TrashedDir], limits: Limits, now: Timestamp) -> Vec<Decided<usize>> {
    let mut left: u64 = held.iter().map(|instance_dir| instance_dir.bytes).sum();
    let mut gone = Vec::new();
    for (index, instance_dir) in held.iter().enumerate() {
        let reason = if instance_dir.since.age(now) > limits.keep {
            "it is older than the limit of the trash"
        } else if left > limits.bytes
            && instance_dir.contents == TrashContents::NoWork
            && index + 1 < held.len()
        {
            "the trash is over its size limit, and this is the oldest entry without work"
        } else {
            continue;
        };
        left -= instance_dir.bytes;
        gone.push(Decided::new(index, reason));
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;
    const LIMITS: Limits = Limits { keep: Duration::from_secs(14 * 86_400), bytes: 100 };

    fn gone(held: &[(i64, u64)]) -> Vec<usize> {
        gone_beside_work(held, &[])
    }

    /// With work in those at the indices `work`.
    fn gone_beside_work(held: &[(i64, u64)], work: &[usize]) -> Vec<usize> {
        let now = Timestamp(100 * DAY);
        let instance_dir = |(index, &(days, bytes)): (usize, &(i64, u64))| TrashedDir {
            since: Timestamp(now.0 - days * DAY),
            bytes,
            contents: if work.contains(&index) { TrashContents::PerhapsWork } else { TrashContents::NoWork },
        };
        let held: Vec<TrashedDir> = held.iter().enumerate().map(instance_dir).collect();
        expired(&held, LIMITS, now).into_iter().map(|decided| decided.decision).collect()
    }

    #[test]
    fn what_may_be_work_goes_by_age_only() {
        assert_eq!(gone_beside_work(&[(5, 60), (4, 30), (3, 40), (2, 20)], &[0]), [1, 2]);
        assert!(gone_beside_work(&[(5, 200), (4, 200)], &[0]).is_empty());
        assert_eq!(gone_beside_work(&[(15, 1), (4, 200)], &[0, 1]), [0]);
    }

    #[test]
    fn what_is_old_goes_and_what_is_young_stays() {
        assert_eq!(gone(&[(30, 1), (15, 1), (14, 1), (0, 1)]), [0, 1]);
        assert!(gone(&[]).is_empty());
    }

    #[test]
    fn the_oldest_go_until_the_rest_fits() {
        assert_eq!(gone(&[(5, 60), (4, 30), (3, 40), (2, 20)]), [0]);
        assert_eq!(gone(&[(5, 10), (4, 90), (3, 90)]), [0, 1]);
    }

    #[test]
    fn what_is_too_old_makes_room_first() {
        assert_eq!(gone(&[(20, 90), (3, 60), (2, 40)]), [0]);
    }

    #[test]
    fn the_last_removed_can_be_restored_however_large_it_is() {
        assert!(gone(&[(0, 5_000)]).is_empty());
        assert_eq!(gone(&[(1, 5), (0, 5_000)]), [0]);
    }

    #[test]
    fn a_clock_that_was_turned_back_makes_nothing_old() {
        assert!(gone(&[(-500, 1), (-400, 1)]).is_empty());
    }
}
