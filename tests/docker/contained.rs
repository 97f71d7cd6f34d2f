//! An instance of a test's own whose process 1 is a keeper in a container.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use abide_keeper::{Config, OWN_IMAGE};
use abide_model::choice::Choice;
use abide_model::container::{ContainerRecipe, EngineKind, Image};
use abide_model::instance::LaunchScope;
use abide_model::ladder::{PlaceSight, Tier};
use abide_model::recipe::{Mount, Recipe};
use abide_model::{Instance, InstanceId, Timestamp};
use abide_places::docker;
use abide_places::owner::Owner;
use abide_places::place::{BringUp, Place, PlaceError, TakeDown};
use abide_testkit::{Run, Sandbox, require_containers};
use abide_wire::instance_dir::InstanceDir;

const LONG: Duration = Duration::from_secs(60);

/// The instance, its directory, and the engine. Everything it has there is removed with it, however the test ends.
pub struct Contained {
    pub sandbox: Sandbox,
    pub instance: Instance,
    pub place: Box<dyn Place>,
    programs: PathBuf,
}

impl Contained {
    pub fn new(engine: EngineKind) -> Self {
        let image = format!("abide-test-box:{}", require_containers());
        let id = run(engine, &["image", "inspect", "--format", "{{.Id}}", &image]).ok();
        Self::from_image(engine, id.trim())
    }

    pub fn from_image(engine: EngineKind, id: &str) -> Self {
        let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_abide"));
        let programs = sandbox.home().join("bin");
        fs::create_dir_all(programs.join("test")).unwrap();
        // The engine may see other directories than the test does where its program was built.
        fs::copy(sandbox.program(), programs.join("test/abide")).unwrap();
        let container = ContainerRecipe {
            engine,
            image: Image { id: id.to_owned(), tag: "test".to_owned(), ..Image::default() },
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            ..ContainerRecipe::default()
        };
        let owner = Owner::of_home(&sandbox.home()).unwrap();
        let place = Box::new(docker::place(container.engine(), owner));
        let recipe = Recipe { container: Some(container), cwd: sandbox.work(), ..Recipe::default() };
        let instance = new_instance(&sandbox, 1, recipe);
        Self { sandbox, instance, place, programs }
    }

    /// Another instance of the same home and recipe.
    pub fn another(&self) -> Instance {
        new_instance(&self.sandbox, 2, self.instance.recipe.clone())
    }

    /// Runs the engine's own command; gives what it printed, and fails the test where it fails.
    #[track_caller]
    pub fn engine(&self, args: &[&str]) -> String {
        run(self.instance.recipe.container.as_ref().unwrap().engine, args).ok()
    }

    /// An image of its own, with `change` made to the one that it runs in.
    pub fn derived_image(&self, change: &str) -> String {
        let image = &self.instance.recipe.container.as_ref().unwrap().image.id;
        let made = self.engine(&["create", image, "true"]);
        let id = self.engine(&["commit", "--change", change, made.trim()]);
        self.engine(&["rm", made.trim()]);
        id.trim().to_owned()
    }

    pub fn recipe(&mut self) -> &mut ContainerRecipe {
        self.instance.recipe.container.as_mut().unwrap()
    }

    pub fn share(&mut self, source: impl Into<PathBuf>, target: impl Into<PathBuf>) {
        let mount = Mount { source: source.into(), target: target.into(), ..Mount::default() };
        self.instance.recipe.mounts.push(mount);
    }

    pub fn dir(&self) -> PathBuf {
        dir_of(&self.sandbox, self.instance.id)
    }

    /// The command line of a keeper for `instance`.
    fn keeper(&self, instance: &Instance) -> Vec<OsString> {
        let mux = [OWN_IMAGE, "capsule", "mux"].map(Into::into).to_vec();
        let config =
            Config::new(dir_of(&self.sandbox, instance.id).into_os_string(), instance.generation, mux);
        let file = InstanceDir::new(dir_of(&self.sandbox, instance.id)).keeper_config();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, serde_json::to_vec(&config).unwrap()).unwrap();
        let program = self.programs.join("test/abide").into_os_string();
        [program, "capsule".into(), "keeper".into(), "--config-file".into(), file.into()].into()
    }

    pub fn try_up(&self, instance: &Instance, tier: Tier, argv: Vec<OsString>) -> Result<(), PlaceError> {
        let dir = dir_of(&self.sandbox, instance.id);
        self.keeper(instance);
        let wanted = BringUp {
            instance,
            recipe: instance.recipe.container.as_ref().unwrap(),
            dir: &dir,
            programs: &self.programs,
            argv,
            home: dir.join("home"),
            binds: Vec::new(),
        };
        self.place.bring_up(&wanted, tier, &|_| {})
    }

    pub fn result_of_up(&self, tier: Tier) -> Result<(), PlaceError> {
        self.try_up(&self.instance, tier, self.keeper(&self.instance))
    }

    #[track_caller]
    pub fn up(&self, tier: Tier) {
        self.result_of_up(tier).unwrap();
    }

    pub fn look(&self) -> PlaceSight {
        self.place.look(&[&self.instance]).remove(0)
    }

    /// Runs a shell script inside.
    pub fn sh(&self, script: &str) -> Run {
        let argv = ["sh", "-euc", script].map(OsString::from);
        let out = abide_sys::run::output(&mut self.place.exec(&self.instance, &argv).unwrap(), LONG).unwrap();
        Run { code: out.status.code(), stdout: out.text(), stderr: out.stderr }
    }

    #[track_caller]
    pub fn down(&self, how: TakeDown) {
        self.place.take_down(self.instance.id, how).unwrap();
    }

    /// What its container is called.
    pub fn name(&self) -> String {
        let scope = self.instance.scope.short_name();
        abide_model::name::engine_name(
            self.instance.id,
            &scope,
            &self.instance.role,
            abide_model::name::Belonging::Container,
        )
    }

    /// What the engine has of this home: kinds and names.
    pub fn owned(&self) -> Vec<String> {
        let owned = self.place.owned().unwrap();
        let mut names: Vec<_> = owned.iter().map(|one| format!("{:?} {}", one.kind, one.name)).collect();
        names.sort();
        names
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let Ok(owned) = self.place.owned() else { return };
        for id in owned.iter().filter_map(|resource| resource.instance) {
            let _ = self.place.take_down(id, TakeDown::Remove);
        }
        let left = self.place.owned();
        if !std::thread::panicking() {
            assert_eq!(left.unwrap(), [], "something is left on the engine");
        }
    }
}

fn new_instance(sandbox: &Sandbox, number: u64, recipe: Recipe) -> Instance {
    let id = InstanceId::from_bits(u64::from(std::process::id()) << 8 | number);
    fs::create_dir_all(dir_of(sandbox, id)).unwrap();
    let (scope, by) = (LaunchScope::directory(sandbox.work()), abide_sys::process::this());
    Instance::starting(id, scope, "default".to_owned(), recipe, by, Timestamp(0))
}

fn dir_of(sandbox: &Sandbox, id: InstanceId) -> PathBuf {
    sandbox.home().join("instances").join(id.as_str())
}

/// Runs the command of an engine.
pub fn run(engine: EngineKind, args: &[&str]) -> Run {
    let out = Command::new(engine.as_str()).args(args).stdin(Stdio::null()).output().unwrap();
    Run {
        code: out.status.code(),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}

/// Whether this is the process that [`again`] started.
pub fn is_again() -> bool {
    std::env::var_os("ABIDE_TEST_AGAIN").is_some()
}

/// Runs the test called `name` again as a process of its own, with `env`. There `ABIDE_TEST_AGAIN` is set.
#[track_caller]
pub fn again(name: &str, env: &[(&str, &Path)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env("ABIDE_TEST_AGAIN", "1").envs(env.iter().copied());
    let out = command.output().unwrap();
    assert!(
        out.status.success(),
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
}
