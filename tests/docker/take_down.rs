use abide_model::ladder::{PlaceSight, Tier};
use abide_places::place::TakeDown;

use crate::contained::{Contained, docker_ok};

#[test]
fn each_way_down_leaves_what_it_says() {
    let it = Contained::new();
    let (container, network) = (format!("Container {}", it.name()), format!("Network {}-net", it.name()));
    it.up(Tier::Recreate);
    assert_eq!(it.owned(), [container.clone(), network.clone()]);
    it.down(TakeDown::Stop);
    assert!(matches!(it.look(), PlaceSight::Stopped(_)), "{:?}", it.look());
    assert_eq!(it.owned(), [container.clone(), network]);
    for _ in 0..2 {
        it.down(TakeDown::Free);
        assert!(matches!(it.look(), PlaceSight::Stopped(_)), "{:?}", it.look());
        assert_eq!(it.owned(), std::slice::from_ref(&container));
    }
    it.up(Tier::Start);
    it.down(TakeDown::Remove);
    assert_eq!(it.owned(), [""; 0]);
    it.down(TakeDown::Remove);
}

#[test]
fn process_1_is_asked_to_stop_even_where_it_is_frozen() {
    let it = Contained::new();
    it.up(Tier::Recreate);
    docker_ok(&["pause", &it.name()]);
    it.down(TakeDown::Stop);
    let record = std::fs::read_to_string(it.dir().join("state/exit.json")).unwrap();
    assert!(record.contains(r#""reason":"sigterm""#), "{record}");
}

#[test]
fn what_an_image_keeps_in_volumes_goes_with_its_container() {
    let base = Contained::new();
    let image = &base.instance.recipe.container.as_ref().unwrap().image.id;
    let made = docker_ok(&["create", image, "true"]);
    let id = docker_ok(&["commit", "--change", "VOLUME /data", made.trim()]);
    docker_ok(&["rm", made.trim()]);
    let it = Contained::from_image(id.trim());
    it.up(Tier::Recreate);
    let format = "{{range .Mounts}}{{if eq .Type \"volume\"}}{{.Name}}{{end}}{{end}}";
    let volume = docker_ok(&["inspect", "--format", format, &it.name()]).trim().to_owned();
    it.down(TakeDown::Remove);
    docker_ok(&["image", "rm", id.trim()]);
    assert!(!volume.is_empty());
    assert_eq!(docker_ok(&["volume", "ls", "-q", "--filter", &format!("name={volume}")]), "");
}
