use crate::common::{compare, sandbox, transcript};

#[test]
fn a_setting_is_read_changed_and_put_back() {
    let sandbox = sandbox();
    assert_eq!(sandbox.abide(["config", "get", "trash.keep_days"]).ok(), "14\n");
    sandbox.abide(["config", "set", "trash.keep_days", "30"]).ok();
    assert_eq!(sandbox.abide(["config", "get", "trash.keep_days"]).ok(), "30\n");
    sandbox.abide(["config", "unset", "trash.keep_days"]).ok();
    assert_eq!(sandbox.abide(["config", "get", "trash.keep_days"]).ok(), "14\n");
}

#[test]
fn changing_a_setting_keeps_comments_order_and_the_link_to_the_file() {
    let sandbox = sandbox();
    let real = sandbox.write(
        "home/dotfiles/abide.toml",
        "# mine\nversion = 1\nscrollback = 5000 # lines\n\n# exit\npolicy = \"ask\"\n",
    );
    std::fs::create_dir_all(sandbox.config()).unwrap();
    std::os::unix::fs::symlink(&real, sandbox.config().join("config.toml")).unwrap();
    sandbox.abide(["config", "set", "policy", "keep"]).ok();
    assert!(sandbox.config().join("config.toml").is_symlink());
    let text = std::fs::read_to_string(real).unwrap();
    assert_eq!(text, "# mine\nversion = 2\nscrollback = 5000 # lines\n\n# exit\npolicy = \"keep\"\n");
}

#[test]
fn a_mistake_says_where_it_is_what_is_allowed_and_what_was_meant() {
    let sandbox = sandbox();
    let file =
        sandbox.write("home/.config/abide/config.toml", "version = 1\npolicy = \"kep\"\nscrolback = 1\n");
    compare("config-mistakes", &transcript(&sandbox, &[], &["config list", "config set policy loud"]));
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(text, "version = 1\npolicy = \"kep\"\nscrolback = 1\n", "a failed change wrote the file");
}

#[test]
fn a_file_for_a_newer_abide_is_refused_with_an_upgrade_hint() {
    let sandbox = sandbox();
    sandbox.write("home/.config/abide/config.toml", "version = 99\n");
    compare("config-newer", &transcript(&sandbox, &[], &["config list"]));
}

#[test]
fn path_names_the_file_and_reference_describes_every_setting() {
    let sandbox = sandbox();
    let path = sandbox.abide(["config", "path"]).ok();
    assert_eq!(path.trim_end(), sandbox.config().join("config.toml").to_str().unwrap());
    compare("config-reference", &sandbox.abide(["config", "reference"]).ok());
}
