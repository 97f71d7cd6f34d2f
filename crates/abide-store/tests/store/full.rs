//! No space left: every write happens whole or not at all, and says which.

use abide_model::{InstanceId, Timestamp};
use abide_store::{Result, Store, StoreError};

use crate::common::{
    Sandbox, assert_no_litter, assignment, bump, child, counter, create, end, private_mounts, run, sound,
    starting,
};

/// Grows the manifest by `bytes`.
fn grow(store: &Store, id: InstanceId, bytes: usize) -> Result<()> {
    store.update(id, |i| {
        i.extra.insert("ballast".into(), "x".repeat(bytes).into());
        Ok(())
    })
}

fn assert_full<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.unwrap_err();
    assert!(error.is_full(), "{error}");
    let said = error.to_string();
    assert!(said.ends_with("nothing was written: free some space, then try again"), "{said}");
}

#[test]
fn a_write_that_does_not_fit_changes_nothing_and_says_so() {
    let s = Sandbox::new();
    let kept = create(&s.store);
    bump(&s.store, kept).unwrap();
    let trashed = create(&s.store);
    grow(&s.store, trashed, 4096).unwrap();
    end(&s.store, trashed).unwrap();
    s.store.trash(trashed, Timestamp(1)).unwrap();
    // The shell sets the limit and ignores the signal that would come with it, and the child inherits both.
    let limited = "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"";
    let argument = format!("{kept} {trashed}");
    run(child("full-file", s.store.layout().home(), &argument, &["sh", "-c", limited]));
    assert_no_litter(&s.store);
    assert_eq!(counter(&s.store.read(kept).unwrap()), 2);
}

pub fn in_child_with_a_limit() {
    let (home, argument) = assignment();
    let (kept, trashed) = argument.split_once(' ').unwrap();
    let (kept, trashed): (InstanceId, InstanceId) = (kept.parse().unwrap(), trashed.parse().unwrap());
    let store = Store::open(home).unwrap();
    let before = (store.read(kept).unwrap(), store.trashed().unwrap());

    assert_full(grow(&store, kept, 4096));
    let mut large = None;
    assert_full(store.create(|id| {
        let mut instance = starting(id);
        instance.extra.insert("ballast".into(), "x".repeat(4096).into());
        large = Some(id);
        instance
    }));
    assert!(large.is_some_and(|id| store.read(id).is_err()));
    assert_full(store.restore(&before.1[0].name, Timestamp(2)));

    assert_eq!((store.read(kept).unwrap(), store.trashed().unwrap()), before);
    assert_eq!(store.trashed().unwrap()[0].name.id, trashed);
    assert_eq!(sound(&store).len(), 1);
    assert_no_litter(&store);
    bump(&store, kept).unwrap();
}

#[test]
fn a_full_disk_loses_nothing_and_what_frees_space_still_works() {
    let launcher = private_mounts();
    let dir = tempfile::tempdir().unwrap();
    // The disk is mounted in the child's own mount namespace, so that it is gone with the child.
    let mounted = "mount -t tmpfs -o size=400k tmpfs \"$ABIDE_STORE_TEST_HOME\" && exec \"$0\" \"$@\"";
    let launcher: Vec<_> = launcher.iter().copied().chain(["sh", "-c", mounted]).collect();
    run(child("full-disk", dir.path(), "", &launcher));
}

pub fn in_child_on_a_small_disk() {
    let (disk, _) = assignment();
    let store = Store::open(disk.join("home")).unwrap();
    let mut made = vec![create(&store), create(&store)];
    let full = loop {
        match store.create(starting) {
            Ok(instance) => made.push(instance.id),
            Err(error) => break error,
        }
        assert!(made.len() < 10_000, "the disk never fills");
    };
    assert_full::<()>(Err(full));
    assert!(made.len() > 3);

    let list = sound(&store);
    assert_eq!(list.len(), made.len());
    for instance in &list {
        assert_full(grow(&store, instance.id, 100_000));
        assert_full(bump(&store, instance.id));
    }
    assert_eq!(sound(&store), list, "something was lost");
    assert_no_litter(&store);

    // A decision that cannot be written is not carried out either: nothing goes that nobody decided about.
    assert_full(end(&store, made[0]));
    assert!(matches!(store.trash(made[0], Timestamp(1)), Err(StoreError::NotEnding { .. })));

    // A little space, and the way out works.
    let ballast = store.layout().instance_dir(made[1]);
    std::fs::remove_dir_all(ballast).unwrap();
    end(&store, made[0]).unwrap();
    while store.create(starting).is_ok() {}
    let name = store.trash(made[0], Timestamp(1)).unwrap();
    store.purge(&name).unwrap();
    store.create(starting).unwrap();
    assert_no_litter(&store);
}
