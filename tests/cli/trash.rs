use abide_model::status::Ending;
use abide_model::{Instance, InstanceId, StatusEvent};
use abide_sys::clock;
use abide_testkit::Terminal;

use crate::common::{add_instance, add_trash, compare, masked, sandbox, store, transcript};

#[test]
fn a_removed_instance_is_listed_and_comes_back_whole() {
    let sandbox = sandbox();
    let id = add_trash(&sandbox);
    compare("trash", &transcript(&sandbox, &[id], &["trash list", &format!("trash show {id}")]));
    assert_eq!(sandbox.abide(["ls", "--json"]).json()["instances"].as_array().unwrap().len(), 0);
    let said = sandbox.abide(["trash", "restore", &id.as_str()[..5]]).ok();
    compare("trash-restore", &masked(&sandbox, &[id], &said));
    let back = &sandbox.abide(["ls", "--json"]).json()["instances"][0];
    assert_eq!((back["id"].as_str(), back["state"].as_str()), (Some(id.as_str()), Some("restorable")));
    assert!(sandbox.abide(["trash", "list"]).ok().contains("empty"));
}

#[test]
fn a_name_that_another_has_by_now_is_not_given_twice() {
    let sandbox = sandbox();
    let named = || add_instance(&sandbox, |instance| instance.name = Some("web".into()));
    let trash = |id: InstanceId| {
        let store = store(&sandbox);
        let ends = |instance: &mut Instance| {
            instance.apply(&StatusEvent::Discarded(Ending::Clean), "", clock::now())
        };
        store.update(id, |instance| ends(instance).map(drop).map_err(abide_store::StoreError::from)).unwrap();
        store.trash(id, clock::now()).unwrap();
    };
    let id = named();
    trash(id);
    assert!(sandbox.abide(["trash", "list"]).ok().contains("web"));
    let said = sandbox.abide(["trash", "restore", "web"]);
    assert!(!said.stderr.contains("web"), "{}", said.stderr);
    assert!(said.ok().contains(&format!("`abide resume {id}`")));
    assert!(sandbox.abide(["explain", "web"]).ok().contains(id.as_str()));
    trash(id);
    let other = named();
    let said = sandbox.abide(["trash", "restore", id.as_str()]);
    compare("trash-name-taken", &masked(&sandbox, &[id], &said.stderr));
    assert!(sandbox.abide(["explain", "web"]).ok().contains(other.as_str()));
}

#[test]
fn emptying_shows_what_goes_and_asks_first() {
    let sandbox = sandbox();
    let id = add_trash(&sandbox);
    compare("trash-empty", &transcript(&sandbox, &[id], &["trash empty --dry-run", "trash empty"]));
    assert!(sandbox.abide(["trash", "list"]).ok().contains(id.as_str()));
    sandbox.abide(["trash", "empty", "--yes"]).ok();
    assert_eq!(std::fs::read_dir(sandbox.home().join("trash")).unwrap().count(), 0);
}

#[test]
fn on_a_terminal_enter_alone_means_no() {
    let sandbox = sandbox();
    let id = add_trash(&sandbox);
    let abide = sandbox.program().to_str().unwrap();
    let terminal = Terminal::open(&sandbox, (100, 20), &[abide, "trash", "empty"]);
    terminal.wait_for("[y/N]");
    terminal.keys(&["Enter"]);
    terminal.wait_for("Nothing was removed.");
    assert_eq!(terminal.wait_for_end(), 0);
    assert!(sandbox.abide(["trash", "list"]).ok().contains(id.as_str()));
    let terminal = Terminal::open(&sandbox, (100, 20), &[abide, "trash", "empty"]);
    terminal.wait_for("[y/N]");
    terminal.keys(&["y", "Enter"]);
    terminal.wait_for("Removed 1.");
}

#[test]
fn what_is_not_in_the_trash_cannot_be_restored_from_it() {
    let sandbox = sandbox();
    let id = add_instance(&sandbox, |_| {});
    compare("trash-restore-not-removed", &transcript(&sandbox, &[id], &[&format!("trash restore {id}")]));
}

#[test]
fn a_scope_is_a_workspace_or_a_directory_however_that_is_spelled() {
    let sandbox = sandbox();
    let id = add_instance(&sandbox, |instance| instance.scope.workspace = Some("shop".into()));
    let within = |scope: &str| {
        let shown = sandbox.abide(["prune", "--discard-restorable", "--dry-run", "--scope", scope]).ok();
        shown.contains(id.as_str())
    };
    for scope in ["shop", ".", "..", "./", sandbox.work().to_str().unwrap()] {
        assert!(within(scope), "{scope}");
    }
    for scope in ["work", "./below", "/srv"] {
        assert!(!within(scope), "{scope}");
    }
}

#[test]
fn emptying_goes_on_past_what_another_process_took_meanwhile() {
    let sandbox = sandbox();
    for _ in 0..24 {
        add_trash(&sandbox);
    }
    let empty = || sandbox.command(sandbox.program()).args(["trash", "empty", "--yes"]).spawn().unwrap();
    let runs = [empty(), empty(), empty()];
    for mut run in runs {
        assert!(run.wait().unwrap().success());
    }
    assert!(sandbox.abide(["trash", "list"]).ok().contains("empty"));
}

#[test]
fn a_list_and_a_dry_run_purge_nothing_and_a_prune_names_what_it_purges() {
    let sandbox = sandbox();
    let id = add_trash(&sandbox);
    let trash = sandbox.home().join("trash");
    let name = std::fs::read_dir(&trash).unwrap().flatten().next().unwrap().file_name();
    let aged = format!("{id}-20200101T000000000Z");
    std::fs::rename(trash.join(&name), trash.join(&aged)).unwrap();
    sandbox.abide(["ls"]).ok();
    let said = sandbox.abide(["prune", "--dry-run"]).ok();
    assert!(said.contains(&aged) && trash.join(&aged).exists(), "{said}");
    let said = sandbox.abide(["prune", "--yes"]).ok();
    assert!(said.contains(&aged) && !trash.join(&aged).exists(), "{said}");
}
