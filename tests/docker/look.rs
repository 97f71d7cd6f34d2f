use abide_model::container::{EngineChoice, EngineKind};
use abide_model::ladder::{ContainerExit, ImagePresence, MemoryKill, PlaceSight, Tier};
use abide_places::place::TakeDown;
use abide_testkit::eventually;

use crate::contained::Contained;

on_each_engine! {
    every_state_is_seen_for_what_it_is,
    a_container_that_was_stopped_tells_so_by_its_exit_code,
    one_question_answers_for_all_instances_in_their_order,
    another_home_sees_nothing_of_it_even_with_the_same_owner_id,
}

fn stopped(code: i32, by_memory: MemoryKill) -> PlaceSight {
    PlaceSight::Stopped(ContainerExit { code: Some(code), by_memory })
}

fn every_state_is_seen_for_what_it_is(engine: EngineKind) {
    let it = Contained::new(engine);
    assert_eq!(it.look(), PlaceSight::Gone { image: ImagePresence::Present });
    it.up(Tier::Recreate);
    assert_eq!(it.look(), PlaceSight::Running);
    it.engine(&["pause", &it.name()]);
    assert_eq!(it.look(), PlaceSight::Paused);
    it.engine(&["unpause", &it.name()]);
    it.engine(&["rename", &it.name(), &format!("{}-renamed", it.name())]);
    assert_eq!(it.look(), PlaceSight::Running);
    it.engine(&["kill", &format!("{}-renamed", it.name())]);
    assert_eq!(it.look(), stopped(137, MemoryKill::No));
    it.engine(&["rm", &format!("{}-renamed", it.name())]);
    assert_eq!(it.look(), PlaceSight::Gone { image: ImagePresence::Present });
}

fn a_container_that_was_stopped_tells_so_by_its_exit_code(engine: EngineKind) {
    let it = Contained::new(engine);
    it.up(Tier::Recreate);
    it.down(TakeDown::Stop);
    let PlaceSight::Stopped(exit) = it.look() else { panic!("{:?}", it.look()) };
    assert_eq!(exit.by_memory, MemoryKill::No);
    assert_ne!(exit.code, Some(137), "process 1 was killed");
}

/// Podman does not notice it.
#[test]
fn a_container_without_memory_is_told_from_one_that_was_killed() {
    let mut it = Contained::new(EngineKind::Docker);
    it.recipe().memory = Some(96 << 20);
    it.up(Tier::Recreate);
    // The kernel ends the largest process, which process 1 outlives; its engine tells once the container has ended.
    assert_ne!(it.sh("python3 -c 'bytearray(500 << 20)'").code, Some(0));
    assert_eq!(it.look(), PlaceSight::Running);
    it.engine(&["kill", &it.name()]);
    assert_eq!(it.look(), stopped(137, MemoryKill::Yes));
}

/// Podman removes no image that a container has.
#[test]
fn an_image_that_is_gone_is_missed_only_where_its_container_is_gone_too() {
    let engine = EngineKind::Docker;
    let base = Contained::new(engine);
    let id = base.derived_image("LABEL x=y");
    let it = Contained::from_image(engine, &id);
    it.up(Tier::Recreate);
    it.down(TakeDown::Stop);
    it.engine(&["image", "rm", "-f", &id]);
    assert!(matches!(it.look(), PlaceSight::Stopped(_)), "{:?}", it.look());
    it.up(Tier::Start);
    it.down(TakeDown::Remove);
    assert_eq!(it.look(), PlaceSight::Gone { image: ImagePresence::Missing });
}

fn one_question_answers_for_all_instances_in_their_order(engine: EngineKind) {
    let it = Contained::new(engine);
    let other = it.another();
    it.up(Tier::Recreate);
    let gone = PlaceSight::Gone { image: ImagePresence::Present };
    assert_eq!(it.place.look(&[&other, &it.instance]), [gone.clone(), PlaceSight::Running]);
    assert_eq!(it.place.look(&[&it.instance, &other]), [PlaceSight::Running, gone]);
    assert_eq!(it.place.look(&[]), []);
}

fn another_home_sees_nothing_of_it_even_with_the_same_owner_id(engine: EngineKind) {
    let (it, other) = (Contained::new(engine), Contained::new(engine));
    std::fs::copy(it.sandbox.home().join("owner"), other.sandbox.home().join("owner")).unwrap();
    let copy = abide_places::owner::Owner::of_home(&other.sandbox.home()).unwrap();
    let place = abide_places::docker::place(EngineChoice { kind: engine, context: None }, copy);
    it.up(Tier::Recreate);
    use abide_places::place::Place as _;
    assert_eq!(place.look(&[&it.instance]), [PlaceSight::Gone { image: ImagePresence::Present }]);
    assert_eq!(place.owned().unwrap(), []);
    place.take_down(it.instance.id, TakeDown::Remove).unwrap();
    eventually("it to run", || (it.look() == PlaceSight::Running).then_some(()));
}
