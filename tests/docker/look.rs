use abide_model::ladder::{ContainerExit, ImagePresence, MemoryKill, PlaceSight, Tier};
use abide_places::place::TakeDown;
use abide_testkit::eventually;

use crate::contained::{Contained, docker_ok};

fn stopped(code: i32, by_memory: MemoryKill) -> PlaceSight {
    PlaceSight::Stopped(ContainerExit { code: Some(code), by_memory })
}

#[test]
fn every_state_is_seen_for_what_it_is() {
    let it = Contained::new();
    assert_eq!(it.look(), PlaceSight::Gone { image: ImagePresence::Present });
    it.up(Tier::Recreate);
    assert_eq!(it.look(), PlaceSight::Running);
    docker_ok(&["pause", &it.name()]);
    assert_eq!(it.look(), PlaceSight::Paused);
    docker_ok(&["unpause", &it.name()]);
    docker_ok(&["rename", &it.name(), &format!("{}-renamed", it.name())]);
    assert_eq!(it.look(), PlaceSight::Running);
    docker_ok(&["kill", &format!("{}-renamed", it.name())]);
    assert_eq!(it.look(), stopped(137, MemoryKill::No));
    docker_ok(&["rm", &format!("{}-renamed", it.name())]);
    assert_eq!(it.look(), PlaceSight::Gone { image: ImagePresence::Present });
}

#[test]
fn a_container_that_was_stopped_tells_so_by_its_exit_code() {
    let it = Contained::new();
    it.up(Tier::Recreate);
    it.down(TakeDown::Stop);
    let PlaceSight::Stopped(exit) = it.look() else { panic!("{:?}", it.look()) };
    assert_eq!(exit.by_memory, MemoryKill::No);
    assert_ne!(exit.code, Some(137), "process 1 was killed");
}

#[test]
fn a_container_without_memory_is_told_from_one_that_was_killed() {
    let mut it = Contained::new();
    it.recipe().memory = Some(96 << 20);
    it.up(Tier::Recreate);
    // The kernel ends the largest process, which process 1 outlives; its engine tells once the container has ended.
    assert_ne!(it.sh("python3 -c 'bytearray(500 << 20)'").code, Some(0));
    assert_eq!(it.look(), PlaceSight::Running);
    docker_ok(&["kill", &it.name()]);
    assert_eq!(it.look(), stopped(137, MemoryKill::Yes));
}

#[test]
fn an_image_that_is_gone_is_missed_only_where_its_container_is_gone_too() {
    let base = Contained::new();
    let image = &base.instance.recipe.container.as_ref().unwrap().image.id;
    let made = docker_ok(&["create", image, "true"]);
    let id = docker_ok(&["commit", made.trim()]);
    docker_ok(&["rm", made.trim()]);
    let it = Contained::from_image(id.trim());
    it.up(Tier::Recreate);
    it.down(TakeDown::Stop);
    docker_ok(&["image", "rm", "-f", id.trim()]);
    assert!(matches!(it.look(), PlaceSight::Stopped(_)), "{:?}", it.look());
    it.up(Tier::Start);
    it.down(TakeDown::Remove);
    assert_eq!(it.look(), PlaceSight::Gone { image: ImagePresence::Missing });
}

#[test]
fn one_question_answers_for_all_instances_in_their_order() {
    let it = Contained::new();
    let other = it.another();
    it.up(Tier::Recreate);
    let gone = PlaceSight::Gone { image: ImagePresence::Present };
    assert_eq!(it.place.look(&[&other, &it.instance]), [gone.clone(), PlaceSight::Running]);
    assert_eq!(it.place.look(&[&it.instance, &other]), [PlaceSight::Running, gone]);
    assert_eq!(it.place.look(&[]), []);
}

#[test]
fn another_home_sees_nothing_of_it_even_with_the_same_owner_id() {
    let (it, other) = (Contained::new(), Contained::new());
    std::fs::copy(it.sandbox.home().join("owner"), other.sandbox.home().join("owner")).unwrap();
    let copy = abide_places::owner::Owner::of_home(&other.sandbox.home()).unwrap();
    let place = abide_places::docker::place(Default::default(), copy);
    it.up(Tier::Recreate);
    use abide_places::place::Place as _;
    assert_eq!(place.look(&[&it.instance]), [PlaceSight::Gone { image: ImagePresence::Present }]);
    assert_eq!(place.owned().unwrap(), []);
    place.take_down(it.instance.id, TakeDown::Remove).unwrap();
    eventually("it to run", || (it.look() == PlaceSight::Running).then_some(()));
}
