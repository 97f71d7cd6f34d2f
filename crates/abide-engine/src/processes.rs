//! Processes as `/proc` shows them: who descends from whom, and whose session they are of.

use std::fs;
use std::time::{Duration, Instant};

use abide_model::{InstanceId, vars};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// How long what a dead capsule left may take to end when asked.
const GRACE: Duration = Duration::from_secs(2);

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses included.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// `root` and what descends from it, generation by generation.
pub(crate) fn generations(root: i32) -> Vec<Vec<i32>> {
    let family: Vec<(i32, i32)> = pids().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut generations = vec![vec![root]];
    while let Some(last) = generations.last().filter(|last| !last.is_empty()) {
        let of = |(pid, parent): &(i32, i32)| last.contains(parent).then_some(*pid);
        let next = family.iter().filter_map(of).collect();
        generations.push(next);
    }
    generations
}

/// Whether process `pid` was started in a session of `instance`: its environment says so. What is abide itself, such as the
/// capsule of an instance that was started from inside, is none of its sessions.
fn is_of(pid: i32, instance: InstanceId) -> bool {
    let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let ours = format!("{}={instance}", vars::ABIDE_INSTANCE);
    let has = |text: &[u8], word: &[u8]| text.split(|byte| *byte == 0).any(|other| other == word);
    has(&read("environ"), ours.as_bytes()) && !has(&read("cmdline"), b"capsule")
}

/// Ends what is left of the sessions of `instance`, whose keeper is dead. Some agents outlive their terminal; resumed
/// beside such a one, two processes would write one transcript.
pub(crate) fn end_leftovers(instance: InstanceId) {
    let own = std::process::id();
    let left: Vec<Pid> = pids()
        .filter(|pid| u32::try_from(*pid) != Ok(own) && is_of(*pid, instance))
        .filter_map(Pid::from_raw)
        .collect();
    if left.is_empty() {
        return;
    }
    tracing::warn!(%instance, count = left.len(), "ending what an earlier run left behind");
    send(&left, Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while left.iter().any(|pid| runs(*pid)) {
        if Instant::now() > deadline {
            send(&left, Signal::KILL);
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(pids: &[Pid], signal: Signal) {
    for pid in pids {
        // It may be gone by now, which is what is wanted of it.
        let _ = kill_process(*pid, signal);
    }
}

/// A zombie has ended.
fn runs(pid: Pid) -> bool {
    let stat = || fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok();
    let zombie =
        |stat: &[u8]| stat.rsplit(|byte| *byte == b')').next().is_some_and(|rest| rest.starts_with(b" Z"));
    test_kill_process(pid).is_ok() && stat().is_some_and(|stat| !zombie(&stat))
}
