use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::status::{Ending, Gone, Kept};

fn me() -> ProcessIdentity {
    ProcessIdentity { pid: crate::Pid(1), start: 2, boot: "b".into() }
}

fn fresh() -> Instance {
    Instance::starting(
        "k7p9m2xq".parse().unwrap(),
        LaunchScope::directory("/work/shop".into()),
        "default".into(),
        Recipe::on_host("/work/shop".into()),
        me(),
        Timestamp(1000),
    )
}

/// A manifest with everything in it, as a newer abide might have written it: one unknown field in every object.
fn from_the_future() -> Value {
    let at = "2026-11-15T06:00:00.000Z";
    let mut manifest = json!({
        "version": 1, "id": "k7p9m2xq", "name": "shop", "role": "default", "policy": "keep", "generation": 4,
        "created": at, "last_session": 9, "prepared": true,
        "scope": {"workspace": "shop", "dir": "/work/shop"},
        "status": {"state": "restorable", "reason": "host-lost", "since": at, "because": "the boot id changed",
                   "decided_by": "undecided"},
        "recipe": {
            "place": "docker", "substrate": "capsule", "cwd": "/work/shop",
            "container": {
                "engine": "podman", "context": "far", "uid": 1000, "gid": 1000,
                "image": {"tag": "abide/shop:1", "id": "sha256:00",
                          "source": {"from": "build", "origin": "/roles/shop", "commit": "abc", "dockerfile": "Dockerfile",
                                     "context": ".", "args": [["A", "b"]],
                                     "bases": [{"name": "debian", "id": "sha256:01", "digest": "debian@sha256:02"}]},
                          "packages": [{"command": "claude", "manager": "npm", "name": "@anthropic-ai/claude-code",
                                        "version": "2.1.0"}],
                          "user": "node"},
                "network": "allow", "allowed_hosts": ["example.org"], "sidecar": "dind",
                "memory": 1024, "processes": 9, "run_flags": ["--init"],
            },
            "mounts": [{"source": "/work/shop", "target": "/work/shop", "isolation": "worktree", "read_only": false,
                        "copy": [".env"], "tree": "shop",
                        "branch": "abide/k7p9m2xq"}],
            "setup": ["make", "deps"], "env": {"TOKEN": "op://dev/api/token", "MODE": "fast"},
            "configured": {"role": "default", "place": "host", "substrate": "capsule", "isolation": "worktree",
                           "command": ["claude"], "setup": ["make"]},
        },
        "sessions": [{
            "id": "s9", "name": "claude", "agent": "claude", "argv": ["claude"], "cwd": "/work/shop", "generation": 2,
            "created": at, "attached": at, "exit": {"code": 0, "stopped": false, "at": at},
            "conversation": {"id": "u-2", "origin": "minted", "bound": at, "transcript": "/t"},
            "parked": [{"id": "u-1", "origin": "hook", "bound": at}],
            "setup": {"config_dir": "/d", "moved": true, "resume": ["x", "{id}"], "continue_turn": true},
        }],
        "parked": [{"id": "u-0", "origin": "adopted", "bound": at}],
        "history": [{"at": at, "to": "active", "because": "it answered", "decided_by": "operator"}],
    });
    add_unknown_fields(&mut manifest);
    manifest
}

fn add_unknown_fields(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(add_unknown_fields);
            // Maps from names to values, and records of a moment, have no fields of ours to add to.
            if !map.contains_key("refs/heads/main") && !map.contains_key("TOKEN") && !map.contains_key("code")
            {
                map.insert("from_the_future".into(), json!({"nested": [1, null]}));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(add_unknown_fields),
        _ => {}
    }
}

#[test]
fn unknown_fields_survive_a_round_trip_at_every_level() {
    let manifest = from_the_future();
    let instance: Instance = serde_json::from_value(manifest.clone()).unwrap();
    assert_eq!(serde_json::to_value(&instance).unwrap(), manifest);
}

#[test]
fn a_change_of_status_says_when_and_why_and_is_remembered() {
    let mut instance = fresh();
    assert!(instance.apply(&StatusEvent::Launched, "the capsule answers", Timestamp(2000)).unwrap());
    assert!(!instance.apply(&StatusEvent::CapsuleSeen, "probed", Timestamp(3000)).unwrap());
    assert_eq!(instance.status.since, Timestamp(2000), "seeing it again is not a change");
    instance.apply(&StatusEvent::CapsuleGone(Gone::HostLost), "another boot", Timestamp(4000)).unwrap();
    instance.apply(&StatusEvent::Resume { by: me() }, "abide load", Timestamp(5000)).unwrap();
    assert_eq!(instance.generation, 2, "a resume begins a new generation");
    let to: Vec<_> = instance.history.iter().map(|c| c.to.as_str()).collect();
    assert_eq!(to, ["starting", "active", "restorable (host-lost)", "starting"]);
}

#[test]
fn a_choice_of_the_operator_is_distinguished_from_a_missing_answer() {
    let mut instance = fresh();
    instance.apply(&StatusEvent::Launched, "the capsule answers", Timestamp(2000)).unwrap();
    instance.apply(&StatusEvent::LeftKeeping(Kept::Dirty), "work is at risk", Timestamp(3000)).unwrap();
    assert_eq!(instance.status.decided_by, Some(DecidedBy::Undecided));
    assert!(instance.keep_by_choice(Timestamp(4000)));
    assert!(!instance.keep_by_choice(Timestamp(5000)), "it is chosen already");
    assert_eq!(instance.status.status, Status::Restorable(Kept::Dirty), "what it holds is the same");
    let decided: Vec<_> = instance.history.iter().map(|change| change.decided_by).collect();
    assert_eq!(decided, [None, None, Some(DecidedBy::Undecided), Some(DecidedBy::Operator)]);
    instance.apply(&StatusEvent::Resume { by: me() }, "abide load", Timestamp(6000)).unwrap();
    assert!(!instance.keep_by_choice(Timestamp(7000)), "it is not kept but started");
}

#[test]
fn a_refused_event_changes_nothing() {
    let mut instance = fresh();
    let before = instance.clone();
    assert!(instance.apply(&StatusEvent::Discarded(Ending::Clean), "prune", Timestamp(9)).is_err());
    assert_eq!(instance, before);
}

#[test]
fn history_is_bounded() {
    let mut instance = fresh();
    for i in 0..500 {
        instance.apply(&StatusEvent::Launched, "up", Timestamp(i)).unwrap();
        instance.apply(&StatusEvent::CapsuleGone(Gone::Crashed), "down", Timestamp(i)).unwrap();
        instance.apply(&StatusEvent::Resume { by: me() }, "again", Timestamp(i)).unwrap();
    }
    assert_eq!(instance.history.len(), HISTORY);
    assert_eq!(instance.history.last().unwrap().to, "starting");
}

#[test]
fn session_ids_are_never_given_twice() {
    let mut instance: Instance = serde_json::from_value(from_the_future()).unwrap();
    instance.sessions.clear();
    assert_eq!(instance.new_session_id(), SessionId(10));
    assert_eq!(instance.new_session_id(), SessionId(11));
}

#[test]
fn a_session_is_found_by_id_or_by_a_name_that_only_it_has() {
    let mut instance: Instance = serde_json::from_value(from_the_future()).unwrap();
    assert_eq!(instance.session("s9").unwrap().id, SessionId(9));
    assert_eq!(instance.session("claude").unwrap().id, SessionId(9));
    let mut twin = instance.sessions[0].clone();
    twin.id = instance.new_session_id();
    instance.sessions.push(twin);
    assert!(instance.session("claude").is_none(), "a name that two have names neither");
}

#[test]
fn what_ran_comes_back_and_what_had_ended_does_not() {
    let mut instance: Instance = serde_json::from_value(from_the_future()).unwrap();
    let ended = instance.sessions[0].clone();
    let with = |id: u32, stopped: Option<bool>, at: i64| {
        let mut session = Session { id: SessionId(id), ..ended.clone() };
        session.exit = session.exit.map(|exit| crate::session::SessionExit { at: Timestamp(at), ..exit });
        match stopped {
            Some(stopped) => session.exit.as_mut().unwrap().stopped = stopped,
            None => session.exit = None,
        }
        session
    };
    let ids = |instance: &Instance| instance.sessions_to_resume().iter().map(|s| s.id.0).collect::<Vec<_>>();
    instance.sessions = vec![with(1, Some(false), 1), with(2, Some(true), 5), with(3, None, 0)];
    assert_eq!(ids(&instance), [2, 3]);
    instance.sessions = vec![with(1, Some(false), 9), with(2, Some(false), 5)];
    assert_eq!(ids(&instance), [1], "all had ended: the last to end");
    instance.sessions.clear();
    assert!(ids(&instance).is_empty());
}

#[test]
fn a_closed_tab_goes_and_its_conversations_stay_claimed() {
    let mut instance: Instance = serde_json::from_value(from_the_future()).unwrap();
    let mut open = instance.sessions[0].clone();
    (open.id, open.exit, open.conversation, open.parked) = (instance.new_session_id(), None, None, vec![]);
    instance.sessions.push(open);
    instance.close_ended();
    assert_eq!(instance.sessions.iter().map(|s| s.id.0).collect::<Vec<_>>(), [10]);
    assert_eq!(instance.claimed().collect::<Vec<_>>(), ["u-0", "u-1", "u-2"]);
}

proptest! {
    #[test]
    fn hostile_manifests_are_errors_and_never_panics(text in "\\PC*") {
        let _ = serde_json::from_str::<Instance>(&text);
    }

    #[test]
    fn a_field_of_the_wrong_type_is_an_error(key in 0usize..15) {
        let mut manifest = from_the_future();
        let map = manifest.as_object_mut().unwrap();
        let name = map.keys().nth(key).unwrap().clone();
        map.insert(name.clone(), json!({"wrong": ["type"]}));
        let parsed = serde_json::from_value::<Instance>(manifest);
        prop_assert!(parsed.is_err() || name == "from_the_future", "{} was accepted", name);
    }
}
