//! The life of an instance in a container, by the verbs that an operator uses.

use std::fs;
use std::time::{Duration, Instant};

use abide_model::container::EngineKind;
use abide_testkit::{Run, Sandbox, require_containers};
use serde_json::Value;

use crate::contained::run;

on_each_engine! {
    each_tier_brings_back_the_same_instance,
    a_finished_instance_leaves_nothing_once_the_trash_lets_go,
    a_run_that_was_cut_from_outside_is_never_taken_for_finished,
}

/// An operator with a repository and an engine.
pub struct Life {
    pub sandbox: Sandbox,
    engine: EngineKind,
}

impl Life {
    pub fn new(engine: EngineKind) -> Self {
        let mut sandbox = Sandbox::new(env!("CARGO_BIN_EXE_abide"));
        for name in ["DOCKER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"] {
            if let Some(value) = std::env::var_os(name) {
                sandbox.set(name, value);
            }
        }
        let image = format!("abide-test-box:{}", require_containers());
        let config = format!("place = \"docker\"\nengine = \"{engine}\"\n[container]\nimage = \"{image}\"\n");
        sandbox.write("home/.config/abide/config.toml", config);
        let git = |args: &[&str]| assert!(sandbox.command("git").args(args).status().unwrap().success());
        git(&["init", "-q"]);
        sandbox.write("work/a.txt", "one\n");
        git(&["add", "."]);
        git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "one"]);
        Self { sandbox, engine }
    }

    pub fn load(&self, args: &[&str]) -> String {
        let said = self.sandbox.abide([&["load", "--detach"], args].concat()).ok();
        said.split_whitespace().next().unwrap().trim_start_matches("ab-").to_owned()
    }

    /// Resumes it, and gives what the operator is shown of that.
    #[track_caller]
    fn resume(&self, id: &str) -> String {
        let run = self.sandbox.abide(["resume", id, "--detach"]);
        run.clone().ok();
        run.stderr
    }

    fn row(&self, id: &str) -> Value {
        let listing = self.sandbox.abide(["ls", "--json"]).json();
        let rows = listing["instances"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["id"] == id).unwrap_or(Value::Null)
    }

    fn status(&self, id: &str) -> String {
        let row = self.row(id);
        format!("{} {}", row["state"].as_str().unwrap_or("gone"), row["reason"].as_str().unwrap_or(""))
            .trim()
            .to_owned()
    }

    fn because(&self, id: &str) -> String {
        self.row(id)["because"].as_str().unwrap_or_default().to_owned()
    }

    pub fn type_line(&self, id: &str, line: &str) {
        self.sandbox.abide(["send", id, line]).ok();
    }

    /// Waits until `file` below the tree of the instance holds something, and gives it.
    pub fn made(&self, id: &str, file: &str) -> String {
        let path = self.sandbox.home().join("instances").join(id).join("tree/work").join(file);
        eventually(&format!("{}", path.display()), || {
            fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        })
    }

    fn engine(&self, args: &[&str]) -> Run {
        run(self.engine, args)
    }

    /// The container of an instance.
    fn container(&self, id: &str) -> String {
        let label = format!("label=abide.instance={id}");
        self.engine(&["ps", "-aq", "--filter", &label, "--filter", "label=abide.part=container"])
            .ok()
            .trim()
            .to_owned()
    }

    /// The images that were built for this home.
    fn images(&self) -> String {
        let label = format!("label=abide.home={}", self.sandbox.home().display());
        self.engine(&["images", "-q", "--filter", &label]).ok()
    }

    /// Everything that the engine has of this home, by kind.
    pub fn census(&self) -> Vec<String> {
        let label = format!("label=abide.home={}", self.sandbox.home().display());
        let mut found = Vec::new();
        for (kind, args) in [
            ("container", &["ps", "-aq"][..]),
            ("network", &["network", "ls", "-q"]),
            ("volume", &["volume", "ls", "-q"]),
        ] {
            let listed = self.engine(&[args, &["--filter", &label]].concat()).ok();
            found.extend(listed.lines().map(|id| format!("{kind} {id}")));
        }
        found
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        for one in self.census() {
            let (kind, id) = one.split_once(' ').unwrap();
            match kind {
                "container" => self.engine(&["rm", "-f", "-v", id]),
                kind => self.engine(&[kind, "rm", id]),
            };
        }
        self.images().lines().for_each(|id| drop(self.engine(&["rmi", "-f", id])));
    }
}

#[track_caller]
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not seen in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn each_tier_brings_back_the_same_instance(engine: EngineKind) {
    let life = Life::new(engine);
    let id = life.load(&["sh"]);
    assert_eq!(life.status(&id), "active");
    life.type_line(
        &id,
        "echo $PPID $ABIDE_INSTANCE $HOME > who; echo kept > ~/note; echo layer > /tmp/layer",
    );
    let who = life.made(&id, "who");
    let home = life.sandbox.home().join("instances").join(&id).join("home");
    assert_eq!(who.trim(), format!("1 {id} {}", home.display()), "the keeper is process 1");
    // Tier 1: the container is stopped, with its writable layer.
    life.sandbox.abide(["stop", &id]).ok();
    assert_eq!(life.status(&id), "restorable stopped");
    assert_eq!(life.census().len(), 1, "its network is freed: {:?}", life.census());
    let before = life.container(&id);
    assert!(life.resume(&id).contains("tier 1"));
    assert_eq!(life.container(&id), before);
    life.type_line(&id, "cat ~/note /tmp/layer > first");
    assert_eq!(life.made(&id, "first"), "kept\nlayer\n");
    // Tier 2: the container is gone.
    life.engine(&["rm", "-f", &before]).ok();
    assert_eq!(life.status(&id), "restorable crashed");
    assert_eq!(life.because(&id), "its container was removed");
    assert!(life.resume(&id).contains("tier 2"));
    life.type_line(&id, "cat ~/note a.txt who > second; ls /tmp/layer >> second 2>&1; echo . >> second");
    let second = life.made(&id, "second");
    assert!(second.starts_with("kept\none\n1 "), "home and tree are back: {second}");
    let log = fs::read_to_string(home.with_file_name("state").join("capsule.log")).unwrap();
    assert!(log.contains(" keeper["), "what process 1 does is logged where the host finds it: {log}");
    // The sessions' scrollback is back, too.
    let seen = life.sandbox.abide(["peek", &id, "--scrollback"]).ok();
    assert!(seen.contains("echo $PPID"), "{seen}");
}

fn a_finished_instance_leaves_nothing_once_the_trash_lets_go(engine: EngineKind) {
    let life = Life::new(engine);
    let id = life.load(&["sh"]);
    life.type_line(&id, "exit");
    // No client was there: the next look runs the finaliser.
    eventually("the end", || (life.status(&id) == "gone").then_some(()));
    let held = life.census();
    assert_eq!(held.len(), 1, "the container stays until the trash lets go: {held:?}");
    life.sandbox.abide(["trash", "restore", &id]).ok();
    life.sandbox.abide(["resume", &id, "--detach"]).ok();
    assert_eq!(life.census().first(), held.first(), "it is the same container");
    life.sandbox.abide(["eject", &id, "--clean"]).ok();
    life.sandbox.abide(["trash", "empty", "--yes"]).ok();
    assert_eq!(life.census(), [""; 0]);
    // The image is kept for the next instance, until it is asked for.
    assert_eq!(life.images().lines().count(), 1);
    life.sandbox.abide(["prune", "--yes"]).ok();
    assert_eq!(life.images(), "");
    assert_eq!(fs::read_dir(life.sandbox.home().join("instances")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(life.sandbox.home().join("trash")).unwrap().count(), 0);
}

fn a_run_that_was_cut_from_outside_is_never_taken_for_finished(engine: EngineKind) {
    let life = Life::new(engine);
    let id = life.load(&["sh", "--clean"]);
    for (cut, expected) in [
        (&["stop", "-t", "5"][..], "restorable stopped"),
        (&["kill"], "restorable crashed"),
        (&["rm", "-f"], "restorable crashed"),
    ] {
        life.engine(&[cut, &[&life.container(&id)]].concat()).ok();
        let status = eventually("the end", || Some(life.status(&id)).filter(|status| status != "active"));
        assert_eq!(status, expected, "{cut:?}: {}", life.because(&id));
        life.sandbox.abide(["resume", &id, "--detach"]).ok();
    }
    life.sandbox.abide(["eject", &id, "--clean"]).ok();
}

#[test]
fn what_is_forged_inside_decides_nothing() {
    let life = Life::new(EngineKind::Docker);
    let id = life.load(&["sh", "--clean"]);
    let dir = life.sandbox.home().join("instances").join(&id);
    // As its own user, the agent can write these.
    let forged = r#"s/"started_ms"/"reason":"last-session-ended","started_ms"/"#;
    life.type_line(
        &id,
        &format!(
            "sed -i '{forged}' {0}/state/exit.json; rm -f {0}/run/keeper.lock 2> denied; echo . >> denied",
            dir.display()
        ),
    );
    assert!(
        life.made(&id, "denied").contains("busy"),
        "a lock cannot be replaced: {}",
        life.made(&id, "denied")
    );
    assert_eq!(life.status(&id), "active", "a forged record does not end it");
    life.engine(&["kill", &life.container(&id)]).ok();
    let status = eventually("the end", || Some(life.status(&id)).filter(|status| status != "active"));
    assert_eq!(status, "restorable crashed", "{}", life.because(&id));
}

#[test]
fn an_engine_that_does_not_answer_changes_nothing() {
    let mut life = Life::new(EngineKind::Docker);
    let (running, stopped) = (life.load(&["sh"]), life.load(&["sh"]));
    life.type_line(&stopped, "echo work > new");
    life.made(&stopped, "new");
    life.sandbox.abide(["stop", &stopped]).ok();
    let host = std::env::var_os("DOCKER_HOST");
    life.sandbox.set("DOCKER_HOST", "unix:///nowhere.sock");
    // What needs no engine goes on.
    assert_eq!(
        (life.status(&running), life.status(&stopped)),
        ("active".into(), "restorable stopped".into())
    );
    assert!(life.sandbox.abide(["explain", &stopped]).ok().contains("?? new"));
    life.type_line(&running, "echo on > on");
    life.made(&running, "on");
    let said = life.sandbox.abide(["load", "--detach", "sh"]).fails(1);
    assert!(said.contains("docker version"), "{said}");
    assert_eq!(life.sandbox.abide(["ls", "--json"]).json()["instances"].as_array().unwrap().len(), 2);
    assert!(!life.sandbox.home().join("trash").read_dir().is_ok_and(|mut trash| trash.next().is_some()));
    for verb in [&["resume", "--detach"][..], &["eject", "--clean"]] {
        let said = life.sandbox.abide([verb, &[&stopped]].concat()).fails(1);
        assert!(said.contains("docker version"), "{verb:?} {said}");
        assert_eq!(life.status(&stopped), "restorable stopped", "{verb:?}");
    }
    match host {
        Some(host) => life.sandbox.set("DOCKER_HOST", host),
        None => life.sandbox.unset("DOCKER_HOST"),
    }
    life.sandbox.abide(["resume", &stopped, "--detach"]).ok();
    assert_eq!(life.status(&stopped), "active");
}
