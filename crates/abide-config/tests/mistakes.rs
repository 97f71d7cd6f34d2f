//! What a mistake in a file is told like: where, what, what instead, and what was meant.
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
        .map(|line| line.strip_prefix("~/config/config.toml:").unwrap().split(';').next().unwrap().to_owned())
        .collect();
    assert_eq!(
        found,
        [
            "2:14: scrollback = 2000000: not a number in range",
            "3:11: journal = 8: not a journal size",
            "4:10: prefix = \"C-m\": not a prefix key",
            "5:14: status_bar = \"left\": not a status bar position",
            "6:8: role = \"../x\": not a name",
            "9:13: trash.keep_days = -1: not a number in range",
            "10:12: trash.max_size = \"5 gigabytes\": not a size",
            "13:13: terminal.clipboard = true: not a permission",
            "16:11: agents.claude.command = a list: names no program",
            "17:15: agents.claude.args[1] = 5: not a line of text",
            "17:18: agents.claude.args[2] = \"a·b\": holds a line break or another control character",
            "18:10: agents.claude.resume = a list: does not say where the conversation's id goes",
            "19:14: agents.claude.config_dir = \"relative\": not an absolute path",
            "20:17: agents.claude.continue_turn = \"yes\": not a switch",
            "22:9: agents.Bad: not an agent name",
            "25:1: env.1X: not a variable name",
            "26:9: env.TOKEN: not a reference",
        ]
    );
}

#[test]
fn a_described_agent_that_can_not_be_meant_is_told_what_is_wrong_with_it() {
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
    for (line, parts) in found.iter().zip([
        [
            "3:8: agents.foo.fork = a list: does not say where the conversation's id goes",
            "one with {id} in it",
        ],
        ["4:11: agents.foo.id.args = a list: does not say where", "[\"--session-id\", \"{id}\"]"],
        ["5:10: agents.foo.id.env = \"FOO ID\": not a variable name", ""],
        ["7:11: agents.a.id.file = ", "`{cwd-slg}` stands for nothing"],
        ["9:11: agents.b.id.file = ", "does not say where the conversation's id is"],
        ["11:11: agents.c.id.file = ", "not an absolute path"],
        ["13:11: agents.d.id.file = ", "has `..` in it"],
        ["16:8: agents.e.screen[0].says = \"needs-input\": not a statement", "did you mean \"needs_input\"?"],
        [
            "17:8: agents.e.screen[0].any[0] = \"^Continue.*\"",
            "`.*` is of a regular expression, which this is not",
        ],
        ["17:23: agents.e.screen[0].any[1] = \"\": fits everything", "… for anything"],
        ["17:27: agents.e.screen[0].any[2] = ", "did you mean \"{spinner}\"?"],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{line}\n{parts:?}");
    }
    assert_eq!(found.len(), 11, "{found:#?}");

    let sandbox =
        Sandbox::with_settings("version = 1\n[[agents.e.title]]\nname = \"always\"\nsays = \"idle\"\n");
    let found = lines(sandbox.config.load());
    assert_eq!(
        found,
        [
            "~/config/config.toml:2:1: agents.e.title[0]: has no pattern to fit; allowed: one of bottom, all, any, or several"
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
        ["~/config/config.toml:2: written for schema version 99, this abide knows 2: upgrade abide"]
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
