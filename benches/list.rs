//! How long it takes to list 10,000 instances, and to make, change and remove one among them.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};

use abide_model::choice::Isolation;
use abide_model::recipe::Mount;
use abide_model::session::{Conversation, Origin, Session};
use abide_model::status::Ending;
use abide_model::{Extra, Instance, InstanceId, LaunchScope, Recipe, StatusEvent, Timestamp};
use abide_store::{Store, StoreError};
use abide_sys::{clock, process};

const UNITS: u64 = 10_000;
const LISTINGS: usize = 15;
const MUTATIONS: usize = 30;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("home")).unwrap();
    let size = fill(&store);
    println!("{UNITS} instances, {size} bytes of manifest each; median (fastest to slowest)");
    println!();
    report("list", LISTINGS, || assert_eq!(store.list().unwrap().len() as u64, UNITS));

    let mut made = Vec::new();
    report("create", MUTATIONS, || made.push(store.create(instance).unwrap().id));
    let mut ids = made.iter().cycle();
    report("update", MUTATIONS, || end(&store, *ids.next().unwrap()));
    let mut names = Vec::new();
    report("trash", MUTATIONS, || names.push(store.trash(*ids.next().unwrap(), clock::now()).unwrap()));
    let mut left = names.iter();
    report("restore", MUTATIONS / 2, || {
        store.restore(left.next().unwrap(), clock::now()).unwrap();
    });
    report("purge", MUTATIONS / 2, || store.purge(left.next().unwrap()).unwrap());
    report("sweep", MUTATIONS, || assert!(store.sweep().unwrap().failed.is_empty()));
}

/// Prints the median time on the wall, its spread, and the median processor time, which other work on the machine does
/// not lengthen.
fn report(what: &str, times: usize, mut body: impl FnMut()) {
    let (mut took, mut used): (Vec<Duration>, Vec<Duration>) = (0..times)
        .map(|_| {
            let (start, busy) = (Instant::now(), processor_time());
            body();
            (start.elapsed(), processor_time() - busy)
        })
        .unzip();
    took.sort_unstable();
    used.sort_unstable();
    let [fastest, median, slowest, busy] =
        [took[0], took[times / 2], took[times - 1], used[times / 2]].map(|d| d.as_secs_f64() * 1000.0);
    println!("{what:<8} {median:>8.2} ms  ({fastest:.2} to {slowest:.2}), {busy:.2} ms of processor time");
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap()
}

/// Puts the instance directories there as plain files: making each durably would take longer than everything that is measured.
fn fill(store: &Store) -> usize {
    let mut size = 0;
    for n in 0..UNITS {
        let id = InstanceId::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24);
        let instance_dir = store.layout().instance_dir(id);
        let bytes = serde_json::to_vec_pretty(&instance(id)).unwrap();
        size = bytes.len();
        std::fs::create_dir(&instance_dir).unwrap();
        std::fs::write(instance_dir.join("instance.json"), bytes).unwrap();
    }
    size
}

/// An instance as it is after a day of work: two sessions, a worktree, some history.
fn instance(id: InstanceId) -> Instance {
    let project = std::path::PathBuf::from("/home/operator/projects/shop");
    let scope = LaunchScope { workspace: Some("shop".into()), dir: project.clone(), extra: Extra::new() };
    let mut recipe = Recipe::on_host(project.clone());
    recipe.mounts.push(Mount {
        source: project.clone(),
        target: project.clone(),
        isolation: Isolation::Worktree,
        read_only: false,
        copy: vec![".env".into()],
        tree: Some("shop".into()),
        base: None,
        branch: Some("abide/k7p9m2xq".into()),
        extra: Extra::new(),
    });
    let now = clock::now();
    let mut instance = Instance::starting(id, scope, "default".into(), recipe, process::this(), now);
    instance.apply(&StatusEvent::Launched, "the capsule answers", Timestamp(now.0 + 1)).unwrap();
    for agent in ["claude", "codex"] {
        let session = Session {
            id: instance.new_session_id(),
            name: agent.into(),
            agent: Some(agent.into()),
            argv: vec![agent.into()],
            cwd: project.clone(),
            generation: 1,
            setup: None,
            conversation: Some(Conversation {
                id: "1b9f6c1e-6c0e-4e43-9f55-0f6f7f6c2a11".into(),
                origin: Origin::Minted,
                bound: now,
                transcript: Some(project.join(".transcript.jsonl")),
                held_in: None,
                extra: Extra::new(),
            }),
            astray: None,
            below: None,
            resume_unconfirmed: false,
            parked: Vec::new(),
            created: now,
            attached: Some(now),
            exit: None,
            interruption: None,
            extra: Extra::new(),
        };
        instance.sessions.push(session);
    }
    instance
}

fn end(store: &Store, id: InstanceId) {
    let ended: Result<bool, StoreError> = store.update(id, |i| {
        Ok(i.apply(&StatusEvent::Discarded(Ending::Clean), "the benchmark", clock::now())?)
    });
    assert!(ended.unwrap());
}
