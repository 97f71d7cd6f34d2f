//! Where every agent keeps its conversations: found, missing, empty, torn, foreign.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod fixtures;

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use abide_agents::{KNOWN, Located, agent};
use abide_model::Timestamp;
use fixtures::{A, B, Fixture};
use proptest::prelude::*;

/// Agents whose transcripts can be seen.
const SEEN: [&str; 6] = ["claude", "codex", "gemini", "kimi", "qwen", "copilot"];

const EVER: Timestamp = Timestamp(0);

#[test]
fn a_transcript_is_found_by_its_exact_id() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        let path = fixture.write("proj", A);
        fixture.write("proj", B);
        assert_eq!(fixture.locate("proj", A), Located::Found(path), "{name}");
    }
}

#[test]
fn one_that_is_not_there_or_empty_is_missing() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        fixture.dir("proj");
        assert_eq!(fixture.locate("proj", A), Located::Missing, "{name}: nothing was ever written");
        fixture.write("proj", B);
        assert_eq!(fixture.locate("proj", A), Located::Missing, "{name}");
        fs::write(fixture.write("proj", A), "").unwrap();
        assert_eq!(fixture.locate("proj", A), Located::Missing, "{name}: an empty one cannot be resumed");
        assert!(fixture.discovered("proj", EVER).iter().all(|id| *id != fixture.id(A)), "{name}");
    }
}

#[test]
fn one_that_a_kill_has_torn_is_found() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        let path = fixture.write("proj", A);
        let mut torn = fs::read(&path).unwrap();
        torn.extend([0; 512]);
        torn.extend(b"\n{\"type\":\"assistant\",\"mess");
        fs::write(&path, torn).unwrap();
        assert_eq!(fixture.locate("proj", A), Located::Found(path), "{name}");
        assert_eq!(fixture.discovered("proj", EVER), [fixture.id(A)], "{name}");
    }
}

#[test]
fn one_of_another_directory_is_never_taken_for_this_ones() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        fixture.dir("other");
        fixture.write("proj", A);
        let located = fixture.locate("other", A);
        assert!(!matches!(located, Located::Found(_)), "{name}: {located:?}");
        assert_eq!(fixture.discovered("other", EVER), [""; 0], "{name}");
    }
}

#[test]
fn a_directory_that_is_not_there_is_not_an_answer() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        let gone = fixture.config().join("not-mounted");
        let located = agent(name).unwrap().transcript(&gone, &fixture.dir("proj"), &fixture.id(A));
        assert!(matches!(located, Located::Unknown(_)), "{name}: {located:?}");
        assert_eq!(agent(name).unwrap().discover(&gone, Some(&fixture.dir("proj")), EVER), []);
    }
}

#[test]
fn a_conversation_is_about_what_was_said_first() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        let path = fixture.write("proj", A);
        assert_eq!(agent(name).unwrap().title(&path).as_deref(), Some("fix the tests"), "{name}");
        fs::write(&path, "{}\n").unwrap();
        assert_eq!(agent(name).unwrap().title(&path), None, "{name}");
    }
}

#[test]
fn those_of_every_directory_are_found_with_where_each_was_held() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        fixture.write("proj", A);
        fixture.write("another", B);
        let mut found = agent(name).unwrap().discover(fixture.config(), None, EVER);
        found.sort_by(|a, b| a.id.cmp(&b.id));
        let found: Vec<_> = found.into_iter().map(|candidate| (candidate.id, candidate.cwd)).collect();
        let expected = [(fixture.id(A), fixture.dir("proj")), (fixture.id(B), fixture.dir("another"))];
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn what_a_process_has_open_tells_its_conversation() {
    let pid = abide_sys::process::own_pid();
    for name in SEEN {
        let fixture = Fixture::new(name);
        let path = fixture.write("proj", A);
        let open = || agent(name).unwrap().open_in(fixture.config(), pid);
        assert_eq!(open(), [""; 0], "{name}");
        let held = fs::File::open(&path).unwrap();
        let expected = if name == "claude" { vec![] } else { vec![fixture.id(A)] };
        assert_eq!(open(), expected, "{name}");
        drop(held);
        let other = path.with_file_name("notes.txt");
        let _held = fs::File::create(other).unwrap();
        assert_eq!(open(), [""; 0], "{name}");
    }
    let codex = Fixture::new("codex");
    let locks = codex.config().join("thread-writer-locks");
    fs::create_dir(&locks).unwrap();
    let _lock = fs::File::create(locks.join(format!("{B}.lock"))).unwrap();
    assert_eq!(agent("codex").unwrap().open_in(codex.config(), pid), [B], "before anything was said");
    let claude = Fixture::new("claude");
    let sessions = claude.config().join("sessions");
    fs::create_dir(&sessions).unwrap();
    let start = abide_sys::process::this().start;
    for (start, expected) in [(start, vec![A]), (start + 1, vec![])] {
        let entry = serde_json::json!({ "pid": pid, "procStart": start.to_string(), "sessionId": A });
        fs::write(sessions.join(format!("{pid}.json")), entry.to_string()).unwrap();
        assert_eq!(agent("claude").unwrap().open_in(claude.config(), pid), expected);
    }
}

#[test]
fn a_transcript_that_cannot_be_examined_is_unknown() {
    for name in ["opencode", "amp"] {
        let fixture = Fixture::new(name);
        let located = fixture.locate("proj", A);
        assert!(matches!(located, Located::Unknown(_)), "{name}: {located:?}");
        assert_eq!(fixture.discovered("proj", EVER), [""; 0]);
    }
}

#[test]
fn every_kind_of_directory_finds_its_own() {
    let long = format!("deep/{}", ["a_rather.long-name"; 10].join("/"));
    for name in SEEN {
        for dir in [long.as_str(), "a.b", "a_b", "with space", "caf\u{e9} \u{1f980}", "-dash"] {
            let fixture = Fixture::new(name);
            let path = fixture.write(dir, A);
            assert_eq!(fixture.locate(dir, A), Located::Found(path), "{name} {dir}");
            assert_eq!(fixture.discovered(dir, EVER), [fixture.id(A)], "{name} {dir}");
        }
    }
}

#[test]
fn a_link_to_a_directory_is_that_directory() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        let path = fixture.write("proj", A);
        symlink(fixture.dir("proj"), fixture.work().join("link")).unwrap();
        let link = fixture.work().join("link");
        let agent = agent(name).unwrap();
        assert_eq!(agent.transcript(fixture.config(), &link, &fixture.id(A)), Located::Found(path), "{name}");
        let found = agent.discover(fixture.config(), Some(&link), EVER);
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].cwd, fixture.dir("proj"), "{name}: without links");
    }
}

#[test]
fn two_directories_that_share_a_name_are_distinguished_by_the_recorded_path() {
    for name in ["claude", "qwen"] {
        let fixture = Fixture::new(name);
        let (dotted, underscored) = (fixture.write("a.b", A), fixture.write("a_b", B));
        assert_eq!(dotted.parent(), underscored.parent(), "they do share it");
        assert_eq!(fixture.discovered("a.b", EVER), [A]);
        assert_eq!(fixture.discovered("a_b", EVER), [B]);
        assert!(matches!(fixture.locate("a.b", B), Located::Unknown(why) if why.contains("a_b")));
    }
}

#[test]
fn a_conversation_begun_elsewhere_is_not_missing() {
    for name in ["claude", "qwen"] {
        let fixture = Fixture::new(name);
        fixture.dir("other");
        fixture.write("proj", A);
        // Taken for missing, it would be started over with the same id.
        assert!(matches!(fixture.locate("other", A), Located::Unknown(_)), "{name}");
    }
}

#[test]
fn only_what_was_written_since_is_discovered_newest_first() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for (id, seconds) in [(A, 2_000), (B, 3_000)] {
            fs::File::open(fixture.write("proj", id)).unwrap().set_modified(at(seconds)).unwrap();
        }
        let since = |seconds: i64| fixture.discovered("proj", Timestamp(seconds * 1000));
        assert_eq!(since(1_000), [fixture.id(B), fixture.id(A)], "{name}");
        assert_eq!(since(2_001), [fixture.id(B)], "{name}");
        assert_eq!(since(3_001), [""; 0], "{name}");
    }
}

#[test]
fn what_a_sub_agent_wrote_is_not_a_session() {
    let claude = Fixture::new("claude");
    let path = claude.write("proj", A);
    fs::copy(&path, path.with_file_name("agent-1234abcd.jsonl")).unwrap();
    let side = format!("{{\"cwd\":{:?},\"isSidechain\":true}}\n", claude.dir("proj"));
    fs::write(path.with_file_name(format!("{B}.jsonl")), side).unwrap();
    assert_eq!(claude.discovered("proj", EVER), [A]);

    for meta in
        [r#""thread_source":"subagent""#, r#""source":{"subagent":"review"}"#, r#""source":"subagent""#]
    {
        let codex = Fixture::new("codex");
        let text = fs::read_to_string(codex.write("proj", A)).unwrap();
        let sub = text.replacen(r#""thread_source":"user""#, meta, 1);
        assert_ne!(sub, text);
        fs::write(codex.write("proj", B), sub).unwrap();
        assert_eq!(codex.discovered("proj", EVER), [A], "{meta}");
    }

    let gemini = Fixture::new("gemini");
    let text = fs::read_to_string(gemini.write("proj", A)).unwrap();
    fs::write(gemini.write("proj", B), text.replace("main", "subagent").replace(A, B)).unwrap();
    assert_eq!(gemini.discovered("proj", EVER), [A]);

    let kimi = Fixture::new("kimi");
    let main = kimi.write("proj", A);
    let sub = main.parent().unwrap().with_file_name("coder-1");
    fs::create_dir(&sub).unwrap();
    fs::copy(&main, sub.join("wire.jsonl")).unwrap();
    assert_eq!(kimi.discovered("proj", EVER), [kimi.id(A)]);
}

#[test]
fn of_two_files_of_one_gemini_conversation_the_longer_is_the_conversation() {
    let gemini = Fixture::new("gemini");
    let real = gemini.write("proj", A);
    let stub = real.with_file_name(format!("session-2026-11-15T09-59-{}.jsonl", &A[..8]));
    let text = fs::read_to_string(&real).unwrap();
    fs::write(&stub, text.lines().next().unwrap()).unwrap();
    assert_eq!(gemini.locate("proj", A), Located::Found(real.clone()));
    let found = agent("gemini").unwrap().discover(gemini.config(), Some(&gemini.dir("proj")), EVER);
    assert_eq!(found.iter().map(|c| &c.path).collect::<Vec<_>>(), [&real]);
}

#[test]
fn nothing_outside_the_agents_directory_is_looked_at() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        let path = fixture.write("proj", A);
        let outside = fixture.work().join("outside.jsonl");
        fs::rename(&path, &outside).unwrap();
        symlink(&outside, &path).unwrap();
        assert!(!matches!(fixture.locate("proj", A), Located::Found(_)), "{name}: a link to a file");
        assert_eq!(fixture.discovered("proj", EVER), [""; 0], "{name}");

        fs::remove_file(&path).unwrap();
        fs::rename(&outside, &path).unwrap();
        let dir = path.parent().unwrap();
        fs::rename(dir, fixture.work().join("moved")).unwrap();
        symlink(fixture.work().join("moved"), dir).unwrap();
        assert!(!matches!(fixture.locate("proj", A), Located::Found(_)), "{name}: a link to a directory");
        assert_eq!(fixture.discovered("proj", EVER), [""; 0], "{name}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_transcript_is_not_waited_for() {
    for name in SEEN {
        let fixture = Fixture::new(name);
        let path = fixture.write("proj", A);
        fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(!matches!(fixture.locate("proj", A), Located::Found(_)), "{name}");
        assert_eq!(fixture.discovered("proj", EVER), [""; 0], "{name}");
    }
}

#[test]
fn an_id_that_is_a_path_leads_nowhere() {
    for agent in KNOWN {
        let fixture = Fixture::new(agent.name());
        for id in ["../../secret", "", "/etc/passwd", "a\0b", "x".repeat(5000).as_str()] {
            let located = agent.transcript(fixture.config(), &fixture.dir("proj"), id);
            assert!(matches!(located, Located::Unknown(_)), "{} {located:?}", agent.name());
        }
    }
}

/// What may stand in a transcript: anything, or something close to what belongs there.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let close = prop_oneof![
        Just(r#"{"cwd":5}"#.to_owned()),
        Just(r#"{"cwd":"/","isSidechain":"x"}"#.to_owned()),
        Just(r#"{"type":"session_meta","payload":{"cwd":"relative"}}"#.to_owned()),
        Just(r#"{"type":"session_meta","payload":[]}"#.to_owned()),
        Just(r#"{"sessionId":null,"kind":"main"}"#.to_owned()),
        Just(r#"{"environmentDisclosure":{"cwd":"\u0000"}}"#.to_owned()),
        Just(r#"{"data":{"context":{"cwd":""}}}"#.to_owned()),
        Just("[".repeat(3000)),
        Just(format!("{}{}", r#"{"cwd":"#, "{\"a\":".repeat(3000))),
    ];
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..600),
        proptest::collection::vec(close, 1..6).prop_map(|lines| lines.join("\n").into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_content_makes_a_look_up_panic_or_is_taken_for_a_session(content in content()) {
        for name in SEEN {
            let fixture = Fixture::new(name);
            fs::write(fixture.write("proj", A), &content).unwrap();
            let _ = fixture.locate("proj", A);
            prop_assert_eq!(fixture.discovered("proj", EVER), [""; 0]);
            if name == "gemini" {
                fs::write(fixture.config().join("projects.json"), &content).unwrap();
                prop_assert!(!matches!(fixture.locate("proj", A), Located::Found(_)));
            }
        }
    }
}
