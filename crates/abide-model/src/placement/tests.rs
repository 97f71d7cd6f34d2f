use super::EndRule::{Keeps, Kills};
use super::Linger::{Off, On};
use super::LingerConsent::{Given, NotGiven};
use super::*;

fn facts(linger: Linger, at_end: EndRule) -> PlacementFacts {
    PlacementFacts {
        systemd: true,
        manager_fault: None,
        linger,
        linger_refused: None,
        home: Home::Login { at_end },
        user: "ada".to_owned(),
    }
}

fn service(at_end: EndRule, manager: Option<ManagerEnd>) -> Home {
    Home::Service { name: "nightly.service".to_owned(), at_end, manager }
}

const UNITS: [UnitMode; 3] = [UnitMode::Auto, UnitMode::Scope, UnitMode::Service];

#[test]
fn every_row_of_the_survival_table_is_decided_for_what_survives() {
    use Fate::{Lost, Survives};
    for (at_end, linger, mode, expected) in [
        (Keeps, Off, UnitMode::Auto, Placement::Plain(Survives)),
        (Kills, Off, UnitMode::Auto, Placement::Plain(Lost)),
        (Kills, On, UnitMode::Auto, Placement::Unit),
        (Kills, Off, UnitMode::Scope, Placement::Plain(Lost)),
        (Keeps, Off, UnitMode::Scope, Placement::Plain(Survives)),
        (Kills, On, UnitMode::Scope, Placement::Unit),
        (Kills, On, UnitMode::Service, Placement::Unit),
        (Keeps, On, UnitMode::Auto, Placement::Unit),
        (Kills, On, UnitMode::Off, Placement::Plain(Lost)),
        (Keeps, On, UnitMode::Off, Placement::Plain(Survives)),
    ] {
        let decided = decide(mode, &facts(linger, at_end), NotGiven);
        assert_eq!(decided.decision, expected, "{at_end:?}, linger {linger:?}, unit = {mode}");
    }
}

fn homes() -> Vec<Home> {
    use ManagerEnd::{LastLogout, Shutdown, TmuxServer};
    let rules = [EndRule::Unknown, Kills, Keeps];
    let managers = [None, Some(Shutdown), Some(LastLogout), Some(TmuxServer)];
    let logins = rules.into_iter().map(|at_end| Home::Login { at_end });
    let services = rules.into_iter().flat_map(|at_end| managers.map(|manager| service(at_end, manager)));
    let units = [Shutdown, LastLogout, TmuxServer].map(Home::Manager);
    logins.chain(services).chain(units).chain([Home::Elsewhere]).collect()
}

fn faults() -> [Option<ManagerFault>; 3] {
    [None, Some(ManagerFault::Absent("gone".into())), Some(ManagerFault::Silent("no answer".into()))]
}

#[test]
fn there_is_never_a_user_unit_without_linger() {
    for mode in UNITS {
        for home in homes() {
            for manager_fault in faults() {
                let facts = PlacementFacts { home: home.clone(), manager_fault, ..facts(Off, Kills) };
                for consent in [Given, NotGiven] {
                    assert_ne!(decide(mode, &facts, consent).decision, Placement::Unit, "{mode} {facts:?}");
                }
                let moved = protection(mode, &facts).decision;
                assert!(!matches!(moved, Protection::Movable(_)), "{mode} {facts:?}");
            }
        }
    }
}

#[test]
fn linger_is_turned_on_only_with_leave_and_only_where_it_is_off() {
    for mode in UNITS {
        assert_eq!(decide(mode, &facts(Off, Kills), Given).decision, Placement::EnableLinger);
        assert_eq!(decide(mode, &facts(On, Kills), Given).decision, Placement::Unit);
    }
    let off = decide(UnitMode::Off, &facts(Off, Kills), Given);
    assert_eq!(off.decision, Placement::Plain(Fate::Lost), "`off` is always honoured");
}

#[test]
fn linger_that_the_policy_refuses_is_not_promised_and_not_advised_again() {
    let facts = PlacementFacts { linger_refused: Some("the policy refuses".into()), ..facts(Off, Kills) };
    let decided = decide(UnitMode::Auto, &facts, Given);
    assert_eq!(decided.decision, Placement::Plain(Fate::Lost));
    let warning = warning(&facts, &decided.reason).unwrap();
    assert!(warning.contains("the policy refuses; an administrator can"), "{warning}");
    assert!(!warning.contains("doctor --fix"), "{warning}");
}

#[test]
fn where_nothing_ends_it_there_is_no_warning() {
    let bare = PlacementFacts {
        systemd: false,
        home: Home::Login { at_end: EndRule::Unknown },
        ..facts(Off, Keeps)
    };
    for mode in UNITS {
        assert_eq!(decide(mode, &bare, Given).decision, Placement::Plain(Fate::Survives));
    }
    for facts in [
        bare,
        PlacementFacts { home: Home::Elsewhere, ..facts(Off, Kills) },
        PlacementFacts { home: service(Keeps, None), ..facts(Off, Kills) },
    ] {
        assert_eq!(warning(&facts, "why"), None, "{facts:?}");
        assert_eq!(protection(UnitMode::Auto, &facts).decision, Protection::Protected, "{facts:?}");
    }
}

#[test]
fn a_service_takes_along_what_it_started_and_is_named() {
    for manager in [None, Some(ManagerEnd::Shutdown), Some(ManagerEnd::LastLogout)] {
        let facts = PlacementFacts { home: service(Kills, manager), ..facts(Off, Keeps) };
        assert_eq!(fate(&facts), Fate::EndsWithService);
        let warning = warning(&facts, "linger is off").unwrap();
        assert!(warning.starts_with("this session ends with nightly.service"), "{warning}");
        assert!(warning.contains("abide doctor --fix"), "{warning}");
    }
    let unknown = PlacementFacts { home: service(EndRule::Unknown, None), ..facts(Off, Keeps) };
    assert!(warning(&unknown, "why").unwrap().starts_with("this session may end with nightly.service"));
}

#[test]
fn a_manager_that_makes_no_unit_means_no_unit_and_says_why() {
    let fault = Some(ManagerFault::Absent("connection refused".into()));
    let facts = PlacementFacts { manager_fault: fault, ..facts(On, Kills) };
    let decided = decide(UnitMode::Auto, &facts, Given);
    assert_eq!(decided.decision, Placement::Plain(Fate::Lost));
    assert_eq!(decided.reason, "the user bus does not answer: connection refused");
    assert!(warning(&facts, "why").unwrap().contains("why; log in again, or install dbus-user-session"));
}

#[test]
fn a_daemon_ends_with_what_it_is_part_of() {
    use ManagerEnd::{LastLogout, Shutdown, TmuxServer};
    for (home, expected) in [
        (Home::Manager(LastLogout), Fate::Lost),
        (Home::Manager(Shutdown), Fate::Survives),
        (Home::Manager(TmuxServer), Fate::Survives),
        (Home::Elsewhere, Fate::Survives),
        (Home::Login { at_end: Kills }, Fate::Lost),
        (Home::Login { at_end: Keeps }, Fate::Survives),
        (Home::Login { at_end: EndRule::Unknown }, Fate::Unknown),
        (service(Keeps, Some(LastLogout)), Fate::Lost),
        (service(Keeps, Some(Shutdown)), Fate::Survives),
        (service(Keeps, None), Fate::Survives),
        (service(EndRule::Unknown, None), Fate::EndsWithService),
    ] {
        let facts = PlacementFacts { home, ..facts(Off, Keeps) };
        assert_eq!(fate(&facts), expected, "{facts:?}");
    }
}

#[test]
fn what_cannot_survive_is_reported_with_the_exact_command() {
    let warning = warning(&facts(Off, Kills), "linger is off").unwrap();
    assert!(warning.contains("NOT survive"), "{warning}");
    assert!(warning.contains("sudo loginctl enable-linger ada"), "{warning}");
}

#[test]
fn a_pane_of_tmux_in_a_login_is_not_given_up_for_lost() {
    let facts = PlacementFacts { home: Home::Manager(ManagerEnd::TmuxServer), ..facts(Off, Keeps) };
    let warning = warning(&facts, "linger is off").unwrap();
    assert!(warning.starts_with("this session survives your logout only while your tmux server runs"));
}

#[test]
fn logind_judges_the_owner_of_the_login() {
    let rules = |enabled, except: &[&str], only: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        KillRules { enabled, except: owned(except), only: owned(only) }
    };
    for (rules, owner, expected) in [
        (rules(false, &[], &[]), "ada", Keeps),
        (rules(true, &[], &[]), "ada", Kills),
        (rules(true, &["root"], &[]), "ada", Kills),
        (rules(true, &["root"], &[]), "root", Keeps),
        (rules(true, &["root", "ada"], &[]), "ada", Keeps),
        (rules(true, &[], &["bob"]), "ada", Keeps),
        (rules(true, &[], &["bob"]), "bob", Kills),
    ] {
        assert_eq!(rules.apply_to(owner), expected, "{rules:?} {owner}");
    }
}

#[test]
fn what_runs_is_judged_by_where_it_is_and_by_linger_now() {
    let scope = |linger, end| PlacementFacts { home: Home::Manager(end), ..facts(linger, Kills) };
    for (mode, facts, expected) in [
        (UnitMode::Auto, scope(On, ManagerEnd::Shutdown), Protection::Protected),
        (UnitMode::Off, scope(On, ManagerEnd::Shutdown), Protection::Protected),
        (UnitMode::Auto, scope(Off, ManagerEnd::LastLogout), Protection::Exposed(Fate::Lost)),
        (UnitMode::Auto, facts(On, Kills), Protection::Movable(Fate::Lost)),
        (UnitMode::Auto, facts(On, Keeps), Protection::Movable(Fate::Survives)),
        (UnitMode::Off, facts(On, Kills), Protection::Exposed(Fate::Lost)),
        (UnitMode::Auto, facts(Off, Kills), Protection::Exposed(Fate::Lost)),
        (UnitMode::Auto, facts(Off, Keeps), Protection::Exposed(Fate::Survives)),
        (
            UnitMode::Auto,
            PlacementFacts {
                manager_fault: Some(ManagerFault::Silent("no answer".into())),
                ..facts(On, Kills)
            },
            Protection::Exposed(Fate::Lost),
        ),
        (
            UnitMode::Auto,
            PlacementFacts { home: service(Kills, Some(ManagerEnd::Shutdown)), ..facts(On, Kills) },
            Protection::Movable(Fate::EndsWithService),
        ),
    ] {
        assert_eq!(protection(mode, &facts).decision, expected, "{mode} {facts:?}");
    }
}

#[test]
fn an_exposed_supervisor_is_reported_with_what_protects_it() {
    let movable = exposure(UnitMode::Auto, &facts(On, Kills)).unwrap().to_string();
    assert!(movable.contains("NOT survive") && movable.contains("doctor --fix` moves it"), "{movable}");
    let removed = PlacementFacts { home: Home::Manager(ManagerEnd::LastLogout), ..facts(Off, Keeps) };
    let removed = exposure(UnitMode::Auto, &removed).unwrap().to_string();
    assert!(removed.contains("linger is off; turn linger on"), "{removed}");
    let off = exposure(UnitMode::Off, &facts(On, Kills)).unwrap().to_string();
    assert!(off.contains("abide config set unit auto"), "{off}");
    assert_eq!(
        exposure(UnitMode::Auto, &PlacementFacts { home: Home::Elsewhere, ..facts(Off, Kills) }),
        None
    );
}
