//! The right conversation, for every agent: stand-ins that take each agent's flags and no others, keep conversations where it
//! does, and refuse what it refuses.

use std::path::{Path, PathBuf};

use abide_testkit::{Run, eventually};

use crate::common::{Host, alive, host, kill, unwatched_host, wait_for_death};

/// The agents that have a stand-in; the last is one that abide does not know.
pub const AGENTS: [&str; 8] = ["claude", "codex", "gemini", "opencode", "kimi", "qwen", "copilot", "foo"];

/// A machine with every agent on it.
pub struct Agents(Host);

impl std::ops::Deref for Agents {
    type Target = Host;
    fn deref(&self) -> &Host {
        &self.0
    }
}

impl std::ops::DerefMut for Agents {
    fn deref_mut(&mut self) -> &mut Host {
        &mut self.0
    }
}

/// Its list is looked at by a test alone: a look finds out which conversations agents are in.
pub fn machine() -> Agents {
    with_agents(unwatched_host())
}

fn with_agents(mut host: Host) -> Agents {
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/host/stubs/agent.py");
    for name in AGENTS {
        host.add_program(name, &format!("exec python3 {} {name} \"$@\"", stub.display()));
    }
    Agents(host)
}

impl Agents {
    /// Starts `agent` with `args`, and waits for its prompt.
    #[track_caller]
    pub fn load_agent(&self, agent: &str, args: &[&str]) -> String {
        let id = self.loaded(self.abide([&["load", agent, "--detach"], args].concat()));
        self.wait_for_screen(&id, "ready");
        id
    }

    /// The id of what was started.
    #[track_caller]
    pub fn loaded(&self, run: Run) -> String {
        run.ok().split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned()
    }

    /// What `agent` was started with, each time, apart from its hooks.
    pub fn argvs(&self, agent: &str) -> Vec<String> {
        let argvs = std::fs::read_to_string(self.path(format!("home/argv.{agent}"))).unwrap_or_default();
        let own = |argv: &str| {
            let hooks = [" --settings ", " -c hooks", " --dangerously-bypass-hook-trust", " --port "];
            let end = hooks.iter().filter_map(|hook| argv.find(hook)).min().unwrap_or(argv.len());
            argv[..end].to_owned()
        };
        argvs.lines().map(own).collect()
    }

    /// Has the operator's configuration say this.
    pub fn configure(&self, text: &str) {
        self.write("home/.config/abide/config.toml", format!("version = 1\n{text}"));
    }

    pub fn conversation_of(&self, id: &str) -> Option<String> {
        self.row(id).unwrap()["sessions"][0]["conversation"].as_str().map(str::to_owned)
    }

    #[track_caller]
    pub fn conversation(&self, id: &str) -> String {
        eventually("its conversation to be known", || self.conversation_of(id))
    }

    #[track_caller]
    pub fn say(&self, id: &str, text: &str) {
        self.abide(["send", id, text]).ok();
        self.wait_for_screen(id, &format!("heard: {text}"));
    }

    #[track_caller]
    pub fn stop(&self, id: &str) {
        self.abide(["stop", id]).ok();
    }

    #[track_caller]
    pub fn resume(&self, id: &str) -> Run {
        let run = self.abide(["resume", id, "--detach"]);
        run.clone().ok();
        run
    }

    /// The files below `dir` of the home directory.
    pub fn files_below(&self, dir: &str) -> Vec<PathBuf> {
        let (mut files, mut dirs) = (Vec::new(), vec![self.path("home").join(dir)]);
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    dirs.push(entry.path())
                } else {
                    files.push(entry.path())
                }
            }
        }
        files
    }

    /// The one transcript that claude has written.
    #[track_caller]
    pub fn transcript(&self) -> PathBuf {
        let mut files = self.files_below(".claude/projects");
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home().join("log/abide.log")).unwrap_or_default()
    }
}

#[test]
fn a_fresh_session_is_given_an_id_where_the_agent_takes_one_and_no_resume_flag() {
    let host = machine();
    for (agent, model) in [("claude", "--model"), ("gemini", "-m"), ("qwen", "-m"), ("copilot", "--model")] {
        let id = host.load_agent(agent, &["--", model, "x"]);
        assert_eq!(host.argvs(agent), [format!("{model} x --session-id {}", host.conversation(&id))]);
    }
    assert!(host.log().contains("resume: none reason=fresh_session"));
}

/// Said, stopped, resumed: what was said is there, and every argument.
fn restart_resumes(agent: &str) {
    let (host, (flag, resumed)) = (with_agents(host()), how(agent));
    let id = host.load_agent(agent, &["--", flag, "x"]);
    host.say(&id, "remember the milk");
    host.stop(&id);
    let conversation = host.conversation(&id);
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: remember the milk");
    let expected = format!("{flag} x {}", resumed.replace("ID", &conversation));
    assert_eq!(host.argvs(agent)[1], expected);
    assert_eq!(host.conversation(&id), conversation);
    assert!(host.log().contains(&format!("resume: id={conversation} reason=")), "{}", host.log());
    // And once more: what was resumed can be resumed.
    host.say(&id, "and the eggs");
    host.stop(&id);
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: and the eggs");
}

fn how(agent: &str) -> (&'static str, &'static str) {
    match agent {
        "claude" => ("--model", "--resume ID"),
        "codex" => ("-m", "resume ID --no-daemon"),
        "gemini" | "qwen" => ("-m", "--resume ID"),
        "opencode" => ("-m", "-s ID"),
        "kimi" => ("-m", "-S ID"),
        _ => ("--model", "--resume=ID"),
    }
}

macro_rules! for_each_agent {
    ($($test:ident: $agent:literal),+ $(,)?) => {
        $(#[test] fn $test() { restart_resumes($agent) })+
    };
}

for_each_agent![
    a_restart_resumes_claude: "claude",
    a_restart_resumes_codex_in_one_process: "codex",
    a_restart_resumes_gemini_again_and_again: "gemini",
    a_restart_resumes_opencode: "opencode",
    a_restart_resumes_kimi: "kimi",
    a_restart_resumes_qwen: "qwen",
    a_restart_resumes_copilot: "copilot",
];

#[test]
fn a_conversation_that_cannot_be_seen_is_resumed_by_the_id_that_the_operator_gave() {
    let host = machine();
    host.configure("[agents.foo]\nresume = [\"foo\", \"resume\", \"{id}\"]\n");
    let said = host.load_agent("foo", &["--", "--id", "somewhere"]);
    host.say(&said, "nobody knows where");
    host.stop(&said);
    let id = host.loaded(host.abide(["load", "foo", "--adopt", "somewhere", "--detach"]));
    host.wait_for_screen(&id, "resumed: nobody knows where");
    host.stop(&id);
    host.resume(&id);
    assert_eq!(host.argvs("foo")[2], "resume somewhere");
}

#[test]
fn a_start_after_the_keeper_was_killed_resumes() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "before the crash");
    let pids = host.pids(&id);
    kill("-KILL", pids.keeper);
    wait_for_death(pids.session);
    host.wait_for_state(&id, "restorable (crashed)");
    assert!(host.abide(["resume", "--all"]).ok().contains("is back"));
    host.wait_for_screen(&id, "resumed: before the crash");
}

#[test]
fn an_agent_that_was_killed_is_kept_and_one_that_left_is_not() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "cut short");
    kill("-KILL", host.pids(&id).session);
    host.wait_for_state(&id, "restorable (crashed)");
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: cut short");
    host.abide(["send", &id, "exit 0"]).ok();
    host.wait_for_state(&id, "gone");
}

#[test]
fn an_agent_that_outlived_its_keeper_is_ended_before_it_is_resumed() {
    let host = machine();
    let id = host.load_agent("gemini", &[]);
    host.say(&id, "I do not hear you hang up");
    let pids = host.pids(&id);
    kill("-KILL", pids.keeper);
    wait_for_death(pids.keeper);
    host.wait_for_state(&id, "restorable (crashed)");
    assert!(alive(pids.session), "the stand-in outlives its terminal, as the agent does");
    host.resume(&id);
    assert!(!alive(pids.session), "two processes were in one conversation");
    host.wait_for_screen(&id, "resumed: I do not hear you hang up");
}

#[test]
fn the_id_survives_the_loss_of_everything_beside_the_manifest() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "only the manifest is left");
    host.stop(&id);
    let instance_dir = host.home().join("instances").join(&id);
    for entry in std::fs::read_dir(&instance_dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: only the manifest is left");
}

#[test]
fn a_session_that_was_never_spoken_to_keeps_its_id_for_the_next_start() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    let conversation = host.conversation(&id);
    host.stop(&id);
    host.resume(&id);
    assert_eq!(
        host.argvs("claude")[1],
        format!("--session-id {conversation}"),
        "there is nothing to resume yet"
    );
}

#[test]
fn two_sessions_in_one_directory_never_get_each_others_conversation() {
    for agent in ["claude", "codex"] {
        let host = machine();
        let (one, other) = (host.load_agent(agent, &[]), host.load_agent(agent, &[]));
        host.say(&other, "this is the other");
        host.say(&one, "this is one");
        for id in [&one, &other] {
            host.stop(id);
        }
        for id in [&other, &one] {
            host.resume(id);
        }
        host.wait_for_screen(&one, "resumed: this is one");
        host.wait_for_screen(&other, "resumed: this is the other");
    }
}

#[test]
fn a_failed_resume_does_not_forget_the_conversation() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "precious");
    let conversation = host.conversation(&id);
    host.stop(&id);
    host.write("home/refuse.claude", format!("No conversation found with session ID: {conversation}"));
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    assert!(complaint.contains("does not know this conversation"), "{complaint}");
    assert_eq!(host.conversation(&id), conversation);
    std::fs::remove_file(host.path("home/refuse.claude")).unwrap();
    host.wait_for_state(&id, "restorable (crashed)");
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: precious");
}

/// A wrapper of the operator's own that does not pass on what it is given.
pub fn wrapped(agent: &str) -> Agents {
    let mut host = machine();
    host.add_program(
        "wrapper",
        &format!("case \"$*\" in *resume*) exec {agent} \"$@\" ;; *) exec {agent} ;; esac"),
    );
    host.configure(&format!("[agents.{agent}]\ncommand = [\"wrapper\"]\n"));
    host
}

#[test]
fn a_custom_command_that_chose_its_own_id_resumes_the_newest_unclaimed_transcript_and_stores_its_id() {
    let host = wrapped("qwen");
    let id = host.load_agent("qwen", &[]);
    host.say(&id, "mine");
    // Another one in the same directory, which belongs to a session of its own; and a newer one in another directory.
    let claimed = host.load_agent("qwen", &[]);
    host.say(&claimed, "somebody else's");
    host.stop(&claimed);
    host.resume(&claimed);
    host.wait_for_screen(&claimed, "resumed: somebody else's");
    let mut elsewhere = host.command(host.path("bin/qwen"));
    elsewhere.current_dir(host.path("home")).stdin(spoken(&host, "foreign")).output().unwrap();
    host.stop(&id);
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: mine");
    let stored = host.conversation(&id);
    assert!(host.argvs("qwen").last().unwrap().ends_with(&format!("--resume {stored}")));
    assert!(host.log().contains(&format!("resume: id={stored} reason=jsonl_discovery")));
}

#[test]
fn of_two_transcripts_of_a_custom_command_the_newer_wins() {
    let host = wrapped("qwen");
    let id = host.load_agent("qwen", &[]);
    host.say(&id, "older");
    host.say(&id, "/clear");
    host.say(&id, "newer");
    host.stop(&id);
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: newer");
}

/// An agent that only the configuration describes, with a conversation file of which it says the name, and `more`.
pub fn described(more: &str) -> Agents {
    let host = machine();
    let file = "~/.foo/sessions/{cwd-slug}/*.jsonl";
    let resume = r#"["foo", "resume", "{id}"]"#;
    host.configure(&format!("[agents.foo]\nresume = {resume}\nid.file = {file:?}\n{more}\n"));
    host
}

#[test]
fn a_described_agent_that_takes_an_id_is_given_one_and_resumed_by_it() {
    let host = described(r#"id.args = ["--id", "{id}"]"#);
    let id = host.load_agent("foo", &["--", "--fast"]);
    let conversation = host.conversation(&id);
    assert_eq!(host.argvs("foo"), [format!("--fast --id {conversation}")]);
    host.stop(&id);
    host.resume(&id);
    assert_eq!(host.argvs("foo")[1], format!("--fast --id {conversation}"), "nothing was said yet");
    host.say(&id, "remember the milk");
    host.stop(&id);
    std::fs::remove_dir_all(host.path("home/.foo/sessions")).unwrap();
    let run = host.resume(&id);
    assert!(run.stderr.contains("restored from abide's copy"), "{}", run.stderr);
    host.wait_for_screen(&id, "resumed: remember the milk");
    assert_eq!(host.argvs("foo")[2], format!("resume {conversation}"));
}

#[test]
fn a_described_agent_that_takes_its_id_from_a_variable_is_resumed_by_that() {
    let host = machine();
    host.configure("[agents.foo]\nid.env = \"FOO_ID\"\n");
    let (one, other) = (host.load_agent("foo", &[]), host.load_agent("foo", &["--", "--fast"]));
    host.say(&one, "this is one");
    host.say(&other, "this is the other");
    for id in [&one, &other] {
        host.stop(id);
        host.resume(id);
    }
    host.wait_for_screen(&one, "resumed: this is one");
    host.wait_for_screen(&other, "resumed: this is the other");
    assert_eq!(host.argvs("foo")[3], "--fast");
}

#[test]
fn a_described_agent_that_chose_its_own_id_resumes_the_newest_unclaimed_transcript_and_stores_its_id() {
    let host = described("");
    let claimed = host.load_agent("foo", &[]);
    host.say(&claimed, "somebody else's");
    host.conversation(&claimed);
    let id = host.load_agent("foo", &[]);
    host.say(&id, "mine");
    host.say(&claimed, "which is the newest");
    let mut elsewhere = host.command(host.path("bin/foo"));
    elsewhere.current_dir(host.path("home")).stdin(spoken(&host, "foreign")).output().unwrap();
    // Nothing has looked until it is brought back.
    let keeper = host.pids(&id).keeper;
    kill("-KILL", keeper);
    wait_for_death(keeper);
    assert!(host.abide(["resume", "--all"]).ok().contains("is back"));
    host.wait_for_screen(&id, "resumed: mine");
    let stored = host.conversation(&id);
    assert_eq!(host.argvs("foo").last().unwrap(), &format!("resume {stored}"));
    let listed = host.abide(["conversations", "--json"]).json()["conversations"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 2, "those of this directory: {listed}");
}

#[test]
fn of_two_transcripts_of_a_described_agent_the_newer_wins_and_a_fork_gets_one_of_its_own() {
    let host = described(r#"fork = ["foo", "--fork", "{id}"]"#);
    let id = host.load_agent("foo", &[]);
    host.say(&id, "older");
    host.say(&id, "/clear");
    host.say(&id, "newer");
    host.stop(&id);
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: newer");
    let fork = host.loaded(host.abide(["load", "--fork", &id, "--detach"]));
    host.wait_for_screen(&fork, "resumed: newer");
    host.say(&fork, "the branch");
    assert_ne!(host.conversation(&fork), host.conversation(&id));
}

#[test]
fn what_a_described_agent_shows_and_says_at_its_end_means_what_the_configuration_says() {
    let signs = r#"
fatal.auth = ["who … are you"]
[[agents.foo.screen]]
name = "asks"
says = "needs_input"
any = ["^heard: shall I"]
question = ["shall I"]
[[agents.foo.screen]]
name = "ready"
says = "idle"
any = ["^ready$"]"#;
    for substrate in ["capsule", "tmux"] {
        let host = described(signs);
        host.abide(["config", "set", "substrate", substrate]).ok();
        let id = host.load_agent("foo", &[]);
        host.abide(["wait", &id, "--idle", "--timeout", "20"]).ok();
        host.abide(["send", &id, "shall I?"]).ok();
        host.abide(["wait", &id, "--needs-input", "--timeout", "20"]).ok();
        let session = host.row(&id).unwrap()["sessions"][0].clone();
        assert_eq!(
            (&session["activity"], &session["question"]),
            (&"needs_input".into(), &"heard: shall I?".into())
        );
        let explained = host.abide(["explain", &id]).ok();
        assert!(explained.contains("the screen shows needs_input (asks)"), "{explained}");
        host.write("home/refuse.foo", "but who\n on earth are you");
        let complaint = host.abide(["load", "foo", "--detach"]).fails(1);
        assert!(complaint.contains("is not logged in"), "{complaint}");
        host.stop(&id);
    }
}

/// Something for an agent to hear before its terminal ends.
fn spoken(host: &Agents, text: &str) -> std::fs::File {
    std::fs::File::open(host.write("home/spoken", format!("{text}\n"))).unwrap()
}

#[test]
fn a_torn_transcript_is_resumed_and_its_loss_is_reported() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "whole");
    host.stop(&id);
    let mut torn = std::fs::read(host.transcript()).unwrap();
    torn.extend(b"{\"type\":\"assistant\",\"mess");
    std::fs::write(host.transcript(), torn).unwrap();
    let run = host.resume(&id);
    assert!(run.stderr.contains("is incomplete"), "{}", run.stderr);
    host.wait_for_screen(&id, "resumed: whole");
}

#[test]
fn the_agents_directory_is_the_one_of_the_first_start_whatever_is_set_by_now() {
    let mut host = machine();
    let [elsewhere, wrong] = ["home/elsewhere", "home/wrong"].map(|dir| host.path(dir));
    host.set("CLAUDE_CONFIG_DIR", elsewhere);
    let moved = host.load_agent("claude", &[]);
    host.say(&moved, "elsewhere");
    host.unset("CLAUDE_CONFIG_DIR");
    let plain = host.load_agent("claude", &[]);
    host.say(&plain, "at home");
    for id in [&moved, &plain] {
        host.stop(id);
    }
    host.resume(&moved);
    host.wait_for_screen(&moved, "resumed: elsewhere");
    let now = host.path("home/new");
    host.configure(&format!("[agents.claude]\nconfig_dir = {now:?}\n"));
    host.set("CLAUDE_CONFIG_DIR", wrong);
    let run = host.resume(&plain);
    host.wait_for_screen(&plain, "resumed: at home");
    assert!(run.stderr.contains(&format!("config_dir is {} now", now.display())), "{}", run.stderr);
}

#[test]
fn a_directory_that_cannot_be_passed_to_an_agent_is_refused_and_never_read() {
    let host = described(r#"id.args = ["--id", "{id}"]"#);
    let [foo, gemini] = ["foo", "gemini"].map(|agent| host.load_agent(agent, &[]));
    for id in [&foo, &gemini] {
        host.say(id, "said");
        host.stop(id);
    }
    let listed = |host: &Agents| host.abide(["conversations", "--json"]).json()["conversations"].clone();
    let before = listed(&host);
    assert_eq!(before.as_array().map(Vec::len), Some(2), "{before}");
    for (agent, why) in [("foo", "set `id.file` to where"), ("gemini", "must end in `.gemini`")] {
        host.abide(["config", "set", &format!("agents.{agent}.config_dir"), "~/elsewhere"]).ok();
        let complaint = host.abide(["load", agent, "--detach"]).fails(1);
        assert!(complaint.contains(why), "{complaint}");
    }
    assert_eq!(listed(&host), before);
    assert_eq!(host.abide(["ls", "--json"]).json()["instances"].as_array().map(Vec::len), Some(2));
    for id in [&foo, &gemini] {
        host.resume(id);
        host.wait_for_screen(id, "resumed: said");
    }
    let moved = host.path("home/work/.gemini");
    host.abide(["config", "set", "agents.gemini.config_dir", moved.to_str().unwrap()]).ok();
    let id = host.load_agent("gemini", &[]);
    host.say(&id, "at work");
    assert!(!host.files_below("work/.gemini").is_empty());
}

#[test]
fn every_kind_of_directory_is_come_back_to() {
    let host = machine();
    let long = format!("deep/{}", ["a_rather.long-name"; 10].join("/"));
    std::fs::create_dir_all(host.path("real")).unwrap();
    std::os::unix::fs::symlink(host.path("real"), host.path("linked")).unwrap();
    let dirs = [long.as_str(), "dotted.dir", "under_scored", "caf\u{e9} \u{1f980}", "linked"];
    std::thread::scope(|scope| {
        for dir in dirs.map(|dir| host.path(dir)) {
            std::fs::create_dir_all(&dir).unwrap();
            let agents: &[&str] =
                if dir.ends_with(&long) { &["claude", "codex", "qwen"] } else { &["claude", "codex"] };
            for agent in agents {
                let (host, dir) = (&host, dir.clone());
                scope.spawn(move || is_come_back_to(host, agent, &dir));
            }
        }
    });
}

fn is_come_back_to(host: &Agents, agent: &str, dir: &Path) {
    let mut command = host.command(host.program());
    command.args(["load", agent, "--detach"]).current_dir(dir).env("PWD", dir);
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let id = String::from_utf8(out.stdout).unwrap()[3..11].to_owned();
    host.wait_for_screen(&id, "ready");
    host.say(&id, &format!("{agent} was here"));
    host.stop(&id);
    let row = host.row(&id).unwrap();
    host.resume(&id);
    host.wait_for_screen(&id, &format!("resumed: {agent} was here"));
    host.stop(&id);
    let kept = host.files_below(&format!(".abide/instances/{id}/vault"));
    assert!(!kept.is_empty(), "no transcript of {agent} was found in {}: {row}", dir.display());
}

#[test]
fn a_new_conversation_that_the_agent_begins_by_itself_is_followed_and_the_old_one_is_parked() {
    for agent in ["claude", "codex"] {
        let host = machine();
        let id = host.load_agent(agent, &[]);
        host.say(&id, "the old");
        let old = host.conversation(&id);
        host.say(&id, "/clear");
        host.say(&id, "the new");
        host.stop(&id);
        let new = host.conversation(&id);
        assert_ne!(old, new);
        assert!(host.log().contains(&format!("binding: id={new} reason=")), "{}", host.log());
        let explained = host.abide(["explain", &id]).ok();
        assert!(explained.contains(&format!("earlier conversations: {old}")), "{explained}");
        host.resume(&id);
        host.wait_for_screen(&id, "resumed: the new");
    }
}

#[test]
fn what_an_agent_reports_of_itself_is_bound_unless_another_session_is_in_it() {
    use std::io::Write;
    let host = machine();
    let report = |id: &str, generation: u64, conversation: &str| {
        let path = host.home().join("instances").join(id).join("state/conversations.jsonl");
        let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
        let line =
            serde_json::json!({ "generation": generation, "session": "s1", "conversation": conversation });
        writeln!(file, "{line}").unwrap();
    };
    let (one, other) = (host.load_agent("opencode", &[]), host.load_agent("opencode", &[]));
    report(&one, 1, "ses_first");
    assert_eq!(host.conversation(&one), "ses_first");
    report(&one, 1, "ses_second");
    for nonsense in ["--help", "not one of its own"] {
        report(&one, 1, nonsense);
    }
    report(&one, 7, "ses_of_another_run");
    assert_eq!(host.conversation(&one), "ses_second");
    report(&other, 1, "ses_second");
    assert_eq!(host.conversation_of(&other), None);
    assert!(host.log().contains(&format!("binding: refused reason=ab-{one}/s1 is in it")), "{}", host.log());
    // What was last said in a run counts for it, even if nobody has looked before the next one.
    report(&one, 1, "ses_third");
    kill("-KILL", host.pids(&one).keeper);
    host.wait_for_state(&one, "restorable (crashed)");
    let _ = host.abide(["resume", &one, "--detach"]);
    assert_eq!(host.argvs("opencode").last().unwrap(), "-s ses_third");
}

#[test]
fn an_agent_that_takes_no_id_is_asked_for_it_while_it_runs() {
    let host = machine();
    let id = host.load_agent("codex", &[]);
    let conversation = host.conversation(&id);
    assert!(host.log().contains(&format!("binding: id={conversation} reason=the agent has it open")));
    assert_eq!(host.argvs("codex"), ["--no-daemon"]);
}

#[test]
fn an_agent_is_asked_what_it_offers_once_until_another_is_installed() {
    let mut host = machine();
    let script =
        "if [ \"$1\" = --help ]; then echo asked >>~/asked; echo --no-daemon; else echo ready; exec cat; fi";
    let asked = |host: &Agents| std::fs::read_to_string(host.path("home/asked")).unwrap().lines().count();
    host.add_program("codex", script);
    host.load_agent("codex", &[]);
    host.load_agent("codex", &[]);
    assert_eq!(asked(&host), 1);
    host.add_program("codex", &format!("# another version\n{script}"));
    host.load_agent("codex", &[]);
    assert_eq!(asked(&host), 2);
}

#[test]
fn an_agent_that_asks_about_hooks_is_given_some_only_if_the_operator_vouches_for_them() {
    let mut host = machine();
    let script = "if [ \"$1\" = --help ]; then echo --dangerously-bypass-hook-trust; else echo \"$@\" >~/given; echo ready; exec cat; fi";
    host.add_program("codex", script);
    let given = |host: &Agents| {
        host.load_agent("codex", &[]);
        eventually("its arguments", || std::fs::read_to_string(host.path("home/given")).ok())
    };
    assert!(!given(&host).contains("hooks"), "codex would not have been asked");
    std::fs::remove_file(host.path("home/given")).unwrap();
    host.abide(["config", "set", "agents.codex.hooks", "true"]).ok();
    assert!(given(&host).contains("hooks={"));
}

#[test]
fn a_cut_turn_is_gone_on_with_only_if_that_is_asked_for() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "half a turn");
    host.stop(&id);
    host.resume(&id);
    let screen = host.wait_for_screen(&id, "resumed: half a turn");
    assert!(!screen.contains("going on with the turn"), "{screen}");
    host.stop(&id);
    host.abide(["resume", &id, "--detach", "--continue-turn"]).ok();
    host.wait_for_screen(&id, "going on with the turn");
    host.stop(&id);
    host.resume(&id);
    let screen = host.wait_for_screen(&id, "ready");
    assert!(!screen.contains("going on with the turn"), "it is asked for once: {screen}");
}
