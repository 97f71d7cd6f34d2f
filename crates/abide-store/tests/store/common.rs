//! What the tests share: a store of their own, instances to put in it, and processes to let loose on it.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use abide_model::status::Ending;
use abide_model::{Instance, InstanceId, LaunchScope, ProcessIdentity, Recipe, StatusEvent, Timestamp};
use abide_store::{Result, Store, StoreEntry, StoreError};
use abide_testkit::cannot_run;

const TASK: &str = "ABIDE_STORE_TEST_TASK";
const HOME: &str = "ABIDE_STORE_TEST_HOME";
const ARGUMENT: &str = "ABIDE_STORE_TEST_ARGUMENT";

pub struct Sandbox {
    pub dir: tempfile::TempDir,
    pub store: Store,
}

impl Sandbox {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("home")).unwrap();
        Self { dir, store }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// What this process was started to do, if the tests started it.
pub fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

/// The store and the argument that this process was given.
pub fn assignment() -> (PathBuf, String) {
    (std::env::var_os(HOME).unwrap().into(), std::env::var(ARGUMENT).unwrap())
}

/// This test binary, as a process that does `task`. `launcher` is what starts it, if anything does.
pub fn child(task: &str, home: &Path, argument: &str, launcher: &[&str]) -> Command {
    let binary = std::env::current_exe().unwrap();
    let mut command = match launcher {
        [] => Command::new(&binary),
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args).arg(&binary);
            command
        }
    };
    command.args(["--exact", "child", "--nocapture"]);
    command.env(TASK, task).env(HOME, home).env(ARGUMENT, argument);
    command
}

/// Runs a child to its end, and fails with what it said if it failed.
pub fn run(mut command: Command) -> String {
    let output = command.output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    said
}

pub fn starting(id: InstanceId) -> Instance {
    let by = ProcessIdentity { pid: abide_model::Pid(1), start: 2, boot: "b".into() };
    let scope = LaunchScope::directory("/work/shop".into());
    Instance::starting(id, scope, "default".into(), Recipe::on_host("/work/shop".into()), by, Timestamp(1000))
}

/// A new instance directory whose instance is up.
pub fn create(store: &Store) -> InstanceId {
    let id = store.create(starting).unwrap().id;
    store
        .update(id, |i| -> Result<_> { Ok(i.apply(&StatusEvent::Launched, "up", Timestamp(2000))?) })
        .unwrap();
    id
}

/// Decides that the instance is to go.
pub fn end(store: &Store, id: InstanceId) -> Result<()> {
    store.update(id, |i| {
        i.apply(&StatusEvent::Discarded(Ending::Discard), "a test", Timestamp(3000))?;
        Ok(())
    })
}

pub fn counter(instance: &Instance) -> u64 {
    instance.extra.get("counter").and_then(serde_json::Value::as_u64).unwrap_or(0)
}

pub fn bump(store: &Store, id: InstanceId) -> Result<u64> {
    store.update(id, |i| {
        let next = counter(i) + 1;
        i.extra.insert("counter".into(), next.into());
        Ok::<_, StoreError>(next)
    })
}

/// Every instance in the list, none of which may be damaged.
pub fn sound(store: &Store) -> Vec<Instance> {
    let unwrap = |entry| match entry {
        StoreEntry::Sound(instance) => *instance,
        StoreEntry::Damaged { name, reason } => panic!("{name} is damaged: {reason}"),
    };
    store.list().unwrap().into_iter().map(unwrap).collect()
}

/// Fails if anything lies around that no operation under way explains.
pub fn assert_no_litter(store: &Store) {
    let names = |dir: PathBuf| -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let staged: Vec<_> = names(store.layout().staging()).into_iter().filter(|name| name != "lock").collect();
    assert!(staged.is_empty(), "left in staging: {staged:?}");
    for name in names(store.layout().trash()) {
        assert!(name.parse::<abide_store::TrashName>().is_ok(), "left in the trash: {name}");
    }
    for shelf in [store.layout().instances(), store.layout().trash()] {
        for instance_dir in names(shelf.clone()) {
            let inside = names(shelf.join(&instance_dir));
            assert_eq!(inside, ["instance.json", "journal", "lock", "run", "state"], "{instance_dir}");
        }
    }
}

/// Everything about everything under `dir`, to see that nothing changed.
pub fn snapshot(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    add(dir, &mut all);
    all
}

fn add(path: &Path, all: &mut BTreeMap<PathBuf, String>) {
    let meta = std::fs::symlink_metadata(path).unwrap();
    let kind = meta.file_type();
    let content = if kind.is_symlink() {
        format!("-> {}", std::fs::read_link(path).unwrap().display())
    } else if kind.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            add(&entry.unwrap().path(), all);
        }
        "directory".to_owned()
    } else if kind.is_file() {
        let bytes = std::fs::read(path).unwrap();
        format!("{} bytes, {:?}", bytes.len(), std::ffi::OsStr::from_bytes(&bytes[..bytes.len().min(8192)]))
    } else {
        format!("fifo {} socket {}", kind.is_fifo(), kind.is_socket())
    };
    all.insert(path.to_owned(), format!("{:o} {} {content}", meta.mode(), meta.ino()));
}

/// How to start a process with mounts of its own, which end with it.
#[track_caller]
pub fn private_mounts() -> &'static [&'static str] {
    const LAUNCHERS: [&[&str]; 2] =
        [&["unshare", "--mount"], &["unshare", "--user", "--map-root-user", "--mount"]];
    let works = |launcher: &&[&str]| {
        let mut command = Command::new(launcher[0]);
        command.args(&launcher[1..]).args(["mount", "-t", "tmpfs", "tmpfs"]).arg(std::env::temp_dir());
        command.output().is_ok_and(|output| output.status.success())
    };
    LAUNCHERS.into_iter().find(works).unwrap_or_else(|| {
        cannot_run("the right to mount a file system", "run it as root, or allow user namespaces")
    })
}
