//! A machine with one real agent on it, whose model is the test.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use abide_testkit::model_api::{ModelApi, ModelReply, Turn};
use abide_testkit::{Sandbox, cannot_run, eventually};
use serde_json::Value;

use crate::common::{Host, exists};

/// Far beyond what an agent takes on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(90);

/// When what was typed is typed again because nothing came of it.
const AGAIN: Duration = Duration::from_secs(1);

/// Between two looks at a screen: each is a process.
const PAUSE: Duration = Duration::from_millis(50);

/// A real agent, and what has to be known to sit in front of it.
pub struct Agent {
    pub name: &'static str,
    /// What its screen shows when it waits for a prompt.
    pub ready: &'static str,
    /// What its screen shows when it wants to know whether it may run a command. Enter allows it, Escape does not.
    pub asks: &'static str,
    /// What is typed to begin a new conversation.
    pub anew: &'static str,
    /// What stops it in the middle of a turn.
    pub stops: &'static [&'static str],
    /// Writes the configuration that answers its first questions, for the model at an address.
    pub configure: fn(&mut Sandbox, &str),
    /// The ids of the conversations on its disk.
    pub conversations: fn(&Sandbox) -> Vec<String>,
}

pub struct Machine {
    pub host: Host,
    pub api: ModelApi,
    agent: &'static Agent,
}

/// What is on a screen after a resume is then what the agent drew, not what abide kept; and every agent's hooks are set.
const CONFIG: &str = "version = 1\njournal = \"off\"\n\n[agents.codex]\nhooks = true\n";

impl Machine {
    /// A machine whose only agent is `agent`.
    #[track_caller]
    pub fn with(agent: &'static Agent) -> Self {
        let Some(installed) = std::env::var_os("ABIDE_TEST_AGENTS") else {
            cannot_run(
                "the real agents",
                "`./scripts/test` installs them and sets ABIDE_TEST_AGENTS, `./scripts/test fast` leaves this test out",
            );
        };
        let mut sandbox = Sandbox::new(env!("CARGO_BIN_EXE_abide"));
        let path = std::env::var("PATH").unwrap();
        sandbox
            .set("PATH", format!("{}:{path}", PathBuf::from(installed).join("node_modules/.bin").display()));
        sandbox.write("home/.config/abide/config.toml", CONFIG);
        let api = ModelApi::start();
        (agent.configure)(&mut sandbox, api.url());
        Self { host: sandbox.into(), api, agent }
    }

    /// The same, with the screens of earlier runs brought back.
    #[track_caller]
    pub fn journaled(agent: &'static Agent) -> Self {
        let machine = Self::with(agent);
        machine.host.write("home/.config/abide/config.toml", CONFIG.replace("journal = \"off\"\n", ""));
        machine
    }

    /// Waits until the agent is idle, sends `prompt` once, and waits until the model was asked that and nothing else.
    #[track_caller]
    pub fn deliver(&self, id: &str, prompt: &str) {
        self.host.abide(["wait", id, "--idle", "--timeout", "60"]).ok();
        self.deliver_at_once(id, prompt);
        self.host.abide(["wait", id, "--idle", "--timeout", "60"]).ok();
    }

    /// Sends `prompt` once, and waits until the model was asked that and nothing else.
    #[track_caller]
    pub fn deliver_at_once(&self, id: &str, prompt: &str) {
        self.api.on(prompt, ModelReply::Answer);
        self.host.abide(["send", id, prompt]).ok();
        self.until(id, &format!("the model to be asked `{prompt}`"), || self.was_asked(prompt));
        let turns = self.api.asked().into_iter().flatten();
        let holds = |turn: &Turn| matches!(turn, Turn::User(text) if text.matches(prompt).count() > 1);
        let twice: Vec<Turn> = turns.filter(holds).collect();
        assert!(twice.is_empty(), "`{prompt}` was typed more than once: {twice:#?}");
    }

    /// Starts the agent and gives the instance's id when it waits for a prompt.
    #[track_caller]
    pub fn load(&self) -> String {
        self.load_as(&[])
    }

    /// Starts the agent as `how` says otherwise.
    #[track_caller]
    pub fn load_as(&self, how: &[&str]) -> String {
        let said = self.host.abide([&["load", self.agent.name, "--detach"], how].concat()).ok();
        let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
        self.stretch(&id);
        self.sees(&id, self.agent.ready);
        id
    }

    /// Makes the terminal large enough for all that is said in a test.
    #[track_caller]
    fn stretch(&self, id: &str) {
        let resize = r#"{"verb": "resize", "session": "s1", "size": {"cols": 100, "rows": 60}}"#;
        self.host.abide(["capsule", "call", id, resize]).ok();
    }

    /// Brings the instance back, and waits until the agent shows what was said before and waits for a prompt.
    #[track_caller]
    pub fn resume(&self, id: &str, history: &[&str]) {
        self.host.abide(["resume", id, "--detach"]).ok();
        self.stretch(id);
        for text in history {
            self.sees(id, text);
        }
        self.sees(id, self.agent.ready);
    }

    /// Says `prompt`, which the model will answer with `reply`, and waits until the model was asked.
    ///
    /// Some agents lose what is typed while they start, and an Enter that comes right after a text: as a person would,
    /// look and try again.
    #[track_caller]
    pub fn say(&self, id: &str, prompt: &str, reply: ModelReply) {
        self.api.on(prompt, reply);
        self.again_until(id, &format!("`{prompt}` to be typed"), &["--no-enter", prompt], || {
            self.host.peek(id).contains(prompt)
        });
        self.again_until(id, &format!("the model to be asked `{prompt}`"), &["--key", "Enter"], || {
            self.was_asked(prompt)
        });
    }

    fn was_asked(&self, prompt: &str) -> bool {
        let holds = |turn: &Turn| matches!(turn, Turn::User(text) if text.contains(prompt));
        self.api.asked().iter().flatten().any(holds)
    }

    /// Sends the input, and again every second, until it has worked.
    #[track_caller]
    fn again_until(&self, id: &str, what: &str, input: &[&str], mut worked: impl FnMut() -> bool) {
        let mut sent: Option<Instant> = None;
        self.until(id, what, || {
            let done = worked();
            if !done && sent.is_none_or(|at| at.elapsed() > AGAIN) {
                self.host.abide([&["send", id], input].concat()).ok();
                sent = Some(Instant::now());
            }
            done
        });
    }

    /// Waits until the screen holds `text`.
    #[track_caller]
    pub fn sees(&self, id: &str, text: &str) {
        self.until(id, &format!("`{text}` on the screen"), || self.host.peek(id).contains(text));
    }

    /// Waits until the agent asks for a permission, and gives it.
    #[track_caller]
    pub fn allow(&self, id: &str) {
        self.sees(id, self.agent.asks);
        self.again_until(id, "the permission to be taken", &["--key", "Enter"], || {
            !self.host.peek(id).contains(self.agent.asks)
        });
    }

    /// Refuses what the agent asks. One that has only just drawn its question may not listen yet.
    #[track_caller]
    pub fn refuse(&self, id: &str) {
        self.sees(id, self.agent.asks);
        self.again_until(id, "the refusal to be taken", &["--key", "Escape"], || {
            !self.host.peek(id).contains(self.agent.asks)
        });
    }

    /// Has the agent begin a new conversation.
    #[track_caller]
    pub fn begin_anew(&self, id: &str) {
        self.again_until(id, "the command to be typed", &["--no-enter", self.agent.anew], || {
            self.host.peek(id).contains(self.agent.anew)
        });
        self.press(id, &["Enter"]);
        self.until(id, "a new conversation", || !self.host.peek(id).contains("answer 1"));
    }

    /// Presses keys.
    #[track_caller]
    pub fn press(&self, id: &str, keys: &[&str]) {
        let keys = keys.iter().flat_map(|key| ["--key", key]);
        self.host.abide(["send", id].into_iter().chain(keys)).ok();
    }

    /// Stops the agent in the middle of a turn.
    #[track_caller]
    pub fn interrupt(&self, id: &str) {
        self.press(id, self.agent.stops);
    }

    /// Waits for something; a wait in vain shows what was to be seen instead.
    #[track_caller]
    pub fn until(&self, id: &str, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            if Instant::now() > deadline {
                let session = self.session(id).unwrap_or_default();
                panic!(
                    "waited in vain for {what}; abide says {session:#}; it shows:\n{}",
                    self.host.peek(id)
                );
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until abide says that the session is doing one of these.
    #[track_caller]
    pub fn is(&self, id: &str, doing: &[&str]) {
        self.until(id, &format!("it to be seen {doing:?}"), || {
            self.session(id).is_some_and(|session| doing.iter().any(|doing| session["activity"] == *doing))
        });
    }

    /// What abide says about the session.
    fn session(&self, id: &str) -> Option<Value> {
        Some(self.host.row(id)?["sessions"][0].clone())
    }

    /// The conversation that the session is bound to.
    pub fn bound(&self, id: &str) -> Option<String> {
        self.session(id)?["conversation"].as_str().map(str::to_owned)
    }

    /// The conversations on the agent's disk.
    pub fn on_disk(&self) -> Vec<String> {
        (self.agent.conversations)(&self.host)
    }

    /// The conversations that the agent has reported, as they were written down.
    pub fn reported(&self, id: &str) -> Vec<String> {
        let path = self.host.home().join("instances").join(id).join("state/conversations.jsonl");
        let lines = std::fs::read_to_string(path).unwrap_or_default();
        let reports = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut reported: Vec<String> =
            reports.map(|report| report["conversation"].as_str().unwrap().to_owned()).collect();
        reported.dedup();
        reported
    }

    /// What the agent sent to the model last.
    pub fn last_asked(&self) -> Vec<Turn> {
        self.api.asked().pop().unwrap()
    }

    /// Ends everything at once, as a power cut would.
    pub fn crash(&self) {
        let pids = self.processes();
        eventually("everything to be dead", || {
            for pid in self.processes() {
                // It may have ended since it was seen.
                let _ = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).output();
            }
            self.processes().is_empty().then_some(())
        });
        wait_until_gone(&pids);
    }

    /// The processes of the machine.
    pub fn processes(&self) -> Vec<u32> {
        let processes = self.host.processes();
        processes.iter().filter_map(|process| process.split(' ').next()?.parse().ok()).collect()
    }
}

/// Waits until nothing is left of the processes: agents take the zombie of another for one that lives.
#[track_caller]
pub fn wait_until_gone(pids: &[u32]) {
    eventually("nothing to be left running", || {
        let left = pids.iter().any(|pid| exists(format!("/proc/{pid}")));
        (!left).then_some(())
    });
}
