//! What others can know of a keeper, and how they end one.

use std::time::Duration;

use abide_keeper::{LaunchError, Launching, OWN_IMAGE, OperatorStop};
use abide_model::Liveness;
use abide_model::liveness::SupervisorLock;
use abide_sys::process::{self, Pidfd};
use abide_testkit::harness::Test;
use abide_wire::exit_record::{ExitRecord, StopReason};
use abide_wire::supervisor_lock::supervisor_lock;
use rustix::process::Signal;

use crate::support::{Capsule, exe, send_signal, shell, wait_for};

pub const ALL: &[Test] = &[
    ("the_record_is_there_when_the_start_is_reported", the_record_is_there_when_the_start_is_reported),
    ("a_stop_that_the_operator_sends_as_a_signal_is_recorded_as_theirs", a_stop_by_signal_is_the_operators),
    ("a_keeper_that_does_not_answer_its_launcher_is_ended", a_keeper_that_does_not_answer_is_ended),
    ("a_mux_comes_from_the_image_of_its_keeper", a_mux_comes_from_the_image_of_its_keeper),
];

fn the_record_is_there_when_the_start_is_reported() {
    for _ in 0..20 {
        let mut capsule = Capsule::new();
        capsule.launch(shell("a", "exec sleep 1000"));
        let record = ExitRecord::read(&capsule.instance_dir).unwrap().unwrap();
        assert_eq!((record.reason, record.sessions.len()), (None, 1));
        assert_eq!(supervisor_lock(&capsule.instance_dir), SupervisorLock::Held);
    }
}

fn a_stop_by_signal_is_the_operators() {
    for (stop, note) in [(OperatorStop::Stop, "abide stop"), (OperatorStop::Remove, "it is being removed")] {
        let mut capsule = Capsule::new();
        let launched = capsule.launch(shell("a", "exec sleep 1000"));
        Pidfd::open(&launched.keeper).unwrap().queue(stop.signal()).unwrap();
        let record = capsule.ended();
        assert_eq!((record.reason, record.note.as_str()), (Some(StopReason::Operator), note));
        assert!(record.sessions[0].stopped);
        assert_eq!(supervisor_lock(&capsule.instance_dir), SupervisorLock::Free);
    }
}

fn a_keeper_that_does_not_answer_is_ended() {
    let capsule = Capsule::new();
    let argv = [exe(), "capsule".into(), "keeper".into()];
    let launching = Launching::begin(&argv, capsule.config.clone(), &capsule.file("log")).unwrap();
    let keeper = launching.keeper().clone();
    send_signal(keeper.pid, Signal::STOP);
    let started = launching.with_patience(Duration::from_millis(50)).start(shell("a", "exec sleep 1000"));
    assert!(matches!(started, Err(LaunchError::NoAnswer(..))), "{started:?}");
    assert_eq!(process::alive(&keeper), Liveness::Dead);
    assert_eq!(supervisor_lock(&capsule.instance_dir), SupervisorLock::Free);
}

fn a_mux_comes_from_the_image_of_its_keeper() {
    let mut capsule = Capsule::new();
    let copy = capsule.file("copy");
    std::fs::copy(exe().as_path(), &copy).unwrap();
    capsule.config.mux[0] = OWN_IMAGE.into();
    let argv = [copy.as_os_str().into(), "capsule".into(), "keeper".into()];
    let launching = Launching::begin(&argv, capsule.config.clone(), &capsule.file("log")).unwrap();
    capsule.keeper = Some(launching.start(shell("a", "exec sleep 1000")).unwrap().keeper);
    let before = capsule.status().mux_pid;
    std::fs::remove_file(&copy).unwrap();
    send_signal(before, Signal::KILL);
    let after = wait_for("another mux", || Some(capsule.status().mux_pid).filter(|mux| *mux != before));
    let image = std::fs::read_link(format!("/proc/{after}/exe")).unwrap();
    assert!(image.to_str().unwrap().ends_with("copy (deleted)"), "{}", image.display());
}
