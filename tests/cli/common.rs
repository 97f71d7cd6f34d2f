//! What the tests of the command line share.

use abide_model::status::{Ending, Gone};
use abide_model::{Instance, InstanceId, LaunchScope, Recipe, StatusEvent};
use abide_store::Store;
use abide_sys::{clock, process};
use abide_testkit::Sandbox;

/// What `commands` print, one after the other, as a terminal would show it; what differs from run to run is masked.
pub fn transcript(sandbox: &Sandbox, ids: &[InstanceId], commands: &[&str]) -> String {
    let mut text = String::new();
    for command in commands {
        let run = sandbox.abide(command.split_whitespace());
        text += &format!("$ abide {command}\n{}{}", run.stdout, run.stderr);
        text += &run
            .code
            .filter(|code| *code != 0)
            .map(|code| format!("[exit code {code}]\n"))
            .unwrap_or_default();
        text.push('\n');
    }
    masked(sandbox, ids, &text)
}

/// `text` with placeholders for the directory of `sandbox` and for `ids`.
pub fn masked(sandbox: &Sandbox, ids: &[InstanceId], text: &str) -> String {
    let root = sandbox.path("").to_string_lossy().trim_end_matches('/').to_owned();
    let text = text.replace(&root, "[sandbox]");
    ids.iter()
        .enumerate()
        .fold(text, |text, (number, id)| text.replace(id.as_str(), &format!("[id-{}]", number + 1)))
}

/// Compares `text` with the snapshot `name` in tests/cli/snapshots. Times are masked.
#[track_caller]
pub fn compare(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
        filters => [(r"line \d+, column \d+", "[place]"), (r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d{8}T\d{9}Z", "[time]"), (r"(SIZE|\d+ (B|KiB)) +", "[size]  "), (r"\d+ (B|KiB)\b", "[size]")],
    }, { insta::assert_snapshot!(name, text) });
}

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
            Ok::<_, abide_store::StoreError>(())
        })
        .unwrap();
    // Lists are ordered by the time of creation, in milliseconds: the next instance gets a later one.
    std::thread::sleep(std::time::Duration::from_millis(2));
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
