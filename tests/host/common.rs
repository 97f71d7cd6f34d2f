//! A machine with a stub agent on it, and what the tests ask about its instances.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use abide_testkit::{Sandbox, eventually};
use serde_json::Value;

/// Compares `text`, which abide said, with the snapshot `name` in tests/host/snapshots. What differs from run to run is masked.
#[track_caller]
pub fn compare(sandbox: &Sandbox, name: &str, text: &str) {
    let text = text.replace(sandbox.path("").to_str().unwrap().trim_end_matches('/'), "[sandbox]");
    let names = ["instances", "trash"].map(|dir| std::fs::read_dir(sandbox.home().join(dir)));
    let names = names.into_iter().flatten().flatten().map(|entry| entry.unwrap().file_name());
    let mut ids: Vec<String> = names.filter_map(|name| Some(name.to_str()?.get(..8)?.to_owned())).collect();
    ids.retain(|id| text.contains(id));
    ids.sort_by_key(|id| text.find(id));
    ids.dedup();
    let masked = ids
        .iter()
        .enumerate()
        .fold(text, |text, (number, id)| text.replace(id, &format!("[id-{}]", number + 1)));
    insta::with_settings!({
        snapshot_path => "snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
        filters => [
            (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "[uuid]"),
            (r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d{8}T\d{9}Z", "[time]"),
            (r"\b[0-9a-f]{12}\b", "[commit]"),
            (r"projects/[^/]+/", "projects/[slug]/"),
            (r"process \d+", "process [pid]"),
        ],
    }, { insta::assert_snapshot!(name, masked) });
}

/// A sandbox whose capsules end with it, however the test ends.
pub struct Host {
    pub sandbox: Sandbox,
    looker: Option<Looker>,
}

impl From<Sandbox> for Host {
    fn from(sandbox: Sandbox) -> Self {
        Self { sandbox, looker: None }
    }
}

impl std::ops::Deref for Host {
    type Target = Sandbox;
    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl std::ops::DerefMut for Host {
    fn deref_mut(&mut self) -> &mut Sandbox {
        &mut self.sandbox
    }
}

/// A machine with `stub` on its PATH, whose list is looked at now and then.
pub fn host() -> Host {
    looked_at_every(Duration::from_millis(100))
}

/// With `stub`: an agent that says hello, echoes lines, and ends on `exit N`.
fn sandbox() -> Sandbox {
    let mut sandbox = Sandbox::new(env!("CARGO_BIN_EXE_abide"));
    let script = r#"
echo "stub pid $$ args [$*] in $(pwd)"
while IFS= read -r line; do
    case $line in
    exit*) exit "${line#exit }" ;;
    flood) i=0; while :; do i=$((i + 1)); echo "flood $i"; done ;;
    *) echo "heard: $line" ;;
    esac
done"#;
    sandbox.add_program("stub", script);
    sandbox
}

/// The same, on a machine where the list is looked at without a pause.
pub fn watched_host() -> Host {
    looked_at_every(Duration::from_millis(5))
}

/// A machine whose list is looked at by a test alone.
pub fn unwatched_host() -> Host {
    sandbox().into()
}

fn looked_at_every(pause: Duration) -> Host {
    let mut host = unwatched_host();
    let mut command = host.command(host.program());
    command.arg("ls").env(LOOKER, "1").stdout(Stdio::null()).stderr(Stdio::null());
    let (over, is_over) = mpsc::channel();
    let looking = std::thread::spawn(move || {
        while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            command.status().unwrap();
        }
    });
    host.looker = Some(Looker { over, looking });
    host
}

/// `abide` with these arguments in a PID namespace of its own, which shares the home with this one.
pub fn in_pid_namespace(host: &Host, args: &[&str]) -> Command {
    let mut command = host.command("timeout");
    // As process 1 it would stay for as long as what it has started.
    command.args(["60", "unshare", "--kill-child"]);
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--pid", "--fork", "--mount-proc"]).arg(host.program()).args(args);
    command
}

/// In the environment of the process that looks at the list.
const LOOKER: &str = "ABIDE_TEST_LOOKER";

/// A process that looks at the list again and again: no look may change what it looks at.
struct Looker {
    over: mpsc::Sender<()>,
    looking: std::thread::JoinHandle<()>,
}

impl Looker {
    fn end(self) {
        drop(self.over);
        let _ = self.looking.join();
    }
}

impl Host {
    /// Starts the stub detached and gives its instance's id.
    #[track_caller]
    pub fn load(&self, args: &[&str]) -> String {
        self.load_program("stub", args)
    }

    /// Starts `program` detached and gives its instance's id.
    #[track_caller]
    pub fn load_program(&self, program: &str, args: &[&str]) -> String {
        let said = self.abide([&["load", program, "--detach"], args].concat()).ok();
        said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned()
    }

    /// The row of an instance, by its id or name, in `abide ls --json`, if it has one.
    /// A list that runs beside this one may be settling the instance: then that is over soon, and looked at again.
    pub fn row(&self, id: &str) -> Option<Value> {
        let look = || {
            let listing = self.abide(["ls", "--json"]).json();
            let mut rows = listing["instances"].as_array().unwrap().iter();
            rows.find(|row| row["id"] == id || row["name"] == id).cloned()
        };
        let is_settled = |row: &Option<Value>| row.as_ref().is_none_or(|row| row["liveness"] != "dead");
        (0..20).map(|_| look()).find(is_settled).unwrap_or_else(look)
    }

    /// `state` or `state (reason)` of an instance; `gone` if it is not listed.
    pub fn state(&self, id: &str) -> String {
        match self.row(id) {
            None => "gone".to_owned(),
            Some(row) => match row["reason"].as_str() {
                Some(reason) => format!("{} ({reason})", row["state"].as_str().unwrap()),
                None => row["state"].as_str().unwrap().to_owned(),
            },
        }
    }

    #[track_caller]
    pub fn wait_for_state(&self, id: &str, state: &str) {
        eventually(&format!("{id} to be {state}"), || (self.state(id) == state).then_some(()));
    }

    /// The screen of an instance's only session.
    pub fn peek(&self, id: &str) -> String {
        self.abide(["peek", id]).stdout
    }

    #[track_caller]
    pub fn wait_for_screen(&self, id: &str, text: &str) -> String {
        eventually(&format!("`{text}` on the screen of {id}"), || {
            Some(self.peek(id)).filter(|s| s.contains(text))
        })
    }

    /// What the capsule of an instance says about itself.
    pub fn status(&self, id: &str) -> Value {
        self.abide(["capsule", "call", id, r#"{"verb": "status"}"#]).json()
    }

    /// The processes of an instance: keeper, mux, and the process of its first session.
    pub fn pids(&self, id: &str) -> Pids {
        let status = self.status(id);
        let pid = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
        Pids {
            keeper: pid(&status["keeper_pid"]),
            mux: pid(&status["mux_pid"]),
            session: pid(&status["sessions"][0]["pid"]),
        }
    }

    /// Everything that runs with this sandbox in its environment or command line, tmux servers of the test left out.
    pub fn processes(&self) -> Vec<String> {
        let root = self.path("").to_str().unwrap().to_owned();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let dir = entry.path();
            let Ok(command) = std::fs::read(dir.join("cmdline")) else { continue };
            let environment = std::fs::read(dir.join("environ")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let environment = String::from_utf8_lossy(&environment);
            let ours = command.contains(&root) || environment.contains(&root);
            if ours && !environment.contains(LOOKER) && !command.is_empty() && !command.starts_with("tmux ") {
                found.push(format!("{} {command}", entry.file_name().to_string_lossy()));
            }
        }
        found
    }
}

/// The processes of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pids {
    pub keeper: u32,
    pub mux: u32,
    pub session: u32,
}

pub fn alive(pid: u32) -> bool {
    // A zombie has ended; nobody has asked it how yet.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

pub fn kill(signal: &str, pid: u32) {
    let done = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(done.success());
}

#[track_caller]
pub fn wait_for_death(pid: u32) {
    eventually(&format!("process {pid} to end"), || (!alive(pid)).then_some(()));
}

pub fn exists(path: impl AsRef<Path>) -> bool {
    path.as_ref().symlink_metadata().is_ok()
}

impl Drop for Host {
    fn drop(&mut self) {
        self.looker.take().into_iter().for_each(Looker::end);
        for process in self.processes() {
            let pid = process.split(' ').next().unwrap_or_default().to_owned();
            let _ = Command::new("kill").args(["-KILL", &pid]).stderr(Stdio::null()).status();
        }
    }
}
