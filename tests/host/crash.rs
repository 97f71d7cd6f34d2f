//! abide itself killed at every labelled point of ending an instance.

use abide_testkit::{crash_points, eventually};

use crate::common::{alive, compare, exists, host, kill, wait_for_death};

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

#[test]
fn what_crashed_is_neither_explained_nor_upgraded_as_if_it_ran() {
    for verb in [&["explain"][..], &["upgrade"], &["upgrade", "--all"]] {
        let host = host();
        let id = host.load(&[]);
        let pids = host.pids(&id);
        assert!(host.abide(["explain", &id]).ok().contains("\n  started once\n"));
        kill("-KILL", pids.keeper);
        wait_for_death(pids.keeper);
        // The first to look after the crash.
        match verb {
            ["explain"] => {
                let explained = host.abide(["explain", &id]).ok();
                assert!(explained.contains("has been restorable (crashed) since"), "{explained}");
            }
            ["upgrade"] => {
                let refused = host.abide(["upgrade", &id]).fails(1);
                compare(&host, "upgrade-of-crashed", &refused);
            }
            all => assert_eq!(host.abide(all).ok(), ""),
        }
    }
}
