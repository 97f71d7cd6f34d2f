//! Coming back: starting an instance again that is kept, and all of them after a crash or a reboot.

use abide_agents::Fatal;
use abide_model::{Event, Instance, InstanceId, Status};
use abide_store::Entry;
use abide_sys::{clock, process};

use crate::boot::{self, BootFailure};
use crate::conversation;
use crate::error::Error;
use crate::follow::{self, Look};
use crate::start::{self, Started, Surroundings};

/// After so many failures in a row nothing more is started: what fails them all will fail the rest too.
const FAILURES: usize = 3;

/// After so many agents that are not logged in nothing more is started: each attempt may cost the others their login.
const LOGINS: usize = 2;

/// Brings a kept instance back: the same unit, the same tabs with their scrollback, the sessions that ran when it stopped.
pub fn resume(around: &Surroundings<'_>, id: InstanceId) -> Result<Started, Error> {
    // What was reported in the last run counts for that run only.
    let before = around.store.read(id)?;
    let before = follow::follow(around.store, before, None, Look::Close);
    conversation::refuse_open(around.store, &before)?;
    let instance = around.store.update(id, |instance| -> Result<Instance, Error> {
        instance.apply(&Event::Resume { by: process::this() }, "resumed by the operator", clock::now())?;
        instance.close_ended();
        for session in &mut instance.sessions {
            session.exit = None;
            session.generation += 1;
        }
        Ok(instance.clone())
    })?;
    start::start(around, &instance)
}

/// The instances that a crash, a stop or a reboot took down, oldest first. What was kept on purpose is not among them.
pub fn interrupted(entries: &[Entry]) -> Vec<&Instance> {
    use abide_model::status::Kept;
    let lost = |status: &Status| {
        matches!(status, Status::Restorable(Kept::Crashed | Kept::Stopped | Kept::HostLost))
    };
    let sound = entries.iter().filter_map(|entry| match entry {
        Entry::Sound(instance) => Some(instance),
        Entry::Damaged { .. } => None,
    });
    sound.filter(|instance| lost(&instance.status.status)).collect()
}

/// Stops a series of resumes that keeps failing: all at once, or one failure after the other, would make it worse.
#[derive(Debug, Default)]
pub struct Brake {
    in_a_row: usize,
    logins: usize,
}

impl Brake {
    /// Takes note of how one went.
    pub fn note<T>(&mut self, outcome: &Result<T, Error>) {
        match outcome {
            Ok(_) => self.in_a_row = 0,
            Err(error) => {
                self.in_a_row += 1;
                let login = matches!(error, Error::Boot(BootFailure { fatal: Some(Fatal::Auth), .. }));
                self.logins += usize::from(login);
            }
        }
    }

    /// Whether the rest is better left alone.
    pub fn holds(&self) -> bool {
        self.in_a_row >= FAILURES || self.logins >= LOGINS
    }
}

/// Brings the instance back and watches it come up. One after the other is brought back so: all at once they would fight
/// over shared credentials.
pub fn resume_watched(around: &Surroundings<'_>, id: InstanceId) -> Result<Started, Error> {
    let started = resume(around, id)?;
    boot::verify(around.store, id)?;
    Ok(started)
}

#[cfg(test)]
mod tests {
    use abide_capsule::session::Exit;

    use super::*;

    fn failed(fatal: Option<Fatal>) -> Result<(), Error> {
        let failure = BootFailure { session: "x".into(), exit: Exit::Code(1), fatal, last: Vec::new() };
        Err(Error::Boot(failure))
    }

    fn held_after(outcomes: &[Result<(), Error>]) -> bool {
        let mut brake = Brake::default();
        outcomes.iter().for_each(|outcome| brake.note(outcome));
        brake.holds()
    }

    #[test]
    fn failures_in_a_row_stop_the_rest_and_single_ones_do_not() {
        assert!(!held_after(&[failed(None), failed(None), Ok(()), failed(None), failed(None)]));
        assert!(held_after(&[Ok(()), failed(None), failed(Some(Fatal::NoConversation)), failed(None)]));
    }

    #[test]
    fn two_agents_that_are_not_logged_in_stop_the_rest_wherever_they_come() {
        assert!(!held_after(&[failed(Some(Fatal::Auth)), Ok(())]));
        assert!(held_after(&[failed(Some(Fatal::Auth)), Ok(()), failed(Some(Fatal::Auth))]));
    }
}
