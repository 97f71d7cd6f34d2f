use std::ffi::OsString;
use std::fs;

use abide_model::container::EngineKind;
use abide_model::ladder::{ImagePresence, PlaceSight, Tier};
use abide_places::place::{PlaceError, TakeDown};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::{Connection, GetStatus};

use crate::contained::Contained;

on_each_engine! {
    each_tier_brings_an_instance_up_and_reuses_what_is_there,
    a_process_1_that_ends_at_once_is_shown_with_its_last_lines_and_leaves_no_container,
    what_the_engine_cannot_start_is_an_error_and_leaves_no_container,
    a_directory_that_is_gone_is_named_and_nothing_is_made_in_its_place,
    directories_of_any_name_are_shared,
    a_name_that_another_container_has_is_refused_and_that_one_is_left_alone,
}

const LONG: std::time::Duration = std::time::Duration::from_secs(30);

fn each_tier_brings_an_instance_up_and_reuses_what_is_there(engine: EngineKind) {
    let it = Contained::new(engine);
    it.up(Tier::Recreate);
    let mut capsule = Connection::connect(&InstanceDir::new(it.dir()), LONG).unwrap();
    assert_eq!(capsule.call(&GetStatus {}, LONG).unwrap().sessions.len(), 0);
    it.sh("echo layer >/tmp/layer; echo home >~/home").ok();
    let first = it.engine(&["inspect", "--format", "{{.Id}}", &it.name()]);

    it.up(Tier::Reconnect);
    it.engine(&["pause", &it.name()]);
    it.up(Tier::Reconnect);
    assert_eq!(it.sh("cat /tmp/layer ~/home").ok(), "layer\nhome");

    it.down(TakeDown::Free);
    it.up(Tier::Start);
    assert_eq!(it.sh("cat /tmp/layer ~/home").ok(), "layer\nhome");
    assert_eq!(it.engine(&["inspect", "--format", "{{.Id}}", &it.name()]), first);

    it.engine(&["rm", "-f", &it.name()]);
    assert_eq!(it.look(), PlaceSight::Gone { image: ImagePresence::Present });
    it.up(Tier::Recreate);
    assert_eq!(it.sh("cat ~/home; test ! -e /tmp/layer").ok(), "home");
    assert_ne!(it.engine(&["inspect", "--format", "{{.Id}}", &it.name()]), first);
}

/// Podman removes no network that a container has.
#[test]
fn a_container_starts_whatever_was_done_to_its_network_and_its_name() {
    let it = Contained::new(EngineKind::Docker);
    it.up(Tier::Recreate);
    let network = format!("{}-net", it.name());
    it.engine(&["stop", "-t", "0", &it.name()]);
    it.engine(&["network", "rm", &network]);
    it.up(Tier::Start);
    assert_eq!(it.sh("ls /sys/class/net").ok(), "eth0\nlo");

    it.engine(&["stop", "-t", "0", &it.name()]);
    it.engine(&["network", "rm", &network]);
    it.engine(&["network", "create", &network]);
    it.engine(&["rename", &it.name(), "abide-test-renamed"]);
    let foreign = it.result_of_up(Tier::Start);
    it.engine(&["network", "rm", &network]);
    // A network of that name that is not ours is not used, and not removed.
    assert!(matches!(foreign, Err(PlaceError::Refused(_))), "{foreign:?}");
    it.up(Tier::Start);
    assert_eq!(it.look(), PlaceSight::Running);
}

fn a_process_1_that_ends_at_once_is_shown_with_its_last_lines_and_leaves_no_container(engine: EngineKind) {
    let it = Contained::new(engine);
    let script = "seq 100 >&2; echo cannot go on >&2; exit 7";
    let argv = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
    let ended = it.try_up(&it.instance, Tier::Recreate, argv);
    let Err(PlaceError::EndedAtOnce { why, output }) = ended else { panic!("{ended:?}") };
    assert!(why.contains("code 7"), "{why}");
    assert_eq!((output.lines().count(), output.lines().last()), (40, Some("cannot go on")));
    assert_eq!(it.look(), PlaceSight::Gone { image: ImagePresence::Present });
}

fn what_the_engine_cannot_start_is_an_error_and_leaves_no_container(engine: EngineKind) {
    let it = Contained::new(engine);
    let refused = it.try_up(&it.instance, Tier::Recreate, vec!["/no/such/program".into()]);
    let Err(PlaceError::Refused(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("/no/such/program"), "{why}");
    assert_eq!(it.look(), PlaceSight::Gone { image: ImagePresence::Present });
}

fn a_directory_that_is_gone_is_named_and_nothing_is_made_in_its_place(engine: EngineKind) {
    let mut it = Contained::new(engine);
    let shared = it.sandbox.path("shared");
    fs::create_dir(&shared).unwrap();
    it.share(&shared, "/shared");
    it.up(Tier::Recreate);
    it.down(TakeDown::Stop);
    fs::remove_dir(&shared).unwrap();
    for tier in [Tier::Start, Tier::Recreate] {
        let refused = it.result_of_up(tier);
        let Err(PlaceError::Refused(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains(shared.to_str().unwrap()) && why.contains("put it back"), "{why}");
    }
    assert!(!shared.exists());
}

fn directories_of_any_name_are_shared(engine: EngineKind) {
    let mut it = Contained::new(engine);
    let shared = it.sandbox.path("a,b \"c\" ünï:d");
    fs::create_dir(&shared).unwrap();
    it.share(&shared, &shared);
    it.up(Tier::Recreate);
    let script = format!("echo inside >'{}/file'", shared.display());
    it.sh(&script).ok();
    assert_eq!(fs::read_to_string(shared.join("file")).unwrap(), "inside\n");
}

fn a_name_that_another_container_has_is_refused_and_that_one_is_left_alone(engine: EngineKind) {
    let it = Contained::new(engine);
    let image = it.instance.recipe.container.as_ref().unwrap().image.id.clone();
    it.engine(&["create", "--name", &it.name(), &image, "true"]);
    let refused = it.result_of_up(Tier::Recreate);
    it.engine(&["rm", &it.name()]);
    assert!(matches!(&refused, Err(PlaceError::Refused(why)) if why.contains("in use")), "{refused:?}");
}
