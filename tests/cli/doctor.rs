use crate::common::{add_instance, compare, masked, sandbox};

#[test]
fn the_doctor_finds_git_tmux_and_the_agents_on_the_path() {
    let mut sandbox = sandbox();
    sandbox.add_program("claude", "echo '2.1.325 (Claude Code)'");
    let report = sandbox.abide(["doctor", "--json"]).json();
    let finding = |subject: &str| {
        report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|f| f["subject"] == subject)
            .unwrap_or_else(|| panic!("no {subject}"))
    };
    assert!(finding("git")["detail"].as_str().unwrap().contains("git version"));
    assert!(finding("tmux")["detail"].as_str().unwrap().contains("tmux"));
    assert!(finding("agent claude")["detail"].as_str().unwrap().contains("2.1.325"));
    assert_eq!(finding("store")["grade"], "ok");
    assert_eq!(finding("config")["grade"], "ok");
}

#[test]
fn an_agent_that_hangs_does_not_hang_the_doctor() {
    let mut sandbox = sandbox();
    sandbox.add_program("codex", "exec sleep 1000");
    let run = sandbox.abide(["doctor"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("no answer within"), "{}", run.stdout);
}

#[test]
fn damage_and_mistakes_are_problems_with_an_advice() {
    let sandbox = sandbox();
    let id = add_instance(&sandbox, |_| {});
    std::fs::write(sandbox.home().join("instances").join(id.as_str()).join("instance.json"), "").unwrap();
    sandbox.write("home/.config/abide/config.toml", "version = 1\npolicy = \"kep\"\n");
    sandbox.write("home/.config/abide/workspaces/shop.toml", "version = 1\ndri = \"/tmp\"\n");
    let run = sandbox.abide(["doctor"]);
    assert_eq!(run.code, Some(1));
    let (_, of_files) = run.stdout.split_once("BAD  config").unwrap();
    compare("doctor-damage", &masked(&sandbox, &[id], &format!("BAD  config{of_files}{}", run.stderr)));
}

#[test]
fn the_doctor_advises_nothing_that_this_version_cannot_do() {
    let mut sandbox = sandbox();
    sandbox.add_program("docker", "echo no engine >&2; exit 1");
    let run = sandbox.abide(["doctor"]);
    assert!(run.stdout.contains("no engine answers"), "{}", run.stdout);
    assert!(!run.stdout.contains("place = "), "{}", run.stdout);
}
