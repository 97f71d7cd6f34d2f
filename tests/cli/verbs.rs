//! What holds for every verb: help, exit codes, completions, the manual.

use abide_testkit::Sandbox;

use crate::common::{add_instance, add_trash, compare, sandbox, transcript};

/// The verbs that the overview of `abide --help` lists.
fn verbs(overview: &str) -> Vec<&str> {
    let listed = overview.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = listed.take_while(|line| line.starts_with(' ')).filter(|line| !line.starts_with("   "));
    let verbs: Vec<_> =
        rows.filter_map(|row| row.split_whitespace().next()).filter(|verb| *verb != "help").collect();
    assert!(verbs.contains(&"load") && verbs.contains(&"man"), "no verbs were found in:\n{overview}");
    verbs
}

#[test]
fn every_verb_has_help_with_examples() {
    let sandbox = sandbox();
    for verb in verbs(&sandbox.abide(["--help"]).ok()) {
        let help = sandbox.abide([verb, "--help"]).ok();
        assert!(help.contains("Examples:"), "{help}");
    }
}

#[test]
fn the_exit_codes_are_those_of_the_help() {
    let sandbox = sandbox();
    sandbox.abide(["--version"]).ok();
    sandbox.abide(["no-such-verb"]).fails(2);
    sandbox.abide(["ls", "--no-such-flag"]).fails(2);
    sandbox.abide(["explain", "zzzzzzzz"]).fails(1);
}

#[test]
fn a_mistyped_verb_gets_the_one_that_was_meant() {
    let complaint = sandbox().abide(["worksapce"]).fails(2);
    assert!(complaint.contains("workspace"), "{complaint}");
}

#[test]
fn a_value_that_begins_with_a_dash_is_refused_as_the_value_that_it_is() {
    let sandbox = sandbox();
    let refused = transcript(
        &sandbox,
        &[],
        &[
            "wait k7p9 --exit --timeout -1", "wait k7p9 --exit --timeout=-0.5",
            "wait k7p9 --exit --timeout NaN", "peek k7p9 --lines -1", "prune --older-than -1",
            "load true --detach --name -x",
        ],
    );
    assert!(!refused.contains("tip:"), "{refused}");
    compare("refused-values", &refused);
}

#[test]
fn completions_are_accepted_by_their_shell() {
    let sandbox = sandbox();
    let script = sandbox.abide(["completions", "bash"]).ok();
    let path = sandbox.write("complete.bash", &script);
    let checked = sandbox.command("bash").arg("-n").arg(&path).output().unwrap();
    assert!(checked.status.success());
    for shell in ["zsh", "fish"] {
        assert!(sandbox.abide(["completions", shell]).ok().contains("abide"));
    }
    sandbox.abide(["completions", "csh"]).fails(2);
}

/// What bash, with the script of `abide completions`, offers after `line`.
fn offered(sandbox: &Sandbox, line: &str) -> Vec<String> {
    let script = sandbox.write("complete.bash", sandbox.abide(["completions", "bash"]).ok());
    let ask = format!(
        "abide() {{ {:?} \"$@\"; }}; . {:?}; COMP_WORDS=({line} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; \
         _clap_complete_abide abide '' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        sandbox.program(),
        script
    );
    let out = sandbox.command("bash").args(["-c", &ask]).output().unwrap();
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_is_offered_verbs_values_and_what_there_is_on_this_machine() {
    let sandbox = sandbox();
    let id = add_instance(&sandbox, |instance| instance.name = Some("review".to_owned())).to_string();
    let gone = add_trash(&sandbox).to_string();
    sandbox.abide(["workspace", "create", "shop"]).ok();
    for (line, expected) in [
        ("abide", vec!["load", "hardline"]),
        ("abide hardline", vec!["review", &id, "shop"]),
        ("abide stop", vec!["review", &id]),
        ("abide trash restore", vec![gone.as_str()]),
        ("abide workspace show", vec!["shop"]),
        ("abide load --isolation", vec!["shared", "worktree", "clone"]),
        ("abide load --substrate", vec!["capsule", "tmux"]),
    ] {
        let offered = offered(&sandbox, line);
        let missing: Vec<_> =
            expected.iter().filter(|word| !offered.contains(&(**word).to_owned())).collect();
        assert!(missing.is_empty(), "after `{line}` {missing:?} is not among {offered:?}");
    }
}

#[test]
fn the_manual_names_every_verb_and_one_page_is_made_for_each() {
    let sandbox = sandbox();
    let page = sandbox.abide(["man"]).ok();
    let dir = sandbox.path("share/man/man1");
    sandbox.abide(["man", "--dir", dir.to_str().unwrap()]).ok();
    for verb in verbs(&sandbox.abide(["--help"]).ok()) {
        assert!(page.contains(&format!("abide\\-{verb}(1)")), "{verb}");
        assert!(dir.join(format!("abide-{verb}.1")).exists(), "{verb}");
    }
    let files = std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.filter(|name| name.contains("help")).collect::<Vec<_>>(), [""; 0], "pages about `help`");
    let file = sandbox.write("file", "");
    let complaint = sandbox.abide(["man", "--dir", file.to_str().unwrap()]).fails(1);
    assert!(complaint.contains(file.to_str().unwrap()), "{complaint}");
}

#[test]
fn a_relative_home_or_state_directory_is_refused() {
    let mut sandbox = sandbox();
    sandbox.set("HOME", "relative");
    compare("relative-home", &transcript(&sandbox, &[], &["ls"]));
    sandbox.set("ABIDE_HOME", "relative/dir");
    sandbox.abide(["ls"]).fails(2);
}

#[test]
fn a_command_that_cannot_be_carried_out_says_what_to_do() {
    let sandbox = sandbox();
    let refused = transcript(
        &sandbox,
        &[],
        &[
            "load", "load no-such-program --detach", "load sh --detach --base main", "hardline", "prune",
            "prune --json", "leave", "send zzzzzzzz hello", "wait zzzzzzzz --idle", "upgrade --all",
            "config get no.such", "config set policy", "workspace edit shop --set policy",
            "workspace show shop", "completions csh",
        ],
    );
    compare("refused", &refused);
}

#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let sandbox = sandbox();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = sandbox.command(sandbox.program()).arg("--help").stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(1));
}
