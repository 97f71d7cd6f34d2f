//! Links where somebody might want us to write, or to delete.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use abide_model::Timestamp;
use abide_store::{ReadError, Store, StoreError, TrashName};
use abide_testkit::give_to_nobody;

use crate::common::{Sandbox, bump, create, end, snapshot, sound};

/// A directory outside the store, with something in it that must not be lost.
fn outside(s: &Sandbox) -> PathBuf {
    let outside = s.path("outside");
    fs::create_dir_all(outside.join("sub")).unwrap();
    fs::write(outside.join("precious"), "precious").unwrap();
    outside
}

#[test]
fn a_home_may_be_a_link_but_not_to_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let (link, real) = (dir.path().join("link"), dir.path().join("real"));
    symlink(&real, &link).unwrap();
    let refused = Store::open(link.clone());
    assert!(matches!(&refused, Err(StoreError::Home(why)) if why.contains("dangling")), "{refused:?}");
    assert!(!real.exists(), "it was made behind the operator's back");
    fs::create_dir(&real).unwrap();
    let store = Store::open(link).unwrap();
    create(&store);
    assert_eq!(store.layout().home(), real.canonicalize().unwrap());
    assert_eq!(sound(&Store::at(real)).len(), 1);
}

#[test]
fn a_home_that_others_can_write_to_or_own_is_refused_with_the_command_that_helps() {
    for mode in [0o770, 0o702, 0o777, 0o1777] {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&home, fs::Permissions::from_mode(mode)).unwrap();
        let said = Store::open(home.clone()).unwrap_err().to_string();
        assert!(said.contains(&format!("chmod 700 {}", home.display())), "{said}");
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
        fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
        Store::open(home.clone()).unwrap();
        fs::set_permissions(home.join("instances"), fs::Permissions::from_mode(mode)).unwrap();
        assert!(
            matches!(Store::open(home), Err(StoreError::Home(why)) if why.contains("written by other users"))
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let foreign = if rustix::process::geteuid().is_root() {
        give_to_nobody(dir.path());
        dir.path().to_owned()
    } else {
        PathBuf::from("/usr")
    };
    assert!(matches!(Store::open(foreign), Err(StoreError::Home(why)) if why.contains("belongs to uid")));
}

#[test]
fn a_home_that_is_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    fs::write(&home, "a file").unwrap();
    assert!(
        matches!(Store::open(home.clone()), Err(StoreError::Home(why)) if why.contains("not a directory"))
    );
    assert!(Store::at(home).list().is_err());
}

#[test]
fn a_section_that_is_a_link_is_refused_and_nothing_is_done_through_it() {
    for section in ["instances", "trash", "staging", "log"] {
        let s = Sandbox::new();
        let id = create(&s.store);
        end(&s.store, id).unwrap();
        let path = s.store.layout().home().join(section);
        let moved = s.path("moved");
        fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        let before = snapshot(&moved);

        let refused = Store::open(s.store.layout().home().to_owned());
        assert!(
            matches!(&refused, Err(StoreError::Home(why)) if why.contains("is a symbolic link")),
            "{section}: {refused:?}"
        );
        let done = match section {
            "instances" => s.store.list().map(drop),
            "trash" => s.store.trash(id, Timestamp(1)).map(drop),
            "staging" => bump(&s.store, id).map(drop),
            _ => Store::open(s.store.layout().home().to_owned()).map(drop),
        };
        assert!(done.is_err(), "{section}");
        assert_eq!(snapshot(&moved), before, "{section}");
    }
}

#[test]
fn a_link_in_the_trash_is_not_restored_and_purging_it_removes_only_the_link() {
    let s = Sandbox::new();
    let outside = outside(&s);
    let before = snapshot(&outside);
    let name: TrashName = "k7p9m2xq-19700101T000000001Z".parse().unwrap();
    let link = s.store.layout().trashed(&name);
    symlink(&outside, &link).unwrap();
    assert!(matches!(s.store.restore(&name, Timestamp(1)), Err(StoreError::Read(ReadError::Damaged { .. }))));
    s.store.purge(&name).unwrap();
    assert!(fs::symlink_metadata(&link).is_err());
    symlink(&outside, s.store.layout().trash().join(".purging-x")).unwrap();
    symlink(&outside, s.store.layout().staging().join("x")).unwrap();
    let report = s.store.sweep().unwrap();
    assert_eq!((report.purged, report.unstaged), (1, 1));
    assert_eq!(snapshot(&outside), before);
}

#[test]
fn purging_never_leaves_the_unit_whatever_is_in_it() {
    let s = Sandbox::new();
    let outside = outside(&s);
    let id = create(&s.store);
    let instance_dir = s.store.layout().instance_dir(id);
    for (link, target) in [
        ("state/dir", outside.clone()),
        ("state/file", outside.join("precious")),
        ("run/up", PathBuf::from("../../..")),
        ("journal/self", PathBuf::from(".")),
    ] {
        symlink(target, instance_dir.join(link)).unwrap();
    }
    // A whole section of the instance directory replaced by a link to the outside.
    fs::remove_dir_all(instance_dir.join("run")).unwrap();
    symlink(&outside, instance_dir.join("run")).unwrap();
    fs::hard_link(outside.join("precious"), instance_dir.join("hard")).unwrap();
    fs::create_dir_all(instance_dir.join("tree/main").join("cache")).unwrap();
    fs::write(instance_dir.join("tree/main").join("cache/module"), "x").unwrap();
    fs::set_permissions(instance_dir.join("tree/main").join("cache"), fs::Permissions::from_mode(0o555))
        .unwrap();
    let before = snapshot(&outside);

    end(&s.store, id).unwrap();
    let name = s.store.trash(id, Timestamp(1)).unwrap();
    s.store.purge(&name).unwrap();

    assert_eq!(fs::read_dir(s.store.layout().trash()).unwrap().count(), 0);
    assert_eq!(snapshot(&outside), before);
}

#[test]
fn links_that_lie_in_wait_in_staging_are_not_written_through() {
    let s = Sandbox::new();
    let outside = outside(&s);
    let before = snapshot(&outside);
    let lock = s.store.layout().staging().join("lock");
    create(&s.store);
    fs::remove_file(&lock).unwrap();
    symlink(outside.join("precious"), &lock).unwrap();
    assert!(s.store.create(crate::common::starting).is_err());
    assert_eq!(snapshot(&outside), before);
}
