//! Where the supervisor of an instance on the host goes, so that it outlives the login that started it.
//!
//! The rule that shapes this: a systemd user unit without linger is worse than none. The user manager stops shortly
//! after the last logout and takes its units with it, while a plain daemon of the same login may well live on.

use crate::choice::UnitMode;
use crate::decide::Decided;

/// What is known about this login and its systemd. Gathered elsewhere; [`decide`] looks at nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Whether systemd runs this machine.
    pub systemd: bool,
    /// Why the bus of the user manager does not answer; `None` if it does.
    pub bus_fault: Option<String>,
    /// Whether the user manager outlives the last logout.
    pub linger: bool,
    /// Whether logind ends what a login leaves behind, for this very user; `None` if nobody could tell.
    pub kills: Option<bool>,
    /// What this process is part of.
    pub home: Home,
    /// What the operator is called, as `loginctl enable-linger` takes it.
    pub user: String,
}

/// What a process is part of, and so what it ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// A login session, which logind may clear away when it closes.
    Login,
    /// The user manager: a desktop's terminal, another unit.
    Manager,
    /// Neither: a system service, a container. No logout concerns it.
    Elsewhere,
}

/// Where the supervisor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Into a user unit of its own.
    Unit,
    /// Turn linger on first, and decide again.
    EnableLinger,
    /// Nowhere: it stays a plain daemon.
    Plain(Fate),
}

/// What the next logout does to a plain daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing.
    Survives,
    /// It ends it.
    Lost,
    /// Nobody could tell.
    Unknown,
}

/// Decides where a supervisor goes. `may_enable_linger`: whether the operator lets us turn it on for them.
pub fn decide(mode: UnitMode, facts: &Facts, may_enable_linger: bool) -> Decided<Placement> {
    let plain = Placement::Plain(fate(facts));
    match mode {
        UnitMode::Off => return Decided::new(plain, "the configuration says so"),
        UnitMode::Auto | UnitMode::Scope | UnitMode::Service => {}
    }
    if !facts.systemd {
        return Decided::new(plain, "this machine is not run by systemd");
    }
    match (facts.linger, &facts.bus_fault) {
        (true, None) => {
            Decided::new(Placement::Unit, "linger is on, so the user manager outlives the logout")
        }
        (true, Some(fault)) => Decided::new(plain, format!("the user bus does not answer: {fault}")),
        (false, _) if may_enable_linger => {
            Decided::new(Placement::EnableLinger, "linger is off, and may be turned on")
        }
        (false, _) => Decided::new(plain, "linger is off, and a user unit would end with the last logout"),
    }
}

/// What the next logout does to a daemon that stays where this process is.
pub fn fate(facts: &Facts) -> Fate {
    match facts.home {
        _ if !facts.systemd => Fate::Survives,
        Home::Elsewhere => Fate::Survives,
        Home::Manager if facts.linger => Fate::Survives,
        Home::Manager => Fate::Lost,
        Home::Login => match facts.kills {
            Some(true) => Fate::Lost,
            Some(false) => Fate::Survives,
            None => Fate::Unknown,
        },
    }
}

/// What the operator should know about a supervisor that stayed a plain daemon because of `why`; `None` where no logout
/// concerns it.
pub fn warning(facts: &Facts, why: &str) -> Option<String> {
    if !facts.systemd || facts.home == Home::Elsewhere {
        return None;
    }
    let prospect = match fate(facts) {
        Fate::Survives => "this session outlives your logout only while logind lets it",
        Fate::Lost => "this session will NOT survive your logout",
        Fate::Unknown => "whether this session survives your logout could not be found out",
    };
    Some(format!("{prospect}: {why}; {}", remedy(facts)))
}

/// What makes sessions survive a logout where no unit can be had.
pub fn remedy(facts: &Facts) -> String {
    if !facts.linger {
        let user = &facts.user;
        return format!(
            "turn linger on with `abide doctor --fix`, or with `sudo loginctl enable-linger {user}`"
        );
    }
    match facts.bus_fault {
        Some(_) => "log in anew, or install dbus-user-session".to_owned(),
        None => "`journalctl --user` may tell more".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(linger: bool, kills: bool) -> Facts {
        let user = "ada".to_owned();
        Facts { systemd: true, bus_fault: None, linger, kills: Some(kills), home: Home::Login, user }
    }

    const UNITS: [UnitMode; 3] = [UnitMode::Auto, UnitMode::Scope, UnitMode::Service];

    #[test]
    fn every_row_of_the_survival_table_is_decided_for_what_survives() {
        use Fate::{Lost, Survives};
        for (kills, linger, mode, expected) in [
            (false, false, UnitMode::Auto, Placement::Plain(Survives)),
            (true, false, UnitMode::Auto, Placement::Plain(Lost)),
            (true, true, UnitMode::Auto, Placement::Unit),
            (true, false, UnitMode::Scope, Placement::Plain(Lost)),
            (false, false, UnitMode::Scope, Placement::Plain(Survives)),
            (true, true, UnitMode::Scope, Placement::Unit),
            (true, true, UnitMode::Service, Placement::Unit),
            (false, true, UnitMode::Auto, Placement::Unit),
            (true, true, UnitMode::Off, Placement::Plain(Lost)),
            (false, true, UnitMode::Off, Placement::Plain(Survives)),
        ] {
            let decided = decide(mode, &facts(linger, kills), false);
            assert_eq!(decided.decision, expected, "kills {kills}, linger {linger}, unit = {mode}");
        }
    }

    #[test]
    fn there_is_never_a_user_unit_without_linger() {
        for mode in UNITS {
            for kills in [None, Some(true), Some(false)] {
                for home in [Home::Login, Home::Manager, Home::Elsewhere] {
                    for bus_fault in [None, Some("gone".to_owned())] {
                        for may in [true, false] {
                            let facts =
                                Facts { kills, home, bus_fault: bus_fault.clone(), ..facts(false, true) };
                            assert_ne!(
                                decide(mode, &facts, may).decision,
                                Placement::Unit,
                                "{mode} {facts:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn linger_is_turned_on_only_with_leave_and_only_where_it_is_off() {
        for mode in UNITS {
            assert_eq!(decide(mode, &facts(false, true), true).decision, Placement::EnableLinger);
            assert_eq!(decide(mode, &facts(true, true), true).decision, Placement::Unit);
        }
        let off = decide(UnitMode::Off, &facts(false, true), true);
        assert_eq!(off.decision, Placement::Plain(Fate::Lost), "`off` is always honoured");
    }

    #[test]
    fn where_no_logout_concerns_it_nobody_is_warned() {
        let bare =
            Facts { systemd: false, bus_fault: Some("none".into()), kills: None, ..facts(false, false) };
        for mode in UNITS {
            assert_eq!(decide(mode, &bare, true).decision, Placement::Plain(Fate::Survives));
        }
        assert_eq!(warning(&bare, "why"), None);
        let in_a_service = Facts { home: Home::Elsewhere, ..facts(false, true) };
        assert_eq!(warning(&in_a_service, "why"), None, "no logout concerns it");
    }

    #[test]
    fn a_bus_that_does_not_answer_means_no_unit_and_says_why() {
        let facts = Facts { bus_fault: Some("connection refused".into()), ..facts(true, true) };
        let decided = decide(UnitMode::Auto, &facts, true);
        assert_eq!(decided.decision, Placement::Plain(Fate::Lost));
        assert_eq!(decided.reason, "the user bus does not answer: connection refused");
        assert!(warning(&facts, "why").unwrap().contains("why; log in anew, or install dbus-user-session"));
    }

    #[test]
    fn a_daemon_ends_with_what_it_is_part_of() {
        for (home, linger, kills, expected) in [
            (Home::Manager, false, Some(false), Fate::Lost),
            (Home::Manager, true, Some(true), Fate::Survives),
            (Home::Elsewhere, false, Some(true), Fate::Survives),
            (Home::Login, true, Some(true), Fate::Lost),
            (Home::Login, true, None, Fate::Unknown),
        ] {
            let facts = Facts { home, linger, kills, ..facts(false, false) };
            assert_eq!(fate(&facts), expected, "{home:?}, linger {linger}, kills {kills:?}");
        }
    }

    #[test]
    fn what_can_not_survive_is_said_with_the_exact_command() {
        let warning = warning(&facts(false, true), "linger is off").unwrap();
        assert!(warning.contains("NOT survive"), "{warning}");
        assert!(warning.contains("sudo loginctl enable-linger ada"), "{warning}");
    }
}
