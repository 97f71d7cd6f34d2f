//! `kill -9` at every labelled point of every mutation.

use std::os::unix::process::ExitStatusExt as _;

use abide_model::{InstanceId, Status, Timestamp};
use abide_store::{Store, StoreError, TrashName};

use crate::common::{
    Sandbox, assert_no_litter, assignment, bump, child, counter, create, end, sound, starting,
};

/// What is done, in the child and again afterwards.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Act {
    Create,
    Update,
    Trash,
    Restore,
    Purge,
    Sweep,
}

const ACTS: [(Act, &str, &[&str]); 6] = [
    (Act::Create, "create", &["store.create."]),
    (Act::Update, "update", &["store.write."]),
    (Act::Trash, "trash", &["store.trash."]),
    (Act::Restore, "restore", &["store.write.", "store.restore."]),
    (Act::Purge, "purge", &["store.purge."]),
    (Act::Sweep, "sweep", &["store.sweep.", "store.purge.begun", "store.purge.emptied"]),
];

impl Act {
    fn passes(self, label: &str) -> bool {
        let (_, _, passed) = ACTS.iter().find(|(act, ..)| *act == self).unwrap();
        passed.iter().any(|prefix| label.starts_with(prefix))
    }

    fn perform(self, store: &Store, id: InstanceId) -> Result<(), StoreError> {
        match self {
            Self::Create => store.create(starting).map(drop),
            Self::Update => bump(store, id).map(drop),
            Self::Trash => store.trash(id, Timestamp(5000)).map(drop),
            Self::Restore => store.restore(&trashed(store, id).unwrap(), Timestamp(6000)).map(drop),
            Self::Purge => store.purge(&trashed(store, id).unwrap()),
            Self::Sweep => {
                let report = store.sweep()?;
                assert!(report.failed.is_empty(), "{:?}", report.failed);
                Ok(())
            }
        }
    }

    /// Brings the store to where the act can be done.
    fn prepare(self, store: &Store) -> InstanceId {
        let id = create(store);
        bump(store, id).unwrap();
        let layout = store.layout();
        std::fs::write(layout.instance_dir(id).join("state").join("exit.json"), "{}").unwrap();
        if matches!(self, Self::Trash | Self::Restore | Self::Purge | Self::Sweep) {
            end(store, id).unwrap();
        }
        if matches!(self, Self::Restore | Self::Purge | Self::Sweep) {
            store.trash(id, Timestamp(4000)).unwrap();
        }
        if self == Self::Sweep {
            std::fs::create_dir_all(layout.staging().join("k7p9m2xq/run")).unwrap();
            std::fs::write(layout.staging().join("k7p9m2xq/instance.json"), "{").unwrap();
            std::fs::write(layout.staging().join("k7p9m2xq-0.json"), "{").unwrap();
            let name = trashed(store, id).unwrap();
            let doomed = layout.trash().join(format!(".purging-{name}"));
            std::fs::rename(layout.trashed(&name), doomed).unwrap();
        }
        id
    }

    /// Whether the act has happened; fails if it has half happened.
    fn happened(self, store: &Store, id: InstanceId, others: usize) -> bool {
        let here = sound(store);
        let live = here.iter().find(|i| i.id == id);
        let in_trash = trashed(store, id);
        match self {
            Self::Create => here.len() > others + 1,
            Self::Update => match counter(live.unwrap()) {
                1 => false,
                2 => true,
                other => panic!("the counter is {other}"),
            },
            Self::Trash | Self::Restore => {
                assert!(live.is_some() != in_trash.is_some(), "{live:?} {in_trash:?}");
                if let Some(live) = live {
                    let expected_ending = self == Self::Trash;
                    assert_eq!(matches!(live.status.status, Status::Ending(_)), expected_ending);
                }
                in_trash.is_some() == (self == Self::Trash)
            }
            Self::Purge | Self::Sweep => {
                assert!(live.is_none());
                in_trash.is_none()
            }
        }
    }
}

fn trashed(store: &Store, id: InstanceId) -> Option<TrashName> {
    let entries = store.trashed().unwrap();
    let entry = entries.iter().find(|entry| entry.name.id == id)?;
    assert!(entry.content.is_ok(), "{entry:?}");
    Some(entry.name)
}

pub fn in_child() {
    let (home, argument) = assignment();
    let (name, id) = argument.split_once(' ').unwrap();
    let (act, ..) = ACTS.iter().find(|(_, other, _)| *other == name).unwrap();
    act.perform(&Store::open(home).unwrap(), id.parse().unwrap()).unwrap();
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "crash points exist in debug builds only")]
fn killed_at_any_point_of_any_mutation_the_store_is_sound_and_the_mutation_happened_or_did_not() {
    for label in abide_testkit::crash_points(".") {
        let killed = ACTS.iter().filter(|(act, name, _)| kill_at(&label, *act, name)).count();
        assert!(killed > 0, "nothing was ever killed at {label}");
    }
}

/// Does `act` in a process that dies at `label`, if it passes there; says whether it died.
fn kill_at(label: &str, act: Act, name: &str) -> bool {
    let s = Sandbox::new();
    let bystander = create(&s.store);
    bump(&s.store, bystander).unwrap();
    let bystander = s.store.read(bystander).unwrap();
    let id = act.prepare(&s.store);
    let before = sound(&s.store).len();

    let mut command = child("crash", s.store.layout().home(), &format!("{name} {id}"), &[]);
    let output = command.env(abide_model::vars::ABIDE_CRASH_AT, label).output().unwrap();
    let died = output.status.signal() == Some(9);
    let said =
        || format!("{name} at {label}: {}\n{}", output.status, String::from_utf8_lossy(&output.stdout));
    assert_eq!(died, act.passes(label), "{}", said());
    assert!(died || output.status.success(), "{}", said());

    let others = before - usize::from(s.store.read(id).is_ok() || act == Act::Trash);
    let happened = act.happened(&s.store, id, others);
    assert!(died || happened, "{}", said());
    let report = s.store.sweep().unwrap();
    assert!(report.failed.is_empty(), "{:?} {}", report.failed, said());
    clear_state(&s.store);
    assert_no_litter(&s.store);
    assert_eq!(act.happened(&s.store, id, others), happened, "a sweep changed the outcome: {}", said());
    assert_eq!(s.store.read(bystander.id).unwrap(), bystander, "{}", said());
    if !happened {
        act.perform(&s.store, id).unwrap();
        assert!(act.happened(&s.store, id, others), "it could not be done again: {}", said());
        assert_no_litter(&s.store);
    }
    died
}

/// Takes away the file that `prepare` put into an instance directory to have something in it.
fn clear_state(store: &Store) {
    for shelf in [store.layout().instances(), store.layout().trash()] {
        for instance_dir in std::fs::read_dir(shelf).unwrap() {
            let _ = std::fs::remove_file(instance_dir.unwrap().path().join("state/exit.json"));
        }
    }
}
