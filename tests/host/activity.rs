//! What sessions are doing: stubs that say so through the terminal, through hooks, and only by what they draw.

use std::fs;

use abide_testkit::eventually;
use serde_json::Value;

use crate::common::{Host, compare, unwatched_host};

pub const CLAUDE: &str = "25252525-4444-4444-8444-444444444444";

impl Host {
    pub fn load_agent(&self, agent: &str, args: &[&str]) -> String {
        let said = self.abide([&["load", agent, "--detach"], args].concat()).ok();
        let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
        self.wait_for_screen(&id, "ready");
        id
    }

    fn session_row(&self, id: &str) -> Value {
        self.row(id).unwrap()["sessions"][0].clone()
    }

    #[track_caller]
    pub fn wait_for_activity(&self, id: &str, activity: &str) -> Value {
        eventually(&format!("{id} to be {activity}"), || {
            Some(self.session_row(id)).filter(|session| session["activity"] == activity)
        })
    }

    pub fn tell(&self, id: &str, line: &str) {
        self.abide(["send", id, line]).ok();
    }

    fn log_text(&self) -> String {
        fs::read_to_string(self.home().join("log/abide.log")).unwrap_or_default()
    }
}

/// A stub that reports through its terminal what it is told to.
fn reporting() -> Host {
    let mut host = unwatched_host();
    let script = r#"
stty -echo
echo ready
while IFS= read -r line; do printf '\033]7501;%s\033\\' "$line"; done"#;
    host.add_program("reporter", script);
    host
}

#[test]
fn a_program_that_says_what_it_does_is_believed() {
    let host = reporting();
    let id = host.load_agent("reporter", &[]);
    host.tell(&id, "state=working:app=reporter");
    let row = host.wait_for_activity(&id, "working");
    assert_eq!(row["activity_because"], "reporter says working");
    assert!(row["activity_since"].is_string() && row["question"].is_null(), "{row}");
    // "approve Write: /x"
    host.tell(&id, "state=blocked:app=reporter:kind=permission:msg=YXBwcm92ZSBXcml0ZTogL3g=");
    host.abide(["wait", &id, "--needs-input", "--timeout", "20"]).ok();
    assert_eq!(host.wait_for_activity(&id, "needs_input")["question"], "approve Write: /x");
    let listed = host.abide(["ls"]).ok();
    assert!(listed.contains("reporter (needs input") && listed.contains(": approve Write: /x)"), "{listed}");
    let told = host.abide(["explain", &id]).ok();
    assert!(told.contains(") needs input (") && told.contains("it asks: approve Write: /x"), "{told}");
    host.tell(&id, "state=idle:app=reporter");
    host.abide(["wait", &id, "--idle", "--timeout", "20"]).ok();
    let idle = host.wait_for_activity(&id, "idle");
    assert!(idle["question"].is_null(), "an answered question is no question: {idle}");
    let told = host.abide(["explain", &id]).ok();
    assert!(told.contains("program") && told.contains("reporter says idle"), "{told}");
    assert!(host.abide(["ls"]).ok().contains("reporter (idle"));
}

/// A stub of claude that does what its hooks are set for: each line is an event, `nested` one of an agent that it runs, and
/// `late` one of an earlier run.
fn hooked() -> Host {
    let mut host = unwatched_host();
    let script = r#"
stty -echo
while [ $# -gt 0 ]; do [ "$1" = --settings ] && settings=$2; shift; done
hook=$(sed 's/.*"command":"\([^"]*\)".*/\1/' "$settings")
id=25252525-4444-4444-8444-444444444444
payload() { printf '{"session_id":"%s","transcript_path":"/t/%s.jsonl","hook_event_name":"%s","notification_type":"%s","message":"%s"}' "$id" "$id" "$1" "$2" "$3"; }
echo ready
while IFS='|' read -r how event kind text; do
    case $how in
    own) payload "$event" "$kind" "$text" | sh -c "$hook" ;;
    nested) payload "$event" | setsid --wait inner "$hook" ;;
    late) payload "$event" | ABIDE_GENERATION=0 sh -c "$hook" ;;
    clear) id=$event; payload SessionStart clear | sh -c "$hook" ;;
    esac
    echo "called $how $event: $?"
done"#;
    host.add_program("claude", script);
    host.add_program("inner", r#"sh -c "$1""#);
    host
}

#[test]
fn hooks_tell_what_an_agent_does_and_never_disturb_it() {
    let host = hooked();
    let id = host.load_agent("claude", &[]);
    host.tell(&id, "own|UserPromptSubmit");
    let row = host.wait_for_activity(&id, "working");
    assert_eq!(row["activity_because"], "its hook UserPromptSubmit was called");
    host.tell(&id, "own|Notification|permission_prompt|Claude needs your permission to use Bash");
    let asked = host.wait_for_activity(&id, "needs_input");
    assert_eq!(asked["question"], "Claude needs your permission to use Bash");
    host.tell(&id, "own|Stop");
    host.wait_for_activity(&id, "idle");
    let screen = host.wait_for_screen(&id, "called own Stop: 0");
    assert!(!screen.contains("rror"), "a hook printed something: {screen}");
}

#[test]
fn what_the_agent_runs_and_what_ran_before_is_not_listened_to() {
    let host = hooked();
    let id = host.load_agent("claude", &[]);
    host.tell(&id, "own|UserPromptSubmit");
    host.wait_for_activity(&id, "working");
    for (line, why) in [("nested|Stop", "is not of this session"), ("late|Stop", "it is from run 0")] {
        host.tell(&id, line);
        host.wait_for_screen(&id, &format!("called {}", line.replace('|', " ")));
        eventually("the refusal in the log", || host.log_text().contains(why).then_some(()));
        assert_eq!(host.session_row(&id)["activity"], "working", "{line}");
    }
}

#[test]
fn conversations_that_hooks_report_are_written_down_once() {
    let host = hooked();
    let id = host.load_agent("claude", &[]);
    let next = "26262626-4444-4444-8444-444444444444";
    for line in ["own|SessionStart|startup", "own|UserPromptSubmit", "own|Stop", &format!("clear|{next}")] {
        host.tell(&id, line);
        host.wait_for_screen(
            &id,
            &format!("called {}", line.split('|').take(2).collect::<Vec<_>>().join(" ")),
        );
    }
    let instance_dir = host.home().join("instances").join(&id);
    let written = fs::read_to_string(instance_dir.join("state/conversations.jsonl")).unwrap();
    let lines: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&str> = lines.iter().map(|line| line["conversation"].as_str().unwrap()).collect();
    assert_eq!(ids, [CLAUDE, next], "{written}");
    assert_eq!((&lines[0]["session"], &lines[0]["generation"]), (&"s1".into(), &1.into()));
    assert_eq!(lines[1]["transcript"], format!("/t/{next}.jsonl"));
    let row = eventually("the list to follow", || {
        Some(host.session_row(&id)).filter(|session| session["conversation"] == next)
    });
    assert_eq!(row["earlier_conversations"][0], CLAUDE, "{row}");
}

/// A stub of a claude that only publishes what it does, as those do that do not speak through the terminal.
pub fn registered() -> Host {
    let mut host = unwatched_host();
    let script = r#"
stty -echo
mkdir -p "$HOME/.claude/sessions"
start=$(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)
echo ready
while IFS='|' read -r status id; do
    printf '{"pid":%s,"sessionId":"%s","procStart":"%s","status":"%s","waitingFor":"permission prompt","statusUpdatedAt":%s000}' \
        $$ "$id" "$start" "$status" "$(date +%s)" >"$HOME/.claude/sessions/$$.json"
    echo "published $status"
done"#;
    host.add_program("claude", script);
    host
}

#[test]
fn what_an_agent_publishes_is_read_and_its_new_conversation_followed() {
    let host = registered();
    let id = host.load_agent("claude", &[]);
    for (status, activity) in
        [("busy", "working"), ("waiting", "needs_input"), ("shell", "working"), ("idle", "idle")]
    {
        host.tell(&id, &format!("{status}|{CLAUDE}"));
        let row = host.wait_for_activity(&id, activity);
        assert!(
            row["activity_because"].as_str().unwrap().contains(&format!("registry says {status}")),
            "{row}"
        );
    }
    eventually("the conversation", || (host.session_row(&id)["conversation"] == CLAUDE).then_some(()));
}

#[test]
fn what_an_agent_publishes_is_noticed_though_it_writes_nothing() {
    let host = registered();
    let id = host.load_agent("claude", &[]);
    host.tell(&id, &format!("idle|{CLAUDE}"));
    host.wait_for_activity(&id, "idle");
    let entry = fs::read_dir(host.path("home/.claude/sessions")).unwrap().next().unwrap().unwrap().path();
    let publish = |status: &str| {
        let mut record: Value = serde_json::from_slice(&fs::read(&entry).unwrap()).unwrap();
        record["status"] = status.into();
        record.as_object_mut().unwrap().remove("statusUpdatedAt");
        fs::write(&entry, record.to_string()).unwrap();
    };
    publish("busy");
    let working = host.session_row(&id);
    assert_eq!(working["activity"], "working", "the list asks: {working}");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| host.abide(["wait", &id, "--needs-input", "--timeout", "20"]).ok());
        publish("waiting");
        waiting.join().unwrap();
    });
    publish("idle");
    assert!(host.abide(["ls"]).ok().contains("claude (idle now)"), "an entry without a time is not of 1970");
}

#[test]
fn what_an_agent_left_running_is_waited_for_unless_the_operator_says_otherwise() {
    let host = registered();
    let id = host.load_agent("claude", &[]);
    host.tell(&id, &format!("shell|{CLAUDE}"));
    host.wait_for_activity(&id, "working");
    let complaint = host.abide(["wait", &id, "--idle", "--timeout", "0.2"]).fails(1);
    compare(&host, "wait-for-background", &complaint);
    host.abide(["wait", &id, "--idle", "--ignore-background", "--timeout", "20"]).ok();
    host.tell(&id, &format!("busy|{CLAUDE}"));
    eventually("its next turn", || {
        host.session_row(&id)["activity_because"].as_str()?.contains("says busy").then_some(())
    });
    let complaint = host.abide(["wait", &id, "--idle", "--ignore-background", "--timeout", "0.2"]).fails(1);
    assert!(!complaint.contains("something that it started"), "{complaint}");
}

#[test]
fn an_error_that_ended_a_turn_is_no_success() {
    let host = reporting();
    let id = host.load_agent("reporter", &[]);
    // "API Error: 429"
    host.tell(&id, "state=error:app=reporter:msg=QVBJIEVycm9yOiA0Mjk=");
    let row = host.wait_for_activity(&id, "failed");
    assert!(row["activity_because"].as_str().unwrap().contains("API Error: 429"), "{row}");
    assert!(host.abide(["ls"]).ok().contains("reporter (failed"));
    let waited = host.abide(["wait", &id, "--idle", "--timeout", "20"]);
    assert!(waited.code != Some(0) && waited.stderr.contains("API Error: 429"), "{waited:?}");
}

/// A stub of claude that takes a while before it takes input, and then throws away what was typed before that, as agents do.
fn slow_to_start() -> Host {
    let mut host = unwatched_host();
    let script = r#"
printf 'ready\n'
until [ -e "$HOME/go" ]; do :; done
exec python3 -c '
import sys, termios, time, tty
end = time.monotonic() + 1.5
while time.monotonic() < end: pass
tty.setcbreak(0, termios.TCSAFLUSH)
print("at the prompt", flush=True)
while True: print("heard:", sys.stdin.readline().strip(), flush=True)
'"#;
    host.add_program("claude", script);
    host
}

#[test]
fn what_is_sent_to_an_agent_that_is_starting_waits_for_it() {
    let host = slow_to_start();
    let id = host.load_agent("claude", &[]);
    assert_eq!(host.session_row(&id)["activity"], "starting");
    let refused = host.abide(["send", &id, "--within", "0.1", "too early"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("nothing was typed"), "{refused:?}");
    host.write("home/go", "");
    host.tell(&id, "- a list");
    let screen = host.wait_for_screen(&id, "heard: - a list");
    assert!(!screen.contains("too early"), "{screen}");
}

/// A stub that says nothing but draws gemini's screens as they were recorded, except for what would not fit.
fn drawing() -> Host {
    let mut host = unwatched_host();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../abide-agents/tests/corpus/gemini");
    let script = format!(
        r#"
stty -echo
echo ready
while IFS= read -r screen; do printf '\033[2J\033[H'; sed -e '1,/^---$/d' -e 's/    .*//' -e 's/\([─▄▀]\)\{{40,\}}//g' "{corpus}/$screen.txt"; done"#
    );
    host.add_program("gemini", &script);
    host
}

#[test]
fn an_agent_that_only_draws_is_read() {
    let host = drawing();
    let id = host.load_agent("gemini", &[]);
    for (screen, activity) in [("working", "working"), ("permission", "needs_input"), ("idle", "idle")] {
        host.tell(&id, screen);
        let row = host.wait_for_activity(&id, activity);
        assert!(row["activity_because"].as_str().unwrap().contains("the screen shows"), "{row}");
    }
    host.tell(&id, "permission");
    let row = host.wait_for_activity(&id, "needs_input");
    assert_eq!(row["question"], "Allow execution of [Shell]?");
}

#[test]
fn a_mux_that_was_killed_comes_back_to_what_the_session_was_doing() {
    let host = drawing();
    let id = host.load_agent("gemini", &[]);
    host.tell(&id, "permission");
    host.wait_for_activity(&id, "needs_input");
    let mux = host.pids(&id).mux;
    crate::common::kill("-KILL", mux);
    eventually("another mux", || (host.pids(&id).mux != mux).then_some(()));
    host.wait_for_activity(&id, "needs_input");
}

#[test]
fn a_shell_waits_for_a_command_or_runs_one() {
    let host = unwatched_host();
    let said = host.abide(["load", "bash", "--detach"]).ok();
    let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    let row = host.wait_for_activity(&id, "idle");
    assert_eq!(row["activity_because"], "its shell is waiting for a command");
    host.tell(&id, "yes | cat >/dev/null");
    let row = host.wait_for_activity(&id, "working");
    assert!(row["activity_because"].as_str().unwrap().contains("% of a processor"), "{row}");
}
