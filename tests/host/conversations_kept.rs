//! Conversations that would be lost, or taken by the wrong one: the vault, starts that fail, adopting and forking.

use std::os::unix::fs::MetadataExt;

use abide_testkit::eventually;

use crate::common::{alive, compare, exists};
use crate::conversations::{Agents, machine};

const REFUSED: &str = "Invalid API key \u{b7} Please run /login";

fn vault(host: &Agents, id: &str) -> std::path::PathBuf {
    host.home().join("instances").join(id).join("vault")
}

#[test]
fn a_transcript_that_the_agent_has_lost_is_put_back_before_the_resume() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "kept twice");
    host.stop(&id);
    let kept = host.files_below(&format!(".abide/instances/{id}/vault"));
    let transcript = host.transcript();
    assert_ne!(std::fs::metadata(&kept[0]).unwrap().ino(), std::fs::metadata(&transcript).unwrap().ino());
    std::fs::remove_dir_all(host.path("home/.claude")).unwrap();
    let run = host.resume(&id);
    compare(&host, "transcript-missing", &run.stderr);
    host.wait_for_screen(&id, "resumed: kept twice");
    assert_eq!(std::fs::metadata(&transcript).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_transcript_that_was_damaged_is_put_back_and_the_damaged_one_kept() {
    let damages: [fn(&std::path::Path, u64); 3] = [
        |path, half| {
            std::fs::File::options().write(true).open(path).unwrap().set_len(half).unwrap();
        },
        |path, half| {
            let noise = vec![b'\x07'; usize::try_from(2 * half).unwrap()];
            std::fs::write(path, noise).unwrap();
        },
        |path, _| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        },
    ];
    for damage in damages {
        let host = machine();
        let id = host.load_agent("claude", &[]);
        host.say(&id, "said first");
        host.say(&id, "said last");
        host.stop(&id);
        let transcript = host.transcript();
        damage(&transcript, std::fs::metadata(&transcript).unwrap().len() / 2);
        host.abide(["ls"]).ok();
        let run = host.resume(&id);
        compare(&host, "transcript-damaged", &run.stderr);
        assert!(exists(format!("{}.damaged-1", transcript.display())), "{}", run.stderr);
        host.wait_for_screen(&id, "resumed: said last");
    }
}

#[test]
fn a_conversation_that_another_start_of_its_agent_destroyed_is_put_back() {
    let host = machine();
    let id = host.load_agent("gemini", &[]);
    host.say(&id, "I will be resumed");
    host.stop(&id);
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: I will be resumed");
    host.load_agent("gemini", &[]);
    assert!(host.files_below(".gemini/tmp").is_empty(), "the stand-in forgets, as the agent does");
    host.stop(&id);
    host.resume(&id);
    let screen = host.wait_for_screen(&id, "resumed: I will be resumed");
    assert!(!screen.contains("Invalid session identifier"), "{screen}");
}

#[test]
fn what_consists_of_several_files_is_kept_whole() {
    let host = machine();
    for agent in ["kimi", "copilot", "qwen"] {
        let id = host.load_agent(agent, &[]);
        host.say(&id, "all of it");
        host.stop(&id);
        let dir = match agent {
            "kimi" => "home/.kimi-code/sessions",
            "copilot" => "home/.copilot/session-state",
            _ => "home/.qwen/projects",
        };
        std::fs::remove_dir_all(host.path(dir)).unwrap();
        host.resume(&id);
        host.wait_for_screen(&id, "resumed: all of it");
    }
}

/// What the vault has of the one conversation of an instance of opencode.
fn extract(host: &Agents, id: &str) -> String {
    let kept = host.files_below(&format!(".abide/instances/{id}/vault"));
    let kept = kept.iter().find(|path| path.ends_with("conversation.json"));
    kept.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
}

fn lose_database(host: &Agents) {
    for name in ["opencode.db", "opencode.db-wal", "opencode.db-shm"] {
        let _ = std::fs::remove_file(host.path("home/.local/share/opencode").join(name));
    }
}

#[test]
fn a_conversation_in_a_database_is_copied_after_each_turn_and_restored_if_it_is_lost() {
    let host = machine();
    let id = host.load_agent("opencode", &[]);
    for text in ["the first", "the second"] {
        host.say(&id, text);
        eventually("it to be kept", || extract(&host, &id).contains(text).then_some(()));
    }
    let conversation = host.conversation(&id);
    let listed = host.abide(["conversations", "--json"]).json()["conversations"][0].clone();
    assert_eq!((&listed["id"], &listed["claim"]), (&conversation.as_str().into(), &"held".into()));
    assert_eq!(listed["title"], "About the first");
    host.stop(&id);
    lose_database(&host);
    let run = host.resume(&id);
    assert!(run.stderr.contains("restored from abide's copy"), "{}", run.stderr);
    host.wait_for_screen(&id, "resumed: the second");
    assert_eq!(host.conversation(&id), conversation);
    assert!(host.log().contains(&format!("resume: id={conversation} reason=conversation_data_present")));
}

#[test]
fn a_row_that_is_gone_from_a_database_is_given_back_beside_the_others() {
    let host = machine();
    let (one, other) = (host.load_agent("opencode", &[]), host.load_agent("opencode", &[]));
    for (id, text) in [(&one, "this is one"), (&other, "this is the other")] {
        host.say(id, text);
        eventually("it to be kept", || extract(&host, id).contains(text).then_some(()));
        host.stop(id);
    }
    let database = host.path("home/.local/share/opencode/opencode.db");
    let forget = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1])
for table, column in [('session', 'id'), ('message', 'session_id'), ('part', 'session_id')]:
    db.execute(f'DELETE FROM {table} WHERE {column} = ?', (sys.argv[2],))
db.commit()";
    let args = ["-c", forget, database.to_str().unwrap(), &host.conversation(&one)];
    assert!(std::process::Command::new("python3").args(args).status().unwrap().success());
    for (id, text) in [(&one, "this is one"), (&other, "this is the other")] {
        let run = host.resume(id);
        assert_eq!(run.stderr.contains("restored from"), *id == one, "{}", run.stderr);
        host.wait_for_screen(id, &format!("resumed: {text}"));
    }
}

#[test]
fn a_conversation_that_cannot_be_restored_is_reported_and_the_copy_stays() {
    let mut host = machine();
    let id = host.load_agent("opencode", &[]);
    host.say(&id, "precious");
    eventually("it to be kept", || extract(&host, &id).contains("precious").then_some(()));
    host.stop(&id);
    lose_database(&host);
    host.add_program("opencode", "case $1 in import) echo no >&2; exit 1 ;; *) echo ready; cat ;; esac");
    let run = host.resume(&id);
    compare(&host, "transcript-not-restored", &run.stderr);
    assert!(extract(&host, &id).contains("precious"));
}

#[test]
fn the_vault_goes_to_the_trash_with_its_instance_and_comes_back_with_it() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "thrown away");
    host.stop(&id);
    host.abide(["eject", &id, "--clean"]).ok();
    assert!(!exists(vault(&host, &id)));
    std::fs::remove_file(host.transcript()).unwrap();
    host.abide(["trash", "restore", &id]).ok();
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: thrown away");
}

#[test]
fn an_agent_that_does_not_come_up_is_an_error_with_its_last_words_and_what_to_do() {
    let host = machine();
    host.write("home/refuse.claude", REFUSED);
    let complaint = host.abide(["load", "claude", "--detach"]).fails(1);
    for part in ["claude ended right after its start (exit code 1)", "is not logged in", "Please run /login"]
    {
        assert!(complaint.contains(part), "{complaint}");
    }
    eventually("the processes to end", || host.processes().is_empty().then_some(()));
    assert_eq!(host.argvs("claude").len(), 1, "it was not tried again");
    host.write("home/refuse.claude", "first\nboom\n");
    let complaint = host.abide(["load", "claude", "--detach"]).fails(1);
    assert!(complaint.contains("first"), "{complaint}");
    assert_eq!(complaint.matches("boom").count(), 1, "{complaint}");
}

#[test]
fn an_instance_whose_agent_does_not_come_back_is_kept_with_the_reason() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "still here");
    let conversation = host.conversation(&id);
    host.stop(&id);
    host.write("home/refuse.claude", REFUSED);
    host.abide(["resume", &id, "--detach"]).fails(1);
    host.wait_for_state(&id, "restorable (crashed)");
    let explained = host.abide(["explain", &id]).ok();
    assert!(explained.contains("is not logged in"), "{explained}");
    assert_eq!(host.conversation(&id), conversation);
}

#[test]
fn bringing_all_back_stops_at_the_second_agent_that_is_not_logged_in() {
    let host = machine();
    let ids: Vec<String> = (0..3).map(|_| host.load_agent("claude", &[])).collect();
    for id in &ids {
        host.stop(id);
    }
    host.write("home/refuse.claude", REFUSED);
    let run = host.abide(["resume", "--all"]);
    assert!(run.stderr.contains("2 did not come back, and 1 were skipped"), "{}", run.stderr);
    assert_eq!(host.argvs("claude").len(), 5);
}

#[test]
fn a_conversation_is_listed_with_its_session_and_a_free_one_can_be_adopted_once() {
    let host = machine();
    let said = std::fs::File::open(host.write("home/spoken", "fix the tests\n")).unwrap();
    host.command(host.path("bin/claude")).stdin(said).output().unwrap();
    let listed = || host.abide(["conversations", "--json"]).json()["conversations"].clone();
    let row = listed()[0].clone();
    assert_eq!((row["agent"].as_str(), row["claim"].as_str()), (Some("claude"), Some("free")));
    assert_eq!((row["title"].as_str(), row["session"].as_str()), (Some("fix the tests"), None));
    let free = row["id"].as_str().unwrap();
    assert!(host.abide(["conversations"]).ok().contains("fix the tests"));
    host.abide(["load", "--adopt", "0000-none", "--detach"]).fails(1);

    let id = host.loaded(host.abide(["load", "--adopt", &free[..8], "--detach"]));
    host.wait_for_screen(&id, "resumed: fix the tests");
    assert_eq!(host.argvs("claude")[1], format!("--resume {free}"));
    assert_eq!(host.conversation(&id), free);
    assert_eq!(listed()[0]["session"], format!("{id}/s1"));
    for args in [["--adopt", free], ["--adopt", &free[..8]]] {
        let complaint = host.abide([&["load", "--detach"], &args[..]].concat()).fails(1);
        assert!(complaint.contains(&format!("is in use by ab-{id}/s1")), "{complaint}");
    }
    let complaint = host.abide(["load", "claude", "--detach", "--", "--resume", free]).fails(1);
    assert!(complaint.contains("is in use by"), "{complaint}");
    assert_eq!(host.argvs("claude").len(), 2, "nothing was started in it a second time");

    host.abide(["eject", &id, "--clean"]).ok();
    assert_eq!(listed()[0]["claim"], "left");
    let again = host.loaded(host.abide(["load", "--adopt", free, "--detach"]));
    // Taken back out of the trash, the first one finds its conversation taken.
    host.abide(["trash", "restore", &id]).ok();
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    assert!(complaint.contains(&format!("{free} is in use")), "{complaint}");
    assert!(complaint.contains(&format!("in ab-{again}/s1)")), "{complaint}");
    host.stop(&again);
    let run = host.resume(&id);
    compare(&host, "conversation-taken", &run.stderr);
    assert_ne!(host.conversation(&id), host.conversation(&again));
}

#[test]
fn two_starts_at_once_never_run_one_conversation_twice() {
    let host = machine();
    let said = std::fs::File::open(host.write("home/spoken", "only one of you\n")).unwrap();
    host.command(host.path("bin/claude")).stdin(said).output().unwrap();
    let free =
        host.abide(["conversations", "--json"]).json()["conversations"][0]["id"].as_str().unwrap().to_owned();
    let start = |args: &[&str]| {
        let mut command = host.command(host.program());
        command.args(args).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let won = |args: &[&str]| {
        let starts: Vec<_> = (0..4).map(|_| start(args)).collect();
        let ended = starts.into_iter().map(|start| start.wait_with_output().unwrap());
        let won: Vec<_> = ended.filter(|output| output.status.success()).collect();
        assert_eq!(won.len(), 1, "{won:?}");
        String::from_utf8_lossy(&won[0].stdout).into_owned()
    };
    let said = won(&["load", "--adopt", &free, "--detach"]);
    let id = &said[3..11];
    assert_eq!(host.argvs("claude").len(), 2);
    host.stop(id);
    won(&["resume", id, "--detach"]);
    assert_eq!(host.argvs("claude").len(), 3);
    assert!(alive(host.pids(id).session));
}

#[test]
fn a_fork_goes_on_with_a_copy_under_an_id_of_its_own() {
    let host = machine();
    std::thread::scope(|scope| {
        for agent in ["claude", "codex", "qwen"] {
            let host = &host;
            scope.spawn(move || goes_on_with_a_copy(host, agent));
        }
        scope.spawn(|| {
            let id = host.load_agent("gemini", &[]);
            host.say(&id, "no copies");
            let complaint = host.abide(["load", "--fork", &id, "--detach"]).fails(1);
            compare(&host, "cannot-fork", &complaint);
        });
    });
}

fn goes_on_with_a_copy(host: &Agents, agent: &str) {
    let id = host.load_agent(agent, &[]);
    host.say(&id, "the trunk");
    let trunk = host.conversation(&id);
    let fork = host.loaded(host.abide(["load", "--fork", &id, "--detach"]));
    host.wait_for_screen(&fork, "resumed: the trunk");
    host.say(&fork, "the branch");
    let branch = host.conversation(&fork);
    assert_ne!(trunk, branch);
    host.stop(&fork);
    host.resume(&fork);
    host.wait_for_screen(&fork, "resumed: the branch");
    assert_eq!(host.conversation(&fork), branch);
    assert_eq!(host.conversation(&id), trunk);
    host.stop(&id);
    host.stop(&fork);
}

#[test]
fn the_conversation_of_a_closed_tab_or_a_removed_instance_is_not_taken_for_a_free_one() {
    let host = machine();
    let gone = host.load_agent("kimi", &[]);
    host.say(&gone, "of one that is gone");
    let claimed = host.conversation(&gone);
    let id = host.load_agent("kimi", &[]);
    host.stop(&gone);
    host.abide(["eject", &gone, "--clean"]).ok();
    // What the removed one had said is newer than the start of this one now.
    let transcript = host.files_below(".kimi-code/sessions").pop().unwrap();
    std::fs::File::options()
        .append(true)
        .open(&transcript)
        .unwrap()
        .set_modified(std::time::SystemTime::now())
        .unwrap();
    host.stop(&id);
    host.resume(&id);
    host.wait_for_screen(&id, "ready");
    assert_ne!(host.conversation_of(&id).as_deref(), Some(claimed.as_str()));
    assert_eq!(host.argvs("kimi").last().unwrap(), "");
}
