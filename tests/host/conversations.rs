//! The right conversation: a stub that speaks claude's flags and writes transcripts where claude does.

use std::path::PathBuf;

use abide_testkit::eventually;

use crate::common::{Host, host, kill, wait_for_death};

/// A machine with a `claude` that notes its arguments and, when spoken to, writes a transcript as the real one does; it
/// dies on an id that it has and on one that it does not, just as the real one.
fn machine() -> Host {
    let mut host = host();
    let script = r#"
printf '%s\n' "$*" >>"$HOME/argv"
dir=$HOME/.claude/projects/$(pwd -P | tr -c 'A-Za-z0-9\n' '-')
mkdir -p "$dir"
while [ $# -gt 0 ]; do
    case $1 in
    --session-id)
        id=$2
        if [ -s "$dir/$id.jsonl" ]; then echo "Error: Session ID $id is already in use."; exit 1; fi
        shift ;;
    --resume)
        id=$2
        if [ ! -s "$dir/$id.jsonl" ]; then echo "No conversation found with session ID: $id"; exit 1; fi
        echo "resumed: $(grep -o 'said [a-z ]*' "$dir/$id.jsonl" | tail -1)"
        shift ;;
    esac
    shift
done
echo "ready"
while IFS= read -r line; do
    printf '{"type":"user","cwd":"%s","sessionId":"%s","message":"said %s"}\n' "$(pwd -P)" "$id" "$line" >>"$dir/$id.jsonl"
    echo "heard: $line"
done"#;
    host.add_program("claude", script);
    host
}

impl Host {
    fn load_claude(&self, args: &[&str]) -> String {
        let said = self.abide([&["load", "claude", "--detach"], args].concat()).ok();
        let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
        self.wait_for_screen(&id, "ready");
        id
    }

    /// What claude was started with, each time.
    fn argvs(&self) -> Vec<String> {
        std::fs::read_to_string(self.path("home/argv")).unwrap().lines().map(str::to_owned).collect()
    }

    fn conversation(&self, id: &str) -> String {
        self.row(id).unwrap()["sessions"][0]["conversation"].as_str().unwrap().to_owned()
    }

    fn say(&self, id: &str, text: &str) {
        self.abide(["send", id, text]).ok();
        self.wait_for_screen(id, &format!("heard: {text}"));
    }

    fn transcripts(&self) -> Vec<PathBuf> {
        let projects = std::fs::read_dir(self.path("home/.claude/projects")).unwrap().flatten();
        let files = projects.flat_map(|project| std::fs::read_dir(project.path()).unwrap().flatten());
        files.map(|file| file.path()).collect()
    }
}

#[test]
fn a_fresh_session_is_given_an_id_and_no_resume_flag() {
    let host = machine();
    let id = host.load_claude(&["--", "--model", "opus"]);
    let argv = &host.argvs()[0];
    assert_eq!(argv, &format!("--model opus --session-id {}", host.conversation(&id)));
    let log = std::fs::read_to_string(host.home().join("log/abide.log")).unwrap();
    assert!(log.contains("resume: none reason=fresh_session"), "{log}");
}

#[test]
fn a_stopped_session_resumes_its_own_conversation_with_its_own_arguments() {
    let host = machine();
    let id = host.load_claude(&["--", "--model", "opus"]);
    host.say(&id, "remember the milk");
    let conversation = host.conversation(&id);
    host.abide(["stop", &id]).ok();
    host.abide(["resume", &id, "--detach"]).ok();
    host.wait_for_screen(&id, "resumed: said remember the milk");
    assert_eq!(host.argvs()[1], format!("--model opus --resume {conversation}"));
    assert_eq!(host.conversation(&id), conversation);
    let log = std::fs::read_to_string(host.home().join("log/abide.log")).unwrap();
    assert!(log.contains(&format!("resume: id={conversation} reason=conversation_data_present")), "{log}");
}

#[test]
fn a_session_whose_keeper_was_killed_resumes_its_conversation_too() {
    let host = machine();
    let id = host.load_claude(&[]);
    host.say(&id, "before the crash");
    let pids = host.pids(&id);
    kill("-KILL", pids.keeper);
    wait_for_death(pids.session);
    host.wait_for_state(&id, "restorable (crashed)");
    assert!(host.abide(["resume", "--all"]).ok().contains("is back"));
    host.wait_for_screen(&id, "resumed: said before the crash");
}

#[test]
fn a_session_that_was_never_spoken_to_keeps_its_id_for_the_next_start() {
    let host = machine();
    let id = host.load_claude(&[]);
    let conversation = host.conversation(&id);
    host.abide(["stop", &id]).ok();
    host.abide(["resume", &id, "--detach"]).ok();
    eventually("the second start", || (host.argvs().len() == 2).then_some(()));
    assert_eq!(host.argvs()[1], format!("--session-id {conversation}"), "there is nothing to resume yet");
}

#[test]
fn two_sessions_in_one_directory_never_get_each_others_conversation() {
    let host = machine();
    let (one, other) = (host.load_claude(&[]), host.load_claude(&[]));
    host.say(&one, "this is one");
    host.say(&other, "this is the other");
    for id in [&one, &other] {
        host.abide(["stop", id]).ok();
    }
    for id in [&other, &one] {
        host.abide(["resume", id, "--detach"]).ok();
    }
    host.wait_for_screen(&one, "resumed: said this is one");
    host.wait_for_screen(&other, "resumed: said this is the other");
    assert_eq!(host.transcripts().len(), 2, "no third conversation was begun");
}

#[test]
fn a_failed_resume_does_not_forget_the_conversation() {
    let host = machine();
    let id = host.load_claude(&[]);
    host.say(&id, "precious");
    let conversation = host.conversation(&id);
    host.abide(["stop", &id]).ok();
    let transcript = host.transcripts().pop().unwrap();
    let away = transcript.with_extension("away");
    std::fs::rename(&transcript, &away).unwrap();
    // Whatever becomes of this start, the id must still be known afterwards.
    let _ = host.abide(["resume", &id, "--detach"]);
    host.abide(["stop", &id]);
    assert_eq!(host.conversation(&id), conversation);
    std::fs::rename(&away, &transcript).unwrap();
    host.abide(["resume", &id, "--detach"]).ok();
    host.wait_for_screen(&id, "resumed: said precious");
}
