//! `abide service` where there is no user manager to talk to.

use crate::common::sandbox;

const FILE: &str = "home/.config/systemd/user/abide-resume.service";

#[test]
fn an_installation_that_failed_leaves_what_was_there() {
    let sandbox = sandbox();
    let complaint = sandbox.abide(["service", "install"]).fails(1);
    assert!(complaint.contains("nothing was changed"), "{complaint}");
    assert!(!sandbox.path(FILE).exists());
    let path = sandbox.write(FILE, "of an earlier version");
    sandbox.abide(["service", "install"]).fails(1);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "of an earlier version");
}

#[test]
fn the_service_is_taken_away_though_nobody_can_be_told() {
    let sandbox = sandbox();
    let file = sandbox.write(FILE, "[Service]");
    let wants = file.with_file_name("default.target.wants");
    std::fs::create_dir(&wants).unwrap();
    std::os::unix::fs::symlink(&file, wants.join("abide-resume.service")).unwrap();
    assert!(sandbox.abide(["service", "remove"]).ok().contains("It is gone"));
    assert!(!file.exists() && std::fs::read_dir(&wants).unwrap().next().is_none());
    assert!(sandbox.abide(["service", "remove"]).ok().contains("It was not there"));
}
