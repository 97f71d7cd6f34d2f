//! The engine that runs the machines of these tests, as the doctor reports it.

use abide_testkit::{Sandbox, require_containers};

#[test]
fn the_doctor_finds_the_engine_that_runs() {
    require_containers();
    let mut sandbox = Sandbox::new(env!("CARGO_BIN_EXE_abide"));
    if let Some(host) = std::env::var_os("DOCKER_HOST") {
        sandbox.set("DOCKER_HOST", host);
    }
    let report = sandbox.abide(["doctor", "--json"]).json();
    let docker = report["findings"].as_array().unwrap().iter().find(|f| f["subject"] == "docker").unwrap();
    // One that leaks names is found, too, with a warning.
    assert!(["ok", "warning"].contains(&docker["grade"].as_str().unwrap()), "{docker}");
    assert!(docker["detail"].as_str().unwrap().starts_with("engine "), "{docker}");
}
