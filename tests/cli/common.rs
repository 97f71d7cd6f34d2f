//! What the tests of the command line share.

use abide_model::status::{Ending, Gone};
use abide_model::{Instance, InstanceId, LaunchScope, Recipe, StatusEvent};
use abide_store::Store;
use abide_sys::{clock, process};
use abide_testkit::Sandbox;

pub fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_abide"))
}

pub fn store(sandbox: &Sandbox) -> Store {
    Store::open(sandbox.home()).unwrap()
}

/// Makes an instance that was launched and stopped, changed by `change`.
pub fn add_instance(sandbox: &Sandbox, change: impl FnOnce(&mut Instance)) -> InstanceId {
    let store = store(sandbox);
    let id = store
        .create(|id| {
            let scope = LaunchScope::directory(sandbox.work());
            let recipe = Recipe::on_host(sandbox.work());
            Instance::starting(id, scope, "default".into(), recipe, process::this(), clock::now())
        })
        .unwrap()
        .id;
    store
        .update(id, |instance| {
            instance
                .apply(&StatusEvent::CapsuleGone(Gone::Stopped), "it was stopped for the night", clock::now())
                .unwrap();
            change(instance);
            Ok::<_, abide_store::Error>(())
        })
        .unwrap();
    id
}

/// Makes an instance and removes it, so that it is in the trash.
pub fn add_trash(sandbox: &Sandbox) -> InstanceId {
    let id = add_instance(sandbox, |instance| {
        instance.apply(&StatusEvent::Discarded(Ending::Clean), "nothing is at risk", clock::now()).unwrap();
    });
    store(sandbox).trash(id, clock::now()).unwrap();
    id
}
