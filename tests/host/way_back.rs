//! A clean exit does not strand the conversation: its end says how to get back, also where its tree is gone.

use abide_testkit::{Terminal, eventually};

use crate::conversations::machine;

#[test]
fn a_clean_exit_says_how_to_get_back_to_the_conversation() {
    let host = machine();
    let program = host.program().to_str().unwrap().to_owned();
    let terminal = Terminal::open(&host, (160, 30), &[&program, "load", "claude"]);
    terminal.wait_for("ready");
    let id = host.abide(["ls", "--json"]).json()["instances"][0]["id"].as_str().unwrap().to_owned();
    host.say(&id, "remember the milk");
    let conversation = host.conversation(&id);
    host.abide(["send", &id, "exit 0"]).ok();
    terminal.wait_for(&format!("`abide load --adopt {conversation}` continues its conversation"));
    let again = host.loaded(host.abide(["load", "--adopt", &conversation, "--detach"]));
    host.wait_for_screen(&again, "resumed: remember the milk");
}

#[test]
fn what_was_said_in_a_tree_that_is_gone_is_listed_for_its_project_and_adopted_there() {
    let host = machine();
    let git = |args: &[&str]| {
        let run = host.command("git").args(args).current_dir(host.work()).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"]);
    let id = host.load_agent("codex", &["--isolation", "worktree"]);
    host.say(&id, "precious talk");
    let conversation = host.conversation(&id);
    host.abide(["send", &id, "exit 0"]).ok();
    eventually("the instance to be cleaned up", || host.row(&id).is_none().then_some(()));
    let listed = host.abide(["conversations"]).ok();
    assert!(listed.contains(&conversation), "{listed}");
    let again = host.loaded(host.abide(["load", "--adopt", &conversation, "--detach"]));
    host.wait_for_screen(&again, "resumed: precious talk");
}
