//! Every way in which an instance directory can be unreadable: each is named, and none is touched.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use abide_model::{InstanceId, Timestamp};
use abide_store::{ReadError, Store, StoreEntry, StoreError, TrashName};
use abide_testkit::{as_nobody, cannot_run, give_to_nobody};
use rustix::fs::{CWD, FileType, Mode};

use crate::common::{Sandbox, bump, create, end, snapshot, sound, starting};

const ID: &str = "k7p9m2xq";

fn id() -> InstanceId {
    ID.parse().unwrap()
}

/// A sound manifest with `change` done to it.
fn manifest(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut value = serde_json::to_value(starting(id())).unwrap();
    change(&mut value);
    serde_json::to_vec_pretty(&value).unwrap()
}

/// A way to be damaged: what it is called, how it comes about in an empty instance directory, and what is said about it.
type Kind = (&'static str, Make, &'static str);
type Make = fn(&Path);

const KINDS: &[Kind] = &[
    ("empty", |instance_dir| write(instance_dir, b""), "instance.json is empty"),
    (
        "torn",
        |instance_dir| write(instance_dir, &manifest(|_| {})[..200]),
        "instance.json is incomplete: it ends at line ",
    ),
    (
        "zeros",
        |instance_dir| write(instance_dir, &[0; 300]),
        "instance.json is not JSON: expected value at line 1 column 1",
    ),
    (
        "text",
        |instance_dir| write(instance_dir, b"hello"),
        "instance.json is not JSON: expected value at line 1 column 1",
    ),
    (
        "not UTF-8",
        |instance_dir| write(instance_dir, b"{\"version\": \"\xff\"}"),
        "instance.json is not JSON: invalid unicode",
    ),
    ("two documents", |instance_dir| write(instance_dir, b"{} {}"), "instance.json is not"),
    (
        "another document",
        |instance_dir| write(instance_dir, b"{}"),
        "instance.json is not a manifest: missing field `version`",
    ),
    ("a list", |instance_dir| write(instance_dir, b"[1, 2]"), "instance.json is not a manifest: "),
    (
        "wrong type",
        |instance_dir| write(instance_dir, &manifest(|m| m["sessions"] = 7.into())),
        "field `sessions` of instance.json: ",
    ),
    (
        "unknown status",
        |instance_dir| write(instance_dir, &manifest(|m| m["status"]["state"] = "paused".into())),
        "field `status` of instance.json: unknown status `paused`",
    ),
    (
        "newer",
        |instance_dir| write(instance_dir, &manifest(|m| m["version"] = 2.into())),
        "written by a newer abide (manifest version 2; this one knows 1): upgrade abide",
    ),
    (
        "newer beyond recognition",
        |instance_dir| write(instance_dir, br#"{"version": 9, "everything": "else"}"#),
        "written by a newer abide (manifest version 9; this one knows 1): upgrade abide",
    ),
    (
        "somebody else's",
        |instance_dir| write(instance_dir, &manifest(|m| m["id"] = "00000000".into())),
        "instance.json belongs to 00000000, not to this directory",
    ),
    (
        "too large",
        |instance_dir| {
            fs::File::create(instance_dir.join("instance.json")).unwrap().set_len(5 << 20).unwrap()
        },
        "instance.json is larger than 4 MiB",
    ),
    ("no manifest", |_| {}, "it holds no instance.json"),
    (
        "a directory",
        |instance_dir| fs::create_dir(instance_dir.join("instance.json")).unwrap(),
        "its instance.json is a directory",
    ),
    (
        "a link to a sound manifest",
        |instance_dir| {
            write(instance_dir, &manifest(|_| {}));
            fs::rename(instance_dir.join("instance.json"), instance_dir.join("real.json")).unwrap();
            symlink("real.json", instance_dir.join("instance.json")).unwrap();
        },
        "its instance.json is a symbolic link",
    ),
    ("a pipe", |instance_dir| special(instance_dir, FileType::Fifo), "its instance.json is a named pipe"),
    (
        "a socket",
        |instance_dir| {
            drop(std::os::unix::net::UnixListener::bind(instance_dir.join("instance.json")).unwrap())
        },
        "its instance.json is a socket",
    ),
];

fn write(instance_dir: &Path, bytes: &[u8]) {
    fs::write(instance_dir.join("instance.json"), bytes).unwrap();
}

fn special(instance_dir: &Path, kind: FileType) {
    let zero = rustix::fs::makedev(1, 5);
    rustix::fs::mknodat(CWD, instance_dir.join("instance.json"), kind, Mode::RUSR | Mode::WUSR, zero)
        .unwrap();
}

/// A store with one sound instance directory and an empty directory for a damaged one.
fn prepared() -> (Sandbox, InstanceId, PathBuf) {
    let s = Sandbox::new();
    let other = create(&s.store);
    let instance_dir = s.store.layout().instance_dir(id());
    fs::create_dir(&instance_dir).unwrap();
    (s, other, instance_dir)
}

/// Tries everything that could change the damaged instance directory, and fails if anything does or if the reason is not `expected`.
fn assert_left_alone(name: &str, s: &Sandbox, other: InstanceId, expected: &str) {
    let before = snapshot(s.dir.path());
    let reason = match s.store.list().unwrap().as_slice() {
        [StoreEntry::Sound(sound), StoreEntry::Damaged { name: dir, reason }] => {
            assert_eq!((sound.id, dir.as_str()), (other, ID), "{name}");
            reason.clone()
        }
        listed => panic!("{name}: {listed:?}"),
    };
    assert!(reason.to_string().starts_with(expected), "{name}: {reason}");
    match s.store.read(id()) {
        Err(ReadError::Damaged { reason: again, .. }) => assert_eq!(again, reason, "{name}"),
        read => panic!("{name}: {read:?}"),
    }
    for refused in [
        bump(&s.store, id()).map(drop),
        s.store.lock(id()).map(drop),
        s.store.trash(id(), Timestamp(1)).map(drop),
    ] {
        match refused {
            Err(StoreError::Read(ReadError::Damaged { reason: again, .. })) => {
                assert_eq!(again, reason, "{name}")
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(s.store.resolve(ID).unwrap(), id(), "{name}: the operator must be able to name it");
    s.store.sweep().unwrap();
    assert_eq!(snapshot(s.dir.path()), before, "{name}");
    assert_eq!(bump(&s.store, other).unwrap(), 1, "{name}: the others work on");
}

#[test]
fn a_damaged_unit_is_shown_with_the_reason_and_left_exactly_as_it_is() {
    for (name, make, expected) in KINDS {
        let (s, other, instance_dir) = prepared();
        make(&instance_dir);
        assert_left_alone(name, &s, other, expected);
    }
}

#[test]
fn a_damaged_unit_in_the_trash_is_not_restored_and_can_still_be_purged() {
    for (name, make, expected) in KINDS {
        let (s, _, instance_dir) = prepared();
        make(&instance_dir);
        let trashed: TrashName = format!("{ID}-19700101T000000001Z").parse().unwrap();
        fs::rename(&instance_dir, s.store.layout().trashed(&trashed)).unwrap();
        let before = snapshot(s.dir.path());
        let entries = s.store.trashed().unwrap();
        let reason = entries[0].content.as_ref().unwrap_err();
        assert!(reason.to_string().starts_with(expected), "{name}: {reason}");
        let refused = s.store.restore(&trashed, Timestamp(2));
        assert!(matches!(refused, Err(StoreError::Read(ReadError::Damaged { .. }))), "{name}: {refused:?}");
        assert_eq!(snapshot(s.dir.path()), before, "{name}");
        s.store.purge(&trashed).unwrap();
        assert!(s.store.trashed().unwrap().is_empty(), "{name}");
    }
}

#[test]
fn a_hurried_look_at_the_trash_measures_neither_what_is_damaged_nor_what_it_has_no_time_for() {
    let (s, other, instance_dir) = prepared();
    write(&instance_dir, b"damaged");
    end(&s.store, other).unwrap();
    let sound = s.store.trash(other, Timestamp(5)).unwrap();
    let damaged: TrashName = format!("{}-19700101T000000001Z", id()).parse().unwrap();
    fs::rename(&instance_dir, s.store.layout().trashed(&damaged)).unwrap();
    let size = |name, until| s.store.trash_size(name, until).unwrap();
    let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(3600));
    assert_eq!((size(&sound, Some(now)), size(&damaged, Some(later))), (0, 0));
    assert!(size(&sound, Some(later)) > 0 && size(&damaged, None) > 0);
    assert!(size(&sound, Some(now)) > 0, "what was measured once is known");
}

#[test]
fn a_unit_that_is_not_a_directory_is_damaged() {
    let (s, other, instance_dir) = prepared();
    fs::remove_dir(&instance_dir).unwrap();
    fs::write(&instance_dir, "a file").unwrap();
    assert_left_alone("a file", &s, other, "it is not a directory");
    fs::remove_file(&instance_dir).unwrap();
    rustix::fs::mknodat(CWD, &instance_dir, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_left_alone_again(&s, "it is not a directory");
}

fn assert_left_alone_again(s: &Sandbox, expected: &str) {
    let error = s.store.read(id()).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert_eq!(s.store.list().unwrap().len(), 2);
}

#[test]
fn a_unit_that_is_a_link_is_damaged_and_not_followed() {
    let (s, other, instance_dir) = prepared();
    write(&instance_dir, &manifest(|_| {}));
    fs::rename(&instance_dir, s.path("elsewhere")).unwrap();
    symlink(s.path("elsewhere"), &instance_dir).unwrap();
    assert_left_alone("a link", &s, other, "it is a symbolic link");
}

#[test]
fn a_pipe_that_provides_a_sound_manifest_is_neither_read_nor_waited_for() {
    let (s, other, instance_dir) = prepared();
    special(&instance_dir, FileType::Fifo);
    let mut both =
        fs::OpenOptions::new().read(true).write(true).open(instance_dir.join("instance.json")).unwrap();
    both.write_all(&manifest(|_| {})).unwrap();
    let listed = s.store.list().unwrap();
    assert!(
        matches!(&listed[1], StoreEntry::Damaged { reason, .. } if reason.to_string().contains("a named pipe")),
        "{listed:?}"
    );
    assert_eq!(listed[0].id(), Some(other));
    assert!(matches!(s.store.read(id()), Err(ReadError::Damaged { .. })));
}

#[test]
fn a_device_in_the_place_of_the_manifest_is_damage() {
    let (s, other, instance_dir) = prepared();
    let zero = rustix::fs::makedev(1, 5);
    if rustix::fs::mknodat(
        CWD,
        instance_dir.join("instance.json"),
        FileType::CharacterDevice,
        Mode::RUSR,
        zero,
    )
    .is_err()
    {
        cannot_run("the right to make a device file", "run it as root");
    }
    let listed = s.store.list().unwrap();
    assert_eq!(listed[0].id(), Some(other));
    match &listed[1] {
        StoreEntry::Damaged { reason, .. } => assert_eq!(reason.to_string(), "its instance.json is a device"),
        sound => panic!("{sound:?}"),
    }
}

#[test]
fn a_manifest_or_a_unit_that_may_not_be_read_is_damaged_and_not_absent() {
    let dir = tempfile::tempdir().unwrap();
    give_to_nobody(dir.path());
    as_nobody(|| {
        let store = Store::open(dir.path().join("home")).unwrap();
        for (what, mode) in [("instance.json cannot be read", 0o700), ("cannot be read", 0o000)] {
            let id = create(&store);
            let instance_dir = store.layout().instance_dir(id);
            fs::set_permissions(instance_dir.join("instance.json"), fs::Permissions::from_mode(0o000))
                .unwrap();
            fs::set_permissions(&instance_dir, fs::Permissions::from_mode(mode)).unwrap();
            let listed = store.list().unwrap();
            match listed.as_slice() {
                [StoreEntry::Damaged { reason, .. }] => {
                    let said = reason.to_string();
                    assert!(
                        said.contains(what) && said.to_lowercase().contains("permission denied"),
                        "{said}"
                    );
                }
                other => panic!("{other:?}"),
            }
            assert!(matches!(store.read(id), Err(ReadError::Damaged { .. })));
            assert!(matches!(bump(&store, id), Err(StoreError::Read(ReadError::Damaged { .. }))));
            fs::set_permissions(&instance_dir, fs::Permissions::from_mode(0o700)).unwrap();
            fs::remove_dir_all(&instance_dir).unwrap();
        }
    });
}

#[test]
fn what_is_not_called_like_an_instance_is_shown_and_left_alone() {
    let s = Sandbox::new();
    for name in ["notes", "K7P9M2XQ", ".hidden", "k7p9m2xqq"] {
        let instance_dir = s.store.layout().instances().join(name);
        fs::create_dir(&instance_dir).unwrap();
        write(&instance_dir, &manifest(|_| {}));
    }
    let before = snapshot(s.dir.path());
    let listed = s.store.list().unwrap();
    assert_eq!(listed.len(), 4);
    assert!(listed.iter().all(|e| matches!(e, StoreEntry::Damaged { reason, .. } if reason.to_string().contains("not an instance id"))), "{listed:?}");
    s.store.sweep().unwrap();
    assert_eq!(snapshot(s.dir.path()), before);
}

#[test]
fn a_lock_that_is_not_a_file_stops_every_change_and_no_reader() {
    let kinds: [(&str, Make); 3] = [
        ("a symbolic link", |lock| symlink("instance.json", lock).unwrap()),
        ("a directory", |lock| fs::create_dir(lock).unwrap()),
        ("a named pipe", |lock| {
            rustix::fs::mknodat(CWD, lock, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap()
        }),
    ];
    for (kind, make) in kinds {
        let s = Sandbox::new();
        let id = create(&s.store);
        end(&s.store, id).unwrap();
        let lock = s.store.layout().instance_dir(id).join("lock");
        fs::remove_file(&lock).unwrap();
        make(&lock);
        let before = snapshot(s.dir.path());
        for refused in [bump(&s.store, id).map(drop), s.store.trash(id, Timestamp(1)).map(drop)] {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains(&format!("its lock is {kind}")), "{said}");
        }
        assert_eq!(sound(&s.store).len(), 1);
        assert_eq!(snapshot(s.dir.path()), before, "{kind}");
    }
}
