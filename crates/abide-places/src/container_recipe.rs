//! What a container is to be made from: settings, workspace, role and project as one recipe. Nothing is pinned yet, and no engine is asked.

use std::collections::BTreeMap;
use std::path::Path;

use abide_config::{ByteSize, Name, Role, Settings, Workspace};
use abide_model::container::{
    BaseImage, ContainerRecipe, Image, ImageBuild, ImagePackage, ImageSource, PackageManager,
};
use abide_model::recipe::Mount;
use abide_model::{EnvRef, Extra};

use crate::devcontainer;
use crate::docker::egress::presets;
use crate::place::PlaceError;

/// What decides how a container is made.
#[derive(Debug, Clone, Copy)]
pub struct ContainerInputs<'a> {
    /// The settings, with what the workspace overrides.
    pub settings: &'a Settings,
    pub workspace: Option<&'a Workspace>,
    pub role: &'a Role,
    /// The directory that the role's file is in.
    pub role_dir: &'a Path,
    /// The agents that the launch runs, beside those of the role.
    pub agents: &'a [&'a str],
    /// The directory it is launched from.
    pub project: &'a Path,
    pub uid: u32,
    pub gid: u32,
}

/// How a container is made, and what the project's `devcontainer.json` adds to its instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerPlan {
    pub recipe: ContainerRecipe,
    pub env: BTreeMap<String, EnvRef>,
    pub mounts: Vec<Mount>,
    /// The command that runs once in a new instance, unless workspace or role have one.
    pub setup: Vec<String>,
}

/// How the container of a launch is made; refused where what is asked for contradicts itself or is not supported.
pub fn container_recipe(inputs: &ContainerInputs<'_>) -> Result<ContainerPlan, PlaceError> {
    let (settings, role) = (inputs.settings, inputs.role);
    let (mut plan, origin) = match role_image(inputs)? {
        Some(source) => (with_source(source), ImageOrigin::Own),
        None if settings.role.is_devcontainer_role() => {
            (devcontainer::read(inputs.project, inputs.uid)?, ImageOrigin::Own)
        }
        None => {
            let base = BaseImage::named(&settings.container.image);
            (with_source(ImageSource::Reference(base)), ImageOrigin::Default)
        }
    };
    let recipe = &mut plan.recipe;
    recipe.image.packages = packages(inputs, origin);
    recipe.engine = settings.engine;
    recipe.context = settings.context.clone();
    (recipe.uid, recipe.gid) = (inputs.uid, inputs.gid);
    let network = inputs.workspace.and_then(|workspace| workspace.container.network);
    recipe.network = network.or(role.network).unwrap_or(settings.container.network);
    let agents = agent_names(inputs).into_iter().filter(|agent| presets::hosts(agent).is_some());
    recipe.allowed_hosts = agents.map(str::to_owned).collect();
    recipe.allowed_hosts.extend(settings.container.allow.iter().chain(&role.allow).cloned());
    recipe.sidecar = settings.container.sidecar.clone();
    recipe.memory = settings.container.memory.map(ByteSize::bytes);
    recipe.processes = Some(settings.container.processes).filter(|count| *count > 0);
    recipe.run_flags = settings.container.flags.clone();
    Ok(plan)
}

/// Whose image a container is made from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ImageOrigin {
    /// What the role or the project has chosen.
    Own,
    /// The base of the role `default`, which may lack all that an instance needs.
    Default,
}

fn with_source(source: ImageSource) -> ContainerPlan {
    let image = Image { source, ..Image::default() };
    ContainerPlan {
        recipe: ContainerRecipe { image, ..ContainerRecipe::default() },
        ..ContainerPlan::default()
    }
}

/// The image that the role has chosen, if it has.
fn role_image(inputs: &ContainerInputs<'_>) -> Result<Option<ImageSource>, PlaceError> {
    const DOCKERFILE: &str = "Dockerfile";
    let role = inputs.role;
    let there = inputs.role_dir.join(DOCKERFILE).is_file();
    let named =
        role.dockerfile.clone().or_else(|| (role.source.is_some() || there).then(|| DOCKERFILE.to_owned()));
    match (&role.image, named) {
        (Some(_), Some(_)) if role.dockerfile.is_some() || role.source.is_some() => {
            Err(PlaceError::Refused(format!(
                "the role {} has both an image and a Dockerfile; remove one of them from {}",
                inputs.settings.role,
                inputs.role_dir.join("role.toml").display()
            )))
        }
        (Some(image), _) => Ok(Some(ImageSource::Reference(BaseImage::named(image)))),
        (None, Some(dockerfile)) => Ok(Some(ImageSource::Build(ImageBuild {
            origin: role.source.clone().unwrap_or_else(|| inputs.role_dir.display().to_string()),
            commit: role.commit.clone(),
            dockerfile,
            context: ".".to_owned(),
            ..ImageBuild::default()
        }))),
        (None, None) => Ok(None),
    }
}

/// The agents of the role and of the launch.
fn agent_names<'a>(inputs: &ContainerInputs<'a>) -> Vec<&'a str> {
    let of_role = inputs.role.agents.iter().map(Name::as_str);
    let others = inputs.agents.iter().filter(|agent| of_role.clone().all(|name| name != **agent));
    of_role.clone().chain(others.copied()).collect()
}

/// What the image gets where it lacks it: the agents, and on the default image what an instance and its agents need.
fn packages(inputs: &ContainerInputs<'_>, origin: ImageOrigin) -> Vec<ImagePackage> {
    let npm = agent_names(inputs).into_iter().filter_map(|name| {
        let agent = abide_agents::agent(name)?;
        let (package, version) = agent.profile().package?;
        Some(ImagePackage {
            command: agent.program().to_owned(),
            manager: PackageManager::Npm,
            name: package.to_owned(),
            version: Some(version.to_owned()),
            extra: Extra::new(),
        })
    });
    let npm: Vec<ImagePackage> = npm.collect();
    let mut needed = Vec::new();
    if origin == ImageOrigin::Default {
        needed.extend([("git", "git"), ("update-ca-certificates", "ca-certificates")]);
    }
    let system = |(command, name): (&str, &str)| ImagePackage {
        command: command.to_owned(),
        manager: PackageManager::System,
        name: name.to_owned(),
        version: None,
        extra: Extra::new(),
    };
    needed.into_iter().map(system).chain(npm).collect()
}

#[cfg(test)]
mod tests {
    use abide_model::container::{EngineKind, Network};

    use super::*;

    fn planned(settings: &str, role: &str, agents: &[&str]) -> Result<ContainerPlan, PlaceError> {
        let dir = tempfile::tempdir().unwrap();
        let config = abide_config::ConfigDir::new(dir.path(), dir.path());
        let role_file = config.role_file(&"r".parse().unwrap());
        let role_dir = role_file.parent().unwrap();
        std::fs::create_dir_all(role_dir).unwrap();
        std::fs::write(config.settings_file(), settings).unwrap();
        std::fs::write(&role_file, role).unwrap();
        container_recipe(&ContainerInputs {
            settings: &config.load().unwrap(),
            workspace: None,
            role: &config.role(&"r".parse().unwrap()).unwrap(),
            role_dir,
            agents,
            project: dir.path(),
            uid: 1000,
            gid: 1001,
        })
    }

    fn commands(plan: &ContainerPlan) -> Vec<&str> {
        plan.recipe.image.packages.iter().map(|package| package.command.as_str()).collect()
    }

    #[test]
    fn settings_and_role_become_one_recipe() {
        let settings = "engine = \"podman\"\ncontext = \"far\"\n[container]\nallow = [\"a.example\"]\nmemory = \"1GiB\"\n\
                        processes = 0\nsidecar = \"dind\"\nflags = [\"--init\"]\n";
        let role = "image = \"debian:13\"\nnetwork = \"allow\"\nallow = [\"b.example\"]\n";
        let recipe = planned(settings, role, &["claude", "my-own-agent"]).unwrap().recipe;
        assert_eq!((recipe.engine, recipe.context.as_deref()), (EngineKind::Podman, Some("far")));
        assert_eq!(recipe.image.source, ImageSource::Reference(BaseImage::named("debian:13")));
        assert_eq!((recipe.uid, recipe.gid, recipe.network), (1000, 1001, Network::Allow));
        assert_eq!(recipe.allowed_hosts, ["claude", "a.example", "b.example"]);
        assert_eq!((recipe.memory, recipe.processes), (Some(1 << 30), None));
        assert_eq!((recipe.sidecar.as_deref(), recipe.run_flags), (Some("dind"), vec!["--init".to_owned()]));
    }

    #[test]
    fn the_default_image_gets_what_it_may_lack_and_another_only_the_agents() {
        let plan = planned("", "", &["claude"]).unwrap();
        assert_eq!(plan.recipe.image.source, ImageSource::Reference(BaseImage::named("debian:stable-slim")));
        assert_eq!(commands(&plan), ["git", "update-ca-certificates", "claude"]);
        assert_eq!(commands(&planned("", "", &["my-own-agent"]).unwrap()), ["git", "update-ca-certificates"]);
        let role = "image = \"debian:13\"\nagents = [\"codex\", \"claude\"]\n";
        let plan = planned("", role, &["claude"]).unwrap();
        assert_eq!(commands(&plan), ["codex", "claude"]);
        assert!(plan.recipe.image.packages.iter().all(|package| package.version.is_some()));
    }

    #[test]
    fn a_dockerfile_is_built_where_the_role_or_its_repository_has_it() {
        let role =
            "source = \"https://example.org/a.git\"\ncommit = \"0123456789abcdef0123456789abcdef01234567\"\n";
        let ImageSource::Build(build) = planned("", role, &[]).unwrap().recipe.image.source else {
            unreachable!()
        };
        assert_eq!(
            (build.origin.as_str(), build.dockerfile.as_str()),
            ("https://example.org/a.git", "Dockerfile")
        );
        assert_eq!(build.commit.as_deref(), Some("0123456789abcdef0123456789abcdef01234567"));
        let role = "dockerfile = \"images/rust\"\n";
        let ImageSource::Build(build) = planned("", role, &[]).unwrap().recipe.image.source else {
            unreachable!()
        };
        assert!(build.origin.ends_with("/roles/r"), "{build:?}");
        assert_eq!((build.dockerfile.as_str(), build.commit), ("images/rust", None));
        let why = planned("", "image = \"a\"\ndockerfile = \"b\"\n", &[]).unwrap_err().to_string();
        assert!(why.contains("has both an image and a Dockerfile; remove one"), "{why}");
    }

    #[test]
    fn a_project_without_a_devcontainer_cannot_have_its_role() {
        let why = planned("role = \"devcontainer\"\n", "", &[]).unwrap_err().to_string();
        assert!(why.contains("has no .devcontainer/devcontainer.json; write one"), "{why}");
    }
}
