//! What a store does when nothing goes wrong, and when somebody asks for what it does not do.

use std::time::Duration;

use abide_model::status::Kept;
use abide_model::{Status, Timestamp};
use abide_store::{ReadError, ResolveError, Store, StoreError};

use crate::common::{Sandbox, assert_no_litter, bump, counter, create, end, sound, starting};

#[test]
fn a_store_that_does_not_exist_is_empty_and_is_not_made_by_looking() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::at(dir.path().join("home"));
    assert!(store.list().unwrap().is_empty());
    assert!(store.trashed().unwrap().is_empty());
    assert!(matches!(store.resolve("k7p9m2xq"), Err(ResolveError::NotFound(_))));
    assert!(matches!(store.read("k7p9m2xq".parse().unwrap()), Err(ReadError::NotFound(_))));
    assert_eq!(store.sweep().unwrap().unstaged, 0);
    assert!(!dir.path().join("home").exists());
}

#[test]
fn a_directory_that_cannot_be_read_is_an_error_and_not_an_empty_list() {
    let s = Sandbox::new();
    create(&s.store);
    let instances = s.store.layout().instances();
    std::fs::rename(&instances, s.path("away")).unwrap();
    std::fs::write(&instances, "in the way").unwrap();
    assert!(s.store.list().is_err());
    assert!(s.store.sweep().is_ok(), "a sweep needs no list of the living");
}

#[test]
fn a_unit_goes_through_its_life_and_comes_back() {
    let s = Sandbox::new();
    let id = create(&s.store);
    assert_eq!(bump(&s.store, id).unwrap(), 1);
    assert_eq!(bump(&s.store, id).unwrap(), 2);

    assert!(
        matches!(s.store.trash(id, Timestamp(1)), Err(StoreError::NotEnding { .. })),
        "nobody decided that"
    );
    end(&s.store, id).unwrap();
    let name = s.store.trash(id, Timestamp(5000)).unwrap();
    assert!(sound(&s.store).is_empty());
    assert!(matches!(s.store.read(id), Err(ReadError::NotFound(_))));
    assert!(matches!(bump(&s.store, id), Err(StoreError::Read(ReadError::NotFound(_)))));
    assert!(matches!(s.store.resolve(id.as_str()), Err(ResolveError::InTrash { .. })));

    let trashed = s.store.trashed().unwrap();
    assert_eq!(trashed.len(), 1);
    assert_eq!((trashed[0].name, trashed[0].name.when), (name, Timestamp(5000)));
    assert_eq!(counter(trashed[0].content.as_ref().unwrap()), 2);
    assert!(s.store.trash_size(&name, None).unwrap() > 0);
    assert_eq!(s.store.resolve_trashed(&id.as_str()[..3]).unwrap(), name);
    assert_eq!(s.store.resolve_trashed(&name.to_string()).unwrap(), name);

    assert_eq!(s.store.restore(&name, Timestamp(6000)).unwrap(), id);
    let back = s.store.read(id).unwrap();
    assert_eq!(back.status.status, Status::Restorable(Kept::Kept));
    assert_eq!(counter(&back), 2);
    assert_eq!(back.history.last().unwrap().at, Timestamp(6000));
    assert!(matches!(s.store.restore(&name, Timestamp(7000)), Err(StoreError::NotInTrash(_))));

    end(&s.store, id).unwrap();
    let name = s.store.trash(id, Timestamp(8000)).unwrap();
    s.store.purge(&name).unwrap();
    assert!(s.store.trashed().unwrap().is_empty());
    assert!(matches!(s.store.purge(&name), Err(StoreError::NotInTrash(_))));
    assert!(matches!(s.store.resolve(id.as_str()), Err(ResolveError::NotFound(_))));
    assert_no_litter(&s.store);
}

#[test]
fn the_list_is_in_the_order_of_creation_however_many_there_are() {
    let s = Sandbox::new();
    // More than one thread's worth, and two of each age.
    for n in 0..600i64 {
        let created = Timestamp((n * 7919) % 300);
        let id = abide_model::InstanceId::from_bits((n.unsigned_abs() * 0x9e37_79b9) & ((1 << 40) - 1));
        let mut instance = starting(id);
        instance.created = created;
        let instance_dir = s.store.layout().instance_dir(id);
        std::fs::create_dir(&instance_dir).unwrap();
        std::fs::write(instance_dir.join("instance.json"), serde_json::to_vec(&instance).unwrap()).unwrap();
    }
    let listed: Vec<_> = sound(&s.store).iter().map(|i| (i.created, i.id)).collect();
    let mut sorted = listed.clone();
    sorted.sort();
    assert_eq!(listed.len(), 600);
    assert_eq!(listed, sorted);
}

#[test]
fn a_change_that_is_refused_or_changes_nothing_writes_nothing() {
    let s = Sandbox::new();
    let id = create(&s.store);
    let manifest = s.store.layout().instance_dir(id).join("instance.json");
    let inode = |path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap());
    let before = (std::fs::read(&manifest).unwrap(), inode(&manifest));

    let refused: Result<(), StoreError> = s.store.update(id, |i| {
        i.name = Some("changed".into());
        Err(StoreError::NoFreeId)
    });
    assert!(matches!(refused, Err(StoreError::NoFreeId)));
    name(&s.store, id, None);
    assert_eq!((std::fs::read(&manifest).unwrap(), inode(&manifest)), before);

    name(&s.store, id, Some("changed"));
    assert_ne!(inode(&manifest), before.1);
    assert_eq!(s.store.resolve("changed").unwrap(), id);
}

fn name(store: &Store, id: abide_model::InstanceId, name: Option<&str>) {
    let named: Result<(), StoreError> = store.update(id, |i| {
        i.name = name.map(str::to_owned);
        Ok(())
    });
    named.unwrap();
}

#[test]
fn an_instance_cannot_be_written_over_another() {
    let s = Sandbox::new();
    let (one, other) = (create(&s.store), create(&s.store));
    let mut lock = s.store.lock(one).unwrap();
    let foreign = s.store.read(other).unwrap();
    assert!(matches!(lock.write(&foreign), Err(StoreError::Unwritable { .. })));
    assert_eq!(s.store.read(one).unwrap(), *lock.instance());
}

#[test]
fn a_held_lock_keeps_others_out_says_who_holds_it_and_does_not_stop_readers() {
    let s = Sandbox::new();
    let id = create(&s.store);
    let mut held = s.store.lock(id).unwrap();
    let hasty = s.store.clone().with_patience(Duration::from_millis(20));
    match bump(&hasty, id) {
        Err(error @ StoreError::Locked { .. }) => {
            let said = error.to_string();
            assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
        }
        other => panic!("{other:?}"),
    }
    assert!(s.store.read(id).is_ok());
    assert_eq!(sound(&s.store).len(), 1);

    let mut changed = held.instance().clone();
    changed.name = Some("mine".into());
    held.write(&changed).unwrap();
    assert_eq!(held.instance().name.as_deref(), Some("mine"));
    drop(held);
    assert_eq!(bump(&hasty, id).unwrap(), 1);
    assert_eq!(s.store.read(id).unwrap().name.as_deref(), Some("mine"));
}

#[test]
fn a_process_that_waited_for_a_removed_instance_directory_gets_an_error() {
    let s = Sandbox::new();
    let id = create(&s.store);
    end(&s.store, id).unwrap();
    let held = s.store.lock(id).unwrap();
    let waiting = bump_meanwhile(&s.store, id, || {
        held.trash(Timestamp(1)).unwrap();
    });
    assert!(matches!(waiting, Err(StoreError::Read(ReadError::NotFound(_)))), "{waiting:?}");
    assert_eq!(counter(s.store.trashed().unwrap()[0].content.as_ref().unwrap()), 0);
}

#[test]
fn a_process_that_waited_for_a_replaced_instance_directory_changes_neither() {
    let s = Sandbox::new();
    let id = create(&s.store);
    let held = s.store.lock(id).unwrap();
    let (instance_dir, away) = (s.store.layout().instance_dir(id), s.path("away"));
    let waiting = bump_meanwhile(&s.store, id, || {
        let manifest = std::fs::read(instance_dir.join("instance.json")).unwrap();
        std::fs::rename(&instance_dir, &away).unwrap();
        std::fs::create_dir(&instance_dir).unwrap();
        std::fs::write(instance_dir.join("instance.json"), manifest).unwrap();
        drop(held);
    });
    assert!(waiting.is_err(), "the lock of one instance was taken for the lock of another");
    let same = std::fs::read(away.join("instance.json")).unwrap()
        == std::fs::read(instance_dir.join("instance.json")).unwrap();
    assert!(same);
    assert_eq!(counter(&s.store.read(id).unwrap()), 0);
}

/// Lets somebody wait for the lock of `id`, which is held, does `act`, which releases it, and says what they got.
fn bump_meanwhile(store: &Store, id: abide_model::InstanceId, act: impl FnOnce()) -> Result<u64, StoreError> {
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| bump(store, id));
        // The waiter has the lock file open from the moment it waits, which is the moment to act.
        let lock = store.layout().instance_dir(id).join("lock");
        let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(lock).unwrap());
        wait_until(|| open_files_with_inode(inode) >= 2);
        act();
        waiter.join().unwrap()
    })
}

fn open_files_with_inode(inode: u64) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let same = |path| std::fs::metadata(path).is_ok_and(|m| std::os::unix::fs::MetadataExt::ino(&m) == inode);
    open.filter(|entry| same(entry.as_ref().unwrap().path())).count()
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "it did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_lock_file_that_is_missing_is_made_again() {
    let s = Sandbox::new();
    let id = create(&s.store);
    std::fs::remove_file(s.store.layout().instance_dir(id).join("lock")).unwrap();
    assert_eq!(bump(&s.store, id).unwrap(), 1);
    assert_no_litter(&s.store);
}

#[test]
fn a_unit_is_not_restored_over_another() {
    let s = Sandbox::new();
    let id = create(&s.store);
    end(&s.store, id).unwrap();
    let name = s.store.trash(id, Timestamp(1)).unwrap();
    let instance_dir = s.store.layout().instance_dir(id);
    std::fs::create_dir(&instance_dir).unwrap();
    let before = std::fs::read(s.store.layout().trashed(&name).join("instance.json")).unwrap();
    assert!(matches!(s.store.restore(&name, Timestamp(2)), Err(StoreError::Taken { .. })));
    assert_eq!(std::fs::read(s.store.layout().trashed(&name).join("instance.json")).unwrap(), before);
    std::fs::remove_dir(&instance_dir).unwrap();
    s.store.restore(&name, Timestamp(3)).unwrap();
}

#[test]
fn two_removals_in_the_same_moment_get_two_names() {
    let s = Sandbox::new();
    let id = create(&s.store);
    end(&s.store, id).unwrap();
    let first = abide_store::TrashName { id, when: Timestamp(9) };
    std::fs::create_dir(s.store.layout().trashed(&first)).unwrap();
    assert_eq!(s.store.trash(id, Timestamp(9)).unwrap().when, Timestamp(10));
}

#[test]
fn a_sweep_leaves_alone_what_another_process_is_deleting() {
    let s = Sandbox::new();
    let id = create(&s.store);
    end(&s.store, id).unwrap();
    let name = s.store.trash(id, Timestamp(1)).unwrap();
    let doomed = s.store.layout().trash().join(format!(".purging-{name}"));
    std::fs::rename(s.store.layout().trashed(&name), &doomed).unwrap();
    let lock = std::fs::File::open(doomed.join("lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(s.store.sweep().unwrap().purged, 0);
    assert!(doomed.join("instance.json").exists());
    drop(lock);
    assert_eq!(s.store.sweep().unwrap().purged, 1);
    assert!(!doomed.exists());
}

#[test]
fn errors_end_in_what_to_do_next() {
    let s = Sandbox::new();
    let id = create(&s.store);
    let absent: abide_model::InstanceId = "k7p9m2xq".parse().unwrap();
    let name = abide_store::TrashName { id: absent, when: Timestamp(0) };
    for error in [
        s.store.trash(id, Timestamp(1)).unwrap_err().to_string(),
        s.store.read(absent).unwrap_err().to_string(),
        s.store.restore(&name, Timestamp(1)).unwrap_err().to_string(),
        s.store.purge(&name).unwrap_err().to_string(),
        s.store.resolve("nobody").unwrap_err().to_string(),
    ] {
        assert!(error.contains("; `abide "), "{error}");
    }
}
