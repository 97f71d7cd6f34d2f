//! `docs/json.md` is a promise: what it shows is what comes out.

use std::collections::BTreeSet;

use abide_model::container::{ContainerRecipe, Network};
use abide_model::session::Origin;
use abide_model::{Conversation, Extra, Session};
use abide_sys::clock;
use serde_json::Value;

use crate::common::{add_instance, add_trash, sandbox};

/// The example under the heading `## abide <verb>`.
fn documented(verb: &str) -> Value {
    let text = include_str!("../../docs/json.md");
    let section =
        text.split(&format!("\n## abide {verb}\n")).nth(1).unwrap_or_else(|| panic!("no section on {verb}"));
    let example = section.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    serde_json::from_str(example).unwrap()
}

/// Every path to a value, with the elements of a list taken together.
fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| paths(value, &format!("{at}.{key}"), found)),
        Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{at}[]"), found)),
        _ => {
            found.insert(at.to_owned());
        }
    }
}

fn assert_same_shape(verb: &str, actual: &Value, optional: &[&str]) {
    let (mut expected, mut got) = (BTreeSet::new(), BTreeSet::new());
    paths(&documented(verb), "", &mut expected);
    paths(actual, "", &mut got);
    expected.retain(|path| !optional.contains(&path.as_str()) || got.contains(path));
    assert_eq!(got, expected, "`abide {verb} --json` is not what docs/json.md says");
}

/// The instance has the shape that `abide ls` is documented with.
fn json_without_instance(mut explained: Value) -> Value {
    explained["instance"] = Value::String("as `abide ls` shows it".into());
    explained
}

#[test]
fn every_list_has_the_shape_that_is_documented() {
    let sandbox = sandbox();
    let sound = add_instance(&sandbox, |instance| {
        let id = instance.new_session_id();
        let session = Session::new(id, "claude".into(), vec!["claude".into()], "/".into(), clock::now());
        instance.sessions.push(Session {
            agent: Some("claude".into()),
            conversation: Some(Conversation {
                id: "c".into(),
                origin: Origin::Minted,
                bound: clock::now(),
                transcript: None,
                held_in: None,
                extra: Extra::new(),
            }),
            ..session
        });
    });
    let torn = add_instance(&sandbox, |_| {});
    std::fs::write(sandbox.home().join("instances").join(torn.as_str()).join("instance.json"), "").unwrap();
    assert_same_shape("ls", &sandbox.abide(["ls", "--json"]).json(), &[]);
    let explained = sandbox.abide(["explain", sound.as_str(), "--json"]).json();
    assert_eq!(explained["instance"]["id"], sound.as_str());
    assert_same_shape("explain", &json_without_instance(explained), &[]);

    let contained = add_instance(&sandbox, |instance| {
        let allowed_hosts = vec!["example.org".to_owned()];
        let recipe = ContainerRecipe { network: Network::Allow, allowed_hosts, ..ContainerRecipe::default() };
        instance.recipe.container = Some(recipe);
    });
    let log = sandbox.home().join("instances").join(contained.as_str()).join("egress/log");
    std::fs::create_dir_all(&log).unwrap();
    let denial = "{\"at\":\"2026-11-15T06:00:00.000Z\",\"host\":\"a.test\",\"port\":443,\"why\":\"it is not on the list\"}\n";
    std::fs::write(log.join("denied.jsonl"), denial).unwrap();
    let allowed = sandbox.abide(["allow", contained.as_str(), "npm", "--json"]).json();
    assert_same_shape("allow", &allowed, &[]);
    assert_eq!(allowed["allowed"], serde_json::json!(["example.org", "npm"]));

    let cwd = sandbox.work().canonicalize().unwrap();
    let project: String =
        cwd.to_str().unwrap().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let said = serde_json::json!({ "type": "user", "cwd": cwd, "message": { "content": "hello" } });
    let id = "aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa";
    sandbox.write(format!("home/.claude/projects/{project}/{id}.jsonl"), format!("{said}\n"));
    assert_same_shape("conversations", &sandbox.abide(["conversations", "--json"]).json(), &[]);

    let trashed = add_trash(&sandbox);
    assert_same_shape("trash list", &sandbox.abide(["trash", "list", "--json"]).json(), &[]);
    assert_same_shape(
        "trash show",
        &sandbox.abide(["trash", "show", trashed.as_str(), "--json"]).json(),
        &[],
    );
    let plan = sandbox.abide(["prune", "--dry-run", "--discard-restorable", "--json"]).json();
    assert_same_shape("prune", &plan, &[".trash[].name", ".trash[].because"]);
    sandbox.abide(["prune", "--json"]).fails(2);

    sandbox.abide(["workspace", "create", "shop", "--agent", "claude"]).ok();
    assert_same_shape("workspace list", &sandbox.abide(["workspace", "list", "--json"]).json(), &[]);

    assert_same_shape("config list", &sandbox.abide(["config", "list", "--json"]).json(), &[]);

    let report = sandbox.abide(["doctor", "--json"]);
    let report = serde_json::from_str(&report.stdout).unwrap();
    assert_same_shape("doctor", &report, &[".findings[].advice"]);
}
