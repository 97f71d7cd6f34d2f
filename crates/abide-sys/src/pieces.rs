//! Work on many things with a few threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The size of a piece of work that takes microseconds for each item: longer than a thread takes to start.
pub const QUICK: usize = 256;
/// More threads than this get in each other's way.
const MAX_THREADS: usize = 8;

/// What `work` makes of each piece of `size` items, in their order. A thread that is slowed down takes fewer pieces.
pub fn in_pieces<'a, T, R, W>(items: &'a [T], size: usize, work: W) -> Vec<R>
where
    T: Sync,
    R: Send,
    W: Fn(&'a [T]) -> R + Sync,
{
    if items.len() <= size {
        return items.chunks(size).map(work).collect();
    }
    let pieces: Vec<&[T]> = items.chunks(size).collect();
    // The standard library would read files of the kernel's to answer this.
    let processors = rustix::thread::sched_getaffinity(None).map_or(2, |set| set.count() as usize);
    let threads = processors.min(MAX_THREADS);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(pieces.len()));
    let take_pieces = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(at) else { return };
            let made = work(piece);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, made));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(pieces.len()) {
            // Where there can be no thread, this one does all of it.
            let _ = std::thread::Builder::new().spawn_scoped(scope, take_pieces);
        }
        take_pieces();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once_and_in_order() {
        for count in [0, 1, 16, 1607] {
            let items: Vec<usize> = (0..count).collect();
            let made: Vec<usize> = in_pieces(&items, 16, <[usize]>::to_vec).into_iter().flatten().collect();
            assert_eq!(made, items);
        }
    }
}
