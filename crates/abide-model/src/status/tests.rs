use super::*;
use crate::choice::Choice;

fn who() -> ProcessIdentity {
    ProcessIdentity { pid: crate::Pid(7), start: 1, boot: "b".into() }
}

fn someone_else() -> ProcessIdentity {
    ProcessIdentity { pid: crate::Pid(8), start: 2, boot: "b".into() }
}

const NO: &str = "refused";

/// Every status (one column each) against every event. `=` is "unchanged", `NO` is "refused".
#[rustfmt::skip]
const TABLE: &[(&str, [&str; 6])] = &[
    // event                    fresh start                  resuming (dirty)       active                    restorable (dirty)  ending (discard)     damaged
    ("launched",              ["active",                     "active",              "=",                      NO,                 NO,                  NO]),
    ("setup failed",          ["restorable (setup-failed)",  "restorable (dirty)",  NO,                       NO,                 NO,                  NO]),
    ("starter died, risk",    ["restorable (setup-failed)",  "restorable (dirty)",  NO,                       NO,                 NO,                  NO]),
    ("starter died, none",    ["ending (clean)",             "restorable (dirty)",  NO,                       NO,                 NO,                  NO]),
    ("seen",                  ["active",                     "active",              "=",                      "active",           NO,                  NO]),
    ("gone crashed",          ["restorable (crashed)",       "restorable (crashed)","restorable (crashed)",   "=",                "=",                 NO]),
    ("gone stopped",          ["restorable (stopped)",       "restorable (stopped)","restorable (stopped)",   "=",                "=",                 NO]),
    ("gone host-lost",        ["restorable (host-lost)",     "restorable (host-lost)","restorable (host-lost)","=",               "=",                 NO]),
    ("left keeping",          [NO,                           NO,                    "restorable (unpushed)",  "=",                NO,                  NO]),
    ("left finishing",        [NO,                           NO,                    "ending (policy)",        NO,                 "=",                 NO]),
    ("resume",                [NO,                           NO,                    NO,                       "starting",         NO,                  NO]),
    ("discarded",             [NO,                           NO,                    "ending (clean)",         "ending (clean)",   "=",                 NO]),
    ("taken from trash",      [NO,                           NO,                    NO,                       "=",                "restorable (kept)", NO]),
    ("removal taken back",    [NO,                           NO,                    NO,                       "=",                "restorable (kept)", NO]),
    ("taken back, runs",      [NO,                           NO,                    NO,                       "=",                "active",            NO]),
];

fn statuses() -> [Status; 6] {
    [
        Status::Starting { by: who(), resuming: None },
        Status::Starting { by: who(), resuming: Some(Kept::Dirty) },
        Status::Active,
        Status::Restorable(Kept::Dirty),
        Status::Ending(Ending::Discard),
        Status::Damaged("torn".into()),
    ]
}

fn event(name: &str) -> StatusEvent {
    match name {
        "launched" => StatusEvent::Launched,
        "setup failed" => StatusEvent::SetupFailed,
        "starter died, risk" => StatusEvent::StarterDied { at_risk: true },
        "starter died, none" => StatusEvent::StarterDied { at_risk: false },
        "seen" => StatusEvent::CapsuleSeen,
        "gone crashed" => StatusEvent::CapsuleGone(Gone::Crashed),
        "gone stopped" => StatusEvent::CapsuleGone(Gone::Stopped),
        "gone host-lost" => StatusEvent::CapsuleGone(Gone::HostLost),
        "left keeping" => StatusEvent::LeftKeeping(Kept::Unpushed),
        "left finishing" => StatusEvent::LeftFinishing(Ending::Policy),
        "resume" => StatusEvent::Resume { by: someone_else() },
        "discarded" => StatusEvent::Discarded(Ending::Clean),
        "taken from trash" => StatusEvent::TakenFromTrash,
        "removal taken back" => StatusEvent::RemovalTakenBack { runs: false },
        "taken back, runs" => StatusEvent::RemovalTakenBack { runs: true },
        other => panic!("no event {other}"),
    }
}

#[test]
fn every_status_meets_every_event_as_the_table_says() {
    for (name, row) in TABLE {
        let event = event(name);
        for (status, expected) in statuses().iter().zip(row) {
            let got = match next(status, &event) {
                Ok(after) if after == *status => "=".to_owned(),
                Ok(after) => after.to_string(),
                Err(_) => NO.to_owned(),
            };
            assert_eq!(&got, expected, "{status} when {name}");
        }
    }
}

#[test]
fn every_event_has_a_row_in_the_table() {
    let source = include_str!("../status.rs").split_once("pub enum StatusEvent {").unwrap().1;
    let lines = source.lines().take_while(|line| *line != "}").filter_map(|line| line.strip_prefix("    "));
    let declared: Vec<_> = lines
        .filter(|line| line.starts_with(char::is_uppercase))
        .map(|line| line.split(|c: char| !c.is_alphanumeric()).next().unwrap())
        .collect();
    assert!(declared.contains(&"Launched") && declared.contains(&"TakenFromTrash"), "{declared:?}");
    for variant in declared {
        let is_it = |name: &str| format!("{:?}", event(name)).split(['(', ' ']).next() == Some(variant);
        assert!(TABLE.iter().any(|(name, _)| is_it(name)), "no row for the event {variant}");
    }
}

#[test]
fn a_resume_remembers_what_the_instance_was_kept_as() {
    for (kept, _) in Kept::ALL {
        let starting = next(&Status::Restorable(*kept), &StatusEvent::Resume { by: who() }).unwrap();
        for failure in [StatusEvent::SetupFailed, StatusEvent::StarterDied { at_risk: false }] {
            assert_eq!(next(&starting, &failure).unwrap(), Status::Restorable(*kept), "{failure:?}");
        }
    }
}

#[test]
fn only_a_decision_leads_from_restorable_to_ending() {
    for (name, _) in TABLE {
        let event = event(name);
        for (kept, _) in Kept::ALL {
            if let Ok(Status::Ending(_)) = next(&Status::Restorable(*kept), &event) {
                assert!(matches!(event, StatusEvent::Discarded(_)), "{name} removed a restorable instance");
            }
        }
    }
}

#[test]
fn standings_are_written_as_documented_and_read_back() {
    for status in statuses().into_iter().take(5) {
        let standing = Standing {
            status,
            since: Timestamp(0),
            because: "a test".into(),
            decided_by: None,
            obstacle: Some("git does not answer".into()),
            extra: Extra::default(),
        };
        let json = serde_json::to_value(&standing).unwrap();
        assert_eq!(json["state"], standing.status.state().to_string());
        assert_eq!(serde_json::from_value::<Standing>(json).unwrap(), standing);
    }
}

#[test]
fn a_status_that_is_not_known_is_an_error_and_not_a_guess() {
    for text in [
        r#"{"state":"paused","since":"1970-01-01T00:00:00.000Z"}"#,
        r#"{"state":"restorable","since":"1970-01-01T00:00:00.000Z"}"#,
        r#"{"state":"restorable","reason":"tired","since":"1970-01-01T00:00:00.000Z"}"#,
        r#"{"state":"starting","since":"1970-01-01T00:00:00.000Z"}"#,
        r#"{"state":"damaged","reason":"x","since":"1970-01-01T00:00:00.000Z"}"#,
    ] {
        assert!(serde_json::from_str::<Standing>(text).is_err(), "{text}");
    }
}
