//! What must hold for every agent.

use abide_testkit::model_api::{Reply, Turn};

use crate::common::kill;
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
    machine.say(&id, FIRST, Reply::Answer);
    machine.sees(&id, "answer 1");
    id
}

/// A second exchange, after whatever happened: it is the same conversation, on the screen, for the model and on the disk.
#[track_caller]
fn goes_on(machine: &Machine, id: &str, answer: &str) {
    machine.say(id, SECOND, Reply::Answer);
    machine.sees(id, answer);
    assert_sent(&machine.last_asked(), &[user(FIRST), model("answer 1"), user(SECOND)]);
    let bound = machine.bound(id).expect("a conversation is bound");
    assert_eq!(machine.on_disk(), [bound], "one conversation, and the bound one");
}

pub fn stop(agent: &'static Agent) {
    let Some(machine) = Machine::with(agent) else { return };
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

const STORY: &str = "tell a long story";

/// Has the model begin an answer that does not end.
#[track_caller]
fn begin_turn(machine: &Machine, id: &str) {
    machine.say(id, STORY, Reply::Hold("once upon a time\n\nthere was".to_owned()));
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
    let Some(machine) = Machine::with(agent) else { return };
    let id = crashed_in_turn(&machine);
    machine.api.on(STORY, Reply::Answer);
    machine.host.abide(["resume", &id, "--detach", "--continue-turn"]).ok();
    machine.sees(&id, "answer 2");
    assert_sent(&machine.last_asked(), &[user(FIRST), model("answer 1"), user(STORY)]);
}

pub fn crash_mid_turn(agent: &'static Agent) {
    let Some(machine) = Machine::with(agent) else { return };
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
    machine.say(id, "dig a hole", Reply::Run(format!("sh {}", script.display())));
}

/// Waits until that command runs, and gives its process.
#[track_caller]
fn tool(machine: &Machine, id: &str) -> u32 {
    let pid = || std::fs::read_to_string(machine.host.path("work/digging")).ok()?.trim().parse().ok();
    machine.until(id, "the tool to run", || pid().is_some());
    pid().unwrap()
}

pub fn kill_mid_tool(agent: &'static Agent) {
    let Some(machine) = Machine::with(agent) else { return };
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
    let Some(machine) = Machine::with(agent) else { return };
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
    machine.say(&id, "who are you", Reply::Refuse(401));
    machine.sees(&id, "401");
    machine.is(&id, &["idle", "needs_input"]);
}
