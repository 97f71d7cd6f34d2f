//! What something hostile can do from inside of a container.

use std::fs;

use abide_model::container::EngineKind;
use abide_model::ladder::Tier;
use abide_model::liveness::SupervisorLock;
use abide_wire::exit_record::ExitRecord;
use abide_wire::given_names::given_names;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::last_seen::LastSeenAll;
use abide_wire::socket;
use abide_wire::supervisor_lock::supervisor_lock;

use crate::contained::Contained;

on_each_engine! {
    it_has_no_privileges_and_cannot_gain_any,
    it_sees_of_its_instance_directory_only_what_it_is_given,
    it_cannot_replace_or_remove_a_lock_that_the_host_tests,
    what_it_puts_in_place_of_its_state_is_neither_followed_nor_waited_for,
}

fn it_has_no_privileges_and_cannot_gain_any(engine: EngineKind) {
    let mut it = Contained::new(engine);
    it.recipe().processes = Some(64);
    it.up(Tier::Recreate);
    let status = it
        .sh("cat /proc/1/status; cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null || :")
        .ok();
    for line in ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "64"] {
        assert!(status.lines().any(|found| found == line), "{line}: {status}");
    }
    assert_eq!(it.sh("find / -xdev -name 'docker*.sock' -o -xdev -name 'podman*.sock'").ok(), "");
}

fn it_sees_of_its_instance_directory_only_what_it_is_given(engine: EngineKind) {
    let it = Contained::new(engine);
    fs::write(it.dir().join("instance.json"), "{}").unwrap();
    for hidden in ["vault", "git"] {
        fs::create_dir(it.dir().join(hidden)).unwrap();
    }
    it.up(Tier::Recreate);
    let dir = it.dir();
    assert_eq!(it.sh(&format!("ls '{}'", dir.display())).ok(), "home\njournal\nrun\nstate");
    assert_eq!(it.sh(&format!("ls '{}'", it.sandbox.home().display())).ok(), "bin\ninstances");
    let program = it.sandbox.home().join("bin/test/abide");
    for attack in ["rm -f", "truncate -s 0", "chmod 777"] {
        assert_ne!(it.sh(&format!("{attack} '{}'", program.display())).code, Some(0), "{attack}");
    }
}

fn it_cannot_replace_or_remove_a_lock_that_the_host_tests(engine: EngineKind) {
    let it = Contained::new(engine);
    it.up(Tier::Recreate);
    let dir = InstanceDir::new(it.dir());
    let attacks = [
        "rm -f $lock", "mv $lock $lock.old", "touch $lock.new && mv -f $lock.new $lock",
        "ln -sf /dev/null $lock", "echo x >$lock", "umount $lock", "mv ../run ../run.old",
    ];
    let script =
        attacks.map(|attack| format!("if ({attack}) 2>/dev/null; then echo \"{attack}\"; fi\n")).concat();
    let script = format!("cd '{}'; for lock in *.lock; do {script} done", dir.run_dir().display());
    assert_eq!(it.sh(&script).ok(), "", "what succeeded");
    assert_eq!(supervisor_lock(&dir), SupervisorLock::Held);
    assert!(
        dir.locks().iter().all(|lock| lock.metadata().is_ok_and(|found| found.is_file() && found.len() == 0))
    );
}

fn what_it_puts_in_place_of_its_state_is_neither_followed_nor_waited_for(engine: EngineKind) {
    let it = Contained::new(engine);
    let secret =
        it.sandbox.write("secret", r#"{"names": {"s1": "secret"}, "generation": 1, "sessions": {}}"#);
    it.up(Tier::Recreate);
    let dir = InstanceDir::new(it.dir());
    it.sh(&format!(
        "cd '{}'; rm -f exit.json layout.json last-seen.json; mkfifo exit.json; ln -s '{}' layout.json
         truncate -s 1T last-seen.json; cd ../run; mv sock real; ln -s real sock",
        dir.state_dir().display(),
        secret.display(),
    ))
    .ok();
    assert!(ExitRecord::read(&dir).is_err());
    assert!(given_names(&dir).is_empty());
    assert_eq!(LastSeenAll::read(&dir, 0), LastSeenAll::default());
    assert!(socket::connect(&dir.run_dir()).is_err());
}
