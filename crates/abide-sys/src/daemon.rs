//! For long-running processes: short scheduler slices, and large blocks of memory that go back to the system at once.

use std::io;

/// How long this process wants to run when it has the processor: hardly ever for longer than a key takes to be passed on.
const TURN_NANOS: u64 = 100_000;

/// Asks for short turns, and in exchange for its turn soon after it wakes up, however busy others are.
///
/// It gets no more of the processor than before. Kernels before 6.12 know no such wish and make nothing of it. Children
/// do not inherit it.
pub fn take_short_turns() -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice: rustix::process::getpriority_process(None)?,
        sched_priority: 0,
        sched_runtime: TURN_NANOS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the one takes no memory; of the structure the kernel reads as many bytes as it says to have, and keeps none.
    #[allow(unsafe_code)]
    let result = unsafe {
        if libc::sched_getscheduler(0) != libc::SCHED_OTHER {
            // Another policy was chosen on purpose.
            return Ok(());
        }
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From how many bytes on a block of memory goes back to the system as soon as it is freed.
const LARGE: i32 = 1 << 20;

/// Has large blocks of memory go back to the system whenever they are freed.
///
/// The allocator otherwise keeps blocks as large as the largest that was ever freed: after a moment at an enormous size, a
/// terminal's worth of memory for as long as the process stays.
pub fn give_back_large_blocks() {
    // SAFETY: a setting of the allocator, which takes no memory.
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages_in_memory() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn large_blocks_go_back_when_they_are_freed_however_large_one_was_before() {
        give_back_large_blocks();
        let before = pages_in_memory();
        for megabytes in [24, 20, 16] {
            drop(std::hint::black_box(vec![1_u8; megabytes << 20]));
        }
        let kept = pages_in_memory().saturating_sub(before) * rustix::param::page_size();
        assert!(kept < 8 << 20, "{kept} bytes were kept");
    }

    #[test]
    fn short_turns_are_granted_to_any_user() {
        std::thread::spawn(take_short_turns).join().unwrap().unwrap();
    }
}
