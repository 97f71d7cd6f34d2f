//! Recorded screens and transcript ends of real agents, each with what it means.
//!
//! A file begins with `expected:` and, where it matters, `title:` and `question:`; the recording follows `---`. A `.txt` is a
//! screen, a `.jsonl` the end of a transcript. `busy` is what a transcript says that cannot tell a running tool from a
//! pending permission; `unknown` is a recording that must not be taken for anything.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use abide_agents::rules::{Reading, Rules};
use abide_model::Doing;
use abide_model::activity::{ActivityEvidence, Source, decide};

struct Case {
    name: String,
    agent: String,
    is_screen: bool,
    header: BTreeMap<String, String>,
    recording: String,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for agent in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")).unwrap() {
        for file in std::fs::read_dir(agent.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let (header, recording) = text.split_once("---\n").expect("a header");
            let pairs = header.lines().map(|line| line.split_once(": ").expect("`key: value`"));
            let dir = path.parent().unwrap();
            cases.push(Case {
                name: path.strip_prefix(dir.parent().unwrap()).unwrap().display().to_string(),
                agent: dir.file_name().unwrap().to_str().unwrap().to_owned(),
                is_screen: path.extension().unwrap() == "txt",
                header: pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
                recording: recording.to_owned(),
            });
        }
    }
    cases
}

fn evidence(source: Source, reading: Option<Reading>) -> Option<ActivityEvidence> {
    let Reading { says, rule, question } = reading?;
    Some(ActivityEvidence { source, says, age: Duration::from_secs(5), detail: rule, question })
}

/// What the recording means, and what it asks.
fn read(case: &Case) -> (String, Option<String>) {
    let signs = abide_agents::agent(&case.agent).unwrap().profile().signs;
    if !case.is_screen {
        let statement = signs.tail.unwrap()(case.recording.as_bytes());
        let says = statement.as_ref().map_or("unknown".to_owned(), |statement| statement.says.to_string());
        return (says, statement.and_then(|statement| statement.question));
    }
    let rules = Rules::parse(signs.rules).unwrap();
    let lines: Vec<&str> = case.recording.lines().collect();
    let title = case.header.get("title").and_then(|title| rules.title(title));
    let seen = [evidence(Source::Title, title), evidence(Source::Screen, rules.screen(&lines))];
    let seen: Vec<ActivityEvidence> = seen.into_iter().flatten().collect();
    let activity = decide(&seen, Duration::from_secs(1), Doing::Unknown);
    (activity.doing.to_string(), activity.question)
}

#[test]
fn every_recording_is_read_as_what_it_was() {
    let mut wrong = Vec::new();
    for case in &cases() {
        let (doing, question) = read(case);
        if doing != case.header["expected"] {
            wrong.push(format!("{}: {doing}, not {}", case.name, case.header["expected"]));
        }
        let asked = case.header.get("question");
        if asked.is_some() && asked != question.as_ref() {
            wrong.push(format!("{}: asks {question:?}, not {asked:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The operator may see two panes' worth less: what matters is at the bottom.
#[test]
fn a_question_is_seen_on_a_small_terminal_too() {
    for mut case in
        cases().into_iter().filter(|case| case.is_screen && case.header["expected"] == "needs_input")
    {
        let lines: Vec<&str> = case.recording.lines().collect();
        case.recording = lines[lines.len().saturating_sub(16)..].join("\n");
        assert_eq!(read(&case).0, "needs_input", "{}", case.name);
    }
}

/// An agent that shows another's screen, or its own in a file, must not be taken to be in that state itself.
#[test]
fn a_quoted_question_above_the_prompt_is_not_a_question() {
    for agent in ["claude", "codex", "gemini", "qwen", "kimi", "opencode", "copilot"] {
        let all = cases();
        let of = |expected: &'static str| {
            let own =
                |case: &&Case| case.agent == agent && case.is_screen && case.header["expected"] == expected;
            all.iter().filter(own).find(|case| !case.name.contains("dialog") && !case.name.contains("trust"))
        };
        let (Some(asking), Some(idle)) = (of("needs_input"), of("idle")) else { panic!("{agent}") };
        let filler = "some more text that the agent wrote about it\n".repeat(12);
        let recording = format!("{}\n{filler}{}", asking.recording, idle.recording);
        let header = BTreeMap::from([("expected".to_owned(), "idle".to_owned())]);
        let case = Case { name: String::new(), agent: agent.to_owned(), is_screen: true, header, recording };
        assert_ne!(read(&case).0, "needs_input", "{agent}");
    }
}

#[test]
fn the_corpus_is_large_enough_to_mean_something() {
    let mut per_agent: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases() {
        *per_agent.entry(case.agent).or_default() += 1;
    }
    assert!(per_agent.len() >= 5 && per_agent.values().sum::<usize>() >= 60, "{per_agent:?}");
}

#[test]
fn every_agents_rules_can_be_read() {
    for agent in abide_agents::KNOWN {
        Rules::parse(agent.profile().signs.rules).unwrap_or_else(|error| panic!("{}: {error}", agent.name()));
    }
}
