//! The systemd user unit of a capsule on the host.
//!
//! What runs in a login session may end with it. A capsule's keeper is therefore moved into a transient scope of the user
//! manager before anything runs in it, where that makes it survive; [`abide_model::unit`] decides where it does.
//! Failing to make a unit never blocks a session: whatever goes wrong here is an [`Outcome`], not an error.
//!
//! A scope serves `unit = "service"` too. What a service has beyond a scope is that the manager starts its main process
//! again, and a keeper that was started again would have lost the terminals it kept.

mod bus;
mod cgroup;
mod login;

use std::fmt;
use std::time::Duration;

use abide_model::unit::{self, Facts, Placement};
use abide_model::{InstanceId, UnitMode};

pub use bus::LingerError;
pub use login::Login;

/// How long systemd may take to do what it agreed to do.
const TO_HAPPEN: Duration = Duration::from_secs(2);

/// What became of the wish for a unit. Its text is the line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The keeper is in a unit of its own.
    Enabled {
        /// The unit.
        unit: String,
    },
    /// The configuration wants none.
    Disabled,
    /// None can be had here, or none would help.
    Unavailable {
        /// Why.
        why: String,
        /// What the operator should know, where there is something to be done about it.
        warning: Option<String>,
    },
    /// It was wanted, and is not there; the keeper is a plain daemon.
    FellBack {
        /// Why.
        why: String,
        /// What the operator should know, where there is something to be done about it.
        warning: Option<String>,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cgroup isolation: ")?;
        match self {
            Self::Enabled { unit } => write!(f, "enabled ({unit})"),
            Self::Disabled => f.write_str("disabled (config)"),
            Self::Unavailable { why, .. } => write!(f, "unavailable ({why})"),
            Self::FellBack { why, .. } => write!(f, "requested but failed: fell back ({why})"),
        }
    }
}

impl Outcome {
    /// What the operator should be told when the session starts.
    pub fn warning(&self) -> Option<&str> {
        match self {
            Self::Enabled { .. } | Self::Disabled => None,
            Self::Unavailable { warning, .. } | Self::FellBack { warning, .. } => warning.as_deref(),
        }
    }
}

/// Everything that bears on whether sessions of this login survive its end.
pub fn examine() -> Facts {
    Login::here().examine()
}

/// Turns linger on for the operator.
pub fn enable_linger() -> Result<(), LingerError> {
    Login::here().enable_linger()
}

/// Puts the keeper of `id`, in which nothing runs yet, where it survives a logout as far as that can be had.
pub fn place(keeper: u32, id: InstanceId, mode: UnitMode, may_enable_linger: bool) -> Outcome {
    if mode == UnitMode::Off {
        return Outcome::Disabled;
    }
    let login = Login::here();
    let mut facts = login.look();
    let mut decided = unit::decide(mode, &facts, may_enable_linger);
    if decided.decision == Placement::EnableLinger {
        let refused = login.enable_linger().err();
        facts = login.look();
        decided = unit::decide(mode, &facts, false);
        if let Some(refusal) = refused {
            decided.reason = format!("linger is off and could not be turned on: {}", refusal.why()).into();
        }
    }
    let wanted = decided.decision == Placement::Unit;
    let why = match wanted.then(|| move_into_unit(&login, keeper, id)) {
        Some(Ok(unit)) => return Outcome::Enabled { unit },
        Some(Err(why)) => why,
        None => decided.reason.into_owned(),
    };
    // Only now does it matter what logind does to plain daemons, and asking it takes a process.
    login.ask_logind(&mut facts);
    let warning = unit::warning(&facts, &why);
    match mode {
        UnitMode::Auto if !wanted => Outcome::Unavailable { why, warning },
        _ => Outcome::FellBack { why, warning },
    }
}

/// Makes a scope of the keeper and gives its name.
fn move_into_unit(login: &Login, keeper: u32, id: InstanceId) -> Result<String, String> {
    let name = format!("abide-{id}.scope");
    match scope_of(login, keeper, id, &name) {
        // The scope of an earlier run is still there because something that left the capsule still runs in it. It is
        // not this run's to end, and a scope takes no further processes.
        Err(why) if why.contains("already loaded") => {
            let name = format!("abide-{id}-{keeper}.scope");
            scope_of(login, keeper, id, &name).map(|()| name)
        }
        other => other.map(|()| name),
    }
}

fn scope_of(login: &Login, keeper: u32, id: InstanceId, name: &str) -> Result<(), String> {
    let description = format!("abide {}", id.display_name());
    let asked = bus::start_scope(login, name, &description, keeper);
    // Only the kernel's word counts, in both directions: a job that was accepted may fail, and an answer may get lost.
    let limit = if asked.is_ok() { TO_HAPPEN } else { Duration::ZERO };
    if login::eventually(limit, || cgroup::of(keeper).is_some_and(|path| cgroup::is_in(&path, name))) {
        return Ok(());
    }
    Err(match asked {
        Err(error) => error.to_string(),
        Ok(()) => format!("systemd did not move the keeper into {name} within {} s", TO_HAPPEN.as_secs()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_reports_read_as_they_are_searched_for() {
        let none = || None;
        for (outcome, text) in [
            (Outcome::Enabled { unit: "abide-k7p9m2xq.scope".into() }, "enabled (abide-k7p9m2xq.scope)"),
            (Outcome::Disabled, "disabled (config)"),
            (Outcome::Unavailable { why: "no systemd".into(), warning: none() }, "unavailable (no systemd)"),
            (
                Outcome::FellBack { why: "no answer".into(), warning: none() },
                "requested but failed: fell back (no answer)",
            ),
        ] {
            assert_eq!(outcome.to_string(), format!("cgroup isolation: {text}"));
        }
    }

    #[test]
    fn off_is_honoured_without_looking() {
        let outcome = place(1, "k7p9m2xq".parse().unwrap(), UnitMode::Off, true);
        assert_eq!((&outcome, outcome.warning()), (&Outcome::Disabled, None));
    }
}
