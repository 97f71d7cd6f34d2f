//! What does not need an engine: the command line that makes a container, and what it may see.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use abide_model::choice::Isolation;
use abide_model::container::{ContainerRecipe, EngineKind, Image};
use abide_model::instance::LaunchScope;
use abide_model::recipe::{Mount, Recipe};
use abide_model::{Instance, Timestamp};

use super::container::create_args;
use super::engine::Engine;
use super::mounts;
use super::network::NetworkView;
use super::*;
use crate::place::{Access, Bind};

fn instance(mounts: Vec<Mount>) -> Instance {
    let recipe = Recipe { mounts, ..Recipe::default() };
    let (id, scope) = ("k7p9m2xq".parse().unwrap(), LaunchScope::directory("/src/app".into()));
    let by = abide_sys::process::this();
    Instance::starting(id, scope, "default".to_owned(), recipe, by, Timestamp(0))
}

fn owner(home: impl Into<PathBuf>) -> Owner {
    Owner { id: "0123".to_owned(), home: home.into() }
}

fn wanted<'a>(instance: &'a Instance, recipe: &'a ContainerRecipe, dir: &'a Path) -> BringUp<'a> {
    let argv = ["/h/bin/1/abide", "capsule", "keeper"].map(OsString::from).to_vec();
    let (programs, home) = (Path::new("/h/bin"), dir.join("home"));
    BringUp { instance, recipe, dir, programs, argv, home, binds: Vec::new() }
}

#[test]
fn a_container_is_made_with_what_it_needs_and_no_more() {
    let recipe = ContainerRecipe {
        image: Image { id: "sha256:feed".to_owned(), ..Image::default() },
        uid: 1000,
        gid: 100,
        memory: Some(1 << 30),
        processes: Some(512),
        run_flags: vec!["--shm-size=1g".to_owned()],
        ..ContainerRecipe::default()
    };
    let tree = Mount { isolation: Isolation::Clone, tree: Some("app".to_owned()), ..Mount::default() };
    let shared =
        Mount { source: "/data".into(), target: "/data".into(), read_only: true, ..Mount::default() };
    let instance = instance(vec![tree, shared]);
    let wanted = wanted(&instance, &recipe, Path::new("/h/instances/k7p9m2xq"));
    let network = NetworkView { id: "1".to_owned(), name: "net".to_owned(), labels: None, internal: false };
    let engine = Engine { choice: EngineChoice { kind: EngineKind::Docker, context: None } };
    let binds = mounts::binds(&wanted).unwrap();
    let args = create_args(&owner("/h"), &wanted, &binds, Some(&network), &engine).unwrap();
    let text: Vec<_> = args.iter().map(|word| word.to_str().unwrap()).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn a_path_with_the_separator_of_the_flag_in_it_is_quoted() {
    let bind = |path: &str| Bind { source: path.into(), target: "/x".into(), access: Access::ReadOnly };
    let flag = mounts::flag(&bind("/a,b \"c\"")).unwrap();
    assert_eq!(flag, r#"type=bind,"source=/a,b ""c""","target=/x",readonly"#);
    assert!(mounts::flag(&bind("/a\nb")).unwrap_err().to_string().contains("cannot mount"));
}

#[test]
fn what_must_not_be_seen_inside_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = |sub: &str| dir.path().join(sub);
    for sub in ["user/.abide/instances/i", "user/work", "elsewhere"] {
        fs::create_dir_all(path(sub)).unwrap();
    }
    std::os::unix::fs::symlink(path("user"), path("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    let owner = owner(path("user/.abide"));
    let refusal = |source: &str, target: PathBuf| {
        let mount = Mount { source: path(source), target, ..Mount::default() };
        let (instance, recipe) = (instance(vec![mount]), ContainerRecipe::default());
        let instance_dir = path("user/.abide/instances/i");
        let mut wanted = wanted(&instance, &recipe, &instance_dir);
        let programs = path("elsewhere");
        wanted.programs = &programs;
        mounts::prepare(&wanted).unwrap();
        fs::write(instance_dir.join("run/keeper.json"), "").unwrap();
        mounts::check(&owner, &wanted, &mounts::binds(&wanted).unwrap()).err().map(|error| error.to_string())
    };
    assert_eq!(refusal("user/work", "/work".into()), None);
    assert_eq!(refusal("user/work", path("user/work")), None);
    for (source, target, why) in [
        ("user", "/u".into(), "abide's own directory"),
        ("link", "/u".into(), "abide's own directory"),
        ("user/.abide/instances", "/u".into(), "abide's own directory"),
        ("missing", "/u".into(), "not there"),
        ("socket", "/u".into(), "only files and directories"),
        ("user/work", path("user"), "choose another path inside"),
        ("user/work", "/".into(), "choose another path inside"),
        ("user/work", "/a/../b".into(), "without `..`"),
        ("user/work", "relative".into(), "absolute"),
    ] {
        let refused = refusal(source, target).unwrap_or_default();
        assert!(refused.contains(why), "{source}: {refused}");
    }
}

#[test]
fn what_a_container_made_a_link_out_of_is_not_mounted() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("project/data")).unwrap();
    fs::create_dir_all(root.join("secrets")).unwrap();
    let shared =
        |path: PathBuf, target: &str| Mount { source: path, target: target.into(), ..Mount::default() };
    let instance =
        instance(vec![shared(root.join("project"), "/project"), shared(root.join("project/data"), "/data")]);
    let recipe = ContainerRecipe::default();
    let instance_dir = root.join("home/instances/i");
    let check = || mounts::check(&owner(root.join("home")), &wanted(&instance, &recipe, &instance_dir), &[]);
    check().unwrap();
    fs::remove_dir(root.join("project/data")).unwrap();
    std::os::unix::fs::symlink("../secrets", root.join("project/data")).unwrap();
    let why = check().unwrap_err().to_string();
    assert!(why.contains("project/data: it is behind a link"), "{why}");
}
