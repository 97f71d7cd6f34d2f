//! The systemd user unit of a capsule on the host, and the one of the tmux server.
//!
//! What runs in a login session may end with it. A capsule's keeper is therefore moved into a transient scope of the user
//! manager before anything runs in it, where that makes it survive; [`abide_model::placement`] decides where it does.
//! Failing to make a unit never blocks a session: whatever goes wrong here is an [`ScopeOutcome`], not an error.
//!
//! A scope serves `unit = "service"` too. What a service has beyond a scope is that the manager starts its main process
//! again, and a keeper that was started again would have lost the terminals it kept.

use std::fmt;
use std::time::Duration;

use abide_model::placement::{self, LingerConsent, Placement, PlacementFacts};
use abide_model::{InstanceId, Pid, UnitMode};

use super::cgroup;
use super::login::{Inspector, Login};
use super::moving::{NewScope, move_into_unit};

/// How long systemd may take to do what it agreed to do.
pub(super) const TO_HAPPEN: Duration = Duration::from_secs(2);

/// What became of the wish for a unit. Its text is the line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeOutcome {
    /// The keeper is in a unit of its own.
    Enabled { unit: String },
    /// The configuration wants none.
    Disabled,
    /// It needs none: its engine keeps it.
    Container,
    /// None can be had here, or none would help.
    Unavailable {
        why: String,
        /// What the operator should know, where there is something to be done about it.
        warning: Option<String>,
    },
    /// It was wanted, and is not there; the keeper is a plain daemon.
    FellBack {
        why: String,
        /// What the operator should know, where there is something to be done about it.
        warning: Option<String>,
    },
}

impl fmt::Display for ScopeOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cgroup isolation: ")?;
        match self {
            Self::Enabled { unit } => write!(f, "enabled ({unit})"),
            Self::Disabled => f.write_str("disabled (config)"),
            Self::Container => f.write_str("by its container"),
            Self::Unavailable { why, .. } => write!(f, "unavailable ({why})"),
            Self::FellBack { why, .. } => write!(f, "requested but failed: fell back ({why})"),
        }
    }
}

impl ScopeOutcome {
    /// What the operator should know when the session starts.
    pub fn warning(&self) -> Option<&str> {
        match self {
            Self::Enabled { .. } | Self::Disabled | Self::Container => None,
            Self::Unavailable { warning, .. } | Self::FellBack { warning, .. } => warning.as_deref(),
        }
    }
}

/// Puts the keeper of `id`, in which nothing runs yet, where it survives a logout as far as that can be had.
pub fn place(keeper: Pid, id: InstanceId, mode: UnitMode, consent: LingerConsent) -> ScopeOutcome {
    place_all(&[keeper], &NewScope::of(id), mode, consent)
}

/// Puts a tmux server that was just started where it survives a logout, with the processes of its panes.
pub fn place_server(server: Pid, panes: &[Pid], mode: UnitMode, consent: LingerConsent) -> ScopeOutcome {
    place_all(&[&[server], panes].concat(), &NewScope::of_tmux(), mode, consent)
}

/// Where a tmux server is that was found running. It is not moved: what runs in its panes would stay behind.
pub fn placement_of(server: Pid, mode: UnitMode) -> ScopeOutcome {
    if let Some(unit) = own_unit(server) {
        return ScopeOutcome::Enabled { unit };
    }
    if mode == UnitMode::Off {
        return ScopeOutcome::Disabled;
    }
    let facts = Inspector::new(Login::here()).facts_of(server);
    let decided = placement::decide(mode, &facts, LingerConsent::NotGiven);
    if decided.decision == Placement::Unit {
        let why = "the tmux server was started without a unit";
        let warning = placement::prospect(&facts, "this session").map(|_| {
            format!("this session may end with another login: {why}; `abide doctor --fix` moves it")
        });
        return ScopeOutcome::FellBack { why: why.to_owned(), warning };
    }
    let warning = placement::warning(&facts, &decided.reason);
    ScopeOutcome::Unavailable { why: decided.reason.into_owned(), warning }
}

/// The unit that abide made and that process `pid` is in, if it is in one.
pub fn own_unit(pid: Pid) -> Option<String> {
    let path = cgroup::of(pid)?;
    let is_own = |part: &&str| part.starts_with("abide-") && part.ends_with(".scope");
    path.split('/').find(is_own).map(str::to_owned)
}

/// Moves `pids`, the first of which counts, where they survive a logout.
fn place_all(pids: &[Pid], scope: &NewScope, mode: UnitMode, consent: LingerConsent) -> ScopeOutcome {
    if mode == UnitMode::Off {
        return ScopeOutcome::Disabled;
    }
    let login = Login::here();
    let mut facts = login.look();
    let mut decided = placement::decide(mode, &facts, consent);
    if decided.decision == Placement::EnableLinger {
        let refused = login.enable_linger().err();
        facts = PlacementFacts { linger_refused: refused, ..login.look() };
        decided = placement::decide(mode, &facts, LingerConsent::Given);
    }
    let wanted = decided.decision == Placement::Unit;
    let why = match wanted.then(|| move_into_unit(&login, pids, scope)) {
        Some(Ok(unit)) => return ScopeOutcome::Enabled { unit },
        Some(Err(fault)) => {
            let why = fault.why().to_owned();
            facts.manager_fault = Some(fault);
            why
        }
        None => decided.reason.into_owned(),
    };
    // Only now does it matter what ends plain daemons, and asking takes a process.
    facts.home = login.examine().home;
    let warning = placement::warning(&facts, &why);
    match mode {
        UnitMode::Auto if !wanted => ScopeOutcome::Unavailable { why, warning },
        _ => ScopeOutcome::FellBack { why, warning },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_reports_read_as_they_are_searched_for() {
        let none = || None;
        for (outcome, text) in [
            (ScopeOutcome::Enabled { unit: "abide-k7p9m2xq.scope".into() }, "enabled (abide-k7p9m2xq.scope)"),
            (ScopeOutcome::Disabled, "disabled (config)"),
            (
                ScopeOutcome::Unavailable { why: "no systemd".into(), warning: none() },
                "unavailable (no systemd)",
            ),
            (
                ScopeOutcome::FellBack { why: "no answer".into(), warning: none() },
                "requested but failed: fell back (no answer)",
            ),
        ] {
            assert_eq!(outcome.to_string(), format!("cgroup isolation: {text}"));
        }
    }

    #[test]
    fn off_is_honoured_without_looking() {
        let outcome = place(Pid(1), "k7p9m2xq".parse().unwrap(), UnitMode::Off, LingerConsent::Given);
        assert_eq!((&outcome, outcome.warning()), (&ScopeOutcome::Disabled, None));
    }
}
