//! Each launch has its own environment, and nothing of an outer session leaks inward.

use crate::common::{compare, host};

#[test]
fn each_session_has_the_environment_of_its_own_launch() {
    let mut host = host();
    host.add_program("show", "env | sort > \"$1\"; read -r _");
    host.set("PROVIDER_URL", "http://one");
    host.set("TMUX", "/tmp/outer,1,0");
    let one = host.path("one").to_str().unwrap().to_owned();
    host.abide(["load", "show", "--detach", "--", &one]).ok();
    host.set("PROVIDER_URL", "http://two");
    let two = host.path("two").to_str().unwrap().to_owned();
    host.abide(["load", "show", "--detach", "--", &two]).ok();
    for (file, url) in [(one, "http://one"), (two, "http://two")] {
        let env = abide_testkit::eventually("the environment", || {
            std::fs::read_to_string(&file).ok().filter(|t| t.contains("TERM="))
        });
        assert!(env.contains(&format!("PROVIDER_URL={url}\n")), "{env}");
        assert!(!env.contains("TMUX="), "{env}");
        assert!(env.contains("TERM=xterm-256color\n") && env.contains("COLORTERM=truecolor\n"), "{env}");
        assert!(env.contains("ABIDE_SESSION=s1\n") && env.contains("ABIDE_INSTANCE="), "{env}");
    }
}

#[test]
fn references_are_resolved_at_every_start_and_their_values_are_nowhere_on_disk() {
    let mut host = host();
    host.add_program("show", "env > \"$1\"; read -r _");
    host.write("home/token", "hunter2hunter2\n");
    host.abide(["config", "set", "env.TOKEN", "file:~/token"]).ok();
    let file = host.path("env").to_str().unwrap().to_owned();
    host.abide(["load", "show", "--detach", "--", &file]).ok();
    let env = abide_testkit::eventually("the environment", || {
        std::fs::read_to_string(&file).ok().filter(|t| t.contains("TOKEN="))
    });
    assert!(env.contains("TOKEN=hunter2hunter2\n"), "{env}");
    let found = host
        .command("grep")
        .args(["-r", "hunter2hunter2"])
        .arg(host.home())
        .arg(host.config())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "a secret was written down");
    host.abide(["config", "set", "env.TOKEN", "file:~/no-such-file"]).ok();
    let complaint = host.abide(["load", "stub", "--detach"]).fails(1);
    compare(&host, "secret-not-found", &complaint);
}

#[test]
fn a_session_inside_a_session_works() {
    let host = host();
    let outer = host.abide(["load", "sh", "--detach"]).ok();
    let outer = outer.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    let abide = host.program().to_str().unwrap().to_owned();
    host.abide(["send", &outer, &format!("{abide} load stub")]).ok();
    host.wait_for_screen(&outer, "stub pid");
    let listing = host.abide(["ls", "--json"]).json();
    assert_eq!(listing["instances"].as_array().unwrap().len(), 2);
}

#[test]
fn a_home_is_looked_up_where_none_is_set_and_a_relative_one_is_refused() {
    let mut host = host();
    host.set("HOME", "relative");
    let refused = host.abide(["ls"]).fails(2);
    compare(&host, "home-not-absolute", &refused);
    // So that nothing is looked for in the home that is looked up.
    let (state, config) = (host.path("state"), host.path("config"));
    host.set("ABIDE_HOME", state);
    host.set("XDG_CONFIG_HOME", config);
    host.unset("HOME");
    let file = host.path("seen").to_str().unwrap().to_owned();
    host.add_program("show", "env > \"$1\"; read -r _");
    host.abide(["load", "show", "--detach", "--", &file]).ok();
    let env = abide_testkit::eventually("the environment", || {
        std::fs::read_to_string(&file).ok().filter(|text| text.contains("TERM="))
    });
    assert!(env.lines().any(|line| line.starts_with("HOME=/")), "{env}");
}
