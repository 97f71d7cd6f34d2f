//! What happens to instances when their engine fails.

use std::time::Duration;

use abide_model::ladder::{ContainerExit, ImagePresence, MemoryKill, PlaceSight, Tier};
use abide_model::liveness::SupervisorLock;
use abide_places::place::{PlaceError, TakeDown};
use abide_testkit::SmallDisk;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::{Connection, GetStatus};
use abide_wire::supervisor_lock::supervisor_lock;

use crate::contained::Contained;
use crate::own_engine::with_own_engine;

const LONG: Duration = Duration::from_secs(30);

/// Whether the keeper serves, as the host sees it without an engine.
fn serves(it: &Contained) -> bool {
    let dir = InstanceDir::new(it.dir());
    let answers = || Connection::connect(&dir, LONG).unwrap().call(&GetStatus {}, LONG).is_ok();
    supervisor_lock(&dir) == SupervisorLock::Held && answers()
}

#[test]
fn an_engine_that_is_killed_is_unknown_and_its_containers_serve_on() {
    with_own_engine("faults::an_engine_that_is_killed_is_unknown_and_its_containers_serve_on", |engine| {
        engine.start(&["--live-restore"]);
        let it = engine.contained();
        it.up(Tier::Recreate);
        engine.kill();
        assert!(matches!(it.look(), PlaceSight::Unknown(_)), "{:?}", it.look());
        assert!(matches!(it.place.owned(), Err(PlaceError::Unknown(_))));
        assert!(serves(&it));
        engine.start(&["--live-restore"]);
        assert_eq!(it.look(), PlaceSight::Running);
        assert!(serves(&it));
    });
}

#[test]
fn an_engine_that_ends_its_containers_when_it_restarts_leaves_them_to_be_started() {
    let name = "faults::an_engine_that_ends_its_containers_when_it_restarts_leaves_them_to_be_started";
    with_own_engine(name, |engine| {
        engine.start(&[]);
        let it = engine.contained();
        it.up(Tier::Recreate);
        engine.kill();
        engine.start(&[]);
        let PlaceSight::Stopped(ContainerExit { code: Some(code), by_memory }) = it.look() else {
            panic!("{:?}", it.look());
        };
        // Never what a process 1 ends with that has nothing left to do.
        assert_ne!(code, 0);
        assert_eq!(by_memory, MemoryKill::No);
        it.up(Tier::Start);
        assert!(serves(&it));
        engine.stop();
        engine.start(&[]);
        assert!(matches!(it.look(), PlaceSight::Stopped(_)), "{:?}", it.look());
        it.up(Tier::Start);
        it.down(TakeDown::Remove);
    });
}

#[test]
fn an_engine_without_room_refuses_and_leaves_what_is_there() {
    with_own_engine("faults::an_engine_without_room_refuses_and_leaves_what_is_there", |engine| {
        let disk = SmallDisk::mount(&engine.data(), 32);
        engine.start(&[]);
        let it = engine.contained();
        disk.fill();
        let refused = it.result_of_up(Tier::Recreate);
        let Err(PlaceError::Refused(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("no space left"), "{why}");
        disk.empty();
        assert_eq!(it.look(), PlaceSight::Gone { image: ImagePresence::Present });
        it.up(Tier::Recreate);
        it.down(TakeDown::Stop);
        disk.fill();
        let tried = it.result_of_up(Tier::Start);
        assert!(!matches!(tried, Err(PlaceError::Unknown(_))), "{tried:?}");
        disk.empty();
        it.up(Tier::Start);
        assert!(serves(&it));
        drop(it);
        engine.stop();
    });
}
