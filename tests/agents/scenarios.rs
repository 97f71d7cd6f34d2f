//! What must hold for every agent.

use std::time::Duration;

use abide_testkit::model_api::{ModelReply, Turn};

use crate::common::{exists, kill};
use crate::machine::{Agent, Machine, wait_until_gone};

const FIRST: &str = "remember the milk";
const SECOND: &str = "what was it";

/// Asserts that the model was sent, in this order, what was said before.
#[track_caller]
fn assert_sent(turns: &[Turn], expected: &[Turn]) {
    let mut rest = turns.iter();
    for wanted in expected {
        let same = |turn: &Turn| match (turn, wanted) {
            (Turn::User(text), Turn::User(part)) | (Turn::Model(text), Turn::Model(part)) => {
                text.contains(part)
            }
            _ => false,
        };
        assert!(rest.any(same), "{wanted:?} was not sent in its place: {turns:#?}");
    }
}

fn user(text: &str) -> Turn {
    Turn::User(text.to_owned())
}

fn model(text: &str) -> Turn {
    Turn::Model(text.to_owned())
}

/// A first exchange in a new conversation; gives the id of the instance.
#[track_caller]
fn converse(machine: &Machine) -> String {
    let id = machine.load();
    machine.say(&id, FIRST, ModelReply::Answer);
    machine.sees(&id, "answer 1");
    id
}

/// A second exchange, after whatever happened: it is the same conversation, on the screen, for the model and on the disk.
#[track_caller]
fn goes_on(machine: &Machine, id: &str, answer: &str) {
    machine.say(id, SECOND, ModelReply::Answer);
    machine.sees(id, answer);
    assert_sent(&machine.last_asked(), &[user(FIRST), model("answer 1"), user(SECOND)]);
    let bound = machine.bound(id).expect("a conversation is bound");
    assert_eq!(machine.on_disk(), [bound], "one conversation, and the bound one");
}

pub fn stop(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = converse(&machine);
    machine.until(&id, "its conversation to be known", || {
        machine.bound(&id).is_some_and(|bound| machine.on_disk() == [bound])
    });
    let pids = machine.processes();
    machine.host.abide(["stop", &id]).ok();
    assert_eq!(machine.host.state(&id), "restorable (stopped)");
    wait_until_gone(&pids);
    machine.resume(&id, &[FIRST, "answer 1"]);
    goes_on(&machine, &id, "answer 2");
}

/// The operator leaves: first everything runs on as it was, then everything is closed and the agent itself brings it back.
pub fn leave(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = converse(&machine);
    machine.until(&id, "its conversation to be known", || {
        machine.bound(&id).is_some_and(|bound| machine.on_disk() == [bound])
    });
    let pids = machine.host.pids(&id);
    machine.host.abide(["leave", "--leave-all"]).ok();
    assert_eq!(machine.host.pids(&id), pids, "not the same processes any more");
    let processes = machine.processes();
    machine.host.abide(["leave", "--close-all"]).ok();
    assert_eq!(machine.host.state(&id), "restorable (stopped)");
    wait_until_gone(&processes);
    machine.resume(&id, &[FIRST, "answer 1"]);
    goes_on(&machine, &id, "answer 2");
}

/// What a script does: it waits until the agent is idle, and types. That arrives once, whole, and is sent off, also where an
/// earlier run left its screen.
pub fn deliver(agent: &'static Agent) {
    let machine = Machine::journaled(agent);
    let said = machine.host.abide(["load", agent.name, "--detach"]).ok();
    let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    machine.deliver(&id, FIRST);
    let pids = machine.processes();
    machine.host.abide(["stop", &id]).ok();
    wait_until_gone(&pids);
    machine.host.abide(["resume", &id, "--detach"]).ok();
    machine.deliver(&id, SECOND);
    assert_sent(&machine.last_asked(), &[user(FIRST), user(SECOND)]);
    // Without waiting for anything: what is sent waits by itself.
    machine.host.abide(["stop", &id]).ok();
    machine.host.abide(["resume", &id, "--detach"]).ok();
    machine.deliver_at_once(&id, "and once more");
}

const STORY: &str = "tell a long story";

/// Has the model begin an answer that does not end.
#[track_caller]
fn begin_turn(machine: &Machine, id: &str) {
    machine.say(id, STORY, ModelReply::Hold("once upon a time\n\nthere was".to_owned()));
}

/// An instance whose machine went down in the middle of an answer.
#[track_caller]
fn crashed_in_turn(machine: &Machine) -> String {
    let id = converse(machine);
    begin_turn(machine, &id);
    machine.sees(&id, "once upon a time");
    machine.crash();
    assert_eq!(machine.host.state(&id), "restorable (crashed)");
    id
}

pub fn continue_turn(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = crashed_in_turn(&machine);
    machine.api.on(STORY, ModelReply::Answer);
    machine.host.abide(["resume", &id, "--detach", "--continue-turn"]).ok();
    machine.sees(&id, "answer 2");
    assert_sent(&machine.last_asked(), &[user(FIRST), model("answer 1"), user(STORY)]);
}

pub fn crash_mid_turn(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = crashed_in_turn(&machine);
    let asked = machine.api.asked().len();
    machine.resume(&id, &[FIRST, "answer 1"]);
    assert_eq!(machine.api.asked().len(), asked, "the turn was run again though nobody asked for that");
    goes_on(&machine, &id, "answer 3");
}

/// Has the agent ask whether it may run a command, which ends when the test wants it to.
#[track_caller]
fn ask_for_tool(machine: &Machine, id: &str) {
    let script =
        machine.host.write("work/dig.sh", "echo $$ >digging\nuntil [ -e dug ]; do sleep 0.1; done\n");
    machine.say(id, "dig a hole", ModelReply::Run(format!("sh {}", script.display())));
}

/// Waits until that command runs, and gives its process.
#[track_caller]
fn tool(machine: &Machine, id: &str) -> u32 {
    let pid = || std::fs::read_to_string(machine.host.path("work/digging")).ok()?.trim().parse().ok();
    machine.until(id, "the tool to run", || pid().is_some());
    pid().unwrap()
}

pub fn kill_mid_tool(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = converse(&machine);
    ask_for_tool(&machine, &id);
    machine.allow(&id);
    let tool = tool(&machine, &id);
    let pids = machine.processes();
    assert!(pids.contains(&tool));
    kill("-KILL", machine.host.pids(&id).session);
    machine.until(&id, "the instance to be kept", || machine.host.state(&id) == "restorable (crashed)");
    wait_until_gone(&pids);
    machine.resume(&id, &[FIRST, "answer 1"]);
    goes_on(&machine, &id, "answer 3");
}

pub fn activity(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = machine.load();
    machine.is(&id, &["idle"]);
    begin_turn(&machine, &id);
    machine.is(&id, &["working"]);
    machine.api.release();
    machine.is(&id, &["idle"]);
    ask_for_tool(&machine, &id);
    machine.is(&id, &["needs_input"]);
    machine.allow(&id);
    tool(&machine, &id);
    machine.is(&id, &["working"]);
    machine.host.write("work/dug", "");
    machine.sees(&id, "tool said");
    machine.is(&id, &["idle"]);
    machine.say(&id, "who are you", ModelReply::Refuse(401));
    machine.sees(&id, "401");
    machine.is(&id, &["idle", "needs_input", "failed"]);
}

pub fn interrupt(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = machine.load();
    begin_turn(&machine, &id);
    machine.sees(&id, "once upon a time");
    machine.is(&id, &["working"]);
    machine.interrupt(&id);
    machine.is(&id, &["idle"]);
}

pub fn refuse(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = machine.load();
    ask_for_tool(&machine, &id);
    machine.is(&id, &["needs_input"]);
    machine.refuse(&id);
    machine.is(&id, &["idle"]);
    assert!(!exists(machine.host.path("work/digging")), "what was refused was done");
}

/// Nothing is left of the quota: what an agent says about that is no work.
pub fn out_of_quota(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = machine.load();
    machine.say(&id, "is anything left", ModelReply::Refuse(429));
    machine.sees(&id, "429");
    machine.is(&id, &["failed"]);
}

/// An agent that tries again is at work, until it is told to stop.
pub fn tries_again(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = machine.load();
    machine.say(&id, "is anything left", ModelReply::Refuse(429));
    machine.is(&id, &["working"]);
    machine.interrupt(&id);
    machine.is(&id, &["idle"]);
}

/// A conversation that the agent begins by itself is written down when it does, not when somebody looks.
pub fn another_conversation(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let id = converse(&machine);
    machine.is(&id, &["idle"]);
    let first = machine.on_disk();
    machine.begin_anew(&id);
    // What an agent without hooks writes to its old transcript when it leaves it must not look like the next turn's, for which
    // nobody types fast enough.
    std::thread::sleep(Duration::from_secs(1));
    machine.say(&id, SECOND, ModelReply::Hold("it was the milk\n\nand".to_owned()));
    machine.sees(&id, "it was the milk");
    machine.is(&id, &["working"]);
    let reported = || machine.reported(&id).pop().filter(|id| !first.contains(id));
    machine.until(&id, "the new conversation to be reported", || reported().is_some());
    let reported = reported();
    machine.api.release();
    machine.is(&id, &["idle"]);
    machine.crash();
    machine.resume(&id, &[SECOND]);
    assert!(!machine.host.peek(&id).contains(FIRST), "it is in the first conversation");
    assert_eq!(machine.bound(&id), reported);
}

pub fn fork(agent: &'static Agent) {
    let machine = Machine::with(agent);
    let original = converse(&machine);
    machine.until(&original, "its conversation to be known", || machine.bound(&original).is_some());
    let of_original = machine.bound(&original).unwrap();
    let fork = machine.load_as(&["--fork", &original]);
    machine.sees(&fork, "answer 1");
    machine.say(&fork, SECOND, ModelReply::Answer);
    machine.sees(&fork, "answer 2");
    machine.until(&fork, "the conversation of the fork to be known", || machine.bound(&fork).is_some());
    let of_fork = machine.bound(&fork).unwrap();
    assert_ne!(of_fork, of_original);
    assert_eq!(machine.bound(&original).as_ref(), Some(&of_original));
    for id in [&original, &fork] {
        machine.host.abide(["stop", id]).ok();
    }
    machine.resume(&original, &[FIRST, "answer 1"]);
    assert!(!machine.host.peek(&original).contains(SECOND), "the original holds what the fork said");
    machine.say(&original, "and in the original", ModelReply::Answer);
    assert_sent(&machine.last_asked(), &[user(FIRST), model("answer 1"), user("and in the original")]);
    machine.resume(&fork, &[FIRST, "answer 1", SECOND, "answer 2"]);
    machine.say(&fork, "and in the fork", ModelReply::Answer);
    assert_sent(
        &machine.last_asked(),
        &[user(FIRST), user(SECOND), model("answer 2"), user("and in the fork")],
    );
    assert_eq!(machine.bound(&original), Some(of_original));
    assert_eq!(machine.bound(&fork), Some(of_fork));
}

/// What an agent keeps in a database is listed, kept after the turn though nobody looks, and given back when `lost` took it.
pub fn loses(agent: &'static Agent, lost: fn(&Machine, &str)) {
    let machine = Machine::with(agent);
    let id = converse(&machine);
    let instance_dir = machine.host.home().join("instances").join(&id);
    let kept = |part: &str| {
        let of_session = std::fs::read_dir(instance_dir.join("vault/s1")).into_iter().flatten().flatten();
        let copies = of_session.map(|dir| std::fs::read_to_string(dir.path().join("conversation.json")));
        copies.flatten().any(|copy| copy.contains(part))
    };
    machine.until(&id, "the turn to be kept", || kept(FIRST) && kept("answer 1"));
    let listed = machine.host.abide(["conversations", "--json"]).json()["conversations"][0].clone();
    assert_eq!((listed["id"].as_str(), &listed["claim"]), (machine.bound(&id).as_deref(), &"held".into()));
    let pids = machine.processes();
    machine.host.abide(["stop", &id]).ok();
    wait_until_gone(&pids);
    lost(&machine, &machine.bound(&id).unwrap());
    assert_eq!(machine.on_disk(), [""; 0], "it is lost");
    machine.resume(&id, &[FIRST, "answer 1"]);
    goes_on(&machine, &id, "answer 2");
}
