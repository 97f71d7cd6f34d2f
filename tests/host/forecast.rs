//! What `explain` says that a resume will do is what the resume then does.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::common::{kill, wait_for_death};
use crate::conversations::{Agents, described, machine, wrapped};

/// What `explain` says of the future of instance `id`.
fn outlook(host: &Agents, id: &str) -> String {
    let explained = host.abide(["explain", id, "--json"]).json();
    explained["outlook"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{}\n", line.as_str().unwrap()))
        .collect()
}

/// Resumes instance `id`, and compares that with the forecast: `coming` with the resulting conversation for ID, and `notice`.
#[track_caller]
fn comes_true(host: &Agents, id: &str, coming: &str, notice: &str) {
    let forecast = outlook(host, id);
    let before = host.conversation_of(id);
    assert_eq!(outlook(host, id), forecast, "a look changes nothing");
    assert_eq!(host.conversation_of(id), before);
    let run = host.resume(id);
    let log = host.log();
    let line = log.lines().rfind(|line| line.contains("resume: ")).unwrap();
    let conversation = host.conversation_of(id).unwrap_or_default();
    assert_eq!(
        line.contains(&format!("resume: id={conversation} ")),
        coming.ends_with("conversation ID"),
        "{line}"
    );
    let coming = format!("with {}\n", coming.replace("ID", &conversation));
    assert!(forecast.contains(&coming), "{coming}: {forecast}");
    for said in [&forecast, &run.stderr] {
        assert!(said.contains(notice), "{notice}: {said}");
    }
}

fn crash(host: &Agents, id: &str) {
    let keeper = host.pids(id).keeper;
    kill("-KILL", keeper);
    wait_for_death(keeper);
}

#[test]
fn a_bound_session_comes_back_to_its_conversation_or_begins_it_if_nothing_was_said() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.stop(&id);
    comes_true(&host, &id, "claude in conversation ID, started over", "");
    host.say(&id, "remember the milk");
    host.stop(&id);
    comes_true(&host, &id, "claude in conversation ID", "");
    host.wait_for_screen(&id, "resumed: remember the milk");
}

#[test]
fn a_session_with_an_unknown_id_comes_back_to_what_it_wrote() {
    let host = described("");
    let id = host.load_agent("foo", &[]);
    host.say(&id, "older");
    host.say(&id, "/clear");
    host.say(&id, "newer");
    crash(&host, &id);
    comes_true(&host, &id, "foo in conversation ID", "");
    host.wait_for_screen(&id, "resumed: newer");

    let host = wrapped("qwen");
    let id = host.load_agent("qwen", &[]);
    host.say(&id, "not under the id that was made for it");
    host.stop(&id);
    comes_true(&host, &id, "qwen in conversation ID", "");
    host.wait_for_screen(&id, "resumed: not under the id");
}

#[test]
fn of_two_sessions_with_unknown_ids_neither_takes_what_may_be_the_others() {
    let host = described("");
    let (one, other) = (host.load_agent("foo", &[]), host.load_agent("foo", &[]));
    host.abide(["send", &one, "the same words"]).ok();
    host.abide(["send", &other, "the same words"]).ok();
    for id in [&one, &other] {
        host.wait_for_screen(id, "heard: the same words");
    }
    crash(&host, &one);
    crash(&host, &other);
    comes_true(&host, &one, "foo in a new conversation", "more than one conversation could belong to foo");
}

#[test]
fn a_session_whose_conversation_another_one_has_taken_begins_a_new_one() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "mine at first");
    let conversation = host.conversation(&id);
    host.abide(["eject", &id, "--clean"]).ok();
    let other = host.loaded(host.abide(["load", "--adopt", &conversation, "--detach"]));
    host.abide(["trash", "restore", &id]).ok();
    let refused = outlook(&host, &id);
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    assert!(refused.contains("a resume would fail: "), "{refused}");
    assert!(
        complaint.contains(refused.trim_end().rsplit("would fail: ").next().unwrap()),
        "{complaint}: {refused}"
    );
    host.stop(&other);
    comes_true(&host, &id, "claude in a new conversation", "another session uses claude's conversation");
}

#[test]
fn a_session_whose_transcript_is_lost_comes_back_from_the_copy_and_without_one_begins_anew() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "kept twice");
    host.stop(&id);
    fs::remove_file(host.transcript()).unwrap();
    comes_true(&host, &id, "claude in conversation ID", "");
    host.wait_for_screen(&id, "resumed: kept twice");
    host.stop(&id);
    fs::remove_file(host.transcript()).unwrap();
    fs::remove_dir_all(host.home().join("instances").join(&id).join("vault")).unwrap();
    let gone = "the transcript of claude's conversation is gone";
    comes_true(&host, &id, "claude in conversation ID, started over", gone);
}

#[test]
fn a_resume_that_a_process_outside_is_in_the_way_of_is_foretold() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "mine");
    let conversation = host.conversation(&id);
    host.stop(&id);
    let mut command = host.command(host.path("bin/claude"));
    let by_hand = command.args(["--resume", &conversation]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut by_hand = by_hand.spawn().unwrap();
    by_hand.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let refused = outlook(&host, &id);
    host.abide(["resume", &id, "--detach"]).fails(1);
    by_hand.kill().unwrap();
    by_hand.wait().unwrap();
    assert!(refused.contains(&format!("process {}, outside abide", by_hand.id())), "{refused}");
    comes_true(&host, &id, "claude in conversation ID", "");
}
