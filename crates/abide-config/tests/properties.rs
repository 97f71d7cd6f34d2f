//! What holds for any file, any setting and any value.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::fs;

use abide_config::{Origin, WorkspaceEdit};
use common::{Sandbox, named};
use proptest::prelude::*;

/// A pattern of the reference, a strategy for keys that fit it, and one for its values.
type Case = (&'static str, BoxedStrategy<String>, BoxedStrategy<String>);

fn words(words: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(words).prop_map(str::to_owned).boxed()
}

fn matching(pattern: &'static str) -> BoxedStrategy<String> {
    pattern.prop_map(|text: String| text).boxed()
}

fn list(element: BoxedStrategy<String>, at_least: usize) -> BoxedStrategy<Vec<String>> {
    prop::collection::vec(element, at_least..4).boxed()
}

/// A list as a shell user types it, spelled the way `get` spells it back.
fn toml_list(elements: Vec<String>) -> String {
    let quoted: Vec<String> = elements.iter().map(|text| toml_edit::Value::from(text).to_string()).collect();
    format!("[{}]", quoted.join(", "))
}

fn cases() -> Vec<Case> {
    let name = || matching("[a-z0-9][a-z0-9_-]{0,12}");
    let text = || matching("[ -~é☃]{0,16}");
    let reference = || {
        let forms =
            ["env:[A-Z]{1,8}", "file:/[a-z]{1,8}", "op://[a-z]/[a-z]/[a-z]", "cmd:[a-z]{1,8} [a-z]{1,8}"];
        prop::strategy::Union::new(
            forms.map(matching).into_iter().chain([matching("[a-z \"'#=\\\\\\[\\]]{0,16}")]),
        )
        .boxed()
    };
    let image = || matching("[a-z]{1,8}(/[a-z]{1,8})?(:[a-z0-9.]{1,4})?");
    let size = || matching("(0|[1-9][0-9]{0,3})(B|KiB|MiB|GiB)").boxed();
    let number = |most: u32| (0..=most).prop_map(|number| number.to_string()).boxed();
    let argv = move || (matching("[a-z]{1,8}"), list(text(), 0));
    let texts = move || list(text(), 0).prop_map(toml_list).boxed();
    let with_id = move || {
        let with_id = |(program, args)| toml_list([vec![program, "--id={id}".into()], args].concat());
        argv().prop_map(with_id).boxed()
    };
    let fixed = |key: &'static str| Just(key.to_owned()).boxed();
    let agent = move |key: &'static str| {
        (matching("(claude|codex|[a-z0-9][a-z0-9_-]{0,6}(\\.[a-z0-9]{1,3})?)"))
            .prop_map(move |name| match name.contains('.') {
                true => format!("agents.\"{name}\".{key}"),
                false => format!("agents.{name}.{key}"),
            })
            .boxed()
    };
    let variable = || matching("(KEPT|[A-Z_][A-Z0-9_]{0,6})");
    vec![
        ("role", fixed("role"), name()),
        ("agent", fixed("agent"), name()),
        ("place", fixed("place"), words(&["host", "docker"])),
        ("engine", fixed("engine"), words(&["docker", "podman"])),
        ("context", fixed("context"), matching("[a-z0-9][A-Za-z0-9_.+-]{0,6}")),
        ("policy", fixed("policy"), words(&["ask", "keep", "clean"])),
        ("keep_max", fixed("keep_max"), number(10_000)),
        ("substrate", fixed("substrate"), words(&["capsule", "tmux"])),
        ("unit", fixed("unit"), words(&["auto", "off", "scope", "service"])),
        ("linger", fixed("linger"), words(&["true", "false"])),
        ("keep_awake", fixed("keep_awake"), words(&["working", "running", "off"])),
        ("journal", fixed("journal"), words(&["off", "64KiB", "8MiB", "1GiB"])),
        ("scrollback", fixed("scrollback"), number(1_000_000)),
        ("prefix", fixed("prefix"), words(&["C-a", "C-b", "C-z", "C-Space", "C-\\", "C-]", "C-^", "C-_"])),
        ("status_bar", fixed("status_bar"), words(&["bottom", "top", "off"])),
        ("trash.keep_days", fixed("trash.keep_days"), number(36_500)),
        ("trash.max_size", fixed("trash.max_size"), size()),
        ("terminal.truecolor", fixed("terminal.truecolor"), words(&["auto", "on", "off"])),
        ("terminal.clipboard", fixed("terminal.clipboard"), words(&["deny", "allow"])),
        ("terminal.links", fixed("terminal.links"), words(&["deny", "allow"])),
        ("terminal.notifications", fixed("terminal.notifications"), words(&["deny", "allow"])),
        ("container.image", fixed("container.image"), image()),
        ("container.network", fixed("container.network"), words(&["open", "allow", "none"])),
        (
            "container.allow",
            fixed("container.allow"),
            list(matching("(\\*\\.)?[a-z]{1,8}\\.[a-z]{2,3}"), 0).prop_map(toml_list).boxed(),
        ),
        ("container.memory", fixed("container.memory"), size()),
        ("container.processes", fixed("container.processes"), number(4_194_304)),
        ("container.sidecar", fixed("container.sidecar"), image()),
        (
            "container.flags",
            fixed("container.flags"),
            list(matching("--[a-z]{1,8}(=[ -~]{0,8})?"), 0).prop_map(toml_list).boxed(),
        ),
        ("env.<NAME>", variable().prop_map(|name| format!("env.{name}")).boxed(), reference()),
        (
            "agents.<name>.command",
            agent("command"),
            argv().prop_map(|(program, args)| toml_list([vec![program], args].concat())).boxed(),
        ),
        ("agents.<name>.like", agent("like"), words(&["claude", "codex", "amp"])),
        ("agents.<name>.args", agent("args"), texts()),
        ("agents.<name>.config_dir", agent("config_dir"), matching("(/|~/)[a-z]{1,8}(/[a-z .]{0,7}[a-z])?")),
        (
            "agents.<name>.env.<NAME>",
            (agent("env"), variable()).prop_map(|(agent, name)| format!("{agent}.{name}")).boxed(),
            reference(),
        ),
        ("agents.<name>.hooks", agent("hooks"), words(&["true", "false"])),
        ("agents.<name>.continue_turn", agent("continue_turn"), words(&["true", "false"])),
        ("agents.<name>.resume", agent("resume"), with_id()),
        ("agents.<name>.fork", agent("fork"), with_id()),
        ("agents.<name>.id.args", agent("id.args"), with_id()),
        ("agents.<name>.id.env", agent("id.env"), variable()),
        (
            "agents.<name>.id.file",
            agent("id.file"),
            words(&["~/.a/{cwd-slug}/*.jsonl", "/a/**/{id}.json", "{cwd}/.a/x-{id}", "/a/*/b/{id}/c"]),
        ),
        ("agents.<name>.fatal.no_conversation", agent("fatal.no_conversation"), texts()),
        ("agents.<name>.fatal.in_use", agent("fatal.in_use"), texts()),
        ("agents.<name>.fatal.auth", agent("fatal.auth"), texts()),
        ("agents.<name>.fatal.arguments", agent("fatal.arguments"), texts()),
    ]
}

fn key_and_value() -> impl Strategy<Value = (String, String)> {
    prop::strategy::Union::new(cases().into_iter().map(|(_, key, value)| (key, value)))
}

#[test]
fn the_cases_are_those_of_the_reference() {
    let reference = abide_config::reference();
    let settings = reference.split("\n## ").next().unwrap();
    let rows =
        settings.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|row| row.split('`').next());
    // What is in a list of tables is written with an editor.
    let patterns: Vec<_> = rows.filter(|row| *row != "version" && !row.contains("[]")).collect();
    let covered: Vec<_> = cases().iter().map(|(pattern, _, _)| *pattern).collect();
    assert_eq!(patterns, covered);
}

/// A file with comments wherever TOML allows one, in one of several layouts.
fn commented_file() -> impl Strategy<Value = String> {
    let top = prop::sample::select(&[
        "role = \"rust\" # role\n",
        "# before trash\ntrash.keep_days = 7 # dotted\n\n",
        "agent = 'claude'\n\n# lonely\n\n",
        "",
    ]);
    let env = prop::sample::select(&[
        "# head env\n[env] # env\n# first\nKEPT = \"a # not a comment\" # kept\n# last env\n",
        "[env]\n",
        "",
    ]);
    let inline_env = prop::sample::select(&[
        "env = { KEPT = \"a\", B = 'b' } # inline\n", "env.KEPT = \"a\" # dotted env\n", "env = {}\n",
    ]);
    let agents = prop::sample::select(&[
        "\n[agents.claude]\nargs = [\n  \"--x\", # inner\n  # own line\n  '# no',\n] # after\n# end claude\n",
        "[agents]\n# in agents\nclaude = { args = [\"a\"], env = { KEPT = \"x\" } } # inline claude\ncodex.args = [] # c\n",
        "[agents.claude.env] # only the inner one\nKEPT = \"x\"\n[agents.\"we.ird\"]\n# none\n",
        "",
    ]);
    let end = prop::sample::select(&["# the end\n", "# the end, no newline", ""]);
    (top, env, inline_env, agents, end, any::<bool>(), any::<bool>()).prop_map(
        |(top, env, inline_env, agents, end, inline, crlf)| {
            let (inline_env, env) = if inline { (inline_env, "") } else { ("", env) };
            let text = format!("# mine\nversion = 1 # v\n{top}{inline_env}{env}{agents}{end}");
            if crlf { text.replace('\n', "\r\n") } else { text }
        },
    )
}

/// Everything from a `#` that begins a comment, sorted.
fn comments(text: &str) -> Vec<String> {
    let mut comments: Vec<String> = text
        .lines()
        .filter(|line| !line.contains("'# no'"))
        .filter_map(|line| line.rsplit_once("# "))
        .map(|(_, comment)| comment.trim().to_owned())
        .filter(|comment| !comment.starts_with("not a comment\""))
        .collect();
    comments.sort();
    comments
}

fn values(sandbox: &Sandbox) -> BTreeMap<String, (Option<String>, Origin)> {
    let listed = sandbox.config.list().unwrap();
    listed.into_iter().map(|entry| (entry.key, (entry.value, entry.origin))).collect()
}

/// Comments inside or beside a value, which go with it.
const OF_VALUES: &[&str] =
    &["inner", "own line", "after", "kept", "role", "dotted", "inline", "dotted env", "inline claude", "c"];

/// The comments of `file` that a change may not remove.
fn lasting(comments: Vec<String>) -> Vec<String> {
    comments.into_iter().filter(|comment| !OF_VALUES.contains(&comment.as_str())).collect()
}

fn is_comment_free(value: &str) -> bool {
    !value.contains("# ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_set_is_got_and_nothing_else_changes(file in commented_file(), (key, value) in key_and_value()) {
        prop_assume!(is_comment_free(&value));
        let sandbox = Sandbox::with_settings(&file);
        let before = values(&sandbox);

        sandbox.config.set(&key, &value).unwrap();
        let entry = sandbox.config.get(&key).unwrap();
        prop_assert_eq!(entry.value.as_ref(), Some(&value));
        prop_assert_eq!(entry.origin, Origin::File);
        let after = sandbox.settings_text();
        prop_assert_eq!(lasting(comments(&after)), lasting(comments(&file)), "{}", after);
        let mut expected = before.clone();
        expected.insert(entry.key.clone(), (entry.value, entry.origin));
        prop_assert_eq!(values(&sandbox), expected);
        if file.contains("\r\n") {
            prop_assert!(after.split_inclusive('\n').all(|line| !line.ends_with('\n') || line.ends_with("\r\n")));
        }

        prop_assert!(sandbox.config.unset(&key).unwrap());
        let after = sandbox.settings_text();
        prop_assert_eq!(lasting(comments(&after)), lasting(comments(&file)), "{}", after);
        prop_assert_eq!(sandbox.config.get(&key).unwrap().origin, Origin::Default);
        let others = |all: BTreeMap<_, _>| all.into_iter().filter(|(other, _)| *other != entry.key).collect::<Vec<_>>();
        prop_assert_eq!(others(values(&sandbox)), others(before));
    }

    #[test]
    fn bytes_of_any_kind_are_read_or_refused_and_never_changed_by_a_failure(content in prop::collection::vec(any::<u8>(), 0..200)) {
        endure(&content)?;
    }

    #[test]
    fn text_that_looks_like_a_file_is_read_or_refused(parts in prop::collection::vec(fragment(), 0..24)) {
        endure(parts.concat().as_bytes())?;
    }
}

fn fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "version", "version = 1\n", "version = 0\n", "role", "policy", "mounts", "env", "agents", "dir",
            ".", "=", " = ", "\n", "\r\n", "\r", " ", "\t", "[", "]", "[[", "]]", "{", "}", ",", "\"", "'",
            "\"\"\"", "'''", "#", "# c\n", "\"keep\"", "'/srv/a'", "\"/a:/b:ro\"", "1", "-5", "1979-05-27",
            "true", "\\", "\\u0000", "\u{feff}", "é", "\u{202e}", "dir = \"/srv\"\n", "[[mounts]]\n",
            "[env]\n", "mounts = [\"/a:/b\"]\n", "source = \"/x\"\n", "[agents.claude]\n",
            "args = [\"a\"]\n",
        ][..],
    )
}

/// Reads and changes a file of this content in every way; whatever fails must leave it as it was.
fn endure(content: &[u8]) -> Result<(), TestCaseError> {
    let sandbox = Sandbox::new();
    let (settings, workspace) = (sandbox.config.settings_file(), sandbox.config.workspace_file(&named("w")));
    let role = sandbox.config.role_file(&named("r"));
    fs::create_dir_all(role.parent().unwrap()).unwrap();
    for file in [&settings, &workspace, &role] {
        fs::write(file, content).unwrap();
    }
    let _ = sandbox.config.role(&named("r"));
    let _ = sandbox.config.list();
    let _ = sandbox.config.workspaces();
    prop_assert_eq!(fs::read(&settings).unwrap(), content);

    match sandbox.config.set("agents.claude.args", "[\"x\"]") {
        Ok(()) => drop(sandbox.config.load().expect("what was written must be sound")),
        Err(_) => prop_assert_eq!(fs::read(&settings).unwrap(), content),
    }
    let edits = [
        WorkspaceEdit::Set { key: "env.A".into(), value: "x".into() },
        WorkspaceEdit::AddMount { source: "/new".into(), isolation: Default::default() },
        WorkspaceEdit::Unset { key: "policy".into() },
    ];
    match sandbox.config.edit_workspace(&named("w"), &edits) {
        Ok(edited) => prop_assert!(edited.mounts.iter().any(|mount| mount.source.ends_with("new"))),
        Err(_) => prop_assert_eq!(fs::read(&workspace).unwrap(), content),
    }
    Ok(())
}
