use abide_model::LaunchScope;

use crate::common::{add_instance, compare, sandbox, transcript};

#[test]
fn an_empty_store_says_how_to_begin() {
    let sandbox = sandbox();
    let listed = transcript(&sandbox, &[], &["ls", "ls ."]);
    assert!(!sandbox.home().join("instances").exists(), "listing made directories");
    let others = transcript(&sandbox, &[], &["conversations", "trash list", "workspace list"]);
    compare("ls-empty", &(listed + &others));
}

#[test]
fn instances_are_listed_with_their_status_and_scope() {
    let sandbox = sandbox();
    let id = add_instance(&sandbox, |instance| instance.name = Some("shop".into()));
    compare("ls", &transcript(&sandbox, &[id], &["ls"]));
}

#[test]
fn a_role_has_a_column_where_not_all_have_the_same() {
    let sandbox = sandbox();
    add_instance(&sandbox, |_| {});
    assert!(!sandbox.abide(["ls"]).ok().contains("ROLE"));
    add_instance(&sandbox, |instance| instance.role = "reviewer".into());
    let table = sandbox.abide(["ls"]).ok();
    assert!(table.contains("ROLE") && table.contains("reviewer") && table.contains("default"), "{table}");
}

#[test]
fn a_list_is_narrowed_to_a_directory_or_a_workspace() {
    let sandbox = sandbox();
    let here = add_instance(&sandbox, |_| {});
    let below = add_instance(&sandbox, |instance| instance.scope.dir.push("api"));
    let shop = add_instance(&sandbox, |instance| {
        instance.scope =
            LaunchScope { workspace: Some("shop".into()), ..LaunchScope::directory("/srv/shop".into()) };
    });
    let listed = |args: &[&str]| {
        let listing = sandbox.abide([&["ls", "--json"], args].concat()).json();
        let rows = listing["instances"].as_array().unwrap().clone();
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&["."]), [here.as_str(), below.as_str()]);
    assert_eq!(listed(&["./api"]), [below.as_str()]);
    assert_eq!(listed(&["--scope", "shop"]), [shop.as_str()]);
    assert_eq!(listed(&[]).len(), 3);
    assert_eq!(listed(&["/nowhere"]), [""; 0]);
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
    compare("ls-damaged", &transcript(&sandbox, &[sound, torn], &["ls"]));
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
    assert_eq!(
        sandbox.abide(["explain", &id.as_str()[..4]]).ok(),
        sandbox.abide(["explain", id.as_str()]).ok()
    );
    compare("explain", &transcript(&sandbox, &[id], &[&format!("explain {id}")]));
}

#[test]
fn an_id_that_nothing_has_is_an_error_with_a_next_step() {
    let verbs = ["explain", "hardline", "resume", "peek", "stop", "eject", "trash show"];
    let commands = verbs.map(|verb| format!("{verb} zzzzzzzz"));
    compare("unknown-id", &transcript(&sandbox(), &[], &commands.each_ref().map(String::as_str)));
}

#[test]
fn a_home_that_nothing_can_be_started_in_is_refused_and_not_called_empty() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = sandbox();
    let home = sandbox.home();
    let _ = std::fs::remove_dir_all(&home);
    std::os::unix::fs::symlink("nowhere", &home).unwrap();
    sandbox.abide(["ls"]).fails(1);
    std::fs::remove_file(&home).unwrap();
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(sandbox.abide(["ls"]).fails(1).contains("chmod 700"));
}
