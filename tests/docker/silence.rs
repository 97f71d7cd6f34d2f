use std::os::unix::net::UnixListener;
use std::path::Path;

use abide_model::container::EngineKind;
use abide_model::ladder::{PlaceSight, Tier};
use abide_places::place::{PlaceError, TakeDown};
use abide_testkit::Sandbox;

use crate::contained::{Contained, again, is_again};

/// What every verb says of an engine that does not answer. Here the engine is what the environment says.
fn every_verb_knows_nothing() {
    // The image cannot be asked for; nothing gets that far.
    let it = &Contained::from_image(EngineKind::Docker, "sha256:0");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let seen = it.look();
            assert!(matches!(seen, PlaceSight::Unknown(_)), "{seen:?}");
        });
        scope.spawn(|| unknown(it.place.owned()));
        for tier in [Tier::Reconnect, Tier::Start, Tier::Recreate] {
            scope.spawn(move || unknown(it.result_of_up(tier)));
        }
        scope.spawn(|| unknown(it.place.exec(&it.instance, &["true".into()])));
        for how in [TakeDown::Stop, TakeDown::Free, TakeDown::Remove] {
            scope.spawn(move || unknown(it.place.take_down(it.instance.id, how)));
        }
    });
}

#[track_caller]
fn unknown<T: std::fmt::Debug>(result: Result<T, PlaceError>) {
    let Err(PlaceError::Unknown(why)) = &result else { panic!("{result:?}") };
    assert!(why.contains("`docker version`"), "{why}");
}

#[test]
fn an_engine_that_accepts_and_is_silent_is_unknown() {
    if is_again() {
        return every_verb_knows_nothing();
    }
    let sandbox = Sandbox::new("unused");
    let socket = sandbox.path("silent");
    let _listens = UnixListener::bind(&socket).unwrap();
    let host = format!("unix://{}", socket.display());
    again("silence::an_engine_that_accepts_and_is_silent_is_unknown", &[("DOCKER_HOST", Path::new(&host))]);
}

#[test]
fn an_engine_that_is_not_there_is_unknown() {
    if is_again() {
        return every_verb_knows_nothing();
    }
    let name = "silence::an_engine_that_is_not_there_is_unknown";
    again(name, &[("DOCKER_HOST", Path::new("unix:///no/such/socket"))]);
    // A context that is not there either, and a machine without the command.
    again(name, &[("DOCKER_HOST", Path::new("")), ("DOCKER_CONTEXT", Path::new("no-such-context"))]);
    again(name, &[("PATH", Path::new("/no/such/directory"))]);
}

#[test]
fn a_command_that_hangs_is_unknown() {
    if is_again() {
        return every_verb_knows_nothing();
    }
    let mut sandbox = Sandbox::new("unused");
    let stub = sandbox.add_program("docker", "exec sleep 1000");
    let path = format!("{}:{}", stub.parent().unwrap().display(), std::env::var("PATH").unwrap());
    again("silence::a_command_that_hangs_is_unknown", &[("PATH", Path::new(&path))]);
}
