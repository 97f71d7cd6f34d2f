//! `abide service` where there is no user manager to talk to.

use crate::common::{compare, sandbox, transcript};

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
fn the_service_is_removed_without_a_user_manager_too() {
    let sandbox = sandbox();
    let file = sandbox.write(FILE, "[Service]");
    let wants = file.with_file_name("default.target.wants");
    std::fs::create_dir(&wants).unwrap();
    std::os::unix::fs::symlink(&file, wants.join("abide-resume.service")).unwrap();
    let said = transcript(&sandbox, &[], &["service remove", "service remove"]);
    assert!(!file.exists() && std::fs::read_dir(&wants).unwrap().next().is_none());
    compare("service-remove", &said);
}
