//! Random lives, then a census: what there is must be what live and kept instances own, and no work may be missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use abide_testkit::{crash_points, eventually};

use crate::common::Host;
use crate::repo::{git, host_with_repo, repo, traces, tree};

/// How many lives a run has, unless `ABIDE_CENSUS_LIVES` says otherwise.
const LIVES: usize = 300;
const SHARES: usize = 3;
/// How many of them share a machine.
const PER_MACHINE: usize = 25;
/// Between two looks of the onlooker: without a pause it takes a whole core from the lives that it looks at.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long processes may take to end, far beyond what any takes.
const TO_END: Duration = Duration::from_secs(60);

/// A small generator: the same seed lives the same lives.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Lives a share of all lives. Shares run side by side, each on machines of its own.
fn live_a_share(share: u64) {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let seed = number("ABIDE_CENSUS_SEED").unwrap_or(u64::try_from(clock % (1 << 60)).unwrap());
    let lives = number("ABIDE_CENSUS_LIVES").map_or(LIVES, |n| usize::try_from(n).unwrap());
    println!("ABIDE_CENSUS_SEED={seed} ABIDE_CENSUS_LIVES={lives} lives the same lives again");
    let mut dice = Dice((seed ^ (share << 61)) | 1);
    let mut left = lives.div_ceil(SHARES);
    while left > 0 {
        let here = left.min(PER_MACHINE);
        let mut world = World::new();
        let onlooker = Onlooker::beside(&world.host);
        for _ in 0..here {
            world.live(&mut dice);
        }
        if let Some(complaint) = onlooker.stop() {
            world.fail(&format!("`abide ls` failed beside it: {complaint}"));
        }
        world.take_census();
        left -= here;
    }
}

#[test]
fn after_any_lives_there_is_exactly_what_live_and_kept_instances_own() {
    live_a_share(0);
}

#[test]
fn after_any_other_lives_too() {
    live_a_share(1);
}

#[test]
fn and_after_any_more() {
    live_a_share(2);
}

/// Another process that lists the instances all the time, and by that finishes whatever was cut short.
struct Onlooker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Option<String>>,
}

impl Onlooker {
    fn beside(host: &Host) -> Self {
        let mut command = host.command(host.program());
        command.arg("ls");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let run = command.output().unwrap();
                if !run.status.success() {
                    return Some(String::from_utf8_lossy(&run.stderr).into_owned());
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            None
        });
        Self { stop, thread }
    }

    /// Ends it; gives what the list that could not be made complained of.
    fn stop(self) -> Option<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// One machine, and the work that was done on it.
struct World {
    host: Host,
    crash_points: Vec<String>,
    /// What was written in which instance's tree: file name and contents.
    works: BTreeMap<String, Vec<(String, String)>>,
    log: Vec<String>,
    next: u32,
}

impl World {
    fn new() -> Self {
        let crash_points = ["../abide-store", "../abide-engine", "../abide-git"].map(crash_points).concat();
        Self { host: host_with_repo(), crash_points, works: BTreeMap::new(), log: Vec::new(), next: 0 }
    }

    fn live(&mut self, dice: &mut Dice) {
        let isolation = *dice.pick(&["shared", "worktree", "worktree", "clone"]);
        let policy = *dice.pick(&["", "--keep", "--clean"]);
        let mut args = vec!["load", "stub", "--detach", "--new", "--isolation", isolation];
        args.extend((!policy.is_empty()).then_some(policy));
        let before = self.instances();
        self.abide(dice, &args);
        let Some(id) = self.instances().difference(&before).next().cloned() else { return };
        for _ in 0..dice.below(7) {
            self.step(dice, &id);
        }
    }

    fn step(&mut self, dice: &mut Dice, id: &str) {
        match dice.below(14) {
            0 | 1 => self.write(id, false),
            2 => self.write(id, true),
            3 => self.abide(dice, &["stop", id]),
            4 | 5 => self.abide(dice, &["resume", id, "--detach"]),
            6 => self.abide(dice, &["eject", id, "--clean"]),
            7 => self.abide(dice, &["eject", id, "--keep"]),
            8 | 9 => self.end_session(dice, id),
            10 => self.abide(dice, &["trash", "restore", id]),
            11 => self.kill_one(dice, id),
            12 => self.abide(dice, &["prune", "--yes"]),
            _ => self.abide(dice, &["ls"]),
        }
    }

    /// Runs abide from the repository; now and then it is killed at one of its labelled points.
    fn abide(&mut self, dice: &mut Dice, args: &[&str]) {
        let mut command = self.host.command(self.host.program());
        command.current_dir(repo(&self.host)).args(args).stdout(Stdio::null()).stderr(Stdio::null());
        let point = (dice.below(4) == 0).then(|| dice.pick(&self.crash_points).as_str());
        if let Some(point) = point {
            command.env("ABIDE_CRASH_AT", point);
        }
        let status = command.status().unwrap();
        self.log.push(format!("{args:?} {} -> {status}", point.unwrap_or("")));
    }

    /// Does some work in an isolated tree, if it is there.
    fn write(&mut self, id: &str, commit: bool) {
        let tree = tree(&self.host, id);
        // Nobody works in a tree before its instance has started, nor while it is being removed: commits of that time are
        // kept on its branch, which would count as left behind.
        let manifest = self.host.home().join("instances").join(id).join("instance.json");
        let manifest = std::fs::read(manifest).unwrap_or_default();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap_or_default();
        let ready = manifest["prepared"] == true && manifest["status"]["state"] != "ending";
        if !ready || !tree.join(".git").exists() {
            return;
        }
        self.next += 1;
        let (name, text) = (format!("work-{}", self.next), format!("written in {id}: {}", self.next));
        std::fs::write(tree.join(&name), &text).unwrap();
        if commit {
            // A removal may be taking the tree away at this very moment.
            let added = self.host.command("git").current_dir(&tree).args(["add", &name]).output().unwrap();
            let done = self.host.command("git").current_dir(&tree).args(["commit", "-qm", &name]).output();
            self.log.push(format!("commit {name} in {id}: {} {}", added.status, done.unwrap().status));
        }
        self.log.push(format!("wrote {name} in {id}"));
        self.works.entry(id.to_owned()).or_default().push((name, text));
    }

    /// Lets the session end, and waits for what follows: somebody who works in a tree while it is being removed has their
    /// commits kept on its branch, which would then count as left behind.
    fn end_session(&mut self, dice: &mut Dice, id: &str) {
        self.abide(dice, &["send", id, "exit 0"]);
        if self.log.last().unwrap().ends_with("exit status: 0") {
            self.wait_for_the_end(id);
        }
    }

    fn wait_for_the_end(&self, id: &str) {
        let settled = |state: String| state == "gone" || state.starts_with("restorable");
        eventually("it to be settled", || settled(self.host.state(id)).then_some(()));
    }

    fn kill_one(&mut self, dice: &mut Dice, id: &str) {
        let status = self.host.abide(["capsule", "call", id, r#"{"verb": "status"}"#]);
        let Ok(status) = serde_json::from_str::<serde_json::Value>(&status.stdout) else { return };
        let who = *dice.pick(&["keeper", "mux", "session"]);
        let pid = match who {
            "session" => &status["sessions"][0]["pid"],
            who => &status[format!("{who}_pid")],
        };
        if let Some(pid) = pid.as_u64() {
            self.log.push(format!("kill -9 of the {who} of {id}"));
            // It may have ended by itself meanwhile.
            let _ =
                self.host.command("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
            if who != "mux" {
                self.wait_for_the_end(id);
            }
        }
    }

    fn instances(&self) -> BTreeSet<String> {
        names(&self.host.home().join("instances"))
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{what}\nwhat was done:\n  {}", self.log.join("\n  "))
    }

    fn take_census(&self) {
        // Whatever was cut short is finished by looking.
        let settled = || {
            let listing = self.host.abide(["ls", "--json"]).json();
            let rows = listing["instances"].as_array().unwrap();
            let done = rows.iter().all(|row| matches!(row["state"].as_str(), Some("active" | "restorable")));
            done.then(|| rows.clone())
        };
        let rows = eventually("everything to be live or kept", settled);
        let of = |state: &str| -> BTreeSet<String> {
            let rows = rows.iter().filter(|row| row["state"] == state);
            rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
        };
        let (active, kept) = (of("active"), of("restorable"));
        let owned: BTreeSet<String> = active.union(&kept).cloned().collect();
        if self.instances() != owned {
            self.fail(&format!("directories {:?}, owned {owned:?}", self.instances()));
        }
        let staged = names(&self.host.home().join("staging"));
        if staged.iter().any(|name| name != "lock") {
            self.fail(&format!("left in staging: {staged:?}"));
        }
        self.check_git(&owned);
        self.check_sockets(&active);
        self.check_processes(&active);
        self.check_work(&owned);
        for id in &active {
            self.host.abide(["stop", id]).ok();
        }
    }

    /// Every worktree and branch of ours belongs to an instance, and every isolated instance has its own.
    fn check_git(&self, owned: &BTreeSet<String>) {
        let isolated = |id: &&String| tree(&self.host, id).join(".git").is_file();
        let mut expected: Vec<String> = owned
            .iter()
            .filter(isolated)
            .flat_map(|id| {
                [format!("refs/heads/abide/{id}"), tree(&self.host, id).to_str().unwrap().to_owned()]
            })
            .collect();
        let mut found = traces(&self.host);
        expected.sort();
        found.sort();
        if found != expected {
            self.fail(&format!("in git: {found:#?}\nowned: {expected:#?}"));
        }
        git(&self.host, &repo(&self.host), &["fsck", "--no-dangling"]);
    }

    fn check_sockets(&self, active: &BTreeSet<String>) {
        for id in self.instances() {
            let there = self.host.home().join("instances").join(&id).join("run/sock").exists();
            if there != active.contains(&id) {
                self.fail(&format!("{id} has a socket: {there}"));
            }
        }
    }

    /// Nothing runs but the capsules of what is active.
    fn check_processes(&self, active: &BTreeSet<String>) {
        let capsule = |id: &String| {
            let pids = self.host.pids(id);
            [pids.keeper, pids.mux, pids.session]
        };
        let expected: BTreeSet<u32> = active.iter().flat_map(capsule).collect();
        let deadline = Instant::now() + TO_END;
        loop {
            let found = self.host.processes();
            let pids: BTreeSet<u32> =
                found.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
            if pids == expected {
                return;
            }
            if Instant::now() > deadline {
                self.fail(&format!("what runs: {found:#?}\nexpected of {active:?}: {expected:?}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All work is in the tree of an instance, or in the trash as a tree that can be restored.
    fn check_work(&self, owned: &BTreeSet<String>) {
        for (id, works) in &self.works {
            let homes: Vec<PathBuf> = if owned.contains(id) {
                vec![tree(&self.host, id)]
            } else {
                let trash = self.host.home().join("trash");
                let entries = names(&trash).into_iter().filter(|name| name.starts_with(id.as_str()));
                entries.map(|name| trash.join(name).join("tree/repo")).collect()
            };
            for (name, text) in works {
                let found =
                    |home: &PathBuf| std::fs::read_to_string(home.join(name)).is_ok_and(|t| t == *text);
                if !homes.iter().any(found) {
                    self.fail(&format!("{name} of {id} is in none of {homes:?}"));
                }
            }
        }
    }
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_str().unwrap().to_owned()).collect()
}
