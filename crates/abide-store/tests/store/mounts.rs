//! Other file systems inside an instance directory: deletion stops at them.

use std::fs;
use std::process::Command;

use abide_model::Timestamp;
use abide_store::{Store, StoreError};

use crate::common::{assert_no_litter, assignment, child, create, end, private_mounts, run};

#[test]
fn purging_stops_at_a_mount_even_of_the_same_file_system_and_a_sweep_finishes_it_later() {
    let launcher = private_mounts();
    for kind in ["bind", "tmpfs"] {
        let dir = tempfile::tempdir().unwrap();
        run(child("mounted", dir.path(), kind, launcher));
    }
}

/// A process of its own, because mounts belong to the whole process here.
pub fn in_child() {
    let (dir, kind) = assignment();
    let store = Store::open(dir.join("home")).unwrap();
    let outside = dir.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "precious").unwrap();
    let id = create(&store);
    let target = store.layout().instance_dir(id).join("tree/main");
    fs::create_dir_all(&target).unwrap();
    end(&store, id).unwrap();
    let name = store.trash(id, Timestamp(1)).unwrap();
    let target = store.layout().trashed(&name).join("tree/main");
    let how: &[&str] = if kind == "bind" { &["--bind"] } else { &["-t", "tmpfs"] };
    system(Command::new("mount").args(how).arg(&outside).arg(&target));
    if kind == "tmpfs" {
        fs::write(target.join("precious"), "precious").unwrap();
    }

    let stopped = store.purge(&name);
    assert!(
        matches!(&stopped, Err(StoreError::Mounted { path }) if path.ends_with("tree/main")),
        "{stopped:?}"
    );
    let doomed = store.layout().trash().join(format!(".purging-{name}"));
    assert_eq!(fs::read(doomed.join("tree/main/precious")).unwrap(), b"precious");
    assert!(store.trashed().unwrap().is_empty(), "half of an instance directory looks restorable");
    assert_eq!(store.sweep().unwrap().failed.len(), 1);

    system(Command::new("umount").arg(doomed.join("tree/main")));
    let report = store.sweep().unwrap();
    assert_eq!((report.purged, report.failed.len()), (1, 0));
    assert_eq!(fs::read(outside.join("precious")).unwrap(), b"precious");
    assert_no_litter(&store);
}

fn system(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
