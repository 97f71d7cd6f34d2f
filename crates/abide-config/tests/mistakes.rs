//! How a mistake in a file is reported: where it is, what is wrong, what is allowed, and what was probably meant.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use common::{Sandbox, lines, named};

#[test]
fn a_mistake_names_the_file_the_place_what_is_allowed_and_what_was_meant() {
    let sandbox = Sandbox::with_settings("version = 1\n\npolicy   = \"kep\"\n");
    assert_eq!(
        lines(sandbox.config.load()),
        [
            r#"~/config/config.toml:3:12: policy = "kep": not a policy; allowed: ask, keep, clean (did you mean "keep"?)"#
        ]
    );
}

#[test]
fn an_unknown_setting_is_a_mistake_and_the_nearest_one_is_named() {
    let sandbox = Sandbox::with_settings("version = 1\npolcy = \"keep\"\n[trash]\nkeep_day = 3\n[trahs]\n");
    let lines = lines(sandbox.config.load());
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("~/config/config.toml:2:1: polcy: not a setting; allowed: role, agent, "));
    assert!(lines[0].ends_with("(did you mean \"policy\"?)"), "{}", lines[0]);
    assert_eq!(
        lines[1],
        r#"~/config/config.toml:4:1: trash.keep_day: not a setting; allowed: keep_days, max_size (did you mean "keep_days"?)"#
    );
    assert!(lines[2].starts_with("~/config/config.toml:5:2: trahs: not a setting"), "{}", lines[2]);
}

#[test]
fn every_mistake_of_a_file_is_reported_in_the_order_of_its_lines() {
    let text = "\
version = 1
scrollback = 2000000
journal = 8
prefix = \"C-m\"
status_bar = \"left\"
role = \"../x\"

[trash]
keep_days = -1
max_size = \"5 gigabytes\"

[terminal]
clipboard = true

[agents.claude]
command = []
args = [\"ok\", 5, \"a\\nb\"]
resume = [\"agent\", \"--continue\"]
config_dir = \"relative\"
continue_turn = \"yes\"

[agents.Bad]

[env]
\"1X\" = \"a\"
TOKEN = \"env:\"
";
    let sandbox = Sandbox::with_settings(text);
    let found: Vec<String> = lines(sandbox.config.load())
        .into_iter()
        .map(|line| line.strip_prefix("~/config/config.toml:").unwrap().to_owned())
        .collect();
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn mistakes_in_a_described_agent_are_reported() {
    let text = "\
version = 1
[agents.foo]
fork = [\"foo\", \"--fork\"]
id.args = [\"--id\"]
id.env = \"FOO ID\"
[agents.a]
id.file = \"~/.a/{cwd-slg}/{id}.json\"
[agents.b]
id.file = \"~/.b/sessions\"
[agents.c]
id.file = \"sessions/{id}.json\"
[agents.d]
id.file = \"{cwd}/../{id}/{id}\"
[[agents.e.screen]]
name = \"asks\"
says = \"needs-input\"
any = [\"^Continue.*\", \"\", \"{spiner} x\"]
[[agents.e.title]]
name = \"always\"
says = \"idle\"
";
    let sandbox = Sandbox::with_settings(text);
    let found: Vec<String> = lines(sandbox.config.load())
        .into_iter()
        .map(|line| line.strip_prefix("~/config/config.toml:").unwrap().to_owned())
        .collect();
    insta::assert_snapshot!(found.join("\n"));
    assert_eq!(found.len(), 11, "{found:#?}");

    let sandbox =
        Sandbox::with_settings("version = 1\n[[agents.e.title]]\nname = \"always\"\nsays = \"idle\"\n");
    let found = lines(sandbox.config.load());
    assert_eq!(
        found,
        [
            "~/config/config.toml:2:1: agents.e.title[0]: has no pattern; allowed: one of bottom, all, any, or several"
        ]
    );
}

#[test]
fn a_value_that_may_be_a_secret_is_not_repeated() {
    let sandbox =
        Sandbox::with_settings("version = 1\n[env]\nTOKEN = \"hunter2\\n\"\nOTHER = [\"hunter2\"]\n");
    let message = sandbox.config.load().unwrap_err().to_string();
    assert!(message.contains("env.TOKEN: holds a line break"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");

    let sandbox = Sandbox::with_settings("version = 1\nenv = \"hunter2\"\n");
    let message = sandbox.config.load().unwrap_err().to_string();
    assert!(message.contains(":2:7: env: not a section"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn a_syntax_error_has_its_line_and_column() {
    let sandbox = Sandbox::with_settings("version = 1\nrole = \"default\nagent = \"x\"\n");
    let lines = lines(sandbox.config.load());
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("~/config/config.toml:2:"), "{lines:?}");
    assert!(lines[0].contains("not TOML"), "{lines:?}");

    let sandbox = Sandbox::with_settings("version = 1\nrole = \"a\"\nrole = \"b\"\n");
    assert_eq!(common::lines(sandbox.config.load()), ["~/config/config.toml:3:1: not TOML: duplicate key"]);
}

#[test]
fn a_file_of_a_newer_version_is_refused_with_the_way_out() {
    let sandbox = Sandbox::with_settings("# mine\nversion = 99\nnew_thing = true\n");
    assert_eq!(
        lines(sandbox.config.load()),
        ["~/config/config.toml:2: has schema version 99, but this abide supports up to 2; upgrade abide"]
    );
    assert!(sandbox.config.set("role", "rust").is_err());
    assert_eq!(sandbox.settings_text(), "# mine\nversion = 99\nnew_thing = true\n");
}

#[test]
fn a_version_that_is_none_is_refused() {
    for version in ["\"1\"", "-1", "1.0", "[]", "{}"] {
        let sandbox = Sandbox::with_settings(&format!("version = {version}\n"));
        let lines = lines(sandbox.config.load());
        assert!(lines[0].contains(":1:11: version = "), "{lines:?}");
        assert!(lines[0].contains("not a schema version"), "{lines:?}");
    }
}

#[test]
fn a_workspace_needs_a_directory_and_a_mount_a_source() {
    let sandbox = Sandbox::with_workspace("web", "version = 1\n\n[[mounts]]\ntarget = \"/work\"\n");
    let lines = lines(sandbox.config.workspace(&named("web")));
    assert_eq!(
        lines,
        [
            "~/config/workspaces/web.toml:1:1: `dir` is missing; allowed: an absolute path or one that begins with ~/, without `..`, not /",
            "~/config/workspaces/web.toml:3:1: mounts[0]: `source` is missing; allowed: an absolute path or one that begins with ~/, without `..`, not /",
        ]
    );
}

#[test]
fn a_missing_workspace_or_role_names_the_one_that_was_meant() {
    let sandbox = Sandbox::with_workspace("web-api", "version = 1\ndir = \"/srv\"\n");
    let message = sandbox.config.workspace(&named("web-ap")).unwrap_err().to_string();
    assert!(
        message.starts_with("there is no workspace web-ap (did you mean \"web-api\"?); see "),
        "{message}"
    );
    let message = sandbox.config.role(&named("defalt")).unwrap_err().to_string();
    assert!(message.starts_with("there is no role defalt (did you mean \"default\"?); put "), "{message}");
}
