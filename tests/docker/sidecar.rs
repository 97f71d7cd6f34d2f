//! An engine beside the container of an instance.

use abide_model::container::{EngineKind, Network};
use abide_model::ladder::Tier;
use abide_places::place::{PlaceError, SidecarSight, TakeDown};
use abide_testkit::require_containers;

use crate::contained::Contained;

fn with_sidecar() -> Contained {
    let mut it = Contained::new(EngineKind::Docker);
    it.recipe().sidecar = Some(format!("abide-test-dind:{}", require_containers()));
    it
}

/// Asks the engine beside it from inside, as sessions are told to.
fn ask(it: &Contained, path: &str) -> String {
    let recipe = it.instance.recipe.container.as_ref().unwrap();
    let env = it.place.sidecar_env(recipe);
    let exports: String = env.iter().map(|(name, value)| format!("{name}={value}; ")).collect();
    let url = format!("$(echo $DOCKER_HOST | sed s/tcp/https/){path}");
    let keys =
        "--cacert $DOCKER_CERT_PATH/ca.pem --cert $DOCKER_CERT_PATH/cert.pem --key $DOCKER_CERT_PATH/key.pem";
    it.sh(&format!("{exports} curl -sS --fail {keys} {url}")).ok()
}

#[test]
fn sessions_reach_an_engine_of_their_own_and_nothing_without_its_keys_does() {
    let it = with_sidecar();
    it.up(Tier::Recreate);
    assert!(ask(&it, "/version").contains("ApiVersion"));
    assert_ne!(it.sh("curl -sS --insecure https://docker:2376/version").code, Some(0));
    assert_ne!(it.sh("touch /certs/client/x").code, Some(0));
    assert_eq!(it.place.look_beside(&it.instance), SidecarSight::Running);
}

#[test]
fn what_the_engine_holds_outlives_it_and_goes_with_the_instance() {
    let it = with_sidecar();
    it.up(Tier::Recreate);
    let (name, dind) = (it.name(), format!("{}-dind", it.name()));
    it.engine(&["exec", &dind, "docker", "volume", "create", "kept"]);
    it.down(TakeDown::Free);
    let volumes = [format!("Volume {name}-certs"), format!("Volume {name}-dind-data")];
    assert_eq!(it.owned(), [&[format!("Container {name}")][..], &volumes].concat());
    assert_eq!(it.place.look_beside(&it.instance), SidecarSight::Gone);
    it.up(Tier::Start);
    assert!(ask(&it, "/volumes").contains("kept"));
    it.engine(&["kill", &dind]);
    assert_eq!(it.place.look_beside(&it.instance), SidecarSight::Stopped);
    it.down(TakeDown::Remove);
    assert_eq!(it.owned(), [""; 0]);
}

#[test]
fn an_engine_that_does_not_start_is_an_error_with_its_last_lines() {
    let mut it = with_sidecar();
    let box_image = it.instance.recipe.container.as_ref().unwrap().image.id.clone();
    it.recipe().sidecar = Some(box_image);
    assert!(matches!(
        it.result_of_up(Tier::Recreate),
        Err(PlaceError::Refused(_) | PlaceError::EndedAtOnce { .. })
    ));
    it.recipe().network = Network::None;
    let refused = it.result_of_up(Tier::Recreate);
    assert!(matches!(&refused, Err(PlaceError::Refused(why)) if why.contains("network")), "{refused:?}");
}
