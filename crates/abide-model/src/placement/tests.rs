use super::*;

fn facts(linger: bool, kills: bool) -> PlacementFacts {
    PlacementFacts {
        systemd: true,
        manager_fault: None,
        linger,
        linger_refused: None,
        home: Home::Login { kills: Some(kills) },
        user: "ada".to_owned(),
    }
}

fn service(kills: Option<bool>, manager: Option<ManagerEnd>) -> Home {
    Home::Service { name: "nightly.service".to_owned(), kills, manager }
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

fn homes() -> Vec<Home> {
    use ManagerEnd::{LastLogout, Shutdown, TmuxServer};
    let kills = [None, Some(true), Some(false)];
    let managers = [None, Some(Shutdown), Some(LastLogout), Some(TmuxServer)];
    let logins = kills.into_iter().map(|kills| Home::Login { kills });
    let services = kills.into_iter().flat_map(|kills| managers.map(|manager| service(kills, manager)));
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
                let facts = PlacementFacts { home: home.clone(), manager_fault, ..facts(false, true) };
                for may in [true, false] {
                    assert_ne!(decide(mode, &facts, may).decision, Placement::Unit, "{mode} {facts:?}");
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
        assert_eq!(decide(mode, &facts(false, true), true).decision, Placement::EnableLinger);
        assert_eq!(decide(mode, &facts(true, true), true).decision, Placement::Unit);
    }
    let off = decide(UnitMode::Off, &facts(false, true), true);
    assert_eq!(off.decision, Placement::Plain(Fate::Lost), "`off` is always honoured");
}

#[test]
fn linger_that_the_policy_refuses_is_not_promised_and_not_advised_again() {
    let facts = PlacementFacts { linger_refused: Some("the policy refuses".into()), ..facts(false, true) };
    let decided = decide(UnitMode::Auto, &facts, true);
    assert_eq!(decided.decision, Placement::Plain(Fate::Lost));
    let warning = warning(&facts, &decided.reason).unwrap();
    assert!(warning.contains("the policy refuses; an administrator can"), "{warning}");
    assert!(!warning.contains("doctor --fix"), "{warning}");
}

#[test]
fn where_nothing_ends_it_there_is_no_warning() {
    let bare = PlacementFacts { systemd: false, home: Home::Login { kills: None }, ..facts(false, false) };
    for mode in UNITS {
        assert_eq!(decide(mode, &bare, true).decision, Placement::Plain(Fate::Survives));
    }
    for facts in [
        bare,
        PlacementFacts { home: Home::Elsewhere, ..facts(false, true) },
        PlacementFacts { home: service(Some(false), None), ..facts(false, true) },
    ] {
        assert_eq!(warning(&facts, "why"), None, "{facts:?}");
        assert_eq!(protection(UnitMode::Auto, &facts).decision, Protection::Protected, "{facts:?}");
    }
}

#[test]
fn a_service_takes_along_what_it_started_and_is_named() {
    for manager in [None, Some(ManagerEnd::Shutdown), Some(ManagerEnd::LastLogout)] {
        let facts = PlacementFacts { home: service(Some(true), manager), ..facts(false, false) };
        assert_eq!(fate(&facts), Fate::EndsWithService);
        let warning = warning(&facts, "linger is off").unwrap();
        assert!(warning.starts_with("this session ends with nightly.service"), "{warning}");
        assert!(warning.contains("abide doctor --fix"), "{warning}");
    }
    let unknown = PlacementFacts { home: service(None, None), ..facts(false, false) };
    assert!(warning(&unknown, "why").unwrap().starts_with("this session may end with nightly.service"));
}

#[test]
fn a_manager_that_makes_no_unit_means_no_unit_and_says_why() {
    let fault = Some(ManagerFault::Absent("connection refused".into()));
    let facts = PlacementFacts { manager_fault: fault, ..facts(true, true) };
    let decided = decide(UnitMode::Auto, &facts, true);
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
        (Home::Login { kills: Some(true) }, Fate::Lost),
        (Home::Login { kills: Some(false) }, Fate::Survives),
        (Home::Login { kills: None }, Fate::Unknown),
        (service(Some(false), Some(LastLogout)), Fate::Lost),
        (service(Some(false), Some(Shutdown)), Fate::Survives),
        (service(Some(false), None), Fate::Survives),
        (service(None, None), Fate::EndsWithService),
    ] {
        let facts = PlacementFacts { home, ..facts(false, false) };
        assert_eq!(fate(&facts), expected, "{facts:?}");
    }
}

#[test]
fn what_cannot_survive_is_reported_with_the_exact_command() {
    let warning = warning(&facts(false, true), "linger is off").unwrap();
    assert!(warning.contains("NOT survive"), "{warning}");
    assert!(warning.contains("sudo loginctl enable-linger ada"), "{warning}");
}

#[test]
fn a_pane_of_tmux_in_a_login_is_not_given_up_for_lost() {
    let facts = PlacementFacts { home: Home::Manager(ManagerEnd::TmuxServer), ..facts(false, false) };
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
        (rules(false, &[], &[]), "ada", false),
        (rules(true, &[], &[]), "ada", true),
        (rules(true, &["root"], &[]), "ada", true),
        (rules(true, &["root"], &[]), "root", false),
        (rules(true, &["root", "ada"], &[]), "ada", false),
        (rules(true, &[], &["bob"]), "ada", false),
        (rules(true, &[], &["bob"]), "bob", true),
    ] {
        assert_eq!(rules.apply_to(owner), expected, "{rules:?} {owner}");
    }
}

#[test]
fn what_runs_is_judged_by_where_it_is_and_by_linger_now() {
    let scope = |linger, end| PlacementFacts { home: Home::Manager(end), ..facts(linger, true) };
    for (mode, facts, expected) in [
        (UnitMode::Auto, scope(true, ManagerEnd::Shutdown), Protection::Protected),
        (UnitMode::Off, scope(true, ManagerEnd::Shutdown), Protection::Protected),
        (UnitMode::Auto, scope(false, ManagerEnd::LastLogout), Protection::Exposed(Fate::Lost)),
        (UnitMode::Auto, facts(true, true), Protection::Movable(Fate::Lost)),
        (UnitMode::Auto, facts(true, false), Protection::Movable(Fate::Survives)),
        (UnitMode::Off, facts(true, true), Protection::Exposed(Fate::Lost)),
        (UnitMode::Auto, facts(false, true), Protection::Exposed(Fate::Lost)),
        (UnitMode::Auto, facts(false, false), Protection::Exposed(Fate::Survives)),
        (
            UnitMode::Auto,
            PlacementFacts {
                manager_fault: Some(ManagerFault::Silent("no answer".into())),
                ..facts(true, true)
            },
            Protection::Exposed(Fate::Lost),
        ),
        (
            UnitMode::Auto,
            PlacementFacts { home: service(Some(true), Some(ManagerEnd::Shutdown)), ..facts(true, true) },
            Protection::Movable(Fate::EndsWithService),
        ),
    ] {
        assert_eq!(protection(mode, &facts).decision, expected, "{mode} {facts:?}");
    }
}

#[test]
fn an_exposed_supervisor_is_reported_with_what_protects_it() {
    let movable = exposure(UnitMode::Auto, &facts(true, true)).unwrap().to_string();
    assert!(movable.contains("NOT survive") && movable.contains("doctor --fix` moves it"), "{movable}");
    let removed = PlacementFacts { home: Home::Manager(ManagerEnd::LastLogout), ..facts(false, false) };
    let removed = exposure(UnitMode::Auto, &removed).unwrap().to_string();
    assert!(removed.contains("linger is off; turn linger on"), "{removed}");
    let off = exposure(UnitMode::Off, &facts(true, true)).unwrap().to_string();
    assert!(off.contains("abide config set unit auto"), "{off}");
    assert_eq!(
        exposure(UnitMode::Auto, &PlacementFacts { home: Home::Elsewhere, ..facts(false, true) }),
        None
    );
}
