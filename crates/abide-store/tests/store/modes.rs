//! Who may see what: nobody but the owner, whatever the umask says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use abide_model::{Extra, Timestamp};
use abide_store::Store;
use abide_store::outcomes::{self, InstanceOutcome, OutcomeRecord};
use abide_sys::atomic;
use abide_testkit::{as_nobody, give_to_nobody};
use rustix::fs::Mode;

use crate::common::{assignment, bump, child, create, end, run};

#[test]
fn everything_is_0700_or_0600_whatever_the_umask() {
    for umask in ["000", "077", "777"] {
        let dir = tempfile::tempdir().unwrap();
        give_to_nobody(dir.path());
        run(child("umask", &dir.path().join("home"), umask, &[]));
        let mut seen = 0;
        check(&dir.path().join("home"), &mut seen);
        assert!(seen > 15, "only {seen} things were looked at");
    }
}

/// A process of its own, because a umask belongs to the whole process.
pub fn in_child() {
    let (home, umask) = assignment();
    rustix::process::umask(Mode::from_raw_mode(u32::from_str_radix(&umask, 8).unwrap()));
    as_nobody(|| {
        let store = Store::open(home).unwrap();
        let ids = [create(&store), create(&store), create(&store)];
        bump(&store, ids[0]).unwrap();
        let mut names = ids.iter().skip(1).map(|id| {
            end(&store, *id).unwrap();
            store.trash(*id, Timestamp(1)).unwrap()
        });
        store.restore(&names.next().unwrap(), Timestamp(2)).unwrap();
        names.next().unwrap();
        let outcome = OutcomeRecord {
            at: Timestamp(1),
            id: ids[0],
            scope: String::new(),
            role: String::new(),
            outcome: InstanceOutcome::Kept,
            reason: String::new(),
            decided_by: None,
            extra: Extra::new(),
        };
        outcomes::append(&store, &outcome).unwrap();
        outcomes::append(&store, &outcome).unwrap();
        let state = fs::File::open(store.layout().instance_dir(ids[0]).join("state")).unwrap();
        atomic::write(state, "exit.json", b"{}", 0o600).unwrap();
    });
}

fn check(path: &Path, seen: &mut usize) {
    *seen += 1;
    let meta = fs::symlink_metadata(path).unwrap();
    let expected = if meta.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(meta.permissions().mode() & 0o7777, expected, "{}", path.display());
    if meta.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            check(&entry.unwrap().path(), seen);
        }
    }
}
