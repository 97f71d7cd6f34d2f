//! The life of an instance as one pure function: [`next`].

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::choice::choices;
use crate::id::ProcessIdentity;
use crate::instance::Extra;
use crate::time::Timestamp;

choices! {
    /// Why an instance without a process is kept.
    Kept, "restorable reason" {
        Kept = "kept": "the operator, or the policy, chose to keep it",
        Dirty = "dirty": "a mount holds changes that were never committed",
        Unpushed = "unpushed": "a mount holds commits that exist nowhere else",
        Unknown = "unknown": "a mount could not be examined, which counts as work",
        Crashed = "crashed": "its supervisor died",
        Stopped = "stopped": "it was stopped from outside",
        HostLost = "host-lost": "the machine or the container went away while it ran",
        SetupFailed = "setup-failed": "its set-up did not finish",
    }
}

choices! {
    /// Why an instance is being removed.
    Ending, "ending reason" {
        Clean = "clean": "it ended with nothing at risk",
        Discard = "discard": "the operator reviewed the work and discarded it",
        Policy = "policy": "the policy is to clean up",
    }
}

choices! {
    /// Whose decision a status is. Without an answer from the operator or the policy, the decision stays open.
    DecidedBy, "decider" {
        Operator = "operator": "the operator chose it",
        Policy = "policy": "the policy of the launch or of its scope says so",
        Undecided = "undecided": "no operator was asked, or none has answered",
    }
}

choices! {
    /// How the supervisor of an instance went away.
    Gone, "way of going" {
        Crashed = "crashed": "it died",
        Stopped = "stopped": "it was asked to stop",
        HostLost = "host-lost": "the machine or container went away while it ran",
    }
}

impl From<Gone> for Kept {
    fn from(gone: Gone) -> Self {
        match gone {
            Gone::Crashed => Self::Crashed,
            Gone::Stopped => Self::Stopped,
            Gone::HostLost => Self::HostLost,
        }
    }
}

choices! {
    /// [`Status`] without what goes with it.
    InstanceState, "state" {
        Starting = "starting": "its set-up is under way",
        Active = "active": "its capsule is believed alive",
        Restorable = "restorable": "it has no process and can come back",
        Ending = "ending": "its removal is in progress or was cut short",
        Damaged = "damaged": "it cannot be read",
    }
}

/// Where an instance is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Set-up is under way. `resuming` is what a resumed instance was before, and becomes again if this start fails:
    /// without it a crash during a resume would look like a failed first set-up, which a sweep may remove.
    Starting {
        by: ProcessIdentity,
        /// What it was kept as, if this is not its first start.
        resuming: Option<Kept>,
    },
    /// The capsule is believed alive.
    Active,
    /// No process; everything needed to come back is here.
    Restorable(Kept),
    /// The decision to remove it is stamped; removal is under way or was cut short.
    Ending(Ending),
    /// It cannot be read. Never stored: it is what a reader makes of a manifest that does not parse.
    Damaged(String),
}

impl Status {
    pub fn state(&self) -> InstanceState {
        match self {
            Self::Starting { .. } => InstanceState::Starting,
            Self::Active => InstanceState::Active,
            Self::Restorable(_) => InstanceState::Restorable,
            Self::Ending(_) => InstanceState::Ending,
            Self::Damaged(_) => InstanceState::Damaged,
        }
    }

    /// The spelling of the reason that goes with the state, where there is one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Starting { .. } | Self::Active => None,
            Self::Restorable(kept) => Some(crate::choice::Choice::as_str(*kept)),
            Self::Ending(why) => Some(crate::choice::Choice::as_str(*why)),
            Self::Damaged(why) => Some(why),
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.reason() {
            Some(reason) => f.pad(&format!("{} ({reason})", self.state())),
            None => self.state().fmt(f),
        }
    }
}

/// Something that happened to an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusEvent {
    /// Set-up is done and the capsule answers.
    Launched,
    /// Set-up ended in an error.
    SetupFailed,
    /// The process that was setting it up is dead. `at_risk` is true if a mount holds work, or could not be examined.
    StarterDied {
        /// Whether anything would be lost with the instance.
        at_risk: bool,
    },
    /// The capsule was probed and answered.
    CapsuleSeen,
    /// The capsule is certainly gone, without a decision about the instance.
    CapsuleGone(Gone),
    /// The last session ended and the decision was to keep it.
    LeftKeeping(Kept),
    /// The last session ended and the decision was to remove it.
    LeftFinishing(Ending),
    /// A process starts to bring it back.
    Resume { by: ProcessIdentity },
    /// The operator removes it, having seen what goes.
    Discarded(Ending),
    /// It was taken back out of the trash.
    TakenFromTrash,
    /// The operator takes its removal back, which was not carried out. `runs` is true if its capsule is alive.
    RemovalTakenBack {
        /// Whether it was decided upon only, and nothing was ended yet.
        runs: bool,
    },
}

impl StatusEvent {
    /// Whose decision the event is, where it ends a run or an instance.
    pub fn decided_by(&self) -> Option<DecidedBy> {
        match self {
            Self::LeftKeeping(Kept::Kept) | Self::LeftFinishing(_) | Self::Discarded(Ending::Policy) => {
                Some(DecidedBy::Policy)
            }
            Self::CapsuleGone(Gone::Stopped) | Self::Discarded(_) | Self::RemovalTakenBack { .. } => {
                Some(DecidedBy::Operator)
            }
            Self::LeftKeeping(_) | Self::CapsuleGone(_) => Some(DecidedBy::Undecided),
            _ => None,
        }
    }
}

/// Why an event does not apply. Nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StatusRefusal(pub &'static str);

/// What `status` becomes when `event` happens.
///
/// The same status again means that the event changes nothing, which is how repeated clean-up steps stay harmless.
/// Two rules shape the table: a stamped [`Status::Ending`] is only ever finished or taken back by the operator, and
/// nothing but an operator's or a policy's decision leads from something restorable to an ending.
pub fn next(status: &Status, event: &StatusEvent) -> Result<Status, StatusRefusal> {
    use Status::{Active, Damaged, Ending, Restorable, Starting};
    match (status, event) {
        (Damaged(_), _) => {
            Err(StatusRefusal("the manifest cannot be read; `abide doctor` shows what is wrong"))
        }

        (Starting { .. } | Active, StatusEvent::Launched) => Ok(Active),
        (Restorable(_), StatusEvent::Launched) => Err(StatusRefusal("it was not being started")),

        (Starting { resuming, .. }, StatusEvent::SetupFailed) => {
            Ok(Restorable(resuming.unwrap_or(Kept::SetupFailed)))
        }
        (_, StatusEvent::SetupFailed) => Err(StatusRefusal("it was not being started")),

        (Starting { resuming: Some(kept), .. }, StatusEvent::StarterDied { .. }) => Ok(Restorable(*kept)),
        (Starting { .. }, StatusEvent::StarterDied { at_risk: true }) => Ok(Restorable(Kept::SetupFailed)),
        (Starting { .. }, StatusEvent::StarterDied { at_risk: false }) => Ok(Ending(self::Ending::Clean)),
        (_, StatusEvent::StarterDied { .. }) => Err(StatusRefusal("it was not being started")),

        // A capsule that answers is alive, whatever was believed of it.
        (Starting { .. } | Active | Restorable(_), StatusEvent::CapsuleSeen) => Ok(Active),

        (Starting { .. } | Active, StatusEvent::CapsuleGone(how)) => Ok(Restorable((*how).into())),
        (Restorable(_), StatusEvent::CapsuleGone(_)) => Ok(status.clone()),

        (Active, StatusEvent::LeftKeeping(kept)) => Ok(Restorable(*kept)),
        (Active, StatusEvent::LeftFinishing(why)) => Ok(Ending(*why)),
        (Restorable(_), StatusEvent::LeftKeeping(_)) => Ok(status.clone()),
        (Restorable(_), StatusEvent::LeftFinishing(_)) => {
            Err(StatusRefusal("it is already kept; `abide eject` removes a kept instance"))
        }
        (Starting { .. }, StatusEvent::LeftKeeping(_) | StatusEvent::LeftFinishing(_)) => {
            Err(StatusRefusal("it is still being started"))
        }

        (Restorable(kept), StatusEvent::Resume { by }) => {
            Ok(Starting { by: by.clone(), resuming: Some(*kept) })
        }
        (Active, StatusEvent::Resume { .. }) => {
            Err(StatusRefusal("it is running; `abide hardline` attaches to it"))
        }
        (Starting { .. }, StatusEvent::Resume { .. }) => Err(StatusRefusal("it is already being started")),

        (Active | Restorable(_), StatusEvent::Discarded(why)) => Ok(Ending(*why)),
        (Starting { .. }, StatusEvent::Discarded(_)) => {
            Err(StatusRefusal("it is still being started; try again when it is up"))
        }

        (Restorable(_), StatusEvent::TakenFromTrash | StatusEvent::RemovalTakenBack { .. }) => {
            Ok(status.clone())
        }
        (Starting { .. } | Active, StatusEvent::RemovalTakenBack { .. }) => {
            Err(StatusRefusal("it is not being removed"))
        }
        (Starting { .. } | Active, StatusEvent::TakenFromTrash) => {
            Err(StatusRefusal("it is not in the trash"))
        }

        (Ending(_), StatusEvent::RemovalTakenBack { runs: true }) => Ok(Active),
        (Ending(_), StatusEvent::TakenFromTrash | StatusEvent::RemovalTakenBack { runs: false }) => {
            Ok(Restorable(Kept::Kept))
        }
        (
            Ending(_),
            StatusEvent::CapsuleGone(_) | StatusEvent::Discarded(_) | StatusEvent::LeftFinishing(_),
        ) => Ok(status.clone()),
        (
            Ending(_),
            StatusEvent::Launched
            | StatusEvent::CapsuleSeen
            | StatusEvent::LeftKeeping(_)
            | StatusEvent::Resume { .. },
        ) => Err(StatusRefusal("it is being removed; `abide eject ID --keep` cancels that")),
    }
}

/// A status with the time it was entered and what led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StandingRecord", into = "StandingRecord")]
pub struct Standing {
    /// Where the instance is in its life.
    pub status: Status,
    pub since: Timestamp,
    /// What led to it, in words.
    pub because: String,
    /// Whose decision it is, where it needed one.
    pub decided_by: Option<DecidedBy>,
    /// What is in the way of a removal that was decided, in words.
    pub obstacle: Option<String>,
    /// Fields of a newer abide.
    pub extra: Extra,
}

/// [`Standing`] as it is written.
#[derive(Clone, Serialize, Deserialize)]
struct StandingRecord {
    state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<ProcessIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resuming: Option<Kept>,
    since: Timestamp,
    #[serde(default)]
    because: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided_by: Option<DecidedBy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    obstacle: Option<String>,
    #[serde(flatten)]
    extra: Extra,
}

impl TryFrom<StandingRecord> for Standing {
    type Error = String;

    fn try_from(record: StandingRecord) -> Result<Self, String> {
        let reason = record.reason.as_deref();
        let missing = |what: &str| format!("status `{}` without {what}", record.state);
        let status = match record.state.as_str() {
            "starting" => Status::Starting {
                by: record.by.clone().ok_or_else(|| missing("who is starting it"))?,
                resuming: record.resuming,
            },
            "active" => Status::Active,
            "restorable" => Status::Restorable(
                reason
                    .ok_or_else(|| missing("a reason"))?
                    .parse()
                    .map_err(|e: crate::UnknownChoice| e.to_string())?,
            ),
            "ending" => Status::Ending(
                reason
                    .ok_or_else(|| missing("a reason"))?
                    .parse()
                    .map_err(|e: crate::UnknownChoice| e.to_string())?,
            ),
            other => return Err(format!("unknown status `{other}`")),
        };
        let StandingRecord { since, because, decided_by, obstacle, extra, .. } = record;
        Ok(Self { status, since, because, decided_by, obstacle, extra })
    }
}

impl From<Standing> for StandingRecord {
    fn from(standing: Standing) -> Self {
        let (by, resuming) = match &standing.status {
            Status::Starting { by, resuming } => (Some(by.clone()), *resuming),
            _ => (None, None),
        };
        Self {
            state: standing.status.state().to_string(),
            reason: standing.status.reason().map(str::to_owned),
            by,
            resuming,
            since: standing.since,
            because: standing.because,
            decided_by: standing.decided_by,
            obstacle: standing.obstacle,
            extra: standing.extra,
        }
    }
}
