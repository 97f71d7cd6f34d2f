//! abide as process 1 of a container: its end would end everything else, and it must reap orphans.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use abide_keeper::holds_others;
use abide_model::Pid;
use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::process::{children, own_pid, send_signal};
use abide_sys::signals::SignalFd;
use rustix::process::{Signal, WaitOptions};

/// How long what follows the last instance, such as its finaliser, may take.
const TO_FINISH: Duration = Duration::from_secs(20);
/// How often a missed signal is made up for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Stays for as long as instances run, if this is process 1: reaps what ends, and passes a stop on.
pub fn stay() {
    if own_pid() != Pid(1) || supervisors().is_empty() {
        return;
    }
    // If even stderr cannot be written, there is no way left to report that.
    let _ = writeln!(
        io::stderr(),
        "abide: abide is process 1 of this container, and stays until its instances have ended; \
         SIGTERM or Ctrl-C stops them, `abide hardline` from another terminal attaches"
    );
    let concerning = [Signal::CHILD, Signal::TERM, Signal::INT].map(Signal::as_raw);
    let Ok(signals) = SignalFd::block(&concerning) else { return };
    let mut leave_at = None;
    loop {
        let alone = !reap();
        let over = supervisors().is_empty();
        let leaving = *leave_at.get_or_insert_with(|| Instant::now() + TO_FINISH);
        if !over {
            leave_at = None;
        } else if alone || Instant::now() >= leaving {
            return;
        }
        let _ = poll::wait(&mut [PollFd::new(&signals, PollFlags::IN)], Some(Instant::now() + LOOK_AGAIN));
        while let Ok(Some(signal)) = signals.next() {
            if signal != Signal::CHILD.as_raw() {
                for pid in supervisors() {
                    let _ = send_signal(pid, Signal::TERM);
                }
            }
        }
    }
}

/// Reaps everything that has ended; whether any child is left.
fn reap() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Our children that hold instances: keepers, and the tmux server that abide keeps sessions in.
fn supervisors() -> Vec<Pid> {
    children(Pid(1)).into_iter().filter(|pid| holds_others(*pid)).collect()
}
