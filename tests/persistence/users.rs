//! Two people on one machine.

use crate::machine::Machine;

#[test]
fn two_people_do_not_see_or_reach_each_others_instances() {
    let machine = Machine::boot();
    let (ada, bob) = (machine.ada(), machine.bob());
    ada.enable_linger();
    bob.enable_linger();
    let (hers, his) = (ada.load().id, bob.load().id);
    assert_eq!(ada.states(), [(hers.clone(), "active".to_owned())]);
    assert_eq!(bob.states(), [(his.clone(), "active".to_owned())]);
    assert!(bob.cgroup(&his).contains("/user@1001.service/"), "{}", bob.cgroup(&his));
    // Even where her home lets everybody in, what abide keeps there does not.
    machine.sh("chmod 755 /home/ada");
    for verb in ["ls", "peek", "stop"] {
        let argv = ["env", "ABIDE_HOME=/home/ada/.abide", "abide", verb, &hers];
        let argv = if verb == "ls" { &argv[..4] } else { &argv[..] };
        let run = machine.as_user("bob", argv);
        assert_ne!(run.code, Some(0), "bob may {verb}: {}", run.stdout);
        assert!(!run.stdout.contains(&hers), "{}", run.stdout);
    }
    bob.abide(&["stop", &his]).ok();
    ada.assert_alive(&hers);
}
