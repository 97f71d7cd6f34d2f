//! What already runs: whether it survives as things are now, and whether moving it would help.

use std::fmt;

use super::{Fate, Linger, PlacementFacts, fate, is_out_of_reach, prospect, remedy};
use crate::choice::UnitMode;
use crate::decide::Decided;

/// How well a supervisor that runs is protected from the next logout, as things are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// No logout ends it.
    Protected,
    /// Moving it into a unit of its own protects it from what `Fate` says of it now.
    Movable(Fate),
    /// No move would help.
    Exposed(Fate),
}

impl Protection {
    /// What the next logout does to it where it is.
    pub fn fate(self) -> Fate {
        match self {
            Self::Protected => Fate::Survives,
            Self::Movable(fate) | Self::Exposed(fate) => fate,
        }
    }
}

/// Decides how well a supervisor that runs where `facts` say is protected. What was decided at its start does not count:
/// linger may have been turned on or off since.
pub fn protection(mode: UnitMode, facts: &PlacementFacts) -> Decided<Protection> {
    if is_out_of_reach(facts) {
        return Decided::new(Protection::Protected, "nothing ends it before a shutdown");
    }
    let fate = fate(facts);
    match (&facts.manager_fault, mode) {
        (_, UnitMode::Off) => {
            Decided::new(Protection::Exposed(fate), "`unit = \"off\"` leaves it where it is")
        }
        _ if facts.linger == Linger::Off => Decided::new(Protection::Exposed(fate), "linger is off"),
        (Some(fault), _) => Decided::new(Protection::Exposed(fate), fault.reason()),
        (None, _) => Decided::new(Protection::Movable(fate), "it was started without its own unit"),
    }
}

/// What ends a supervisor that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    /// What ends it, and why.
    pub danger: String,
    pub remedy: String,
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.danger, self.remedy)
    }
}

/// What an operator should know about a supervisor that runs where `facts` say, and do about it; `None` where it survives.
pub fn exposure(mode: UnitMode, facts: &PlacementFacts) -> Option<Exposure> {
    let Decided { decision, reason } = protection(mode, facts);
    if decision == Protection::Protected {
        return None;
    }
    let remedy = match decision {
        Protection::Movable(_) => "`abide doctor --fix` moves it into its own unit".to_owned(),
        _ if mode == UnitMode::Off => "`abide config set unit auto`, then `abide doctor --fix`".to_owned(),
        _ => remedy(facts),
    };
    let danger = format!("{}: {reason}", prospect(facts, "it")?);
    Some(Exposure { danger, remedy })
}
