//! From what is remembered of a session to the command line that starts it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod fixtures;

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use abide_agents::{Begin, FirstTurn, Prepared, Situation, agent, prepare};
use abide_model::conversation::BeginReason;
use abide_model::conversation::FirstMessage::Said;
use abide_model::session::Origin;
use abide_model::{Conversation, Extra, Timestamp};

use fixtures::{A, B, Fixture};

/// A session, as far as starting it goes.
struct Remembered<'a> {
    fixture: &'a Fixture,
    agent: &'static str,
    argv: &'static [&'static str],
    started_before: bool,
    conversation: Option<Conversation>,
}

impl<'a> Remembered<'a> {
    fn new(fixture: &'a Fixture, agent: &'static str, argv: &'static [&'static str]) -> Self {
        Self { fixture, agent, argv, started_before: false, conversation: None }
    }

    /// Starts it as the engine would: what is decided is bound, and it has run from then on.
    fn start(&mut self, claimed: &[&str]) -> Prepared {
        self.start_with(claimed, self.fixture.config())
    }

    fn start_with(&mut self, claimed: &[&str], config_dir: &Path) -> Prepared {
        let argv: Vec<String> = self.argv.iter().map(|word| (*word).to_owned()).collect();
        let situation = Situation {
            argv: &argv,
            cwd: &self.fixture.dir("proj"),
            config_dir,
            created: Timestamp(1_000_000),
            started_before: self.started_before,
            conversation: self.conversation.as_ref(),
            put_back: None,
            held: false,
            claimed,
            rivals: false,
            first_turn: FirstTurn::At(Timestamp(1_000_000)),
            screen: "",
        };
        let prepared = prepare(agent(self.agent).unwrap(), &situation).unwrap();
        if let Some((id, origin)) = prepared.begin.decision.binding() {
            self.conversation = Some(Conversation {
                id: id.to_owned(),
                origin,
                bound: Timestamp(0),
                transcript: prepared.transcript.clone(),
                held_in: None,
                extra: Extra::new(),
            });
        }
        self.started_before = true;
        prepared
    }

    fn bound(&self) -> &str {
        &self.conversation.as_ref().unwrap().id
    }
}

fn age(path: &Path, seconds: u64) {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::open(path).unwrap().set_modified(at).unwrap();
}

#[test]
fn a_session_keeps_its_id_from_the_first_start_through_every_later_one() {
    let fixture = Fixture::new("claude");
    let mut session = Remembered::new(&fixture, "claude", &["claude", "--model", "opus", "fix it"]);
    let first = session.start(&[]);
    let id = session.bound().to_owned();
    assert_eq!(first.begin.reason, BeginReason::Fresh);
    assert_eq!(first.argv, ["claude", "--model", "opus", "fix it", "--session-id", &id]);

    let again = session.start(&[]);
    assert_eq!(again.begin.reason, BeginReason::NoTranscriptYet);
    assert_eq!(again.argv, first.argv, "nothing was said yet, so there is nothing to resume");

    let transcript = fixture.write("proj", &id);
    let resumed = session.start(&[]);
    assert_eq!(resumed.begin.reason, BeginReason::DataPresent);
    assert_eq!(resumed.argv, ["claude", "--model", "opus", "--resume", &id]);
    assert_eq!(resumed.transcript, Some(transcript.clone()));

    fs::remove_file(transcript).unwrap();
    let lost = session.start(&[]);
    assert_eq!(lost.begin.reason, BeginReason::TranscriptGone);
    assert_eq!(session.bound(), id, "an id is never given up");
    assert_eq!(
        lost.argv,
        ["claude", "--model", "opus", "--session-id", &id],
        "what was said is not said again"
    );
}

#[test]
fn the_wrong_directory_of_the_agent_neither_starts_a_conversation_over_nor_loses_its_id() {
    let fixture = Fixture::new("claude");
    let mut session = Remembered::new(&fixture, "claude", &["claude"]);
    session.start(&[]);
    let id = session.bound().to_owned();
    fixture.write("proj", &id);
    let prepared = session.start_with(&[], &fixture.work().join("not-mounted"));
    assert_eq!(prepared.begin.decision, Begin::Resume { id: id.clone() });
    assert_eq!(prepared.begin.reason, BeginReason::Unverified);
    assert!(prepared.unverified.unwrap().contains("not-mounted"));
    assert_eq!(session.bound(), id);
}

#[test]
fn an_agent_that_takes_no_id_is_found_again_by_what_it_wrote() {
    for name in ["codex", "kimi"] {
        let fixture = Fixture::new(name);
        let mut session =
            Remembered::new(&fixture, name, if name == "codex" { &["codex"] } else { &["kimi"] });
        assert_eq!(session.start(&[]).begin.decision, Begin::Fresh { minted: None, first_message: Said });
        let transcript = fixture.write("proj", A);
        let found = session.start(&[]);
        assert_eq!(found.begin.reason, BeginReason::Discovered, "{name}");
        assert_eq!(found.transcript, Some(transcript));
        fixture.write("proj", B);
        let later = session.start(&[]);
        assert_eq!(
            later.begin.decision,
            Begin::Resume { id: fixture.id(A) },
            "{name}: bound once, bound for good"
        );
    }
}

#[test]
fn of_two_transcripts_of_a_wrapped_agent_the_newer_wins_and_a_foreign_one_never() {
    let fixture = Fixture::new("claude");
    let foreign = "cccccccc-3333-4333-8333-cccccccccccc";
    for (dir, id, at) in [("proj", A, 2_000), ("proj", B, 3_000), ("other", foreign, 9_000)] {
        age(&fixture.write(dir, id), at);
    }
    let restarted = |argv, claimed: &[&str]| {
        let mut session = Remembered::new(&fixture, "claude", argv);
        session.started_before = true;
        (session.start(claimed).begin, session.conversation)
    };
    let (begin, bound) = restarted(&["my-wrapper"], &[]);
    assert_eq!((begin.decision, begin.reason), (Begin::Resume { id: B.to_owned() }, BeginReason::Discovered));
    assert_eq!(bound.map(|bound| (bound.id, bound.origin)), Some((B.to_owned(), Origin::Discovered)));
    let (begin, _) = restarted(&["my-wrapper"], &[B]);
    assert_eq!(begin.decision, Begin::Resume { id: A.to_owned() }, "one that another session claimed");
    let (begin, _) = restarted(&["claude"], &[]);
    assert_eq!(begin.reason, BeginReason::Ambiguous);
    let (begin, _) = restarted(&["claude"], &[A, B]);
    assert_eq!(begin.reason, BeginReason::NoTranscriptYet);
}

#[test]
fn a_transcript_whose_last_record_is_cut_is_distinguished_from_a_whole_one() {
    let fixture = Fixture::new("claude");
    let transcript = fixture.write("proj", A);
    let mut session = Remembered::new(&fixture, "claude", &["claude", "--resume", A]);
    session.start(&[]);
    let mut torn = |tail: &[u8]| {
        let whole = fs::read(fixture.write("proj", A)).unwrap();
        fs::write(&transcript, [&whole, tail].concat()).unwrap();
        session.start(&[]).torn
    };
    for (tail, expected) in [(&b""[..], false), (b"\n\n", false), (b"{\"type\":", true), (&[0; 512], true)] {
        assert_eq!(torn(tail), expected, "{tail:?}");
    }
}

#[test]
fn a_conversation_that_the_operator_named_is_the_bound_one() {
    let fixture = Fixture::new("claude");
    let transcript = fixture.write("proj", A);
    let mut session = Remembered::new(&fixture, "claude", &["claude", "--resume", A]);
    let first = session.start(&[]);
    assert_eq!(
        (first.begin.reason, first.argv),
        (BeginReason::AsTyped, ["claude", "--resume", A].map(String::from).into())
    );
    assert_eq!(session.bound(), A);
    assert_eq!(session.start(&[]).transcript, Some(transcript));
}
