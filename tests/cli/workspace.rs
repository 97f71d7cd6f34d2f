use crate::common::{compare, masked, sandbox, transcript};

#[test]
fn a_workspace_is_made_shown_changed_and_removed() {
    let sandbox = sandbox();
    assert!(sandbox.abide(["workspace", "list"]).ok().contains("workspace create"));
    sandbox.abide(["workspace", "create", "shop", "--agent", "codex"]).ok();
    sandbox
        .abide([
            "workspace", "edit", "shop", "--policy", "keep", "--mount", "/srv/lib", "--isolation", "clone",
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
            "workspace", "edit", "shop", "--unmount", "/srv/lib", "--unset", "agent", "--set",
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
fn removing_asks_and_without_a_terminal_names_the_flag() {
    let sandbox = sandbox();
    sandbox.abide(["workspace", "create", "shop"]).ok();
    compare("workspace-remove", &transcript(&sandbox, &[], &["workspace remove shop"]));
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

#[test]
fn a_workspace_with_a_mistake_is_not_passed_over_by_load() {
    let sandbox = sandbox();
    let file = sandbox.config().join("workspaces/shop.toml");
    sandbox.abide(["workspace", "create", "shop"]).ok();
    let sound = std::fs::read_to_string(&file).unwrap();
    for broken in [format!("{sound}polcy = \"keep\"\n"), format!("{sound}[env\n"), "dir = 7\n".to_owned()] {
        std::fs::write(&file, &broken).unwrap();
        let complaint = sandbox.abide(["load", "true", "--detach"]).fails(1);
        assert!(complaint.contains("shop.toml:"), "{broken}: {complaint}");
    }
    assert!(!sandbox.home().join("instances").exists(), "something was started");
}

#[test]
fn what_the_host_cannot_give_is_refused_and_nothing_is_started() {
    let sandbox = sandbox();
    let said = std::cell::RefCell::new(String::new());
    let refused = || *said.borrow_mut() += &transcript(&sandbox, &[], &["load claude --detach"]);
    *said.borrow_mut() += &transcript(&sandbox, &[], &["workspace create shop"]);
    sandbox.abide(["workspace", "edit", "shop", "--mount", "/srv/lib"]).ok();
    let file = sandbox.config().join("workspaces/shop.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.clone() + "read_only = true\n").unwrap();
    refused();
    std::fs::write(&file, text.clone() + "target = \"/opt/elsewhere\"\n").unwrap();
    refused();
    std::fs::write(&file, text).unwrap();
    sandbox.abide(["workspace", "edit", "shop", "--role", "rust"]).ok();
    sandbox.write("home/.config/abide/roles/rust/role.toml", "agents = [\"codex\"]\n");
    refused();
    sandbox.write("home/.config/abide/roles/rust/role.toml", "env = [\"GH_TOKEN\"]\n");
    refused();
    compare("refused-on-the-host", &said.borrow());
    assert!(!sandbox.home().join("instances").read_dir().is_ok_and(|mut made| made.next().is_some()));
}

#[test]
fn a_directory_belongs_to_one_workspace_however_it_is_reached() {
    let sandbox = sandbox();
    sandbox.abide(["workspace", "create", "shop"]).ok();
    std::os::unix::fs::symlink(sandbox.work(), sandbox.path("link")).unwrap();
    let link = sandbox.path("link").to_str().unwrap().to_owned();
    let complaint = sandbox.abide(["workspace", "create", "again", &link]).fails(1);
    assert!(complaint.contains("abide workspace remove shop"), "{complaint}");
    assert!(!sandbox.config().join("workspaces/again.toml").exists());
    std::fs::create_dir(sandbox.work().join("api")).unwrap();
    sandbox.abide(["workspace", "create", "again", "api"]).ok();
    let complaint = sandbox.abide(["workspace", "edit", "again", "--set", &format!("dir={link}")]).fails(1);
    assert!(complaint.contains("abide workspace remove shop"), "{complaint}");
    sandbox.abide(["workspace", "edit", "shop", "--policy", "keep"]).ok();
}

#[test]
fn a_missing_directory_is_reported_when_it_is_configured() {
    let sandbox = sandbox();
    let lib = sandbox.path("lib").to_str().unwrap().to_owned();
    let commands = [
        &format!("workspace create shop ~/nodir --mount {lib}"),
        &format!("workspace create here --mount {lib} --isolation worktree"),
        "load sh --detach",
    ];
    compare("workspace-missing-directories", &transcript(&sandbox, &[], &commands));
}

#[test]
fn a_path_that_is_typed_from_here_is_meant_from_here() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.path("api")).unwrap();
    sandbox.abide(["workspace", "create", "api", "../api", "--mount", "../work"]).ok();
    let shown = sandbox.abide(["workspace", "show", "api"]).ok();
    let [api, work] = [sandbox.path("api"), sandbox.work()].map(|dir| format!("\"{}\"", dir.display()));
    assert!(shown.contains(&api) && shown.contains(&work), "{shown}");
    sandbox.abide(["workspace", "edit", "api", "--unmount", "."]).ok();
    assert!(!sandbox.abide(["workspace", "show", "api"]).ok().contains(&work));
    compare("workspace-relative", &transcript(&sandbox, &[], &["workspace create no ../no"]));
}

#[test]
fn settings_of_a_mount_cannot_be_set_for_all_mounts() {
    let sandbox = sandbox();
    sandbox.abide(["workspace", "create", "shop", "--mount", "."]).ok();
    for set in ["mounts.copy=[\".env\"]", "mounts=[]"] {
        let complaint = sandbox.abide(["workspace", "edit", "shop", "--set", set]).fails(1);
        assert!(complaint.contains("--mount") && !complaint.contains("mounts.copy,"), "{complaint}");
    }
}

#[test]
fn a_base_is_for_isolated_instances_only() {
    let sandbox = sandbox();
    let complaint = sandbox.abide(["load", "sh", "--detach", "--base", "main"]).fails(2);
    assert!(complaint.contains("--isolation worktree"), "{complaint}");
    sandbox.abide(["workspace", "create", "shop", "--mount", ".", "--isolation", "worktree"]).ok();
    let complaint = sandbox.abide(["load", "sh", "--detach", "--base", "main"]).fails(1);
    assert!(!complaint.contains("--isolation"), "it is isolated already: {complaint}");
    let complaint =
        sandbox.abide(["load", "sh", "--detach", "--base", "main", "--isolation", "shared"]).fails(2);
    assert!(complaint.contains("--isolation worktree"), "{complaint}");
}

#[test]
fn a_directory_that_is_gone_is_named_as_the_reason() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.path("gone")).unwrap();
    for verb in ["load -d sh", "conversations", "workspace create shop"] {
        let script = format!(
            "mkdir -p gone && cd gone && rmdir ../gone && exec {} {verb}",
            sandbox.program().display()
        );
        let mut command = sandbox.command("sh");
        let done = command.current_dir(sandbox.path("")).args(["-c", &script]).output().unwrap();
        compare("directory-gone", &masked(&sandbox, &[], &String::from_utf8(done.stderr).unwrap()));
    }
}
