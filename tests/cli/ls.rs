use crate::common::{add_instance, sandbox};

#[test]
fn an_empty_store_says_how_to_begin() {
    let sandbox = sandbox();
    assert!(sandbox.abide(["ls"]).ok().contains("abide load"));
    assert!(!sandbox.home().join("instances").exists(), "listing made directories");
}

#[test]
fn instances_are_listed_with_their_status_and_scope() {
    let sandbox = sandbox();
    let id = add_instance(&sandbox, |instance| instance.name = Some("shop".into()));
    let table = sandbox.abide(["ls"]).ok();
    let row = table.lines().nth(1).unwrap();
    for expected in [id.as_str(), "shop", "restorable (stopped)", sandbox.work().to_str().unwrap()] {
        assert!(row.contains(expected), "{expected} is missing from:\n{table}");
    }
}

#[test]
fn ps_and_status_are_the_same_verb() {
    let sandbox = sandbox();
    add_instance(&sandbox, |_| {});
    let listed = sandbox.abide(["ls", "--json"]).ok();
    assert_eq!(sandbox.abide(["ps", "--json"]).ok(), listed);
    assert_eq!(sandbox.abide(["status", "--json"]).ok(), listed);
}

#[test]
fn a_damaged_instance_is_shown_beside_the_sound_ones_and_not_touched() {
    let sandbox = sandbox();
    let sound = add_instance(&sandbox, |_| {});
    let torn = add_instance(&sandbox, |_| {});
    let manifest = sandbox.home().join("instances").join(torn.as_str()).join("instance.json");
    let whole = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, &whole[..whole.len() / 2]).unwrap();
    let listing = sandbox.abide(["ls", "--json"]).json();
    assert_eq!(listing["instances"][0]["id"], sound.as_str());
    assert_eq!(listing["damaged"][0]["name"], torn.as_str());
    assert!(sandbox.abide(["ls"]).ok().contains("damaged"));
    assert_eq!(std::fs::read(&manifest).unwrap(), &whole[..whole.len() / 2]);
}

#[test]
fn without_a_verb_and_without_a_terminal_the_instances_are_listed() {
    let sandbox = sandbox();
    let id = add_instance(&sandbox, |_| {});
    assert!(sandbox.abide([""; 0]).ok().contains(id.as_str()));
}

#[test]
fn explain_says_why_and_how_it_came_about() {
    let sandbox = sandbox();
    let id = add_instance(&sandbox, |_| {});
    let text = sandbox.abide(["explain", &id.as_str()[..4]]).ok();
    assert!(
        text.contains("is restorable (stopped)") && text.contains("because it was stopped for the night"),
        "{text}"
    );
}

#[test]
fn an_id_that_nothing_has_is_an_error_with_a_next_step() {
    let complaint = sandbox().abide(["explain", "zzzzzzzz"]).fails(1);
    assert!(complaint.contains("zzzzzzzz") && complaint.contains("abide ls"), "{complaint}");
}
