//! Changes: what is not changed keeps its form and comments, what is wrong is not written, what is concurrent is not lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use abide_config::{ConfigDir, Origin, WorkspaceEdit};
use abide_model::Isolation;
use common::{Sandbox, lines, named};

fn set(key: &str, value: &str) -> WorkspaceEdit {
    WorkspaceEdit::Set { key: key.to_owned(), value: value.to_owned() }
}

fn mount(source: &str, isolation: Isolation) -> WorkspaceEdit {
    WorkspaceEdit::AddMount { source: source.to_owned(), isolation }
}

#[test]
fn a_value_is_replaced_and_nothing_else() {
    let sandbox = Sandbox::with_settings(
        "# mine\r\nversion = 2\r\n\r\n  policy  =  'keep'   # for ever\r\n[trash] # bin\r\nkeep_days = 0x0e\r\n",
    );
    sandbox.config.set("policy", "clean").unwrap();
    sandbox.config.set("trash.keep_days", "30").unwrap();
    assert_eq!(
        sandbox.settings_text(),
        "# mine\r\nversion = 2\r\n\r\n  policy  =  \"clean\"   # for ever\r\n[trash] # bin\r\nkeep_days = 30\r\n"
    );
}

#[test]
fn each_line_keeps_its_own_ending_and_a_new_one_ends_as_the_one_before_it() {
    let sandbox = Sandbox::with_settings(
        "# mine\nversion = 2\r\n\npolicy = 'keep'\r\n\n[trash]\nkeep_days = 3 # days\n# end",
    );
    sandbox.config.set("trash.keep_days", "30").unwrap();
    sandbox.config.set("scrollback", "5000").unwrap();
    assert_eq!(
        sandbox.settings_text(),
        "# mine\nversion = 2\r\n\npolicy = 'keep'\r\nscrollback = 5000\r\n\n[trash]\nkeep_days = 30 # days\n# end"
    );
}

#[test]
fn a_new_setting_goes_where_its_like_are() {
    let sandbox =
        Sandbox::with_settings("version = 2\nrole = \"a\" # r\n\n# the bin\n[trash]\nkeep_days = 3\n# end\n");
    for (key, value) in [
        ("scrollback", "5000"),
        ("trash.max_size", "1GiB"),
        ("agents.claude.args", r#"["--model", "opus"]"#),
        ("agents.claude.env.A", "env:B"),
        ("agents.claude.continue_turn", "true"),
    ] {
        sandbox.config.set(key, value).unwrap();
    }
    let expected = r##"version = 2
role = "a" # r
scrollback = 5000

# the bin
[trash]
keep_days = 3
max_size = "1GiB"

[agents.claude]
args = ["--model", "opus"]
continue_turn = true

[agents.claude.env]
A = "env:B"
# end
"##;
    assert_eq!(sandbox.settings_text(), expected);
}

#[test]
fn dotted_keys_and_inline_tables_are_extended_in_their_own_way() {
    let sandbox = Sandbox::with_settings(
        "version = 2\ntrash.keep_days = 3 # d\nrole = \"a\"\nenv = { A = \"1\" }\nagents = { claude = { args = [] } }\n",
    );
    sandbox.config.set("trash.max_size", "1GiB").unwrap();
    sandbox.config.set("env.B", "2").unwrap();
    sandbox.config.set("env.A", "3").unwrap();
    sandbox.config.set("agents.claude.env.C", "4").unwrap();
    sandbox.config.set("agents.codex.args", "[\"-x\"]").unwrap();
    assert_eq!(
        sandbox.settings_text(),
        "version = 2\ntrash.keep_days = 3 # d\ntrash.max_size = \"1GiB\"\nrole = \"a\"\nenv = { A = \"3\", B = \"2\" }\n\
         agents = { claude = { args = [], env = { C = \"4\" } }, codex = { args = [\"-x\"] } }\n"
    );
    assert!(sandbox.config.unset("env.A").unwrap());
    assert!(sandbox.config.unset("agents.claude").unwrap());
    assert!(sandbox.config.unset("trash").unwrap());
    assert_eq!(
        sandbox.settings_text(),
        "version = 2\nrole = \"a\"\nenv = { B = \"2\" }\nagents = { codex = { args = [\"-x\"] } }\n"
    );
}

#[test]
fn a_setting_that_is_removed_leaves_the_comments_above_it_to_the_next() {
    let sandbox = Sandbox::with_settings(
        "# top\nversion = 2\n\n# why\npolicy = \"keep\" # because\nrole = \"a\"\n\n# list\n[agents.claude] # c\nargs = [\n  \"a\", # one\n  # two\n]\n\n[trash]\nkeep_days = 3\n",
    );
    assert!(sandbox.config.unset("policy").unwrap());
    assert!(!sandbox.config.unset("policy").unwrap());
    assert!(sandbox.config.unset("agents.claude").unwrap());
    assert_eq!(
        sandbox.settings_text(),
        "# top\nversion = 2\n\n# why\nrole = \"a\"\n\n[trash]\nkeep_days = 3\n"
    );
}

#[test]
fn the_first_change_makes_the_file_and_its_directory() {
    let root = tempfile::tempdir().unwrap();
    let config = ConfigDir::new(root.path().join("not/there/yet"), root.path());
    assert!(!config.unset("role").unwrap());
    assert!(!config.settings_file().exists(), "there was nothing to write");
    config.set("role", "rust").unwrap();
    assert_eq!(fs::read_to_string(config.settings_file()).unwrap(), "version = 2\nrole = \"rust\"\n");
    assert_eq!(fs::metadata(config.settings_file()).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(config.path()).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn reading_writes_nothing() {
    let sandbox = Sandbox::with_settings("role = \"rust\"\n");
    assert_eq!(sandbox.config.load().unwrap().role, named("rust"));
    sandbox.config.get("role").unwrap();
    sandbox.config.list().unwrap();
    sandbox.config.workspaces().unwrap();
    assert_eq!(sandbox.settings_text(), "role = \"rust\"\n");
    assert!(!sandbox.config.path().join(".lock").exists());
}

#[test]
fn a_wrong_value_is_refused_in_the_same_words_and_not_written() {
    let sandbox = Sandbox::with_settings("version = 2\n");
    for (key, value, message) in [
        (
            "policy",
            "kep",
            "policy = \"kep\": not a policy; allowed: ask, keep, clean (did you mean \"keep\"?)",
        ),
        (
            "scrollback",
            "lots",
            "scrollback = \"lots\": not a number in range; allowed: a whole number from 0 to 1000000",
        ),
        ("polcy", "keep", ""),
        ("trash", "3", "trash: is a group of settings, name one; allowed: trash.keep_days, trash.max_size"),
        ("keep_days", "3", ""),
        ("version", "2", "version: is managed by abide; allowed: any other setting"),
        ("agents.claude.args", "--model opus", ""),
        ("agents.Claude.args", "[]", ""),
        ("env.A", "a\nb", ""),
        ("a..b", "1", ""),
        ("", "1", ""),
        ("policy.x", "1", ""),
    ] {
        let lines = lines(sandbox.config.set(key, value));
        assert_eq!(lines.len(), 1, "{key}: {lines:?}");
        assert!(message.is_empty() || lines[0] == message, "{key}: {lines:?}");
        assert_eq!(sandbox.settings_text(), "version = 2\n", "{key}");
    }
    assert!(lines(sandbox.config.set("polcy", "keep"))[0].ends_with("(did you mean \"policy\"?)"));
    assert!(lines(sandbox.config.set("keep_days", "3"))[0].ends_with("(did you mean \"trash.keep_days\"?)"));
    assert!(lines(sandbox.config.unset("version"))[0].contains("managed by abide"));
    assert_eq!(sandbox.files(), [std::path::Path::new("config.toml")]);
}

#[test]
fn a_file_that_does_not_parse_is_left_as_it_is() {
    let broken = "version = 2\nrole = \n# keep me\n";
    let sandbox = Sandbox::with_settings(broken);
    assert!(sandbox.config.set("role", "rust").is_err());
    assert!(sandbox.config.unset("role").is_err());
    assert_eq!(sandbox.settings_text(), broken);
}

#[test]
fn the_only_mistake_of_a_file_can_be_put_right_by_a_change() {
    let sandbox = Sandbox::with_settings("version = 2\nrole = 5\npolcy = \"keep\"\n");
    let left = lines(sandbox.config.unset("polcy"));
    assert!(left.len() == 1 && left[0].contains("config.toml:2:8: role = 5"), "{left:?}");
    let sandbox = Sandbox::with_settings("version = 2\npolcy = \"keep\"\n");
    assert!(sandbox.config.unset("polcy").unwrap());
    assert_eq!(sandbox.settings_text(), "version = 2\n");
}

#[test]
fn a_link_stays_a_link_and_a_mode_stays_a_mode() {
    let sandbox = Sandbox::new();
    let dotfiles = sandbox.home().join("dotfiles");
    fs::create_dir(&dotfiles).unwrap();
    let target = dotfiles.join("abide.toml");
    fs::write(&target, "version = 2 # linked\n").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("../dotfiles/abide.toml", sandbox.config.settings_file()).unwrap();

    sandbox.config.set("role", "rust").unwrap();

    let link = fs::symlink_metadata(sandbox.config.settings_file()).unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), "version = 2 # linked\nrole = \"rust\"\n");
    assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(&dotfiles).unwrap().count(), 1, "nothing may be left beside the file");
}

#[test]
fn what_a_killed_change_left_behind_is_cleared_by_the_next() {
    let sandbox = Sandbox::with_settings("version = 2\n");
    fs::write(sandbox.config.path().join(".config.toml.4711.abide-tmp"), "half a fi").unwrap();
    fs::write(sandbox.config.path().join(".config.toml.backup"), "not ours").unwrap();
    sandbox.config.set("role", "rust").unwrap();
    assert_eq!(sandbox.files(), [".config.toml.backup", "config.toml"].map(std::path::Path::new));
}

#[test]
fn get_tells_a_default_from_what_the_file_says() {
    let sandbox =
        Sandbox::with_settings("version = 2\nscrollback = 10_000\n[agents.claude]\nargs = [ 'a',  \"b\" ]\n");
    let get = |key: &str| {
        let entry = sandbox.config.get(key).unwrap();
        (entry.value, entry.origin)
    };
    assert_eq!(get("scrollback"), (Some("10000".into()), Origin::File));
    assert_eq!(get("trash.keep_days"), (Some("14".into()), Origin::Default));
    assert_eq!(get("trash.max_size"), (Some("5GiB".into()), Origin::Default));
    assert_eq!(get("journal"), (Some("8MiB".into()), Origin::Default));
    assert_eq!(get("prefix"), (Some("C-b".into()), Origin::Default));
    assert_eq!(get("role"), (Some("default".into()), Origin::Default));
    assert_eq!(get("agent"), (None, Origin::Default));
    assert_eq!(get("agents.claude.args"), (Some("[\"a\", \"b\"]".into()), Origin::File));
    assert_eq!(get("agents.codex.args"), (None, Origin::Default));

    let listed: Vec<_> = sandbox.config.list().unwrap().into_iter().map(|entry| entry.key).collect();
    assert_eq!(
        listed,
        [
            "role", "agent", "place", "engine", "context", "policy", "keep_max", "substrate", "unit",
            "linger", "keep_awake", "journal", "scrollback", "prefix", "status_bar", "trash.keep_days",
            "trash.max_size", "terminal.truecolor", "terminal.clipboard", "terminal.links",
            "terminal.notifications", "container.image", "container.network", "container.allow",
            "container.memory", "container.processes", "container.sidecar", "container.flags",
            "agents.claude.args",
        ]
    );
}

#[test]
fn a_workspace_is_made_changed_and_removed() {
    let sandbox = Sandbox::new();
    let web = named("web");
    let made = sandbox.config.create_workspace(&web, "~/src/web", &[set("policy", "keep")]).unwrap();
    assert_eq!(made.dir, sandbox.home().join("src/web"));
    assert_eq!(sandbox.workspace_text("web"), "version = 2\ndir = \"~/src/web\"\npolicy = \"keep\"\n");
    assert!(lines(sandbox.config.create_workspace(&web, "/srv", &[]))[0].contains("exists already"));

    let edits = [
        mount("~/src/lib", Isolation::Worktree),
        set("env.A", "env:B"),
        mount("/srv/data", Isolation::Shared),
    ];
    let edited = sandbox.config.edit_workspace(&web, &edits).unwrap();
    assert_eq!(edited.mounts.len(), 2);
    let expected = r#"version = 2
dir = "~/src/web"
policy = "keep"

[[mounts]]
source = "~/src/lib"
isolation = "worktree"

[[mounts]]
source = "/srv/data"

[env]
A = "env:B"
"#;
    assert_eq!(sandbox.workspace_text("web"), expected);

    let gone = WorkspaceEdit::RemoveMount { target: "~/src/lib".into() };
    sandbox.config.edit_workspace(&web, std::slice::from_ref(&gone)).unwrap();
    assert!(!sandbox.workspace_text("web").contains("src/lib"));
    let message = &lines(sandbox.config.edit_workspace(&web, &[gone]))[0];
    assert!(message.contains("has no mount at ~/src/lib; it has: /srv/data"), "{message}");

    sandbox.config.remove_workspace(&web).unwrap();
    assert!(sandbox.files().is_empty());
    assert!(lines(sandbox.config.remove_workspace(&web))[0].contains("there is no workspace web"));
    assert!(lines(sandbox.config.edit_workspace(&web, &[]))[0].contains("there is no workspace web"));
}

#[test]
fn of_several_edits_all_happen_or_none() {
    let text = "version = 2\ndir = \"/srv/web\"\n";
    let sandbox = Sandbox::with_workspace("web", text);
    let edits = [set("policy", "keep"), mount("/", Isolation::Shared)];
    let message = &lines(sandbox.config.edit_workspace(&named("web"), &edits))[0];
    assert!(message.starts_with("mounts[0].source = \"/\": would expose"), "{message}");
    assert_eq!(sandbox.workspace_text("web"), text);

    assert!(sandbox.config.create_workspace(&named("new"), "relative", &[]).is_err());
    assert_eq!(sandbox.files().len(), 1, "a workspace that is wrong is not made");
}

#[test]
fn mounts_in_one_line_are_changed_in_one_line() {
    let sandbox =
        Sandbox::with_workspace("w", "version = 2\ndir = \"/w\"\nmounts = [{ source = \"/a\" }] # m\n");
    let add = mount("/b", Isolation::Shared);
    sandbox.config.edit_workspace(&named("w"), &[add]).unwrap();
    assert_eq!(
        sandbox.workspace_text("w"),
        "version = 2\ndir = \"/w\"\nmounts = [{ source = \"/a\" }, { source = \"/b\" }] # m\n"
    );
    sandbox
        .config
        .edit_workspace(&named("w"), &[WorkspaceEdit::RemoveMount { target: "/a".into() }])
        .unwrap();
    assert_eq!(sandbox.config.workspace(&named("w")).unwrap().mounts.len(), 1);
}

#[test]
fn a_byte_order_mark_stays_first() {
    let sandbox = Sandbox::with_settings("\u{feff}role = \"rust\"\n");
    sandbox.config.set("agent", "codex").unwrap();
    assert_eq!(sandbox.settings_text(), "\u{feff}role = \"rust\"\nagent = \"codex\"\n");
    sandbox.config.unset("role").unwrap();
    assert_eq!(sandbox.settings_text(), "\u{feff}agent = \"codex\"\n");
}

#[test]
fn what_does_not_exist_is_not_changed_and_nothing_is_made() {
    let root = tempfile::tempdir().unwrap();
    let config = ConfigDir::new(root.path().join("config"), root.path());
    assert!(config.remove_workspace(&named("x")).is_err());
    assert!(config.edit_workspace(&named("x"), &[]).is_err());
    assert!(!config.path().exists());
}

#[test]
fn changes_by_threads_at_once_lose_nothing() {
    let sandbox = Sandbox::with_settings("version = 2\n");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let config = sandbox.config.clone();
            scope.spawn(move || {
                for n in 0..10 {
                    config.set(&format!("env.T{thread}_{n}"), "x").unwrap();
                }
            });
        }
    });
    assert_eq!(sandbox.config.load().unwrap().env.len(), 80);
}

/// Not a test by itself: what the processes of the test below run.
#[test]
fn one_of_many_processes() {
    let Ok(which) = std::env::var("ABIDE_CONFIG_TEST_PROCESS") else { return };
    let (dir, number) = which.split_once(':').unwrap();
    let config = ConfigDir::new(dir, "/");
    for n in 0..10 {
        config.set(&format!("env.P{number}_{n}"), "x").unwrap();
    }
}

#[test]
fn changes_by_processes_at_once_lose_nothing() {
    let sandbox = Sandbox::with_settings("version = 2\n");
    let children: Vec<_> = (0..6)
        .map(|number| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "one_of_many_processes"])
                .env("ABIDE_CONFIG_TEST_PROCESS", format!("{}:{number}", sandbox.config.path().display()))
                .output_in_background()
        })
        .collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    assert_eq!(sandbox.config.load().unwrap().env.len(), 60);
    assert_eq!(sandbox.files(), [std::path::Path::new("config.toml")]);
}

trait InBackground {
    fn output_in_background(&mut self) -> std::process::Child;
}

impl InBackground for Command {
    fn output_in_background(&mut self) -> std::process::Child {
        self.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    }
}
