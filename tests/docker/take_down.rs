use abide_model::container::EngineKind;
use abide_model::ladder::{PlaceSight, Tier};
use abide_places::place::TakeDown;

use crate::contained::Contained;

on_each_engine! {
    each_way_down_leaves_what_it_says,
    process_1_is_asked_to_stop_even_where_it_is_frozen,
    what_an_image_keeps_in_volumes_goes_with_its_container,
}

fn each_way_down_leaves_what_it_says(engine: EngineKind) {
    let it = Contained::new(engine);
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

fn process_1_is_asked_to_stop_even_where_it_is_frozen(engine: EngineKind) {
    let it = Contained::new(engine);
    it.up(Tier::Recreate);
    it.engine(&["pause", &it.name()]);
    it.down(TakeDown::Stop);
    let record = std::fs::read_to_string(it.dir().join("state/exit.json")).unwrap();
    assert!(record.contains(r#""reason":"sigterm""#), "{record}");
}

fn what_an_image_keeps_in_volumes_goes_with_its_container(engine: EngineKind) {
    let base = Contained::new(engine);
    let id = base.derived_image("VOLUME /data");
    let it = Contained::from_image(engine, &id);
    it.up(Tier::Recreate);
    let format = "{{range .Mounts}}{{if eq .Type \"volume\"}}{{.Name}}{{end}}{{end}}";
    let volume = it.engine(&["inspect", "--format", format, &it.name()]).trim().to_owned();
    it.down(TakeDown::Remove);
    it.engine(&["image", "rm", &id]);
    assert!(!volume.is_empty());
    assert_eq!(it.engine(&["volume", "ls", "-q", "--filter", &format!("name={volume}")]), "");
}
