//! The command line of every agent: fresh, resumed, forked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::ffi::OsString;
use std::path::Path;

use abide_agents::{Agent, Begin, Chosen, Fatal, KNOWN, Typed, agent, for_session};
use abide_model::conversation::FirstMessage::{LeftOut, Said};
use abide_model::session::Described;
use proptest::prelude::*;

const A: &str = "aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa";
const B: &str = "bbbbbbbb-2222-4222-8222-bbbbbbbbbbbb";

fn argv(line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| word.replace('+', " ")).collect()
}

fn line(argv: &[String]) -> String {
    argv.iter().map(|word| word.replace(' ', "+")).collect::<Vec<_>>().join(" ")
}

fn known(name: &str) -> &'static dyn Agent {
    agent(name).unwrap()
}

/// An id as `name` spells its own.
fn id_of(name: &str, uuid: &str) -> String {
    match name {
        "kimi" => format!("session_{uuid}"),
        "amp" => format!("T-{uuid}"),
        "opencode" => format!("ses_{}", uuid.replace('-', "")),
        _ => uuid.to_owned(),
    }
}

#[test]
fn the_agents_are_those_of_the_model_in_its_order() {
    let names: Vec<&str> = KNOWN.iter().map(|agent| agent.name()).collect();
    assert_eq!(names, abide_model::program::AGENTS);
    assert!(KNOWN.iter().all(|agent| agent.program() == agent.name()));
    assert!(agent("emacs").is_none());
}

#[test]
fn a_fresh_start_gives_the_minted_id_to_those_that_take_one_and_leaves_the_rest_alone() {
    for agent in KNOWN {
        let own = argv(&format!("{} --model x", agent.program()));
        let started = agent.fresh(&own, Some(A));
        match agent.name() {
            "claude" | "gemini" | "qwen" | "copilot" => {
                assert!(agent.mints());
                assert_eq!(line(&started), format!("{} --session-id {A}", line(&own)));
            }
            _ => {
                assert!(!agent.mints());
                assert_eq!(started, own);
            }
        }
        assert_eq!(agent.fresh(&own, None), own);
    }
}

#[test]
fn each_agent_is_resumed_and_forked_by_exact_id_with_its_other_arguments() {
    for (name, resumed, forked) in [
        ("claude", "--resume ID", Some("--resume ID --fork-session --session-id NEW")),
        ("codex", "resume ID", Some("fork ID")),
        ("gemini", "--resume ID", None),
        ("opencode", "-s ID", Some("-s ID --fork")),
        ("kimi", "-S ID", None),
        ("qwen", "--resume ID", Some("--resume ID --fork-session")),
        ("copilot", "--resume=ID", None),
        ("amp", "threads continue ID", None),
    ] {
        let (agent, id) = (known(name), id_of(name, A));
        let own = argv(&format!("/opt/bin/{name} --model x --unknown=1 --yes"));
        let expected = |tail: &str| format!("{} {}", line(&own), tail.replace("ID", &id).replace("NEW", B));
        assert_eq!(line(&agent.resume(&own, &id).unwrap()), expected(resumed));
        let fork = agent.fork(&own, &id, Some(B)).map(|argv| line(&argv));
        assert_eq!(fork, forked.map(expected));
    }
}

#[test]
fn a_resume_replaces_whatever_chose_a_conversation_and_does_not_say_the_first_message_again() {
    for (name, before, after) in [
        ("claude", "claude --session-id A --model x", "claude --model x --resume B"),
        ("claude", "claude --session-id=A -c fix+it", "claude --resume B"),
        ("claude", "claude -r A --fork-session --verbose fix+it", "claude --verbose --resume B"),
        ("claude", "claude --resume", "claude --resume B"),
        ("claude", "claude -p fix+it --model x", "claude --model x --resume B"),
        (
            "claude",
            "claude --allowedTools Bash Edit --add-dir /a /b --ide",
            "claude --allowedTools Bash Edit --add-dir /a /b --ide --resume B",
        ),
        ("claude", "claude --model x -- fix --that", "claude --model x --resume B"),
        (
            "claude",
            "npx -y @anthropic-ai/claude-code --model x",
            "npx -y @anthropic-ai/claude-code --model x --resume B",
        ),
        ("claude", "npx @anthropic-ai/claude-code fix+it", "npx @anthropic-ai/claude-code --resume B"),
        ("claude", "env X=1 claude fix+it", "env X=1 claude --resume B"),
        ("claude", "jail --net -- claude --model x fix+it", "jail --net -- claude --model x --resume B"),
        ("claude", "nix run pkgs#it -- --model x", "nix run pkgs#it -- --model x --resume B"),
        ("claude", "nix run pkgs#it --", "nix run pkgs#it -- --resume B"),
        ("claude", "my-claude --model x -- fix+it", "my-claude --model x --resume B"),
        ("claude", "my-claude --profile work", "my-claude --profile work --resume B"),
        ("codex", "codex -m o3 resume A", "codex -m o3 resume B"),
        ("codex", "codex resume -m o3 A go+on", "codex -m o3 resume B"),
        ("codex", "codex resume --last -c a=b", "codex -c a=b resume B"),
        ("codex", "codex --full-auto fix+it -i a.png b.png", "codex --full-auto resume B"),
        ("codex", "codex fork A", "codex resume B"),
        ("codex", "codex --not-known-yet resume A", "codex --not-known-yet resume B"),
        ("gemini", "gemini --resume latest -m x -i hello", "gemini -m x --resume B"),
        ("gemini", "gemini --resume 5 --yolo query", "gemini --yolo --resume B"),
        ("opencode", "opencode /proj --session ses_1 --fork --prompt hi", "opencode /proj -s B"),
        ("kimi", "kimi -c --yolo", "kimi --yolo -S B"),
        ("kimi", "kimi -yc", "kimi -y -S B"),
        ("claude", "claude -cp go+on --model x", "claude --model x --resume B"),
        ("kimi", "kimi --agent coder -m x", "kimi -m x -S B"),
        ("copilot", "copilot --allow-tool a b --fleet -r A", "copilot --allow-tool a b --fleet --resume=B"),
        ("qwen", "qwen --session-id A --continue -i hi", "qwen --resume B"),
        ("copilot", "copilot --resume=A --allow-all-tools -p hi", "copilot --allow-all-tools --resume=B"),
        ("amp", "amp threads continue A --mode rush", "amp --mode rush threads continue B"),
    ] {
        let spelled = |line: &str| -> Vec<String> {
            let id = |word: String| match word.as_str() {
                "A" => id_of(name, A),
                "B" => id_of(name, B),
                _ => word.replace("=A", &format!("={A}")).replace("=B", &format!("={B}")),
            };
            argv(line).into_iter().map(id).collect()
        };
        let resumed = known(name).resume(&spelled(before), &id_of(name, B)).unwrap();
        assert_eq!(line(&resumed), line(&spelled(after)), "{before}");
    }
}

#[test]
fn the_latest_conversation_is_named_where_it_was_asked_for_and_the_prompt_is_said() {
    for (name, typed, named, none) in [
        (
            "claude",
            "claude -c --model x hello",
            format!("claude --resume {A} --model x hello"),
            "claude --model x hello",
        ),
        ("codex", "codex resume --last hello", format!("codex resume {A} hello"), "codex hello"),
        ("gemini", "gemini --resume latest -m x", format!("gemini --resume {A} -m x"), "gemini -m x"),
        ("qwen", "qwen --continue", format!("qwen --resume {A}"), "qwen"),
    ] {
        let (agent, typed) = (known(name), argv(typed));
        assert_eq!(agent.latest_named(&typed, Some(A)), argv(&named));
        assert_eq!(agent.latest_named(&typed, None), argv(none));
    }
}

#[test]
fn what_the_operator_typed_about_the_conversation_is_respected_and_known() {
    let named = || Typed::Conversation(Some(A.to_owned()));
    let unnamed = || Typed::Conversation(None);
    for (name, typed, expected) in [
        ("claude", format!("claude --session-id {A}"), named()),
        ("claude", format!("claude --resume={A} go+on"), named()),
        ("claude", format!("claude -r {A} --fork-session"), unnamed()),
        ("claude", format!("claude -r {B} --fork-session --session-id {A}"), named()),
        ("claude", "claude --continue".to_owned(), Typed::Latest),
        ("claude", "claude --continue --fork-session".to_owned(), unnamed()),
        ("claude", format!("claude -r{A}"), named()),
        ("claude", format!("claude -pr{A} go+on"), named()),
        ("claude", format!("claude -pr={A}"), named()),
        ("claude", "claude -cp go+on".to_owned(), Typed::Latest),
        ("claude", "claude -pc".to_owned(), Typed::Latest),
        ("claude", "claude -dc".to_owned(), Typed::Nothing),
        ("claude", "claude -- -cp".to_owned(), Typed::Nothing),
        ("qwen", "qwen -yc".to_owned(), Typed::Latest),
        ("kimi", "kimi -yc".to_owned(), Typed::Latest),
        ("gemini", format!("gemini -yr{A}"), named()),
        ("copilot", format!("copilot -sr{A}"), named()),
        ("claude", "claude --resume my-title".to_owned(), unnamed()),
        ("claude", "claude mcp list".to_owned(), Typed::Command),
        ("claude", format!("claude -- --resume {A}"), Typed::Nothing),
        ("claude", "claude".to_owned(), Typed::Nothing),
        ("codex", format!("codex resume {A}"), named()),
        ("codex", format!("codex fork {A}"), unnamed()),
        ("codex", "codex resume --last".to_owned(), Typed::Latest),
        ("codex", "codex resume --all".to_owned(), unnamed()),
        ("codex", "codex exec hello".to_owned(), Typed::Command),
        ("codex", "codex please+resume".to_owned(), Typed::Nothing),
        ("gemini", "gemini --resume latest".to_owned(), Typed::Latest),
        ("gemini", format!("gemini -r {A}"), named()),
        ("copilot", format!("copilot --resume={A}"), named()),
        ("qwen", format!("qwen --session-id {A}"), named()),
        ("amp", "amp login".to_owned(), Typed::Command),
    ] {
        let (agent, typed) = (known(name), argv(&typed));
        assert_eq!(agent.typed(&typed), expected, "{}", line(&typed));
        if expected != Typed::Nothing {
            assert_eq!(agent.fresh(&typed, Some(B)), typed, "no second id");
        }
    }
}

#[test]
fn what_is_decided_is_what_is_spelled() {
    let claude = known("claude");
    let own = argv(&format!("claude --continue --session-id {A} hello"));
    let spelled = |begin: Begin| line(&claude.command(&own, &begin).unwrap());
    assert_eq!(spelled(Begin::AsTyped { id: None }), line(&own));
    let fresh = |first_message| Begin::Fresh { minted: Some(B.into()), first_message };
    assert_eq!(spelled(fresh(Said)), format!("claude hello --session-id {B}"));
    assert_eq!(spelled(fresh(LeftOut)), format!("claude --session-id {B}"));
    let restart = |first_message| Begin::Restart { id: A.into(), first_message };
    assert_eq!(spelled(restart(Said)), format!("claude hello --session-id {A}"));
    assert_eq!(spelled(restart(LeftOut)), format!("claude --session-id {A}"));
    assert_eq!(spelled(Begin::Resume { id: A.into() }), format!("claude --resume {A}"));
    let prompted = argv("claude -- --why");
    let fresh = claude.command(&prompted, &fresh(Said)).unwrap();
    assert_eq!(line(&fresh), format!("claude --session-id {B} -- --why"), "behind -- it would be a prompt");
}

#[test]
fn an_id_that_is_none_never_reaches_a_command_line() {
    for agent in KNOWN {
        for id in ["", "latest", "--dangerously-skip-permissions", "../../etc/passwd", "a b"] {
            assert_eq!(agent.resume(&argv(agent.program()), id), None, "{} {id}", agent.name());
            assert_eq!(agent.fork(&argv(agent.program()), id, None), None);
        }
    }
}

#[test]
fn an_agent_that_the_configuration_describes_is_resumed_as_it_says() {
    let own = argv("my-agent --fast");
    let template = Described { resume: Some(argv("my-agent --thread={id}")), ..Described::default() };
    let described = for_session("mine", &own, Some(&template));
    assert_eq!((described.name(), described.mints(), described.resumes()), ("mine", false, true));
    assert_eq!(described.fresh(&own, Some(A)), own);
    assert_eq!(line(&described.resume(&own, "t1").unwrap()), "my-agent --thread=t1");
    assert_eq!(described.resume(&own, "--evil"), None);
    let bare = for_session("mine", &own, None);
    assert!(!bare.resumes() && bare.resume(&own, "t1").is_none());
}

#[test]
fn an_agent_that_the_configuration_describes_is_given_its_id_as_it_says() {
    let (own, words) = (argv("my-agent --fast"), |text: &str| Some(argv(text)));
    let template = Described {
        resume: words("my-agent resume {id}"),
        fork: words("my-agent fork {id} --as {new}"),
        id_args: words("--id={id}"),
        ..Described::default()
    };
    let by_args = for_session("mine", &own, Some(&template));
    assert!(by_args.mints());
    assert_eq!(line(&by_args.fresh(&own, Some(A))), format!("my-agent --fast --id={A}"));
    assert_eq!(by_args.fork(&own, "t1", Some(A)), words(&format!("my-agent fork t1 --as {A}")));
    // What the operator typed themselves stands.
    for (typed, expected) in [
        ("my-agent --id=t2", Typed::Conversation(Some("t2".to_owned()))),
        ("my-agent resume t2", Typed::Conversation(Some("t2".to_owned()))),
        ("my-agent fork t2", Typed::Conversation(None)),
        ("my-agent resume --all", Typed::Nothing),
        ("my-agent t2", Typed::Nothing),
    ] {
        assert_eq!(by_args.typed(&argv(typed)), expected, "{typed}");
    }
    assert_eq!(line(&by_args.fresh(&argv("my-agent --id=t2"), Some(A))), "my-agent --id=t2");

    let template = Described { id_env: Some("MY_ID".to_owned()), ..Described::default() };
    let by_env = for_session("mine", &own, Some(&template));
    assert!(by_env.mints() && by_env.resumes() && by_env.fork(&own, A, None).is_none());
    assert_eq!((by_env.id_env(), by_env.fresh(&own, Some(A))), (Some("MY_ID"), own.clone()));
    assert_eq!(by_env.resume(&own, A), Some(own));
}

#[test]
fn what_a_described_agent_says_at_its_end_means_what_the_configuration_says() {
    let fatal = [("auth", "please … log in"), ("in_use", "busy"), ("nonsense", "busy too")];
    let fatal = fatal.map(|(meaning, words)| (meaning.to_owned(), vec![words.to_owned()])).into();
    let mine = for_session("mine", &argv("x"), Some(&Described { fatal, ..Described::default() }));
    assert_eq!(mine.fatal("please, friend,\nlog in"), Some(Fatal::Auth));
    assert_eq!((mine.fatal("busy"), mine.fatal("all is well")), (Some(Fatal::AlreadyInUse), None));
}

#[test]
fn an_agent_is_known_by_its_name_or_by_what_its_command_runs() {
    let is = |chosen: Chosen, name: &str| matches!(chosen, Chosen::Known(agent) if agent.name() == name);
    assert!(is(for_session("claude", &argv("my-wrapper"), None), "claude"));
    assert!(is(for_session("work", &argv("/opt/bin/codex -p work"), None), "codex"));
    let described = Described { resume: Some(argv("x {id}")), ..Described::default() };
    assert!(matches!(for_session("work", &argv("codex"), Some(&described)), Chosen::Custom(_)));
    assert!(is(for_session("work", &argv("codex"), Some(&Described::default())), "codex"));
    let like = Described { like: Some("claude".to_owned()), ..Described::default() };
    assert!(is(for_session("work", &argv("./w.sh"), Some(&like)), "claude"));
}

#[test]
fn codex_is_kept_in_one_process_where_it_knows_how() {
    let codex = known("codex");
    let help = "Options:\n      --no-daemon   Run in one process\n";
    let adjusted = |help: &str, own: &str| line(&codex.adjust_for(help, argv(own)));
    assert_eq!(adjusted(help, "codex -m x"), "codex -m x --no-daemon");
    assert_eq!(adjusted(help, "codex --no-daemon"), "codex --no-daemon");
    assert_eq!(adjusted(help, "codex exec hi"), "codex exec hi");
    assert_eq!(adjusted("Options:\n --no-daemonize\n", "codex"), "codex");
    assert_eq!(line(&known("claude").adjust_for(help, argv("claude"))), "claude");
}

#[test]
fn the_directory_is_the_environments_else_the_default() {
    let home = Path::new("/home/dev");
    for (name, var, moved, default) in [
        ("claude", "CLAUDE_CONFIG_DIR", "/x", ".claude"),
        ("codex", "CODEX_HOME", "/x", ".codex"),
        ("gemini", "GEMINI_CLI_HOME", "/x/.gemini", ".gemini"),
        ("opencode", "XDG_DATA_HOME", "/x/opencode", ".local/share/opencode"),
        ("kimi", "KIMI_CODE_HOME", "/x", ".kimi-code"),
        ("qwen", "QWEN_HOME", "/x", ".qwen"),
        ("copilot", "COPILOT_HOME", "/x", ".copilot"),
    ] {
        let agent = known(name);
        let set = |asked: &str| (asked == var).then(|| OsString::from("/x"));
        let empty = |_: &str| Some(OsString::new());
        assert_eq!(agent.moved_to(&set), Some(moved.into()), "{name}");
        assert_eq!(agent.moved_to(&empty), None, "{name}");
        assert_eq!(agent.default_dir(home), home.join(default), "{name}");
        if name != "qwen" {
            assert_eq!(agent.config_env(Path::new(moved)), Ok((var, "/x".into())), "{name}");
        }
    }
    let refused = known("gemini").config_env(Path::new("/elsewhere")).unwrap_err();
    assert_eq!(refused, "`config_dir` of gemini must end in `.gemini`");
}

#[test]
fn fatal_messages_are_classified() {
    for (name, screen, expected) in [
        ("claude", format!("No conversation found with session ID: {A}"), Some(Fatal::NoConversation)),
        ("claude", format!("Error: Session ID {A} is already in use."), Some(Fatal::AlreadyInUse)),
        ("codex", format!("No saved session found with ID {A}"), Some(Fatal::NoConversation)),
        ("codex", "\u{1f512} This conversation is open in another app".into(), Some(Fatal::AlreadyInUse)),
        ("codex", "error: unexpected argument '--no-daemon' found".into(), Some(Fatal::Arguments)),
        ("gemini", "Invalid session identifier \"x\"".into(), Some(Fatal::NoConversation)),
        ("opencode", "Session not found".into(), Some(Fatal::NoConversation)),
        ("kimi", "Session session_1 not found".into(), Some(Fatal::NoConversation)),
        ("qwen", format!("No saved session found with ID {A}"), Some(Fatal::NoConversation)),
        ("copilot", "No session, task, or name matched 'x'".into(), Some(Fatal::NoConversation)),
        ("amp", "getUserInfo failed: 404".into(), Some(Fatal::Auth)),
        ("claude", "Not logged in \u{b7} Please run /login".into(), Some(Fatal::Auth)),
        ("gemini", "Error resuming session: No previous sessions found".into(), Some(Fatal::NoConversation)),
        ("kimi", "error: failed to run prompt: No model configured. Run".into(), Some(Fatal::Auth)),
        ("qwen", "No auth type is selected. Please configure".into(), Some(Fatal::Auth)),
        ("copilot", "error: unexpected argument '--bogus' found".into(), Some(Fatal::Arguments)),
        ("claude", "> hello\n\u{25cf} Hi! What shall we build?".into(), None),
    ] {
        assert_eq!(known(name).fatal(&screen), expected, "{screen}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_arguments_make_an_agent_panic_or_hide_which_conversation_it_resumes(
        words in proptest::collection::vec("(-{0,2}[a-z=]{0,4}|--resume|-c|--session-id|--last|.{0,6})", 0..8),
    ) {
        for agent in KNOWN {
            let mut own = vec![agent.program().to_owned()];
            own.extend(words.clone());
            let id = id_of(agent.name(), A);
            prop_assert_eq!(&agent.fresh(&own, Some(B))[..own.len().min(1)], &own[..1]);
            if let Some(resumed) = agent.resume(&own, &id) {
                prop_assert_eq!(agent.typed(&resumed), Typed::Conversation(Some(id)), "{:?}", resumed);
            }
        }
    }

    #[test]
    fn arguments_never_make_an_agent_panic(words in proptest::collection::vec("(resume|fork|threads|continue|--|-|.{0,3})", 0..6)) {
        for agent in KNOWN {
            let _ = (agent.typed(&words), agent.fresh(&words, Some(A)), agent.resume(&words, A));
        }
    }
}
