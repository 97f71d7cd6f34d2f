//! Which workspace a directory belongs to, what it overrides, and which roles there are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;

use abide_config::{ByteSize, Role};
use abide_model::container::{EngineKind, Network};
use abide_model::{EnvRef, Permission, Place, Policy};
use common::{Sandbox, lines, named};

fn workspace(sandbox: &Sandbox, name: &str, dir: &str) {
    fs::write(sandbox.config.workspace_file(&named(name)), format!("version = 1\ndir = \"{dir}\"\n"))
        .unwrap();
}

#[test]
fn the_nearest_workspace_above_a_directory_is_its_own() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.home().join("src/web/api/deep")).unwrap();
    fs::create_dir_all(sandbox.home().join("src/web-two")).unwrap();
    workspace(&sandbox, "all", "~/src");
    workspace(&sandbox, "web", "~/src/web");
    workspace(&sandbox, "api", "~/src/web/api");
    let of = |dir: &str| {
        let found = sandbox.config.workspace_for(&sandbox.home().join(dir)).unwrap();
        found.map(|(name, _)| name.to_string())
    };
    assert_eq!(of("src/web/api/deep").as_deref(), Some("api"));
    assert_eq!(of("src/web/api").as_deref(), Some("api"));
    assert_eq!(of("src/web").as_deref(), Some("web"));
    assert_eq!(of("src/web-two").as_deref(), Some("all"));
    assert_eq!(of("."), None);
}

#[test]
fn a_directory_reached_by_a_link_belongs_to_the_same_workspace() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.home().join("src/web")).unwrap();
    symlink("src/web", sandbox.home().join("shortcut")).unwrap();
    workspace(&sandbox, "web", "~/shortcut");
    for dir in ["src/web", "shortcut"] {
        let found = sandbox.config.workspace_for(&sandbox.home().join(dir)).unwrap();
        assert_eq!(found.unwrap().0, named("web"));
    }
}

#[test]
fn the_operator_chooses_between_two_workspaces_of_one_directory() {
    let sandbox = Sandbox::new();
    workspace(&sandbox, "one", "/srv/x");
    workspace(&sandbox, "two", "/srv/x/");
    let message = &lines(sandbox.config.workspace_for("/srv/x/y".as_ref()))[0];
    assert!(message.contains("several workspaces: one, two"), "{message}");
    assert!(sandbox.config.workspace_for("/srv".as_ref()).unwrap().is_none());
}

#[test]
fn a_workspace_that_cannot_be_read_is_an_error_wherever_it_may_be_the_nearest() {
    let sandbox = Sandbox::new();
    workspace(&sandbox, "good", "/srv/x");
    let bad = sandbox.config.workspace_file(&named("bad"));
    let of = |dir: &str| sandbox.config.workspace_for(dir.as_ref());
    for (text, refused, fine) in [
        ("dir = ", &["/srv/x", "/elsewhere"][..], &[][..]),
        ("dir = \"/srv/x/y\"\npolicy = \"kep\"\n", &["/srv/x/y", "/srv/x/y/z"], &["/srv/x", "/elsewhere"]),
        ("dir = '/srv'\n[env\n", &["/srv", "/srv/y"], &["/srv/x", "/elsewhere"]),
    ] {
        fs::write(&bad, text).unwrap();
        for dir in refused {
            assert!(lines(of(dir))[0].contains("bad.toml:"), "{text} {dir}");
        }
        for dir in fine {
            assert!(of(dir).is_ok(), "{text} {dir}");
        }
    }
}

#[test]
fn without_any_file_everything_has_its_default() {
    let sandbox = Sandbox::new();
    let settings = sandbox.config.load().unwrap();
    assert_eq!(settings.role, named("default"));
    assert_eq!(settings.agent, None);
    assert_eq!(settings.policy, Policy::Ask);
    assert_eq!(settings.journal.to_string(), "8MiB");
    assert_eq!(settings.scrollback, 10_000);
    assert_eq!(settings.prefix.byte(), 0x02);
    assert_eq!(settings.trash.keep_days, 14);
    assert_eq!(settings.trash.max_size.bytes(), 5 << 30);
    assert_eq!(settings.terminal.clipboard, Permission::Deny);
    assert_eq!(settings.terminal.links, Permission::Deny);
    assert_eq!(settings.terminal.notifications, Permission::Allow);
    assert!(settings.agents.is_empty() && settings.env.is_empty());
}

#[test]
fn a_workspace_overrides_setting_by_setting() {
    let sandbox = Sandbox::with_settings(
        "version = 1\npolicy = \"keep\"\nagent = \"claude\"\n[env]\nA = \"general\"\nB = \"general\"\n\
         [agents.claude]\ncommand = [\"my-claude\"]\nargs = [\"--general\"]\nenv = { X = \"general\", Y = \"general\" }\n",
    );
    fs::write(
        sandbox.config.workspace_file(&named("w")),
        "version = 1\ndir = \"/srv/w\"\nplace = \"docker\"\nagent = \"codex\"\n[env]\nB = \"own\"\n\
         [agents.claude]\nargs = []\nenv.Y = \"own\"\n[agents.codex]\nargs = [\"-x\"]\n",
    )
    .unwrap();
    let workspace = sandbox.config.workspace(&named("w")).unwrap();
    let settings = sandbox.config.load().unwrap().overridden_by(&workspace);
    let plain = |text: &str| EnvRef::Plain(text.to_owned());
    assert_eq!(settings.policy, Policy::Keep);
    assert_eq!(settings.place, Place::Docker);
    assert_eq!(settings.agent, Some(named("codex")));
    assert_eq!(settings.env["A"], plain("general"));
    assert_eq!(settings.env["B"], plain("own"));
    let claude = &settings.agents["claude"];
    assert_eq!(claude.command.as_deref(), Some(&["my-claude".to_owned()][..]));
    assert_eq!(claude.args.as_deref(), Some(&[][..]));
    assert_eq!((&claude.env["X"], &claude.env["Y"]), (&plain("general"), &plain("own")));
    assert_eq!(settings.agents["codex"].args.as_deref(), Some(&["-x".to_owned()][..]));
}

#[test]
fn a_workspace_overrides_single_settings_of_containers_and_adds_to_lists() {
    let sandbox = Sandbox::with_settings(
        "[container]\nimage = \"debian:13\"\nallow = [\"a.example\"]\nmemory = \"1GiB\"\nflags = [\"--init\"]\n",
    );
    fs::write(
        sandbox.config.workspace_file(&named("w")),
        "dir = \"/srv/w\"\nengine = \"podman\"\n[container]\nnetwork = \"none\"\nallow = [\"b.example\"]\nprocesses = 0\n",
    )
    .unwrap();
    let workspace = sandbox.config.workspace(&named("w")).unwrap();
    let settings = sandbox.config.load().unwrap().overridden_by(&workspace);
    assert_eq!((settings.engine, settings.context.as_deref()), (EngineKind::Podman, None));
    let container = settings.container;
    assert_eq!((container.image.as_str(), container.network), ("debian:13", Network::None));
    assert_eq!(container.allow, ["a.example", "b.example"]);
    assert_eq!((container.memory.map(ByteSize::bytes), container.processes), (Some(1 << 30), 0));
    assert_eq!((container.sidecar, container.flags), (None, vec!["--init".to_owned()]));
}

#[test]
fn the_default_role_is_there_without_a_file_and_can_have_one() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.config.role(&named("default")).unwrap(), Role::built_in());
    let file = sandbox.config.role_file(&named("default"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "version = 1\nimage = \"debian:13\"\n").unwrap();
    assert_eq!(sandbox.config.role(&named("default")).unwrap().image.as_deref(), Some("debian:13"));
}

#[test]
fn the_reference_names_every_setting_with_its_default() {
    let reference = abide_config::reference();
    for row in [
        "## config.toml",
        "| `role` | up to 63 of",
        "| `policy` | ask, keep, clean | `ask` | What happens to an instance when its last session ends. |",
        "| `trash.keep_days` | a whole number from 0 to 36500 | `14` |",
        "| `agents.<name>.env.<NAME>` | op://vault/item/field",
        "## workspaces/<name>.toml",
        "| `dir` | an absolute path or one that begins with ~/, without `..`, not / | required |",
        "| `mounts[].isolation` | shared, worktree, clone | `shared` |",
        "## roles/<name>/role.toml",
        "| `image` |",
    ] {
        assert!(reference.contains(row), "{row}\n{reference}");
    }
}

#[test]
fn the_example_of_an_agent_of_ones_own_can_be_copied() {
    let page = include_str!("../../../docs/agents.md");
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let sandbox = Sandbox::with_settings(&format!("version = 1\n{example}"));
    let settings = sandbox.config.load().unwrap();
    let agent = &settings.agents[&named("my-agent")];
    assert_eq!((agent.screen.len(), agent.title.len()), (1, 1));
    assert!(agent.described().transcripts.unwrap().ends_with("/.my-agent/sessions/{cwd-slug}/{id}.jsonl"));
}
