//! What a session's output and processes show: little, and used only without a better source.

use std::time::{Duration, Instant};

use abide_model::Pid;
use abide_model::activity::{ActivityEvidence, Says, Source};
use abide_sys::process::{self, Stat};

/// Output with gaps shorter than this goes on.
const GAP: Duration = Duration::from_secs(2);
/// Output that has gone on for less than this may be the echo of a key, or a prompt.
const STEADY: Duration = Duration::from_secs(1);
/// How often processes that compute are looked at, and for how long they must have.
const EVERY: Duration = Duration::from_secs(2);
/// The share of one processor, in percent, from which processes are taken to compute.
const COMPUTING: u64 = 10;
/// A clock tick, as the kernel counts for programs on every architecture that abide runs on.
const TICK_MS: u64 = 10;
/// Shells wait for a command when they have the terminal to themselves.
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "nu", "sh", "zsh"];

/// What was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    /// When the present stretch of output began, and its newest.
    output: Option<(Instant, Instant)>,
    /// The processor time of all processes, and when it was that.
    cpu: Option<(u64, Instant)>,
    /// The share of a processor that they used until then, and how many they were.
    used: Option<(u64, usize)>,
}

impl Processes {
    pub fn wrote(&mut self, now: Instant) {
        let began = self.output.filter(|(_, last)| now.saturating_duration_since(*last) < GAP);
        self.output = Some((began.map_or(now, |(began, _)| began), now));
    }

    /// What there is to say, and when to look again.
    pub fn look(
        &mut self,
        pid: Pid,
        program: &str,
        quiet: Duration,
        now: Instant,
    ) -> (Option<ActivityEvidence>, Option<Duration>) {
        let evidence = |says, age, detail| {
            Some(ActivityEvidence { source: Source::Processes, says, age, detail, question: None })
        };
        let stretch =
            self.output.map_or(Duration::ZERO, |(began, last)| last.saturating_duration_since(began));
        if quiet < GAP && stretch >= STEADY {
            let detail = format!("it has been writing for {}s", (stretch + quiet).as_secs());
            return (evidence(Says::Working, stretch + quiet, detail), Some(GAP - quiet));
        }
        let own = Stat::read(pid).ok();
        if own.is_some_and(|stat| stat.foreground == Some(pid)) && is_interactive_shell(pid, program) {
            return (evidence(Says::Idle, quiet, "its shell is waiting for a command".to_owned()), None);
        }
        let measured = self.measure(pid, now);
        match self.used.filter(|(share, _)| *share >= COMPUTING) {
            Some((share, count)) => {
                let detail = format!("its {count} processes use {share} % of a processor");
                (evidence(Says::Working, EVERY, detail), Some(EVERY))
            }
            None if measured => (None, None),
            None => (None, Some(EVERY)),
        }
    }

    /// Finds out how much the session's processes compute, unless that was a moment ago. Says whether it is known now.
    fn measure(&mut self, pid: Pid, now: Instant) -> bool {
        let elapsed = self.cpu.map(|(_, at)| now.saturating_duration_since(at));
        if elapsed.is_some_and(|elapsed| elapsed < EVERY) {
            return false;
        }
        let tree = process::tree(pid);
        let ticks: u64 = tree.iter().map(|stat| stat.ticks).sum();
        let before = self.cpu.replace((ticks, now));
        self.used = before.zip(elapsed).map(|((before, _), elapsed)| {
            let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
            (ticks.saturating_sub(before) * TICK_MS * 100 / millis, tree.len())
        });
        self.used.is_some()
    }
}

/// Whether `program` is a shell that was given nothing to run.
fn is_interactive_shell(pid: Pid, program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    let arguments = || std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_option = |word: &[u8]| word.first().is_none_or(|first| matches!(first, b'-' | b'+'));
    SHELLS.contains(&name)
        && arguments().split(|byte| *byte == 0).skip(1).all(|word| is_option(word) && word != b"-c")
}
