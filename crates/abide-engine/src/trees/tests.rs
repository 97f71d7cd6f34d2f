use super::*;

fn configured(source: &str, isolation: Isolation) -> abide_config::Mount {
    let (source, copy) = (source.into(), vec![".env".to_owned()]);
    abide_config::Mount { source, target: None, isolation, copy, read_only: false }
}

fn planned(configured: &[abide_config::Mount], isolation: Option<Isolation>) -> Vec<(String, Isolation)> {
    let wish = Wish { isolation, base: Some("v1".into()), branch: None };
    let mounts = plan(Path::new("/work/shop/api"), configured, &wish, Path::new("/unit"));
    mounts.iter().map(|mount| (mount.target.display().to_string(), mount.isolation)).collect()
}

#[test]
fn a_plain_directory_has_no_mount_unless_one_is_wished_for() {
    assert!(planned(&[], None).is_empty());
    let made = planned(&[], Some(Isolation::Clone));
    assert_eq!(made, [("/unit/tree/api".to_owned(), Isolation::Clone)]);
}

#[test]
fn a_wish_is_for_the_mount_that_holds_the_directory() {
    let all = [configured("/work/docs", Isolation::Shared), configured("/work/shop", Isolation::Worktree)];
    let tree = || "/unit/tree/shop".to_owned();
    assert_eq!(
        planned(&all, None),
        [("/work/docs".to_owned(), Isolation::Shared), (tree(), Isolation::Worktree)]
    );
    assert_eq!(planned(&all, Some(Isolation::Clone))[1], (tree(), Isolation::Clone));
    assert_eq!(planned(&all, Some(Isolation::Shared))[1], ("/work/shop".to_owned(), Isolation::Shared));
}

#[test]
fn trees_of_the_same_name_get_different_names() {
    let all = [configured("/a/shop", Isolation::Clone), configured("/b/shop", Isolation::Clone)];
    let targets: Vec<String> = planned(&all, None).into_iter().map(|(target, _)| target).collect();
    assert_eq!(targets, ["/unit/tree/shop", "/unit/tree/shop-2"]);
}

#[test]
fn what_has_neither_trees_nor_a_set_up_command_is_ready_as_it_is_made() {
    let with = |change: &dyn Fn(&mut abide_model::Recipe)| {
        let mut recipe = abide_model::Recipe::on_host("/work/shop".into());
        change(&mut recipe);
        let scope = abide_model::LaunchScope::directory("/work/shop".into());
        let (id, by) = ("k7p9m2xq".parse().unwrap(), abide_sys::process::this());
        Instance::starting(id, scope, "default".into(), recipe, by, abide_sys::clock::now())
    };
    let tree = plan(
        "/work/shop".as_ref(),
        &[configured("/work/shop", Isolation::Clone)],
        &Wish::default(),
        "/unit".as_ref(),
    );
    assert!(is_ready_at_once(&with(&|_| {})));
    assert!(!is_ready_at_once(&with(&|recipe| recipe.setup = vec!["make".into()])));
    assert!(!is_ready_at_once(&with(&|recipe| recipe.mounts.clone_from(&tree))));
}
