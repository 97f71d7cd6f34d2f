//! Watching an agent: transcripts that grow, conversations that change, what belongs to an earlier run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use abide_agents::activity::{AgentLaunch, LAUNCH, watch};
use abide_model::SessionId;
use abide_model::Timestamp;
use abide_model::activity::{Says, Source};
use abide_model::watching::HookReport;
use abide_model::watching::{Watched, Watcher, WatcherInput};

const ID: &str = "25252525-4444-4444-8444-444444444444";

struct Agent {
    dir: tempfile::TempDir,
    watcher: Box<dyn Watcher>,
    now: Instant,
}

impl Agent {
    /// One that was started a minute ago.
    fn running(agent: &str) -> Self {
        Self::with_rules(agent, serde_json::Value::Null)
    }

    fn with_rules(agent: &str, rules: serde_json::Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let started = SystemTime::now() - Duration::from_secs(60);
        let millis = started.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let launch = AgentLaunch {
            agent: agent.to_owned(),
            config_dir: dir.path().to_owned(),
            cwd: dir.path().join("work"),
            conversation: None,
            started: Timestamp(i64::try_from(millis).unwrap()),
            rules,
        };
        let meta = serde_json::json!({ LAUNCH: launch });
        let watcher = watch(Watched { pid: abide_sys::process::own_pid(), meta: &meta }).unwrap();
        Self { dir, watcher, now: Instant::now() }
    }

    fn transcript(&self, name: &str, records: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, records).unwrap();
        path
    }

    /// A hook tells which conversation it is in, and where that is written.
    fn hear(&mut self, event: &str, conversation: &str, transcript: &Path) {
        let report = HookReport {
            session: SessionId(1),
            generation: 1,
            event: event.to_owned(),
            kind: None,
            text: None,
            conversation: Some(conversation.to_owned()),
            transcript: Some(transcript.to_str().unwrap().to_owned()),
        };
        self.watcher.hear(&report, self.now);
    }

    fn says(&mut self, title: &str, screen: Option<&[&str]>) -> Vec<(Source, Says)> {
        let lines = screen.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        let look = WatcherInput { now: self.now, title, screen: lines.as_deref() };
        self.watcher.look(&look).evidence.iter().map(|one| (one.source, one.says)).collect()
    }
}

const PROMPT: &str = "{\"type\":\"user\",\"message\":{\"content\":\"go\"}}\n";
const ANSWER: &str = "{\"type\":\"assistant\",\"message\":{\"stop_reason\":\"end_turn\",\"content\":[]}}\n";

#[test]
fn a_transcript_is_read_as_it_grows_and_a_torn_end_is_passed_over() {
    let mut agent = Agent::running("claude");
    let path = agent.transcript("a.jsonl", PROMPT);
    agent.hear("registry", ID, &path);
    assert_eq!(agent.says("", None), [(Source::Transcript, Says::Working)]);
    agent.transcript("a.jsonl", &format!("{PROMPT}{ANSWER}"));
    assert_eq!(agent.says("", None), [(Source::Transcript, Says::Idle)]);
    agent.transcript("a.jsonl", &format!("{PROMPT}{ANSWER}{{\"type\":\"us"));
    assert_eq!(agent.says("", None), [(Source::Transcript, Says::Idle)]);
}

#[test]
fn a_record_longer_than_the_usual_end_is_read_too() {
    let mut agent = Agent::running("claude");
    let metadata = "{\"type\":\"mode\"}\n".repeat(10);
    let long = format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{}\"}}}}\n", "x".repeat(100_000));
    let path = agent.transcript("a.jsonl", &format!("{ANSWER}{long}{metadata}"));
    agent.hear("registry", ID, &path);
    assert_eq!(agent.says("", None), [(Source::Transcript, Says::Working)]);
}

#[test]
fn what_an_earlier_run_wrote_says_nothing_about_this_one() {
    let mut agent = Agent::running("claude");
    let path = agent.transcript("a.jsonl", PROMPT);
    let before = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    agent.hear("registry", ID, &path);
    assert_eq!(agent.says("", None), []);
}

#[test]
fn another_conversation_has_another_transcript() {
    let mut agent = Agent::running("claude");
    let first = agent.transcript("a.jsonl", PROMPT);
    agent.hear("registry", ID, &first);
    let second = agent.transcript("b.jsonl", ANSWER);
    agent.hear("registry", "26262626-4444-4444-8444-444444444444", &second);
    assert_eq!(agent.says("", None), [(Source::Transcript, Says::Idle)]);
}

#[test]
fn a_transcript_that_is_a_link_is_not_followed() {
    let mut agent = Agent::running("claude");
    let real = agent.transcript("a.jsonl", PROMPT);
    let link = agent.dir.path().join("link.jsonl");
    std::os::unix::fs::symlink(real, &link).unwrap();
    agent.hear("registry", ID, &link);
    assert_eq!(agent.says("", None), []);
}

#[test]
fn what_was_seen_stands_until_something_else_is() {
    let mut agent = Agent::running("gemini");
    let idle = [" >   Type your message or @path/to/file", " workspace", " /home/dev"];
    assert_eq!(
        agent.says("✦ Working…", Some(&idle)),
        [(Source::Title, Says::Working), (Source::Screen, Says::Idle)]
    );
    assert_eq!(agent.says("", None), [(Source::Screen, Says::Idle)]);
    assert_eq!(agent.says("", Some(&["something else"])), []);
}

#[test]
fn a_statement_is_as_old_as_its_first_time() {
    let mut agent = Agent::running("gemini");
    let spinner = |frame| [format!(" {frame} Thinking... (esc to cancel, 3s)")];
    for (second, frame) in ['⠏', '⠙', '⠹'].into_iter().enumerate() {
        let look = WatcherInput {
            now: agent.now + Duration::from_secs(second as u64),
            title: "",
            screen: Some(&spinner(frame)),
        };
        let evidence = agent.watcher.look(&look).evidence;
        assert_eq!(evidence[0].age, Duration::from_secs(second as u64));
    }
}

#[test]
fn an_unknown_program_is_not_watched() {
    let meta = serde_json::json!({ "agent": null, "shell": ["/bin/sh"] });
    assert!(watch(Watched { pid: abide_model::Pid(1), meta: &meta }).is_none());
}

#[test]
fn what_the_operator_says_about_screens_counts_before_what_is_known() {
    let sign =
        |name: &str, says: &str, any: &str| serde_json::json!({ "name": name, "says": says, "any": [any] });
    let rules = serde_json::json!({
        "title": [sign("busy title", "working", "^busy")],
        "screen": [sign("mine", "needs_input", "ctrl+p commands")],
    });
    for agent in ["opencode", "my-agent"] {
        let mut agent = Agent::with_rules(agent, rules.clone());
        let screen = ["ctrl+p commands".to_owned()];
        let look = WatcherInput { now: agent.now, title: "busy bee", screen: Some(&screen) };
        let said: Vec<_> =
            agent.watcher.look(&look).evidence.into_iter().map(|e| (e.source, e.says)).collect();
        assert_eq!(said, [(Source::Title, Says::Working), (Source::Screen, Says::NeedsInput)]);
    }
}

/// Kimi calls no hook of ours and keeps nothing open.
#[test]
fn a_conversation_begun_without_a_word_is_followed_if_it_can_be_no_other() {
    let mut agent = Agent::running("kimi");
    let work = agent.dir.path().join("work");
    fs::create_dir(&work).unwrap();
    let begin = |agent: &Agent, number: u8| {
        let id = format!("session_2525252{number}-4444-4444-8444-444444444444");
        let dir = agent.dir.path().join("sessions/wd_work_0").join(&id).join("agents/main");
        fs::create_dir_all(&dir).unwrap();
        let record = serde_json::json!({ "type": "turn.prompt", "environmentDisclosure": { "cwd": work } });
        fs::write(dir.join("wire.jsonl"), format!("{record}\n")).unwrap();
        (id, dir.join("wire.jsonl"))
    };
    let age = |path: &Path| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(50)).unwrap();
    };
    let look = |agent: &mut Agent, line: &str, later: u64| {
        agent.now += Duration::from_secs(later);
        let lines = [line.to_owned()];
        agent.watcher.look(&WatcherInput { now: agent.now, title: "", screen: Some(&lines) }).inferred
    };
    let (first, of_first) = begin(&agent, 1);
    assert_eq!(look(&mut agent, "nothing", 10), None, "one that does not work has begun nothing");
    assert_eq!(look(&mut agent, "⠋ Working", 10), None, "a glimpse");
    assert_eq!(look(&mut agent, "⠋ Working", 6), Some(first));
    assert_eq!(look(&mut agent, "⠋ Working", 6), None, "it is in it");
    look(&mut agent, "nothing", 6);
    let (second, of_second) = begin(&agent, 2);
    look(&mut agent, "⠋ Working", 6);
    assert_eq!(look(&mut agent, "⠋ Working", 6), None, "its own grows");
    age(&of_first);
    assert_eq!(look(&mut agent, "⠋ Working", 6), Some(second));
    age(&of_second);
    let (third, of_another) = (begin(&agent, 3).0, begin(&agent, 4).1);
    assert_eq!(look(&mut agent, "⠋ Working", 6), None, "whose is whose?");
    age(&of_another);
    assert_eq!(look(&mut agent, "⠋ Working", 6), Some(third));
}
