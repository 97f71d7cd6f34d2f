//! abide itself killed at every labelled point of ending an instance.

use abide_testkit::{crash_points, eventually};

use crate::common::{alive, exists, host, kill};

#[test]
fn a_removal_that_was_cut_short_is_finished_by_the_next_command() {
    for point in crash_points("../abide-engine").iter().filter(|label| label.starts_with("engine.finish.")) {
        let host = host();
        let id = host.load(&[]);
        let pids = host.pids(&id);
        let mut command = host.command(host.program());
        let status = command.args(["eject", &id, "--clean"]).env("ABIDE_CRASH_AT", point).status().unwrap();
        assert_eq!(status.code(), None, "`{point}` was not reached");
        // Whatever state it was left in, looking at the list is enough to bring it to its end.
        host.wait_for_state(&id, "gone");
        assert!(!alive(pids.keeper) && !alive(pids.session), "{point}");
        assert!(!exists(host.home().join("instances").join(&id)), "{point}");
        assert!(host.abide(["trash", "list"]).ok().contains(&id), "{point}");
        eventually("the processes to end", || host.processes().is_empty().then_some(()));
    }
}

#[test]
fn what_does_not_stop_is_not_removed_under_its_own_feet() {
    let host = host();
    let id = host.load(&[]);
    let pids = host.pids(&id);
    kill("-STOP", pids.keeper);
    let refused = host.abide(["eject", &id, "--clean"]).fails(1);
    assert!(refused.contains("does not stop"), "{refused}");
    assert!(alive(pids.session) && exists(host.home().join("instances").join(&id)));
    // Once it can, it does, and the next look finishes the removal.
    kill("-CONT", pids.keeper);
    host.wait_for_state(&id, "gone");
    eventually("the processes to end", || host.processes().is_empty().then_some(()));
}
