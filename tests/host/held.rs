//! A conversation that a process is in, inside abide or outside it, is joined by no other.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use crate::common::compare;
use crate::conversations::{Agents, machine};

/// An agent that the operator runs by hand in the same directory, which has said `text`. It ends with the test.
struct ByHand {
    child: Child,
    id: String,
}

impl ByHand {
    fn start(host: &Agents, agent: &str, args: &[&str], text: &str) -> Self {
        let known = ids(host);
        let mut command = host.command(host.path(format!("bin/{agent}")));
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{text}").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().starts_with("heard")).unwrap().unwrap();
        let new = ids(host).into_iter().find(|id| !known.contains(id));
        Self { child, id: new.unwrap_or_default() }
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ids(host: &Agents) -> Vec<String> {
    let listed = host.abide(["conversations", "--json"]).json()["conversations"].clone();
    listed.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_latest_conversation_is_named_before_the_start_and_refused_if_another_session_is_in_it() {
    let host = machine();
    let first = host.load_agent("claude", &[]);
    host.say(&first, "the first");
    let held = host.conversation(&first);
    let complaint = host.abide(["load", "claude", "--detach", "--", "--continue"]).fails(1);
    assert!(complaint.contains(&format!("{held} is in use by ab-{first}/s1")), "{complaint}");
    assert_eq!(host.argvs("claude").len(), 1, "nothing was started in it a second time");
    host.abide(["eject", &first, "--clean"]).ok();

    let next = host.loaded(host.abide(["load", "claude", "--detach", "--", "--model", "x", "--continue"]));
    host.wait_for_screen(&next, "resumed: the first");
    assert_eq!(host.argvs("claude")[1], format!("--model x --resume {held}"));
    assert_eq!(host.conversation(&next), held);
    host.stop(&next);
    let other = host.load_agent("claude", &[]);
    host.say(&other, "by now the latest");
    host.resume(&next);
    assert_eq!(host.argvs("claude")[3], format!("--model x --resume {held}"));
}

#[test]
fn where_nothing_was_said_yet_the_latest_conversation_is_a_new_one() {
    let host = machine();
    let run = host.abide(["load", "claude", "--detach", "--", "--continue"]);
    compare(&host, "nothing-to-continue", &run.stderr);
    let id = host.loaded(run);
    assert_eq!(host.argvs("claude"), [format!("--session-id {}", host.conversation(&id))]);
}

#[test]
fn a_conversation_that_an_agent_outside_abide_is_in_is_held_and_joined_by_nothing() {
    for (agent, args) in [("claude", &[][..]), ("codex", &[]), ("qwen", &["--session-id", QWEN])] {
        let host = machine();
        let by_hand = ByHand::start(&host, agent, args, "outside");
        let (id, pid) = (by_hand.id.clone(), by_hand.child.id());
        let row = host.abide(["conversations", "--json"]).json()["conversations"][0].clone();
        assert_eq!((&row["claim"], &row["session"]), (&"held".into(), &serde_json::Value::Null), "{row}");
        let held = host.abide(["conversations"]).ok();
        assert!(held.contains("process "), "{held}");
        for args in
            [&["load", agent, "--adopt", &id, "--detach"][..], &["load", "--adopt", &id[..8], "--detach"]]
        {
            let complaint = host.abide(args).fails(1);
            assert!(complaint.contains("outside abide)"), "{agent}: {complaint}");
            assert!(complaint.contains("end that process first"), "{complaint}");
        }
        let resume = if agent == "codex" { vec!["resume", &id] } else { vec!["--resume", &id] };
        let explicit = [&["load", agent, "--detach", "--"], &resume[..]].concat();
        let complaint = host.abide(explicit).fails(1);
        assert!(complaint.contains("outside abide"), "{agent}: {complaint}");
        assert_eq!(host.argvs(agent).len(), 1, "nothing was started in it");
        drop(by_hand);
        assert!(!crate::common::alive(pid));
        let adopted = host.loaded(host.abide(["load", "--adopt", &id, "--detach"]));
        host.wait_for_screen(&adopted, "resumed: outside");
    }
}

const QWEN: &str = "0199a7c2-7b1e-4c33-9c5e-3f0e2f1d4a55";

#[test]
fn a_resume_is_refused_while_the_operator_has_the_conversation_open_by_hand() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "mine");
    let conversation = host.conversation(&id);
    host.stop(&id);
    let by_hand = ByHand::start(&host, "claude", &["--resume", &conversation], "by hand");
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    assert!(complaint.contains(&format!("process {}", by_hand.child.id())), "{complaint}");
    compare(&host, "conversation-open-by-hand", &complaint);
    assert_eq!(host.state(&id), "restorable (stopped)", "a refused resume changes nothing");
    drop(by_hand);
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: by hand");
    assert_eq!(host.conversation(&id), conversation);
}

#[test]
fn a_session_in_which_nothing_was_said_cannot_be_forked() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    let complaint = host.abide(["load", "--fork", &id, "--detach"]).fails(1);
    compare(&host, "fork-without-conversation", &complaint);
    assert_eq!(host.argvs("claude").len(), 1);
    assert_eq!(host.abide(["ls", "--json"]).json()["instances"].as_array().unwrap().len(), 1);
}

#[test]
fn a_conversation_whose_files_several_agents_describe_is_listed_once_and_found_by_a_short_id() {
    let host = machine();
    let file = "~/.claude/projects/{cwd-slug}/{id}.jsonl";
    let agent = |name: &str| {
        format!("[agents.{name}]\nresume = [\"claude\", \"--resume\", \"{{id}}\"]\nid.file = {file:?}\n")
    };
    host.configure(&(agent("one") + &agent("two")));
    let by_hand = ByHand::start(&host, "claude", &[], "once");
    let id = by_hand.id.clone();
    drop(by_hand);
    assert_eq!(ids(&host), std::slice::from_ref(&id));
    let adopted = host.loaded(host.abide(["load", "--adopt", &id[..8], "--detach"]));
    host.wait_for_screen(&adopted, "resumed: once");
}

#[test]
fn every_start_says_which_conversation_it_resumes_and_why() {
    let mut host = machine();
    host.add_program("plain", "echo ready; exec cat");
    host.configure("[agents.bare]\ncommand = [\"plain\"]\n");
    for program in ["plain", "bare"] {
        let id = host.loaded(host.abide(["load", program, "--detach"]));
        host.stop(&id);
        let run = host.resume(&id);
        assert_eq!(run.stderr.contains("abide does not know how bare resumes"), program == "bare");
    }
    let log = host.log();
    assert_eq!(log.matches("resume: none reason=no_agent").count(), 2, "{log}");
    assert_eq!(log.matches("resume: none reason=conversations_not_described").count(), 2, "{log}");
}

#[test]
fn a_transcript_that_appears_before_the_first_turn_binds_nothing() {
    let host = machine();
    let file = "~/.claude/projects/{cwd-slug}/{id}.jsonl";
    host.configure(&format!(
        "[agents.mine]\ncommand = [\"claude\"]\nresume = [\"claude\", \"--resume\", \"{{id}}\"]\nid.file = {file:?}\n"
    ));
    for agent in ["kimi", "mine"] {
        let id = host.load_agent(agent, &[]);
        let program = if agent == "mine" { "claude" } else { agent };
        let foreign = ByHand::start(&host, program, &[], "foreign").id.clone();
        assert_eq!(host.conversation_of(&id), None, "{agent}");
        host.stop(&id);
        assert_eq!(host.conversation_of(&id), None, "{agent}");
        host.resume(&id);
        host.wait_for_screen(&id, "ready");
        host.say(&id, "my own");
        let own = host.conversation(&id);
        assert_ne!(own, foreign);
        let explained = host.abide(["explain", &id]).ok();
        assert!(explained.contains("because it was inferred from"), "{explained}");
        host.stop(&id);
        host.resume(&id);
        host.wait_for_screen(&id, "resumed: my own");
        host.abide(["eject", &id, "--clean"]).ok();
    }
}

#[test]
fn two_agents_without_reports_that_were_prompted_at_once_are_distinguished_by_their_screens() {
    let host = machine();
    let (one, other) = (host.load_agent("kimi", &[]), host.load_agent("kimi", &[]));
    host.abide(["send", &one, "fix the tests"]).ok();
    host.abide(["send", &other, "write the docs"]).ok();
    host.wait_for_screen(&one, "heard: fix");
    host.wait_for_screen(&other, "heard: write");
    for id in [&one, &other] {
        let keeper = host.pids(id).keeper;
        crate::common::kill("-KILL", keeper);
        crate::common::wait_for_death(keeper);
    }
    host.abide(["resume", "--all"]).ok();
    host.wait_for_screen(&one, "resumed: fix the tests");
    host.wait_for_screen(&other, "resumed: write the docs");
}

#[test]
fn what_was_said_before_a_directory_was_moved_is_listed_and_adopted_where_it_is_now() {
    let host = machine();
    let (old, new) = (host.path("old"), host.path("new"));
    std::fs::create_dir_all(&old).unwrap();
    let run = |dir: &std::path::Path, args: &[&str]| {
        let mut command = host.command(host.program());
        let out = command.args(args).current_dir(dir).env("PWD", dir).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (out.status.success(), text(&out.stdout), text(&out.stderr))
    };
    let mut said = Vec::new();
    for agent in ["codex", "kimi"] {
        let (_, started, _) = run(&old, &["load", agent, "--detach"]);
        let id = started[3..11].to_owned();
        host.wait_for_screen(&id, "ready");
        host.say(&id, "before the move");
        said.push(host.conversation(&id));
        host.stop(&id);
        host.abide(["eject", &id, "--clean"]).ok();
    }
    std::fs::rename(&old, &new).unwrap();
    let (_, listed, _) = run(&new, &["conversations"]);
    assert!(said.iter().all(|id| listed.contains(id)), "{listed}");
    let (_, started, complaint) = run(&new, &["load", "--adopt", &said[0], "--detach"]);
    assert!(started.starts_with("ab-"), "{complaint}");
    host.wait_for_screen(&started[3..11], "resumed: before the move");
    let (adopted, _, complaint) = run(&new, &["load", "--adopt", &said[1], "--detach"]);
    assert!(!adopted, "{complaint}");
    compare(&host, "adopt-elsewhere", &complaint);
}
