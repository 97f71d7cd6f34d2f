//! Files made to do harm: a clear error, nothing written, no waiting.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use common::{Sandbox, lines, named};

/// The messages about a workspace with these lines after its `dir`.
fn refused(text: &str) -> Vec<String> {
    let sandbox = Sandbox::with_workspace("w", &format!("version = 1\ndir = \"/srv/w\"\n{text}"));
    let before = sandbox.workspace_text("w");
    let edit = abide_config::WorkspaceEdit::Set { key: "agent".into(), value: "codex".into() };
    assert!(sandbox.config.edit_workspace(&named("w"), &[edit]).is_err(), "{text}");
    assert_eq!(sandbox.workspace_text("w"), before, "a refused file must stay as it is");
    lines(sandbox.config.workspace(&named("w")))
}

#[test]
fn the_whole_file_system_is_never_given_away() {
    for source in ["/", "//", "/.", "/./"] {
        let lines = refused(&format!("[[mounts]]\nsource = \"{source}\"\n"));
        assert!(lines[0].contains(":4:10: mounts[0].source"), "{lines:?}");
        assert!(lines[0].contains("whole file system"), "{lines:?}");
    }
    let lines = refused("[[mounts]]\nsource = \"/srv/a\"\ntarget = \"/\"\n");
    assert!(lines[0].contains(":5:10: mounts[0].target"), "{lines:?}");
}

#[test]
fn a_path_does_not_climb_and_does_not_depend_on_where_one_stands() {
    for (key, value) in [
        ("source", "/srv/../etc"),
        ("source", "~/../root"),
        ("source", "srv"),
        ("source", "~root/x"),
        ("source", ""),
    ] {
        let lines = refused(&format!("[[mounts]]\n{key} = \"{value}\"\n"));
        assert!(lines[0].contains(":4:10: mounts[0].source"), "{value}: {lines:?}");
    }
    for target in ["/work/../etc", "work", "./work", "..", "", "~/work"] {
        let lines = refused(&format!("[[mounts]]\nsource = \"/srv/a\"\ntarget = \"{target}\"\n"));
        assert!(lines[0].contains(":5:10: mounts[0].target"), "{target}: {lines:?}");
    }
    for pattern in ["../*", "/etc/*", "a/../../b", ""] {
        let lines = refused(&format!("[[mounts]]\nsource = \"/srv/a\"\ncopy = [\"{pattern}\"]\n"));
        assert!(lines[0].contains(":5:9: mounts[0].copy[0]"), "{pattern}: {lines:?}");
    }
}

#[test]
fn no_mount_hides_another() {
    let lines =
        refused("[[mounts]]\nsource = \"/srv/a\"\n[[mounts]]\nsource = \"/srv/b\"\ntarget = \"/srv/a/\"\n");
    assert!(lines[0].contains(":5:1: mounts[1]: its target is the same as /srv/a"), "{lines:?}");
    let lines = refused("[[mounts]]\nsource = \"/srv/a/deep\"\n[[mounts]]\nsource = \"/srv/a\"\n");
    assert!(lines[0].contains(":3:1: mounts[0]: its target is inside /srv/a"), "{lines:?}");

    let sandbox = Sandbox::with_workspace(
        "w",
        "version = 1\ndir = \"/srv\"\n[[mounts]]\nsource = \"/srv/a\"\n[[mounts]]\nsource = \"/srv/a-b\"\n",
    );
    assert_eq!(sandbox.config.workspace(&named("w")).unwrap().mounts.len(), 2);
}

#[test]
fn control_characters_are_refused_in_every_text() {
    for text in [
        "role = \"a\\u001b\"", "setup = [\"sh\", \"a\\u0000b\"]", "setup = [\"\"\"\na\nb\"\"\"]",
        "[env]\nA = \"a\\nb\"", "[[mounts]]\nsource = \"/srv/a\\nb\"",
        "[agents.claude]\nargs = [\"\\u007f\"]", "[\"a\\nb\"]", "\"role\\u001b[2J\" = 1",
    ] {
        let lines = refused(&format!("{text}\n"));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(!lines[0].contains(char::is_control), "{lines:?}");
    }
}

#[test]
fn an_image_cannot_be_an_option_of_the_engine() {
    let sandbox = Sandbox::new();
    let file = sandbox.config.role_file(&named("r"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    for image in ["--privileged", "", "a b", "a$(b)"] {
        fs::write(&file, format!("version = 1\nimage = \"{image}\"\n")).unwrap();
        let lines = lines(sandbox.config.role(&named("r")));
        assert!(lines[0].contains("roles/r/role.toml:2:9: image"), "{lines:?}");
    }
    for image in ["debian:13", "ghcr.io/a/b-c:1.2", "a@sha256:0123"] {
        fs::write(&file, format!("version = 1\nimage = \"{image}\"\n")).unwrap();
        assert_eq!(sandbox.config.role(&named("r")).unwrap().image.as_deref(), Some(image));
    }
}

#[test]
fn a_role_names_nothing_that_git_or_the_engine_would_take_for_something_else() {
    let sandbox = Sandbox::new();
    let file = sandbox.config.role_file(&named("r"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let role = |source: &str, commit: &str| {
        fs::write(&file, format!("source = \"{source}\"\ncommit = \"{commit}\"\n")).unwrap();
        sandbox.config.role(&named("r"))
    };
    for source in ["https://example.org/a.git", "ssh://git@example.org:22/a", "file:///srv/roles"] {
        assert_eq!(role(source, commit).unwrap().source.as_deref(), Some(source));
    }
    for source in ["ext::sh -c id", "--upload-pack=id", "/srv/roles", "https://ada:secret@example.org/a.git"]
    {
        let lines = lines(role(source, commit));
        assert!(lines[0].contains("role.toml:1:10: source"), "{lines:?}");
    }
    for commit in ["main", "0123456", "0123456789ABCDEF0123456789abcdef01234567"] {
        assert!(lines(role("https://example.org/a.git", commit))[0].contains("role.toml:2:10: commit"));
    }
    for text in [
        "source = \"https://example.org/a.git\"", "dockerfile = \"../Dockerfile\"",
        "dockerfile = \"/Dockerfile\"", "allow = [\"example.org/x\"]", "allow = [\"a.*.org\"]",
        "allow = [\"\"]",
    ] {
        fs::write(&file, text).unwrap();
        assert_eq!(lines(sandbox.config.role(&named("r"))).len(), 1, "{text}");
    }
    for flag in ["privileged", "-v", "--"] {
        assert!(sandbox.config.set("container.flags", &format!("[\"{flag}\"]")).is_err(), "{flag}");
    }
}

#[test]
fn wrong_types_are_mistakes_of_their_own() {
    for text in [
        "mounts = 5", "mounts = [5]", "mounts = [[]]", "[mounts]\nsource = \"/a\"", "env = []",
        "agents = \"x\"", "[agents]\nclaude = 5", "[agents.claude.args]\nx = 1", "[[agents.claude]]",
        "[[policy]]", "policy = {}", "setup = \"make deps\"", "setup = [[\"make\"]]",
        "keep_max = 1979-05-27", "keep_max = 1.5", "keep_max = 99999999999",
    ] {
        let lines = refused(&format!("{text}\n"));
        assert_eq!(lines.len(), 1, "{text}: {lines:?}");
        assert!(lines[0].starts_with("~/config/workspaces/w.toml:"), "{lines:?}");
    }
}

#[test]
fn deep_nesting_ends_in_an_error() {
    for text in [
        format!("setup = {}{}\n", "[".repeat(100_000), "]".repeat(100_000)),
        format!("{} = 1\n", vec!["a"; 100_000].join(".")),
        format!("[{}]\n", vec!["a"; 100_000].join(".")),
        format!("env = {}{}\n", "{a=".repeat(50_000), "}".repeat(50_000)),
    ] {
        refused(&text);
    }
}

#[test]
fn of_very_many_mistakes_the_first_are_listed_and_the_rest_counted() {
    let many: String = (0..50_000).map(|n| format!("k{n} = 1\n")).collect();
    let lines = refused(&many);
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[100], "and 49900 more; fix these first");
}

#[test]
fn a_file_too_large_is_not_even_parsed() {
    let sandbox = Sandbox::with_settings(&format!("version = 1\n#{}\n", "x".repeat(1 << 20)));
    let message = sandbox.config.load().unwrap_err().to_string();
    assert!(
        message.starts_with("~/config/config.toml: is larger than the limit of 1048576 bytes"),
        "{message}"
    );
}

#[test]
fn bytes_that_are_no_text_have_a_position() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.config.settings_file(), b"version = 1\nrole = \"\xff\"\n").unwrap();
    let lines = lines(sandbox.config.load());
    assert_eq!(lines, ["~/config/config.toml:2:9: not text in UTF-8; allowed: a TOML file in UTF-8"]);
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let sandbox = Sandbox::new();
    let file = sandbox.config.settings_file();
    let refused = || {
        assert!(sandbox.config.set("role", "rust").is_err());
        sandbox.config.load().unwrap_err().to_string()
    };

    fs::create_dir(&file).unwrap();
    assert!(refused().contains("is a directory, not a file"));
    fs::remove_dir(&file).unwrap();

    let pipe = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &file, pipe, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    assert!(refused().contains("is a pipe, not a file"));
    fs::remove_file(&file).unwrap();

    let _listener = UnixListener::bind(&file).unwrap();
    assert!(refused().contains("is a socket or device, not a file"));
    fs::remove_file(&file).unwrap();

    symlink("/dev/zero", &file).unwrap();
    assert!(refused().contains("is a device, not a file"));
    fs::remove_file(&file).unwrap();

    symlink("/nowhere/at/all", &file).unwrap();
    assert!(refused().contains("is a link to something that does not exist"));
    fs::remove_file(&file).unwrap();

    symlink(&file, &file).unwrap();
    assert!(refused().contains("could not read"));
}

#[test]
fn a_file_with_a_name_that_is_none_is_listed_and_not_read() {
    let sandbox = Sandbox::with_workspace("good", "version = 1\ndir = \"/srv/good\"\n");
    let dir = sandbox.config.path().join("workspaces");
    fs::write(dir.join("Bad Name.toml"), "version = 1\ndir = \"/srv/x\"\n").unwrap();
    fs::write(dir.join("broken.toml"), "version = \n").unwrap();
    fs::write(dir.join(".hidden.toml"), "").unwrap();
    fs::write(dir.join("notes.txt"), "").unwrap();
    let listed: Vec<_> = sandbox.config.workspaces().unwrap();
    let names: Vec<_> = listed.iter().map(|(name, read)| (name.as_str(), read.is_ok())).collect();
    assert_eq!(names, [("Bad Name", false), ("broken", false), ("good", true)]);
}
