use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use abide_client::AttachMode;
use abide_model::Pid;

use super::*;

#[test]
fn versions_are_parsed_however_they_are_spelled() {
    for (said, expected) in [
        ("tmux 3.3a", Some((3, 3))),
        ("tmux 3.2", Some((3, 2))),
        ("tmux 2.9a", Some((2, 9))),
        ("tmux next-3.6", Some((3, 6))),
        ("tmux master", None),
        ("", None),
    ] {
        assert_eq!(version(said), expected, "{said}");
    }
}

#[test]
fn what_would_mean_something_to_tmux_is_taken_as_it_is() {
    assert_eq!(literal("#(touch x) #{pid}".as_ref()), "##(touch x) ##{pid}");
    assert_eq!(inert("a;".as_ref()), "a\\;");
    assert_eq!(inert(";".as_ref()), "\\;");
    assert_eq!(inert("a;b".as_ref()), "a;b");
}

#[test]
fn a_server_is_known_by_the_variable_of_its_panes_whatever_its_path_holds() {
    let server = TmuxServer::around("/tmp/a,b/abide,123,4".as_ref()).unwrap();
    assert_eq!(server.socket(), Path::new("/tmp/a,b/abide"));
    assert_eq!(TmuxServer::around("nonsense".as_ref()), None);
}

#[test]
fn a_pane_that_is_not_ours_is_read_and_known_as_such() {
    let line = "$0 %3 42 0    1794733882 80 24 1 2 1 0 0 1 41 a title  with spaces";
    let pane = TmuxPane::parse(line).unwrap();
    assert_eq!((pane.instance.as_str(), pane.session.as_str()), ("", ""));
    assert_eq!((pane.pid, pane.size, pane.title.as_str()), (Pid(42), (80, 24), "a title  with spaces"));
    assert_eq!(TmuxPane::parse("nonsense"), None);
}

/// A server in a directory of its own, with a configuration that is nobody's.
struct Own {
    dir: tempfile::TempDir,
    server: TmuxServer,
}

impl Own {
    fn new(sessions: &[&str]) -> Self {
        let private = std::fs::Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().permissions(private).tempdir().unwrap();
        let own = Self { server: TmuxServer::at(dir.path().join("socket")), dir };
        for name in sessions {
            assert!(
                own.tmux(&["new-session", "-d", "-s", name, "sleep", "1000"]).status().unwrap().success()
            );
        }
        own
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.args(["-f", "/dev/null", "-S"]).arg(self.server.socket()).args(args);
        tmux.env("HOME", self.dir.path()).env("TERM", "xterm").env_remove("TMUX");
        tmux
    }

    fn lines(&self, args: &[&str]) -> Vec<String> {
        let out = self.tmux(args).output().unwrap().stdout;
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).output();
    }
}

#[test]
fn a_name_means_that_very_session_and_none_that_begins_like_it() {
    let own = Own::new(&["ab-10", "ab-1"]);
    let argv = ["sleep", "1000"].map(Into::into);
    let window = Window { name: "window", cwd: Path::new("/"), argv: &argv };
    own.server.new_window("ab-1", &window).unwrap();
    assert_eq!(own.lines(&["list-windows", "-t", "=ab-1", "-F", "#S #W"])[1..], ["ab-1 window"]);
    assert!(own.server.new_window("ab", &window).is_err());
    let panes = own.server.panes().unwrap();
    assert_eq!(panes.len(), 3);
    own.server.kill_pane(&panes[0].id).unwrap();
    let ids = |panes: &[TmuxPane]| panes.iter().map(|pane| pane.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&own.server.panes().unwrap()), ids(&panes[1..]));
}

#[test]
fn no_server_has_no_panes_and_one_that_does_not_answer_is_an_error() {
    let own = Own::new(&[]);
    assert_eq!((own.server.runs(), own.server.panes().unwrap()), (Liveness::Dead, Vec::new()));
    let _mute = std::os::unix::net::UnixListener::bind(own.server.socket()).unwrap();
    assert_eq!(own.server.runs(), Liveness::Alive);
    assert!(matches!(own.server.panes(), Err(RunError::TimedOut { .. })));
}

#[test]
fn a_place_that_others_can_enter_is_not_trusted() {
    let own = Own::new(&["ours"]);
    std::fs::set_permissions(own.dir.path(), std::fs::Permissions::from_mode(0o705)).unwrap();
    assert!(
        own.server.panes().unwrap_err().to_string().contains("must be a directory that only you can enter")
    );
    assert!(own.server.attach("=ours", AttachMode::Control).is_err() && own.server.lock().is_err());
}

#[test]
fn dropping_a_client_leaves_what_it_looked_at() {
    let own = Own::new(&["watched"]);
    let pty = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&pty).unwrap();
    rustix::pty::unlockpt(&pty).unwrap();
    let name = rustix::pty::ptsname(&pty, Vec::new()).unwrap().into_string().unwrap();
    let end = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
    let mut command = own.tmux(&["attach-session", "-t", "=watched"]);
    let client = TmuxClient::start(command.stdin(end()).stdout(end()).stderr(end())).unwrap();
    let clients = || own.lines(&["list-clients", "-F", "#S"]);
    assert!(eventually(Duration::from_secs(30), || clients() == ["watched"]), "it never attached");
    drop(client);
    assert_eq!(clients(), [""; 0]);
    assert_eq!(own.lines(&["list-sessions", "-F", "#S"]), ["watched"]);
}
