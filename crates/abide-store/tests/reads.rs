//! What a listing costs. Alone in its binary, because the kernel counts for the whole process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use abide_model::{Instance, InstanceId, LaunchScope, ProcessIdentity, Recipe, Timestamp};
use abide_store::Store;

/// How many times this process has asked the kernel to read something.
fn reads() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap();
    line.parse().unwrap()
}

#[test]
fn a_listing_reads_every_manifest_once_and_nothing_else() {
    const UNITS: u64 = 1000;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("home")).unwrap();
    for bits in 0..UNITS {
        let by = ProcessIdentity { pid: abide_model::Pid(1), start: 2, boot: "b".into() };
        let (id, scope) = (InstanceId::from_bits(bits), LaunchScope::directory("/work/shop".into()));
        let recipe = Recipe::on_host("/work/shop".into());
        let instance = Instance::starting(id, scope, "default".into(), recipe, by, Timestamp(1000));
        let instance_dir = store.layout().instance_dir(id);
        std::fs::create_dir(&instance_dir).unwrap();
        std::fs::write(instance_dir.join("instance.json"), serde_json::to_vec_pretty(&instance).unwrap())
            .unwrap();
    }
    let idle = {
        let before = reads();
        reads() - before
    };
    let before = reads();
    let listed = store.list().unwrap().len() as u64;
    let read = reads() - before - idle;
    assert_eq!(listed, UNITS);
    assert_eq!(read, UNITS, "reads for {UNITS} instances");
}
