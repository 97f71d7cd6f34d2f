//! The image of an instance: built from pinned inputs, found again, and built again from the same.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use abide_config::ConfigDir;
use abide_model::container::{
    BaseImage, ContainerRecipe, EngineChoice, EngineKind, Image, ImageBuild, ImageSource,
};
use abide_places::container_recipe::{ContainerInputs, ContainerPlan, container_recipe};
use abide_places::docker;
use abide_places::owner::Owner;
use abide_places::place::{Place, PlaceError, Stage, StageEvent};
use abide_testkit::{Sandbox, require_containers};

use crate::contained::run;

on_each_engine! {
    an_image_gets_a_user_with_the_operators_ids_and_is_built_once,
    an_operator_who_is_root_needs_no_user,
    an_image_with_nothing_but_sh_and_git_will_do,
    an_image_without_sh_or_git_is_refused_by_name,
    a_role_that_has_moved_on_is_built_again_as_it_was,
    a_repository_is_built_at_its_commit_even_if_it_has_moved_on,
    a_base_that_cannot_be_had_is_an_error_that_names_it,
    a_build_that_fails_shows_its_last_lines_and_leaves_nothing,
    an_agent_is_installed_at_its_version_where_the_image_lacks_it,
    the_default_role_installs_git_where_its_image_lacks_it,
    a_projects_devcontainer_is_a_role,
}

const UID: u32 = 4321;

/// A home of a test's own, its engine, and images that the test made there by hand.
struct Images {
    engine: EngineKind,
    sandbox: Sandbox,
    place: Box<dyn Place>,
    made: RefCell<Vec<String>>,
    heard: RefCell<Vec<StageEvent>>,
}

impl Images {
    fn new(engine: EngineKind) -> Self {
        let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_abide"));
        fs::create_dir_all(sandbox.home()).unwrap();
        let owner = Owner::of_home(&sandbox.home()).unwrap();
        let place = Box::new(docker::place(EngineChoice { kind: engine, context: None }, owner));
        Self { engine, sandbox, place, made: RefCell::default(), heard: RefCell::default() }
    }

    /// An image of the test's own that is built from `text`, with everything that the tests' image has in the stage `box`.
    fn base(&self, name: &str, text: &str) -> String {
        let name = format!("localhost/abide-test-{name}:{}", std::process::id());
        let dir = self.sandbox.path(format!("base-{}", self.made.borrow().len()));
        fs::create_dir_all(&dir).unwrap();
        // Without the label, the engine would take the image of another test for this one.
        let text = format!("FROM {} AS box\n{text}\nLABEL of={name}\n", test_box());
        fs::write(dir.join("Dockerfile"), text).unwrap();
        self.run(&["build", "-q", "--force-rm", "--network=none", "-t", &name, dir.to_str().unwrap()]);
        self.made.borrow_mut().push(name.clone());
        name
    }

    fn prepare(&self, recipe: &ContainerRecipe) -> Result<ContainerRecipe, PlaceError> {
        self.heard.borrow_mut().clear();
        let image = self.place.prepare(recipe, &|event| self.heard.borrow_mut().push(event))?;
        Ok(ContainerRecipe { image, ..recipe.clone() })
    }

    /// What a shell script prints in the image, run as the operator.
    #[track_caller]
    fn sh(&self, recipe: &ContainerRecipe, script: &str) -> String {
        let user = format!("{}:{}", recipe.uid, recipe.gid);
        let args =
            ["run", "--rm", "--network", "none", "--user", &user, &recipe.image.id, "sh", "-euc", script];
        self.run(&args)
    }

    /// Runs the engine's own command; gives what it printed, and fails the test where it fails.
    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        run(self.engine, args).ok().trim_end().to_owned()
    }

    fn remove(&self, recipe: &ContainerRecipe) {
        self.run(&["rmi", "-f", &recipe.image.id]);
    }

    #[track_caller]
    fn refusal(&self, recipe: &ContainerRecipe) -> String {
        match self.prepare(recipe) {
            Err(PlaceError::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    fn has_built(&self) -> bool {
        self.heard.borrow().contains(&StageEvent::Begun(Stage::Build))
    }

    /// The plan of a launch with these settings, role and agents, in the directory `work` of the sandbox.
    fn plan(&self, settings: &str, role: &str, agents: &[&str]) -> Result<ContainerPlan, PlaceError> {
        let config = ConfigDir::new(self.sandbox.config(), self.sandbox.home());
        let file = config.role_file(&"r".parse().unwrap());
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, role).unwrap();
        fs::write(config.settings_file(), settings).unwrap();
        let settings = config.load().unwrap();
        container_recipe(&ContainerInputs {
            role: &config.role(&settings.role).unwrap(),
            role_dir: config.role_file(&settings.role).parent().unwrap(),
            settings: &settings,
            workspace: None,
            agents,
            project: &self.sandbox.work(),
            uid: UID,
            gid: UID,
        })
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        let mut ids = self.made.borrow().clone();
        // Podman refuses to remove where something else goes at the same time.
        for _ in 0..20 {
            ids.extend(self.place.owned().unwrap_or_default().into_iter().map(|owned| owned.id));
            ids.retain(|image| run(self.engine, &["rmi", "-f", image]).code != Some(0));
            ids.retain(|image| run(self.engine, &["image", "inspect", image]).code == Some(0));
            if ids.is_empty() && self.place.owned().is_ok_and(|owned| owned.is_empty()) {
                return;
            }
        }
        if !std::thread::panicking() {
            assert_eq!(self.place.owned().unwrap(), [], "something is left on the engine");
        }
    }
}

fn test_box() -> String {
    format!("abide-test-box:{}", require_containers())
}

fn from(source: ImageSource) -> ContainerRecipe {
    let image = Image { source, ..Image::default() };
    ContainerRecipe { image, uid: UID, gid: UID + 1, ..ContainerRecipe::default() }
}

fn named(name: &str) -> ContainerRecipe {
    from(ImageSource::Reference(BaseImage::named(name)))
}

fn built(origin: impl AsRef<Path>) -> ContainerRecipe {
    from(ImageSource::Build(ImageBuild {
        origin: origin.as_ref().display().to_string(),
        dockerfile: "Dockerfile".to_owned(),
        context: ".".to_owned(),
        ..ImageBuild::default()
    }))
}

fn an_image_gets_a_user_with_the_operators_ids_and_is_built_once(engine: EngineKind) {
    let images = Images::new(engine);
    let recipe = images.prepare(&named(&test_box())).unwrap();
    assert!(images.has_built());
    assert_eq!(images.sh(&recipe, "id -u; id -un; id -g; id -gn"), "4321\nuser4321\n4322\ngroup4322");
    assert_eq!(images.sh(&recipe, "cd ~user4321 && touch file && ls"), "file");
    let ImageSource::Reference(base) = &recipe.image.source else { unreachable!() };
    let id = images.run(&["image", "inspect", "--format", "{{.Id}}", &test_box()]);
    assert_eq!(base.id.as_deref(), Some(id.trim()));

    let again = images.prepare(&named(&test_box())).unwrap();
    assert_eq!(again, recipe);
    assert!(!images.has_built());
    let other = images.prepare(&ContainerRecipe { uid: UID + 1, ..named(&test_box()) }).unwrap();
    assert_ne!(other.image.id, recipe.image.id);
    assert_eq!(images.place.owned().unwrap().len(), 2);
}

fn an_operator_who_is_root_needs_no_user(engine: EngineKind) {
    let images = Images::new(engine);
    let recipe = images.prepare(&ContainerRecipe { uid: 0, gid: 0, ..named(&test_box()) }).unwrap();
    assert_eq!(images.sh(&recipe, "id -un; ! grep user /etc/passwd | grep abide"), "root");
}

/// Neither useradd nor anything else but a shell and git, no list of users, or one whose last line has no end.
fn an_image_with_nothing_but_sh_and_git_will_do(engine: EngineKind) {
    let images = Images::new(engine);
    let bare = "FROM scratch\nCOPY --from=box /bin/sh /bin/git /bin/\nCOPY --from=box /lib/x86_64-linux-gnu/libc.so.6 /lib/x86_64-linux-gnu/\n\
                COPY --from=box /lib64/ld-linux-x86-64.so.2 /lib64/";
    let read = "while read -r line; do echo \"$line\"; done </etc/passwd; while read -r line; do echo \"$line\"; done </etc/group";
    let (user, group) = ("user4321:x:4321:4322::/home/user4321:/bin/sh", "group4322:x:4322:");
    let recipe = images.prepare(&named(&images.base("bare", bare))).unwrap();
    assert_eq!(images.sh(&recipe, read), format!("{user}\n{group}"));

    let listed = format!("{bare}\nCOPY passwd group /etc/");
    let dir = images.sandbox.path("base-1");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("passwd"), "root:x:0:0::/:/bin/sh\nada:x:1:1::/:/bin/sh").unwrap();
    fs::write(dir.join("group"), "root:x:0:\nstaff:x:4322:").unwrap();
    let recipe = images.prepare(&named(&images.base("listed", &listed))).unwrap();
    let passwd = format!("root:x:0:0::/:/bin/sh\nada:x:1:1::/:/bin/sh\n{user}");
    assert_eq!(
        images.sh(&recipe, &format!("{read}; [ -z \"$line\" ] || echo \"$line\"")),
        format!("{passwd}\nroot:x:0:\nstaff:x:4322:")
    );
}

fn an_image_without_sh_or_git_is_refused_by_name(engine: EngineKind) {
    let images = Images::new(engine);
    let shell = images.base("no-shell", "FROM scratch\nCOPY --from=box /etc/hostname /");
    let why = images.refusal(&named(&shell));
    assert!(why.starts_with(&format!("{shell} has no /bin/sh")), "{why}");
    let git = images.base("no-git", "RUN rm /usr/bin/git");
    let why = images.refusal(&named(&git));
    assert!(why.starts_with(&format!("{git} has no git")), "{why}");
    assert_eq!(images.place.owned().unwrap(), []);
}

fn a_role_that_has_moved_on_is_built_again_as_it_was(engine: EngineKind) {
    let images = Images::new(engine);
    let base = images.base("start", "RUN echo old >/base");
    let role = images.sandbox.path("role");
    let write = |text: &str| {
        fs::create_dir_all(&role).unwrap();
        fs::write(role.join("text"), text).unwrap();
        fs::write(role.join("Dockerfile"), format!("ARG B={base}\nFROM $B AS a\nFROM a\nCOPY text /text\n"))
            .unwrap();
    };
    write("first");
    let first = images.prepare(&built(&role)).unwrap();
    assert_eq!(images.sh(&first, "cat /base /text; id -un"), "old\nfirstuser4321");
    let ImageSource::Build(build) = &first.image.source else { unreachable!() };
    assert!(build.commit.is_some());
    assert_eq!(build.bases.iter().map(|base| base.name.as_str()).collect::<Vec<_>>(), [base.as_str()]);

    write("second");
    // A name that means another image by now, while the old one is still there.
    let kept = format!("localhost/abide-test-kept:{}", std::process::id());
    images.run(&["tag", &base, &kept]);
    images.made.borrow_mut().push(kept);
    images.base("start", "RUN echo new >/base");
    images.remove(&first);
    let again = images.prepare(&first).unwrap();
    assert!(images.has_built());
    assert_eq!(images.sh(&again, "cat /base /text"), "old\nfirst");
    assert_eq!(again.image.source, first.image.source);
    assert_eq!(images.run(&["images", "-q", "localhost/abide-base"]), "", "a name is left");

    let second = images.prepare(&built(&role)).unwrap();
    assert_eq!(images.sh(&second, "cat /base /text"), "new\nsecond");

    fs::remove_dir_all(images.sandbox.home().join("cache")).unwrap();
    images.remove(&again);
    let why = images.refusal(&again);
    assert!(why.contains("role has changed since the image was built from it"), "{why}");
    write("first");
    images.prepare(&again).unwrap();
}

fn a_repository_is_built_at_its_commit_even_if_it_has_moved_on(engine: EngineKind) {
    let images = Images::new(engine);
    let repo = images.sandbox.path("roles");
    fs::create_dir_all(&repo).unwrap();
    let git = |args: &[&str]| {
        let out = images.sandbox.command("git").arg("-C").arg(&repo).args(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    let commit = |text: &str| {
        fs::write(repo.join("text"), text).unwrap();
        fs::write(repo.join("Dockerfile"), format!("FROM {}\nCOPY text /text\n", test_box())).unwrap();
        git(&["add", "-A"]);
        git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", text]);
        git(&["rev-parse", "HEAD"])
    };
    git(&["init", "-q"]);
    let (first, _second) = (commit("first"), commit("second"));
    let role = format!("source = \"file://{}\"\ncommit = \"{first}\"\n", repo.display());
    let recipe = images.plan("role = \"r\"\n", &role, &[]).unwrap().recipe;
    let recipe = images.prepare(&recipe).unwrap();
    assert_eq!(images.sh(&recipe, "cat /text"), "first");
    images.remove(&recipe);
    fs::remove_dir_all(&repo).unwrap();
    let recipe = images.prepare(&recipe).unwrap();
    assert!(images.has_built());
    assert_eq!(images.sh(&recipe, "cat /text"), "first");
}

fn a_base_that_cannot_be_had_is_an_error_that_names_it(engine: EngineKind) {
    let images = Images::new(engine);
    let why = images.refusal(&named("localhost/abide-test-missing:1"));
    assert!(
        why.starts_with("localhost/abide-test-missing:1 is not on the engine and cannot be pulled"),
        "{why}"
    );

    let base = images.base("lost", "RUN echo old >/base");
    let recipe = images.prepare(&named(&base)).unwrap();
    let ImageSource::Reference(BaseImage { id: Some(id), .. }) = &recipe.image.source else { unreachable!() };
    images.remove(&recipe);
    images.run(&["rmi", &base]);
    let why = images.refusal(&recipe);
    assert!(
        why.contains(&format!("needs {base} with the id {id}, which is gone and cannot be pulled")),
        "{why}"
    );
    images.base("lost", "RUN echo new >/base");
    let why = images.refusal(&recipe);
    assert!(why.contains(&format!("needs {base} with the id {id}, which is gone; {base} is ")), "{why}");
    assert_eq!(images.place.owned().unwrap(), []);
}

fn a_build_that_fails_shows_its_last_lines_and_leaves_nothing(engine: EngineKind) {
    let images = Images::new(engine);
    let role = images.sandbox.path("role");
    fs::create_dir_all(&role).unwrap();
    fs::write(
        role.join("Dockerfile"),
        format!("FROM {}\nRUN echo begun; echo broken >&2; exit 9\n", test_box()),
    )
    .unwrap();
    let error = images.prepare(&built(&role)).unwrap_err();
    let PlaceError::NotBuilt { next, output } = &error else { panic!("{error:?}") };
    assert!(next.starts_with(&format!("correct the Dockerfile of {}/Dockerfile", role.display())), "{next}");
    assert!(output.contains("begun") && output.contains("broken") && !output.contains('\u{1b}'), "{output}");
    let heard = images.heard.borrow();
    assert!(heard.contains(&StageEvent::Said(Stage::Build, "broken".to_owned())), "{heard:?}");
    assert_eq!(images.place.owned().unwrap(), []);
    assert_eq!(fs::read_dir(images.sandbox.home().join("cache/builds")).unwrap().count(), 0);
}

/// The registry of npm is no part of these tests: a program of that name says what it was asked for.
const NPM: &str = r#"RUN printf '%s\n' '#!/bin/sh' 'echo "$@" >/asked' 'cp /bin/true /usr/bin/claude' >/usr/bin/npm && chmod +x /usr/bin/npm"#;

fn an_agent_is_installed_at_its_version_where_the_image_lacks_it(engine: EngineKind) {
    let images = Images::new(engine);
    let settings = |base: &str| format!("[container]\nimage = \"{base}\"\n");
    let npm = images.base("npm", NPM);
    let recipe = images.plan(&settings(&npm), "", &["claude"]).unwrap().recipe;
    let version = recipe.image.packages.last().unwrap().version.clone().unwrap();
    let recipe = images.prepare(&recipe).unwrap();
    let asked = images.sh(&recipe, "cat /asked; command -v claude");
    assert!(
        asked.contains("install --global")
            && asked.contains(&format!("@anthropic-ai/claude-code@{version}\n")),
        "{asked}"
    );

    let has = images.base("claude", &format!("{NPM}\nRUN npm x && rm /asked"));
    let recipe = images.plan(&settings(&has), "", &["claude"]).unwrap().recipe;
    let recipe = images.prepare(&recipe).unwrap();
    assert_eq!(images.sh(&recipe, "test -e /asked || echo untouched"), "untouched");
}

fn the_default_role_installs_git_where_its_image_lacks_it(engine: EngineKind) {
    let images = Images::new(engine);
    // No archive of packages is part of these tests, either.
    let apt = r#"RUN mv /usr/bin/git /git && printf '%s\n' '#!/bin/sh' 'echo "$@" >>/asked' 'mv /git /usr/bin 2>/dev/null || :' >/usr/bin/apt-get"#;
    let base = images.base("apt", apt);
    let recipe = images.plan(&format!("[container]\nimage = \"{base}\"\n"), "", &[]).unwrap().recipe;
    let recipe = images.prepare(&recipe).unwrap();
    let asked = images.sh(&recipe, "cat /asked; command -v git");
    assert_eq!(asked, "update -q\ninstall -qy --no-install-recommends git\n/usr/bin/git");
}

fn a_projects_devcontainer_is_a_role(engine: EngineKind) {
    let images = Images::new(engine);
    let base = images.base(
        "dev",
        "RUN useradd -m dev && echo hello >/home/dev/.greeting && mkdir -m 700 /home/dev/.private",
    );
    let project = images.sandbox.work();
    let write = |user: &str| {
        images
            .sandbox
            .write(project.join(".devcontainer/Dockerfile"), "ARG BASE\nFROM $BASE\nCOPY code /code\n");
        images.sandbox.write(project.join("code"), "x");
        images.sandbox.write(
            project.join(".devcontainer/devcontainer.json"),
            format!(
                r#"{{"build": {{"dockerfile": "Dockerfile", "context": "..", "args": {{"BASE": "{base}"}}}}, // here
                    "remoteUser": "{user}", "containerEnv": {{"MODE": "dev"}}}}"#
            ),
        );
        images.plan("role = \"devcontainer\"\n", "", &[]).unwrap()
    };
    let why = images.refusal(&write("nobody-here").recipe);
    assert!(why.contains("has no user nobody-here"), "{why}");
    let plan = write("dev");
    assert!(plan.env.contains_key("MODE"));
    let recipe = images.prepare(&plan.recipe).unwrap();
    assert_eq!(images.sh(&recipe, "cat /code"), "x");

    let home = images.sandbox.path("new/home");
    fs::create_dir_all(home.parent().unwrap()).unwrap();
    images.place.seed_home(&recipe.image, &home).unwrap();
    assert_eq!(fs::read_to_string(home.join(".greeting")).unwrap(), "hello\n");
    fs::write(home.join(".greeting"), "mine").unwrap();
    images.place.seed_home(&recipe.image, &home).unwrap();
    assert_eq!(fs::read_to_string(home.join(".greeting")).unwrap(), "mine");
    assert_eq!(fs::read_dir(home.parent().unwrap()).unwrap().count(), 1);
    let env = images.place.image_env(&recipe.image).unwrap();
    assert!(env.iter().any(|(name, _)| name == "PATH"), "{env:?}");
}
