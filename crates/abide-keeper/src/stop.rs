//! Stopping a capsule: who wanted it, in which order things end, and what ended from outside.

use std::time::{Duration, Instant};

use abide_sys::process::QueuedSignal;
use abide_wire::exit_record::StopReason;
use abide_wire::link::ToMux;
use rustix::process::Signal;

use crate::ending::{Ending, EndingScope};
use crate::{Keeper, RETIRE_WITHIN, daemons};

/// How long a stopping capsule waits for the mux to read what its sessions wrote last.
const DRAIN_WITHIN: Duration = Duration::from_secs(2);
/// What ends a login sends its signals at one moment; sessions may take a while to act on theirs.
const SAME_MOMENT: Duration = Duration::from_secs(10);

/// Why the operator stops a capsule whose mux does not answer. It comes as the value of a `SIGTERM`: there is no file in
/// which to say so on a full disk, and a keeper of an older version takes it for a plain `SIGTERM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorStop {
    /// The instance is to be kept.
    Stop,
    /// The instance is to be removed.
    Remove,
}

impl OperatorStop {
    /// The signal that asks a keeper for it.
    pub fn signal(self) -> QueuedSignal {
        let value = match self {
            Self::Stop => 1,
            Self::Remove => 2,
        };
        QueuedSignal { signal: Signal::TERM, value }
    }

    pub(super) fn from_value(value: i32) -> Option<Self> {
        [Self::Stop, Self::Remove].into_iter().find(|stop| stop.signal().value == value)
    }

    /// The same in words, for the record.
    pub fn note(self) -> &'static str {
        match self {
            Self::Stop => "abide stop",
            Self::Remove => "it is being removed",
        }
    }
}

/// A signal from outside that ended the mux.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutsideSignal {
    signal: i32,
    at: Instant,
}

impl OutsideSignal {
    /// Whether what ends now may have been ended by the same.
    pub fn is_recent(self) -> bool {
        self.at.elapsed() < SAME_MOMENT
    }
}

/// The capsule is stopping: first the processes end, then their output is read, then the mux goes.
pub(super) struct Stop {
    pub reason: StopReason,
    pub note: String,
    pub phase: Phase,
}

pub(super) enum Phase {
    Ending(Ending),
    Draining { until: Instant },
    Retiring { until: Instant },
}

impl Keeper {
    pub(super) fn begin_stop(&mut self, reason: StopReason, note: String) {
        if self.stop.is_some() {
            return;
        }
        tracing::info!(?reason, note, "stopping");
        self.call_off_upgrade();
        self.mux.send(ToMux::Shutdown { note: note.clone() }, None);
        let scope = EndingScope::Everything { spared: daemons::spared(&self.instance_dir) };
        let ending = Ending::begin(scope, self.mux.pid(), self.grace(), Instant::now());
        self.record.note_ended_as_well(&ending.daemons);
        self.stop = Some(Stop { reason, note, phase: Phase::Ending(ending) });
    }

    /// Takes the stop as far as it goes now; true at its end.
    pub(super) fn advance_stop(&mut self, now: Instant) -> bool {
        let Some(stop) = &mut self.stop else { return false };
        if let Phase::Ending(ending) = &mut stop.phase {
            if !ending.advance(self.mux.pid(), now) {
                return false;
            }
            stop.phase = Phase::Draining { until: now + DRAIN_WITHIN };
        }
        if let Phase::Draining { until } = stop.phase {
            if !self.sessions.is_empty() && now < until {
                return false;
            }
            stop.phase = Phase::Retiring { until: now + RETIRE_WITHIN };
            self.mux.retire();
        }
        let late = matches!(stop.phase, Phase::Retiring { until } if until <= now);
        if late {
            self.mux.abandon("it does not finish");
        }
        late || self.mux.pid().is_none()
    }

    /// Nothing is left to keep. Where the mux was ended from outside at the same moment, so were the sessions: a logout or
    /// a shutdown that reached them, and not us, is not finishing.
    pub(super) fn stop_after_last_session(&mut self) {
        match self.outside.filter(|outside| outside.is_recent()) {
            Some(OutsideSignal { signal, .. }) => {
                self.begin_stop(
                    StopReason::Sigterm,
                    format!("signal {signal} ended the mux and every session"),
                );
                self.record.ended_from_outside(SAME_MOMENT);
            }
            None => self.begin_stop(StopReason::LastSessionEnded, String::new()),
        }
    }

    /// Another process ended the mux. Sessions that ended just before were ended by the same.
    pub(super) fn mux_signalled(&mut self, signal: i32) {
        self.outside = Some(OutsideSignal { signal, at: Instant::now() });
        if let Some(stop) = self.stop.as_mut().filter(|stop| stop.reason == StopReason::LastSessionEnded) {
            stop.reason = StopReason::Sigterm;
            stop.note = format!("signal {signal} ended the mux and every session");
            self.record.ended_from_outside(SAME_MOMENT);
        }
    }
}
