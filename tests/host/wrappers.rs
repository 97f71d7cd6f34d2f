//! Commands of the operator's own that end in an agent that abide knows.

use std::os::unix::fs::PermissionsExt;

use crate::common::{kill, wait_for_death};
use crate::conversations::{Agents, machine};

/// A script in the directory that commands are run in, which ends in claude and passes on what it is given.
fn with_wrapper() -> Agents {
    let host = machine();
    let path = host.write("work/w.sh", "#!/bin/sh\nclaude --model opus \"$@\"\n");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    host
}

/// Said, stopped, resumed through the wrapper: the same conversation, by the agent's own flags.
#[track_caller]
fn resumes_like_claude(host: &Agents, load: &[&str]) {
    let id = host.loaded(host.abide([&["load", "--detach"], load].concat()));
    host.wait_for_screen(&id, "ready");
    host.say(&id, "remember the milk");
    let conversation = host.conversation(&id);
    assert_eq!(host.argvs("claude"), [format!("--model opus --session-id {conversation}")]);
    host.stop(&id);
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: remember the milk");
    assert_eq!(host.argvs("claude")[1], format!("--model opus --resume {conversation}"));
    assert_eq!(host.conversation(&id), conversation);
    assert!(host.log().contains(&format!("resume: id={conversation} reason=conversation_data_present")));
    assert_eq!(host.row(&id).unwrap()["sessions"][0]["astray"], serde_json::Value::Null);
}

#[test]
fn a_wrapper_started_as_claude_by_path_gets_an_id_and_is_resumed_by_it() {
    resumes_like_claude(&with_wrapper(), &["--as", "claude", "./w.sh"]);
}

#[test]
fn an_agent_that_the_configuration_says_is_like_claude_is_given_an_id_and_resumed_by_it() {
    let host = with_wrapper();
    let path = host.work().join("w.sh");
    let settings = format!("version = 2\n[agents.mycc]\ncommand = [{path:?}]\nlike = \"claude\"\n");
    host.write("home/.config/abide/config.toml", settings);
    resumes_like_claude(&host, &["mycc"]);
}

#[test]
fn a_wrapper_takes_up_a_conversation_that_its_agent_had() {
    let host = with_wrapper();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "remember the milk");
    let conversation = host.conversation(&id);
    host.abide(["eject", &id, "--clean"]).ok();
    let load = ["load", "--detach", "--as", "claude", "./w.sh", "--adopt", &conversation];
    let wrapped = host.loaded(host.abide(load));
    host.wait_for_screen(&wrapped, "resumed: remember the milk");
    assert_eq!(host.argvs("claude")[1], format!("--model opus --resume {conversation}"));
}

#[test]
fn only_a_known_agent_can_be_named_with_as() {
    let host = with_wrapper();
    let complaint = host.abide(["load", "--detach", "--as", "clod", "./w.sh"]).fails(2);
    assert!(complaint.contains("claude"), "{complaint}");
    host.write("home/.config/abide/config.toml", "version = 2\n[agents.mycc]\nlike = \"clod\"\n");
    let complaint = host.abide(["load", "--detach", "mycc"]).fails(1);
    assert!(complaint.contains("claude"), "{complaint}");
}

#[test]
fn a_plain_command_that_runs_claude_says_that_its_conversation_does_not_come_back_and_how_it_does() {
    let host = with_wrapper();
    let id = host.loaded(host.abide(["load", "--detach", "./w.sh"]));
    host.wait_for_screen(&id, "ready");
    host.say(&id, "remember the milk");
    let stopped = host.abide(["stop", &id]);
    let transcript = host.transcript();
    let conversation = transcript.file_stem().unwrap().to_str().unwrap();
    let way = format!("abide load --as claude ./w.sh --adopt {conversation}");
    assert!(stopped.stderr.contains(&way), "{}", stopped.stderr);
    assert!(host.abide(["explain", &id]).ok().contains(&way));
    let resumed = host.resume(&id);
    assert!(resumed.stderr.contains(&way), "{}", resumed.stderr);
    let words: Vec<&str> = way.split(' ').skip(1).chain(["--detach"]).collect();
    let taken_up = host.loaded(host.abide(words));
    host.wait_for_screen(&taken_up, "resumed: remember the milk");
}

#[test]
fn the_agent_below_a_plain_command_is_listed_and_reported_after_a_crash() {
    let host = with_wrapper();
    let id = host.loaded(host.abide(["load", "--detach", "./w.sh"]));
    host.wait_for_screen(&id, "ready");
    host.say(&id, "remember the milk");
    let conversation = host.transcript().file_stem().unwrap().to_str().unwrap().to_owned();
    let session = host.row(&id).unwrap()["sessions"][0].clone();
    assert_eq!(session["agent"], serde_json::Value::Null);
    assert_eq!(session["below"], serde_json::json!({ "agent": "claude", "id": conversation }));
    let keeper = host.pids(&id).keeper;
    kill("-KILL", keeper);
    wait_for_death(keeper);
    let way = format!("abide load --as claude ./w.sh --adopt {conversation}");
    let resumed = host.resume(&id);
    assert!(resumed.stderr.contains(&way), "{}", resumed.stderr);
}
