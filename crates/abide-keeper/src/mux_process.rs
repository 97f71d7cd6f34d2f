//! Keeping a mux alive: starting it, feeding it, replacing it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use abide_model::Pid;
use abide_sys::process::{child_pid, send_signal};
use abide_sys::signals;
use abide_wire::link::{Link, LinkError, ToKeeper, ToMux};
use abide_wire::os_text::OsText;
use rustix::process::Signal;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// A mux that lived this long was healthy: its death starts no series.
const HEALTHY: Duration = Duration::from_secs(10);
/// A mux that has not said that it is ready by then never will.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// The longest pause before the successor of a mux that had got ready: what killed it is not its start, and programs
/// stand still meanwhile once their terminals are full.
const READY_PAUSE: Duration = Duration::from_millis(250);
/// Messages that a mux has not taken. A mux so far behind does not work any more.
const MAX_QUEUE: usize = 1024;

/// The mux process, whether or not there is one at the moment.
pub(super) struct Mux {
    argv: Vec<OsText>,
    longest_pause: Duration,
    pause: Duration,
    /// When the next one is to be started; `None` while none is wanted.
    start_at: Option<Instant>,
    retired: bool,
    running: Option<RunningMux>,
    /// Since when there has been none that lived for a while.
    absent_since: Instant,
    /// Why none could be started, as it was said last.
    complaint: String,
}

struct RunningMux {
    pid: Pid,
    link: Option<Link>,
    /// Its number may belong to another process by now.
    reaped: bool,
    started: Instant,
    ready: bool,
    queue: VecDeque<(ToMux, Option<OwnedFd>)>,
}

impl Mux {
    /// A mux to be started at once.
    pub fn new(argv: Vec<OsText>, longest_pause: Duration) -> Self {
        let now = Instant::now();
        Self {
            argv,
            longest_pause,
            pause: Duration::ZERO,
            start_at: Some(now),
            retired: false,
            running: None,
            absent_since: now,
            complaint: String::new(),
        }
    }

    pub fn pid(&self) -> Option<Pid> {
        self.running.as_ref().map(|running| running.pid)
    }

    pub fn link(&self) -> Option<&Link> {
        self.running.as_ref()?.link.as_ref()
    }

    /// Whether messages wait for room on the link.
    pub fn wants_to_write(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.queue.is_empty())
    }

    pub fn deadline(&self) -> Option<Instant> {
        match &self.running {
            Some(running) if running.ready || running.link.is_none() => None,
            Some(running) => Some(running.started + READY_WITHIN),
            None => self.start_at,
        }
    }

    /// Whether it is time to start a mux.
    pub fn is_due(&self, now: Instant) -> bool {
        self.running.is_none() && self.start_at.is_some_and(|at| at <= now)
    }

    /// Since when no mux has read the sessions; `None` if a mux does.
    pub fn absent_since(&self) -> Option<Instant> {
        let ready = self.running.as_ref().is_some_and(|running| running.ready);
        (!ready).then_some(self.absent_since)
    }

    /// Starts the mux, or tries again later; says whether it was started. Why not is logged once, and not at each try.
    pub fn start(&mut self, now: Instant) -> bool {
        self.start_at = Some(now + self.longest_pause);
        let Err(err) = self.try_start(now) else { return true };
        let complaint = err.to_string();
        if complaint != self.complaint {
            tracing::error!("the mux cannot be started: {complaint}");
            self.complaint = complaint;
        }
        false
    }

    /// Its link is its standard input: a number that is always free and needs no agreement.
    fn try_start(&mut self, now: Instant) -> io::Result<()> {
        let (program, arguments) = self.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (ours, theirs) = Link::pair()?;
        ours.set_nonblocking()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::from(theirs.into_fd())).stdout(Stdio::null());
        signals::start_fresh(&mut command);
        let pid = child_pid(&command.spawn()?);
        self.running = Some(RunningMux {
            pid,
            link: Some(ours),
            reaped: false,
            started: now,
            ready: false,
            queue: VecDeque::new(),
        });
        Ok(())
    }

    /// The mux reads the sessions from now on.
    pub fn got_ready(&mut self) {
        self.complaint.clear();
        if let Some(running) = &mut self.running {
            running.ready = true;
        }
    }

    /// Sends, or keeps for later if the link is full. A message for a mux that is not there is dropped: the next mux
    /// gets everything again.
    pub fn send(&mut self, message: ToMux, fd: Option<OwnedFd>) {
        let Some(running) = self.running.as_mut().filter(|running| running.link.is_some()) else { return };
        running.queue.push_back((message, fd));
        self.flush();
    }

    /// Sends what waits, as far as there is room.
    pub fn flush(&mut self) {
        let Some(RunningMux { link: Some(link), queue, .. }) = &mut self.running else { return };
        while let Some((message, fd)) = queue.front() {
            let fds: Vec<_> = fd.iter().map(AsFd::as_fd).collect();
            match link.send(message, &fds) {
                Ok(()) => queue.pop_front(),
                Err(LinkError::Full) if queue.len() <= MAX_QUEUE => return,
                Err(err) => return self.abandon(&err.to_string()),
            };
        }
    }

    /// The next message from the mux.
    pub fn receive(&mut self) -> Option<ToKeeper> {
        let received = self.link()?.recv::<ToKeeper>();
        match received {
            Ok(Some((message, _))) => return Some(message),
            Ok(None) => self.cut_off(),
            Err(LinkError::Io(err)) if err.kind() == io::ErrorKind::WouldBlock => {}
            Err(err) => self.abandon(&err.to_string()),
        }
        None
    }

    /// Ends a mux that has had its time to get ready.
    pub fn check(&mut self, now: Instant) {
        let late = |running: &RunningMux| !running.ready && running.started + READY_WITHIN <= now;
        if self.running.as_ref().is_some_and(late) {
            self.abandon("it did not get ready in time");
        }
    }

    /// Ends the mux by force: it keeps nothing that the journal and the keeper do not have.
    pub fn abandon(&mut self, why: &str) {
        if let Some(RunningMux { pid, link: Some(_), .. }) = &self.running {
            tracing::warn!(%pid, why, "replacing the mux");
        }
        self.cut_off();
    }

    fn cut_off(&mut self) {
        let Some(running) = &mut self.running else { return };
        running.link = None;
        running.queue.clear();
        if !running.reaped {
            // If it has died already the signal does nothing: the number is its own until we reap it.
            let _ = send_signal(running.pid, Signal::KILL);
        }
    }

    /// Takes note that the mux was reaped. What it said before may still be heard.
    pub fn was_reaped(&mut self) {
        if let Some(running) = &mut self.running {
            running.reaped = true;
        }
    }

    /// Lets go of a mux that was reaped, and plans the next one.
    pub fn died(&mut self, now: Instant) {
        if let Some(running) = self.running.take() {
            let lived = now.saturating_duration_since(running.started);
            self.start_at = (!self.retired).then(|| now + self.next_pause(lived, running.ready));
            if running.ready && lived >= HEALTHY {
                self.absent_since = now;
            }
        }
    }

    /// Asks the mux to finish; no other is started until [`Mux::revive`].
    pub fn retire(&mut self) {
        self.retired = true;
        self.start_at = None;
        self.send(ToMux::Retire, None);
    }

    /// Starts a mux again after all.
    pub fn revive(&mut self, now: Instant) {
        self.retired = false;
        self.start_at = Some(now);
    }

    /// The first death of a series costs no time; each further one twice the last, up to the limit.
    fn next_pause(&mut self, lived: Duration, was_ready: bool) -> Duration {
        if lived >= HEALTHY {
            self.pause = Duration::ZERO;
        }
        let pause = if was_ready { self.pause.min(READY_PAUSE) } else { self.pause };
        self.pause = (pause * 2).max(FIRST_PAUSE).min(self.longest_pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mux_that_had_got_ready_is_replaced_sooner_than_one_that_never_did() {
        let series = |was_ready| {
            let mut mux = Mux::new(Vec::new(), Duration::from_secs(2));
            (0..10).map(|_| mux.next_pause(Duration::from_millis(1), was_ready).as_millis()).max()
        };
        assert_eq!((series(true), series(false)), (Some(250), Some(2000)));
    }
}
