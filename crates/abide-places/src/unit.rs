//! The systemd user unit of a capsule on the host, and the one of the tmux server.
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

use abide_model::unit::{self, Facts, Home, Placement};
use abide_model::{InstanceId, UnitMode};

pub(crate) use bus::escaped;
pub use login::Login;
pub(crate) use login::{answers, eventually};

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

/// What the unit of the tmux server is called. It serves all instances, so it is named after none.
const TMUX: &str = "abide-tmux";

/// Puts the keeper of `id`, in which nothing runs yet, where it survives a logout as far as that can be had.
pub fn place(keeper: u32, id: InstanceId, mode: UnitMode, may_enable_linger: bool) -> Outcome {
    let (name, description) = (format!("abide-{id}"), format!("abide {}", id.display_name()));
    place_all(&[keeper], &Scope { name: &name, description: &description }, mode, may_enable_linger)
}

/// Puts a tmux server that was just started where it survives a logout, with the processes of its panes.
pub fn place_server(server: u32, panes: &[u32], mode: UnitMode, may_enable_linger: bool) -> Outcome {
    let scope = Scope { name: TMUX, description: "the tmux server of abide" };
    place_all(&[&[server], panes].concat(), &scope, mode, may_enable_linger)
}

/// Where a tmux server is that was found running. It is not moved: what runs in its panes would stay behind.
pub fn placement_of(server: u32, mode: UnitMode) -> Outcome {
    let path = cgroup::of(server).unwrap_or_default();
    if let Some(unit) = path.split('/').find(|part| part.starts_with(TMUX) && part.ends_with(".scope")) {
        return Outcome::Enabled { unit: unit.to_owned() };
    }
    if mode == UnitMode::Off {
        return Outcome::Disabled;
    }
    let login = Login::here();
    let mut facts = Facts { home: cgroup::home(&path), ..login.look() };
    let decided = unit::decide(mode, &facts, false);
    if decided.decision == Placement::Unit {
        let why = "the tmux server was started without a unit";
        let cure = "stop what runs in it (`abide ls`, `abide stop`), and the next start gives it one";
        let warning = (facts.home != Home::Elsewhere)
            .then(|| format!("this session may end with another login: {why}; {cure}"));
        return Outcome::FellBack { why: why.to_owned(), warning };
    }
    login.ask_logind(&mut facts);
    let warning = unit::warning(&facts, &decided.reason);
    Outcome::Unavailable { why: decided.reason.into_owned(), warning }
}

/// The scope that is to be made.
struct Scope<'a> {
    name: &'a str,
    description: &'a str,
}

/// Moves `pids`, the first of which counts, where they survive a logout.
fn place_all(pids: &[u32], scope: &Scope<'_>, mode: UnitMode, may_enable_linger: bool) -> Outcome {
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
            decided.reason = format!("linger is off and could not be turned on: {refusal}").into();
        }
    }
    let wanted = decided.decision == Placement::Unit;
    let why = match wanted.then(|| move_into_unit(&login, pids, scope)) {
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

/// Makes a scope of the processes and gives its name.
fn move_into_unit(login: &Login, pids: &[u32], scope: &Scope<'_>) -> Result<String, String> {
    let (first, base) = (pids.first().copied().unwrap_or_default(), scope.name);
    let name = format!("{base}.scope");
    match scope_of(login, pids, scope, &name) {
        // The scope of an earlier run is still there because something that left the capsule still runs in it. It is
        // not this run's to end, and a scope takes no further processes.
        Err(why) if why.contains("already loaded") => {
            let name = format!("{base}-{first}.scope");
            scope_of(login, pids, scope, &name).map(|()| name)
        }
        other => other.map(|()| name),
    }
}

fn scope_of(login: &Login, pids: &[u32], scope: &Scope<'_>, name: &str) -> Result<(), String> {
    let asked = bus::start_scope(login, name, scope.description, pids);
    // Only the kernel's word counts, in both directions: a job that was accepted may fail, and an answer may get lost.
    let limit = if asked.is_ok() { TO_HAPPEN } else { Duration::ZERO };
    let is_there = |pid: &u32| cgroup::of(*pid).is_some_and(|path| cgroup::is_in(&path, name));
    if eventually(limit, || pids.iter().all(is_there)) {
        return Ok(());
    }
    Err(match asked {
        Err(error) => error.to_string(),
        Ok(()) => format!("systemd did not move it into {name} within {} s", TO_HAPPEN.as_secs()),
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
