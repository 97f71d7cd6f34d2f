#![allow(clippy::unwrap_used)]

use super::*;

fn parsed(text: &str) -> Result<ContainerPlan, String> {
    parse(text, Path::new("/work/shop"), Path::new(FILES[0]), 1000)
}

#[test]
fn every_supported_key_arrives_in_the_plan() {
    let plan = parsed(
        r#"{
            // An editor reads this.
            "name": "shop", "customizations": {"vscode": {}}, "$schema": "x",
            /* built here */
            "build": {"dockerfile": "Dockerfile", "context": "..", "args": {"A": "b // c", "D": "x,}"},},
            "containerUser": "node", "remoteUser": "dev",
            "containerEnv": {"MODE": "fast", "ROOT": "${localWorkspaceFolder}/x"},
            "remoteEnv": {"MODE": "slow"},
            "postCreateCommand": "make deps && echo ${HOME}",
        }"#,
    )
    .unwrap();
    let image = &plan.recipe.image;
    assert_eq!(image.user.as_deref(), Some("dev"));
    let ImageSource::Build(build) = &image.source else { unreachable!("{image:?}") };
    assert_eq!((build.origin.as_str(), build.commit.as_deref()), ("/work/shop", None));
    assert_eq!((build.dockerfile.as_str(), build.context.as_str()), (".devcontainer/Dockerfile", "."));
    assert_eq!(build.args, [("A".into(), "b // c".into()), ("D".into(), "x,}".into())]);
    let plain = |text: &str| EnvRef::Plain(text.to_owned());
    assert_eq!((&plan.env["MODE"], &plan.env["ROOT"]), (&plain("slow"), &plain("/work/shop/x")));
    assert_eq!(plan.setup, ["/bin/sh", "-c", "make deps && echo ${HOME}"]);

    let plan = parsed(r#"{"image": "debian:13", "postCreateCommand": ["make", "deps"]}"#).unwrap();
    assert_eq!(plan.recipe.image.source, ImageSource::Reference(BaseImage::named("debian:13")));
    assert_eq!(plan.setup, ["make", "deps"]);
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (text, named) in [
        (r#"{"image": "a", "features": {}, "forwardPorts": [1]}"#, "not supported: features, forwardPorts;"),
        (r#"{"build": {"dockerfile": "D", "target": "x"}}"#, "not supported: build.target;"),
        (r#"{"dockerComposeFile": "x"}"#, "not supported: dockerComposeFile;"),
        (r#"{"image": "a", "build": {"dockerfile": "D"}}"#, "both `image` and `build`"),
        (r#"{"build": {}}"#, "build: has no `dockerfile`"),
        (r#"{}"#, "neither `image` nor `build`"),
        (r#"{"image": "--privileged"}"#, "`--privileged` is not the name of an image"),
        (r#"{"image": "a:${localEnv:TAG}"}"#, "image: not supported: ${localEnv:TAG};"),
        (
            r#"{"build": {"dockerfile": "../../Dockerfile"}}"#,
            "build.dockerfile: `../../Dockerfile` is outside",
        ),
        (r#"{"build": {"dockerfile": "D", "context": "/etc"}}"#, "build.context: `/etc` is outside"),
        (
            r#"{"image": "a", "remoteUser": "root"}"#,
            "remoteUser: sessions run with your uid 1000, not as root",
        ),
        (r#"{"image": "a", "remoteUser": "a:b"}"#, "remoteUser: `a:b` is not the name of a user"),
        (
            r#"{"image": "a", "containerEnv": {"X": "${localEnv:TOKEN}"}}"#,
            "containerEnv.X: not supported: ${localEnv:TOKEN};",
        ),
        (r#"{"image": "a", "containerEnv": {"A=B": "x"}}"#, "containerEnv.A=B: not the name of a variable"),
        (r#"{"image": "a", "remoteEnv": {"X": null}}"#, "remoteEnv.X: not text"),
        (
            r#"{"image": "a", "postCreateCommand": {"a": "x"}}"#,
            "postCreateCommand: not supported: several commands",
        ),
        (
            r#"{"image": "a", "mounts": ["source=x,target=/x,type=volume"]}"#,
            "mounts[0]: not supported: type=volume;",
        ),
        (
            r#"{"image": "a", "mounts": [{"source": "/", "target": "x", "type": "bind"}]}"#,
            "mounts[0]: its target is not",
        ),
        (
            r#"{"image": "a", "mounts": ["source=/,target=/x,type=bind,bind-propagation=shared"]}"#,
            "mounts[0]: not supported: bind-propagation",
        ),
        ("[]", "not an object"),
        ("{", "not JSON"),
    ] {
        let why = parsed(text).unwrap_err();
        assert!(why.contains(named), "{text}: {why}");
    }
}

/// A value is resolved on the host each time the instance starts.
#[test]
fn a_project_cannot_have_a_command_run_or_a_file_read_on_the_host() {
    for value in ["cmd:touch /tmp/x", "file:/etc/shadow", "env:TOKEN", "op://a/b/c", "cmd:"] {
        let why = parsed(&format!(r#"{{"image": "a", "containerEnv": {{"X": "{value}"}}}}"#)).unwrap_err();
        assert!(why.contains("containerEnv.X: a reference"), "{value}: {why}");
    }
}

#[test]
fn only_what_is_really_inside_the_project_is_mounted() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("shop");
    std::fs::create_dir_all(project.join("data")).unwrap();
    std::fs::create_dir(dir.path().join("secrets")).unwrap();
    std::os::unix::fs::symlink("../secrets", project.join("link")).unwrap();
    let parsed = |source: &str| {
        let text = format!(
            r#"{{"image": "a", "mounts": ["source=${{localWorkspaceFolder}}/{source},target=/data,type=bind,readonly"]}}"#
        );
        parse(&text, &project, Path::new(FILES[0]), 1000)
    };
    let mounts = parsed("data").unwrap().mounts;
    let data = project.canonicalize().unwrap().join("data");
    assert_eq!((&mounts[0].source, mounts[0].read_only), (&data, true));
    assert_eq!(mounts[0].target, Path::new("/data"));
    for source in ["link", "../secrets"] {
        let why = parsed(source).unwrap_err();
        assert!(why.contains("is not inside the project"), "{why}");
    }
    assert!(parsed("missing").unwrap_err().contains("missing: No such file"));
}

#[test]
fn comments_and_last_commas_go_and_strings_stay() {
    for (text, expected) in [
        (r#"{"a": 1, /* x */ }"#, r#"{"a":1}"#),
        ("[1, // one\n 2,\n]", "[1,2]"),
        (r#"{"a": "//x /* y */ \" ,}"}"#, r#"{"a":"//x /* y */ \" ,}"}"#),
        ("[/**/1/***/]", "[1]"),
    ] {
        let value: Value = serde_json::from_str(&without_comments(text)).unwrap();
        assert_eq!(value.to_string(), expected, "{text}");
    }
    for broken in ["\"abc", "/* abc", "/", "\"\\"] {
        assert!(serde_json::from_str::<Value>(&without_comments(broken)).is_err(), "{broken}");
    }
}
