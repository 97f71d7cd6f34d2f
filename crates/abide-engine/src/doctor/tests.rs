use std::os::unix::fs::PermissionsExt;

use abide_model::placement::EndRule::{self, Keeps, Kills};
use abide_model::placement::Linger::{self, Off, On};
use abide_model::placement::LingerConsent::{self, Given, NotGiven};

use super::*;

struct Fake {
    dir: tempfile::TempDir,
    machine: Machine,
}

fn bare_machine() -> Fake {
    let dir = tempfile::tempdir().unwrap();
    let login = Login {
        root: dir.path().to_owned(),
        runtime_dir: dir.path().join("runtime"),
        uid: 1000,
        user: Some("ada".into()),
    };
    std::fs::create_dir(dir.path().join("bin")).unwrap();
    Fake { machine: Machine { path: dir.path().join("bin").into(), login }, dir }
}

impl Fake {
    fn add_program(&self, name: &str, script: &str) {
        let path = self.dir.path().join("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn grade(&self, subject: &str) -> (Grade, String) {
        let all = examine(&self.machine, Wishes::default());
        let found = all.iter().find(|f| f.subject == subject).unwrap();
        (found.grade, found.detail.clone())
    }
}

#[test]
fn a_bare_machine_has_nothing_and_nothing_is_wrong_with_that() {
    let findings = examine(&bare_machine().machine, Wishes::default());
    assert_eq!(findings.len(), 7 + AGENTS.len());
    assert!(findings.iter().all(|f| f.grade == Grade::Absent), "{findings:#?}");
}

#[test]
fn agents_are_found_on_the_path_with_their_version() {
    let fake = bare_machine();
    fake.add_program("claude", "echo '2.1.325 (Claude Code)'");
    let (grade, detail) = fake.grade("agent claude");
    assert_eq!(grade, Grade::Ok);
    assert!(detail.starts_with("2.1.325 (Claude Code) ("), "{detail}");
}

#[test]
fn an_agent_that_cannot_tell_its_version_is_a_problem() {
    let fake = bare_machine();
    fake.add_program("codex", "echo 'no runtime' >&2; exit 1");
    let (grade, detail) = fake.grade("agent codex");
    assert_eq!(grade, Grade::Problem);
    assert!(detail.contains("no runtime"), "{detail}");
}

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

fn with(unit: UnitMode, linger: LingerConsent) -> Wishes {
    Wishes { unit, linger, ..Wishes::default() }
}

#[test]
fn what_a_logout_does_is_reported_with_what_to_do_about_it() {
    let tmux = Wishes { substrate: Substrate::Tmux, ..with(UnitMode::Auto, NotGiven) };
    let mut report = String::new();
    for (wishes, facts, grade) in [
        (with(UnitMode::Auto, NotGiven), facts(On, Kills), Grade::Ok),
        (with(UnitMode::Auto, Given), facts(Off, Kills), Grade::Ok),
        (with(UnitMode::Auto, NotGiven), facts(Off, Keeps), Grade::Warning),
        (with(UnitMode::Auto, NotGiven), facts(Off, Kills), Grade::Warning),
        (with(UnitMode::Off, NotGiven), facts(On, Kills), Grade::Warning),
        (with(UnitMode::Off, NotGiven), facts(On, Keeps), Grade::Ok),
        (tmux, facts(On, Kills), Grade::Ok),
    ] {
        let found = logout(wishes, &facts, LingerPolicy::Allows);
        assert_eq!(found.grade, grade, "{found:?}");
        assert_eq!(found.advice.is_some(), grade == Grade::Warning, "{found:?}");
        report += &format!("{found:#?}\n");
    }
    insta::assert_snapshot!(report);
}

#[test]
fn what_is_not_answered_is_unknown_and_never_ok() {
    let open = logout(with(UnitMode::Auto, Given), &facts(Off, Kills), LingerPolicy::Unknown);
    assert_eq!(open.grade, Grade::Unknown, "{open:?}");
    let silent = PlacementFacts {
        manager_fault: Some(ManagerFault::Silent("no answer within 2 s".into())),
        home: Home::Login { at_end: EndRule::Unknown },
        ..facts(On, Kills)
    };
    assert_eq!(manager(&silent).grade, Grade::Unknown);
    let unknown = logout(with(UnitMode::Auto, NotGiven), &silent, LingerPolicy::Unknown);
    assert!(unknown.grade == Grade::Unknown && unknown.detail.contains("no answer"), "{unknown:?}");
    let refused = PlacementFacts { linger_refused: Some("the policy".into()), ..facts(Off, Kills) };
    let refused = logout(with(UnitMode::Auto, Given), &refused, LingerPolicy::Refuses);
    assert_eq!(refused.grade, Grade::Warning, "{refused:?}");
    assert!(!refused.advice.unwrap().contains("doctor --fix"));
}

#[test]
fn a_service_that_takes_sessions_along_is_named() {
    let home = Home::Service { name: "ci.service".into(), at_end: Kills, manager: None };
    let found = logout(
        with(UnitMode::Auto, NotGiven),
        &PlacementFacts { home, ..facts(Off, Keeps) },
        LingerPolicy::Unknown,
    );
    assert!(found.grade == Grade::Warning && found.detail.contains("ends with ci.service"), "{found:?}");
}

#[test]
fn engines_that_leak_names_are_told_from_those_that_do_not() {
    for leaky in ["20.10.24+dfsg1", "19.03.1-ce", "23.0.10", "24.0.9", "25.0.4"] {
        assert!(leaks_names(leaky), "{leaky}");
    }
    for closed in ["23.0.11", "25.0.5", "26.0.0", "28.2.2", "", "unknown"] {
        assert!(!leaks_names(closed), "{closed}");
    }
    let fake = bare_machine();
    fake.add_program("docker", "echo 20.10.24");
    let found = docker(&fake.machine);
    assert_eq!(found.grade, Grade::Warning);
    assert!(found.detail.contains("CVE-2024-29018"), "{}", found.detail);
}
