use crate::common::sandbox;

#[test]
fn a_workspace_is_made_shown_changed_and_removed() {
    let sandbox = sandbox();
    assert!(sandbox.abide(["workspace", "list"]).ok().contains("workspace create"));
    sandbox.abide(["workspace", "create", "shop", "--agent", "codex"]).ok();
    sandbox
        .abide([
            "workspace",
            "edit",
            "shop",
            "--policy",
            "keep",
            "--mount",
            "/srv/lib",
            "--isolation",
            "clone",
        ])
        .ok();
    let shown = sandbox.abide(["workspace", "show", "shop"]).ok();
    for expected in [sandbox.work().to_str().unwrap(), "codex", "keep", "/srv/lib", "clone"] {
        assert!(shown.contains(expected), "`{expected}` is missing from:\n{shown}");
    }
    let listed = sandbox.abide(["workspace", "list", "--json"]).json();
    assert_eq!(listed["workspaces"][0]["policy"], "keep");
    sandbox
        .abide([
            "workspace",
            "edit",
            "shop",
            "--unmount",
            "/srv/lib",
            "--unset",
            "agent",
            "--set",
            "env.MODE=fast",
        ])
        .ok();
    let shown = sandbox.abide(["workspace", "show", "shop"]).ok();
    assert!(!shown.contains("/srv/lib") && !shown.contains("codex") && shown.contains("MODE"), "{shown}");
    sandbox.abide(["workspace", "remove", "shop", "--yes"]).ok();
    assert!(sandbox.work().exists());
    assert!(sandbox.abide(["workspace", "show", "shop"]).fails(1).contains("workspace list"));
}

#[test]
fn removing_asks_and_where_nobody_can_be_asked_names_the_flag() {
    let sandbox = sandbox();
    sandbox.abide(["workspace", "create", "shop"]).ok();
    let complaint = sandbox.abide(["workspace", "remove", "shop"]).fails(3);
    assert!(complaint.contains("--yes"), "{complaint}");
    sandbox.abide(["workspace", "show", "shop"]).ok();
}

#[test]
fn hostile_names_and_mounts_are_refused_and_nothing_is_written() {
    let sandbox = sandbox();
    for name in ["../evil", "a/b", "", "-x", "UPPER", "a\nb"] {
        let run = sandbox.abide(["workspace", "create", "--", name]);
        assert_ne!(run.code, Some(0), "{name:?}");
    }
    for mount in ["/", "/srv/../../etc", "/a\nb"] {
        sandbox.abide(["workspace", "create", "shop", "--mount", mount]).fails(1);
    }
    assert!(!sandbox.config().join("workspaces").join("shop.toml").exists());
    assert!(!sandbox.path("home/.config/evil.toml").exists() && !sandbox.config().join("evil.toml").exists());
}

#[test]
fn one_broken_file_does_not_hide_the_other_workspaces() {
    let sandbox = sandbox();
    sandbox.abide(["workspace", "create", "sound"]).ok();
    sandbox.write("home/.config/abide/workspaces/broken.toml", "version = 1\ndir = 7\n");
    let listed = sandbox.abide(["workspace", "list", "--json"]).json();
    let rows = listed["workspaces"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows[0]["error"].as_str().unwrap().contains("broken.toml:2:7"), "{rows:?}");
    assert_eq!(rows[1]["name"], "sound");
}
