//! The control requests.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use abide_model::Doing;
use abide_model::activity::Background;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::link::{Link, SessionInfo, ToMux};
use abide_wire::protocol::{
    CallError, Connection, Event, EventKind, Format, FrameDecoder, FrameKind, GetStatus, Hello, Input, Kill,
    MAX_FRAME, Rename, ResizeTo, Send, Shutdown, Signal, Snapshot, Spawn, Subscribe, Until, Wait,
    WaitOutcome, encode, encode_json, error_code,
};
use abide_wire::session::{ProcessExit, TerminalSize};
use abide_wire::socket;

use crate::support::{CALL, Capsule, id, part, shell, spec, wait_for};
use crate::terminal::Terminal;
use crate::tests;

tests![
    a_client_that_is_quicker_than_a_slow_keeper_finds_every_session,
    the_status_tells_of_every_session_in_the_order_of_its_tabs,
    a_snapshot_shows_the_screen_in_each_form_and_the_past_on_demand,
    text_keys_and_bytes_are_sent_as_they_are_meant,
    a_wait_ends_with_the_text_the_quiet_the_end_or_the_time,
    a_wait_for_text_finds_what_has_scrolled_off_meanwhile,
    a_program_that_says_what_it_does_is_believed_and_not_its_silence,
    a_wait_for_idleness_is_not_answered_before_the_program_has_read_what_was_typed,
    subscribers_hear_what_they_asked_for_and_nothing_else,
    a_session_can_be_resized_only_while_no_client_decides,
    a_signal_and_a_kill_reach_the_session,
    what_cannot_be_started_is_refused_with_its_errno,
    an_unknown_session_is_refused_and_an_ended_one_is_remembered,
    what_is_not_understood_gets_an_error_and_not_silence,
    a_name_is_cleaned_and_kept,
    a_shutdown_gives_attached_clients_the_reason,
];

fn the_status_tells_of_every_session_in_the_order_of_its_tabs() {
    let capsule = Capsule::running(&["shell"]);
    capsule.call(&Spawn { spec: Box::new(part("second", &["shell"])), focus: false });
    let status = capsule.status();
    let ids: Vec<_> = status.sessions.iter().map(|session| session.id).collect();
    assert_eq!(ids, ["main", "second"].map(id));
    assert_eq!((status.attached, status.generation), (0, 1));
    assert_eq!(status.focused, Some(id("main")));
    assert!(status.sessions.iter().all(|session| session.journaled && session.exit.is_none()));
    assert_eq!(status.keeper_pid, capsule.keeper.as_ref().unwrap().pid);
}

fn a_snapshot_shows_the_screen_in_each_form_and_the_past_on_demand() {
    let mut capsule = Capsule::new();
    let script =
        "i=1; while [ $i -le 50 ]; do echo $i; i=$((i+1)); done; printf '\\033[31mred\\033[m'; sleep 1000";
    capsule.launch(shell("main", script));
    capsule.wait_text("main", "red");
    let text = capsule.snapshot("main", false);
    assert_eq!((text.lines.len(), text.lines.last().unwrap().as_str()), (24, "red"));
    assert_eq!((text.cursor.col, text.cursor.row), (3, 23));
    let whole = capsule.snapshot("main", true);
    assert_eq!((whole.lines[0].as_str(), whole.scrollback_lines), ("1", 27));
    let ansi = capsule.call(&Snapshot { session: None, format: Format::Ansi, ..Snapshot::default() });
    assert_eq!(ansi.lines.last().unwrap(), "\x1b[31mred\x1b[m");
    let cells = capsule.call(&Snapshot { session: None, format: Format::Cells, ..Snapshot::default() });
    assert_eq!((cells.cells[23][0].text.as_str(), cells.cells[23][0].fg.as_str()), ("r", "1"));
    assert_eq!((cells.cells.len(), cells.cells[0].len()), (24, 80));
}

fn text_keys_and_bytes_are_sent_as_they_are_meant() {
    let capsule = Capsule::running(&["raw", "\\e[?2004h\\e[?1h"]);
    capsule.wait_text("main", "listening");
    let input = vec![Input::Key("Up".into()), Input::Key("C-c".into()), Input::Bytes(b"\x00x".to_vec())];
    capsule.call(&Send { session: id("main"), input });
    capsule.wait_text("main", "\\x1bOA\\x03\\x00x");
    capsule.call(&Send { session: id("main"), input: vec![Input::Text("two\nlines".into())] });
    capsule.wait_text("main", "\\x1b[200~two\\rlines\\x1b[201~");
    let unknown = Send { session: id("main"), input: vec![Input::Key("no-such-key".into())] };
    let refused = capsule.connect().call(&unknown, CALL);
    assert!(matches!(refused, Err(CallError::Refused(refusal)) if refusal.code == error_code::BAD_REQUEST));
}

fn a_wait_ends_with_the_text_the_quiet_the_end_or_the_time() {
    let capsule = Capsule::running(&["shell"]);
    capsule.wait_text("main", "ready$");
    assert_eq!(
        capsule.wait("main", Until::Idle { quiet_ms: 50, background: Background::Counts }).outcome,
        WaitOutcome::Reached
    );

    // A wait that begins before what it waits for.
    let mut waiting = capsule.connect();
    let until = Until::Text { pattern: "you said later".into() };
    let thread = std::thread::spawn(move || {
        waiting.call(&Wait { session: id("main"), until, timeout_ms: Some(15_000) }, CALL).unwrap()
    });
    capsule.send_line("main", "later");
    let reply = thread.join().unwrap();
    assert_eq!((reply.outcome, reply.line.as_deref()), (WaitOutcome::Reached, Some("you said later")));

    let never =
        Wait { session: id("main"), until: Until::Text { pattern: "never".into() }, timeout_ms: Some(50) };
    assert_eq!(capsule.call(&never).outcome, WaitOutcome::TimedOut);

    capsule.call(&Spawn { spec: Box::new(part("keeps-it-alive", &["shell"])), focus: false });
    let mut connection = capsule.connect();
    let thread = std::thread::spawn(move || {
        let until = Until::Text { pattern: "never".into() };
        connection.call(&Wait { session: id("main"), until, timeout_ms: None }, CALL).unwrap()
    });
    capsule.send_line("main", "exit 5");
    let reply = capsule.wait("main", Until::Exit);
    assert_eq!((reply.outcome, reply.exit), (WaitOutcome::Reached, Some(ProcessExit::Code(5))));
    let reply = thread.join().unwrap();
    assert_eq!((reply.outcome, reply.exit), (WaitOutcome::Exited, Some(ProcessExit::Code(5))));
}

fn a_wait_for_text_finds_what_has_scrolled_off_meanwhile() {
    let capsule = Capsule::running(&["shell"]);
    capsule.wait_text("main", "ready$");
    let mut waiting = capsule.connect();
    let thread = std::thread::spawn(move || {
        let until = Until::Text { pattern: "line 17".into() };
        waiting.call(&Wait { session: id("main"), until, timeout_ms: Some(15_000) }, CALL).unwrap()
    });
    // In place before the output begins: both connections are served in order.
    wait_for("the wait", || Some(capsule.status()));
    capsule.send_line("main", "lines 5000");
    assert_eq!(thread.join().unwrap().outcome, WaitOutcome::Reached);
}

fn a_program_that_says_what_it_does_is_believed_and_not_its_silence() {
    let capsule = Capsule::running(&["shell"]);
    capsule.wait_text("main", "ready$");
    let state = || capsule.status().sessions[0].activity.as_ref().unwrap().state;
    assert_eq!(state(), Doing::Unknown);
    capsule.send_line("main", "say \\e]7501;state=working:app=claude-code\\aw");
    wait_for("working", || (state() == Doing::Working).then_some(()));
    let quiet = Wait {
        session: id("main"),
        until: Until::Idle { quiet_ms: 1, background: Background::Counts },
        timeout_ms: Some(100),
    };
    assert_eq!(capsule.call(&quiet).outcome, WaitOutcome::TimedOut);
    let mut listener = capsule.connect();
    listener.call(&Subscribe { kinds: vec![EventKind::Activity], session: None }, CALL).unwrap();
    capsule.send_line("main", "say \\e]7501;state=blocked:kind=permission\\ab");
    wait_for("blocked", || (state() == Doing::NeedsInput).then_some(()));
    assert_eq!(capsule.call(&quiet).outcome, WaitOutcome::Reached);
    let heard = listener.next_event(CALL).unwrap().event;
    assert!(
        matches!(&heard, Event::Activity { activity, .. } if activity.state == Doing::NeedsInput),
        "{heard:?}"
    );
    let asked = Wait { session: id("main"), until: Until::NeedsInput, timeout_ms: Some(15_000) };
    assert_eq!(capsule.call(&asked).outcome, WaitOutcome::Reached);
}

fn a_wait_for_idleness_is_not_answered_before_the_program_has_read_what_was_typed() {
    let capsule = Capsule::running(&["shell"]);
    capsule.wait_text("main", "ready$");
    capsule.send_line("main", "say \\e]7501;state=idle\\ai");
    wait_for("idle", || (capsule.status().sessions[0].activity.as_ref()?.state == Doing::Idle).then_some(()));
    capsule.send_line("main", "say \\e]7501;state=working\\aw");
    // The idleness of before is known to the mux; the work that was just asked for is not yet.
    let idle = Wait {
        session: id("main"),
        until: Until::Idle { quiet_ms: 1, background: Background::Counts },
        timeout_ms: Some(3000),
    };
    assert_eq!(capsule.call(&idle).outcome, WaitOutcome::TimedOut);
}

fn subscribers_hear_what_they_asked_for_and_nothing_else() {
    let capsule = Capsule::running(&["shell"]);
    capsule.wait_text("main", "ready$");
    let mut listener = capsule.connect();
    let kinds = vec![
        EventKind::Title,
        EventKind::Bell,
        EventKind::Exited,
        EventKind::Started,
        EventKind::Notification,
    ];
    let number = listener.call(&Subscribe { kinds, session: None }, CALL).unwrap().subscription;
    let mut next = || {
        let message = listener.next_event(CALL).unwrap();
        assert_eq!(message.subscription, number);
        message.event
    };
    capsule.send_line("main", "say \\e]2;new\\a\\a\\e]9;look\\a");
    assert_eq!(next(), Event::Title { session: id("main"), title: "new".into() });
    assert_eq!(next(), Event::Bell { session: id("main") });
    assert_eq!(next(), Event::Notification { session: id("main"), text: "look".into() });
    capsule.call(&Spawn { spec: Box::new(shell("brief", "exit 2")), focus: false });
    assert!(matches!(next(), Event::Started { status } if status.id == id("brief")));
    assert_eq!(next(), Event::Exited { session: id("brief"), exit: ProcessExit::Code(2) });
    assert!(matches!(listener.next_event(Duration::from_millis(50)), Err(CallError::TimedOut(_))));
}

fn a_session_can_be_resized_only_while_no_client_decides() {
    let capsule = Capsule::running(&["shell"]);
    let size = TerminalSize { cols: 120, rows: 33 };
    capsule.call(&ResizeTo { session: id("main"), size });
    capsule.send_line("main", "size");
    capsule.wait_text("main", "size=120x33");
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("size=120x33");
    let refused = capsule.connect().call(&ResizeTo { session: id("main"), size }, CALL);
    assert!(matches!(refused, Err(CallError::Refused(_))), "{refused:?}");
}

fn a_signal_and_a_kill_reach_the_session() {
    let capsule = Capsule::running(&["shell"]);
    capsule.call(&Spawn {
        spec: Box::new(shell("one", "trap 'echo caught' USR1; echo set; while :; do read x; done")),
        focus: false,
    });
    capsule.wait_text("one", "set");
    capsule.call(&Signal { session: id("one"), signal: rustix::process::Signal::USR1.as_raw() });
    capsule.wait_text("one", "caught");
    capsule.call(&Kill { session: id("one") });
    assert_eq!(capsule.wait("one", Until::Exit).outcome, WaitOutcome::Reached);
}

fn what_cannot_be_started_is_refused_with_its_errno() {
    let capsule = Capsule::running(&["shell"]);
    let refused = capsule
        .connect()
        .call(&Spawn { spec: Box::new(spec("x", &["/no/such/program"])), focus: false }, CALL);
    let Err(CallError::Refused(refusal)) = refused else { panic!("{refused:?}") };
    assert_eq!((refusal.code.as_str(), refusal.errno), (error_code::SPAWN_FAILED, Some(2)));
    assert_eq!(capsule.status().sessions.len(), 1);
}

fn an_unknown_session_is_refused_and_an_ended_one_is_remembered() {
    let capsule = Capsule::running(&["shell"]);
    let code = |session: &str| {
        let refused = capsule.connect().call(&Kill { session: id(session) }, CALL);
        match refused {
            Err(CallError::Refused(refusal)) => refusal.code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code("nobody"), error_code::NO_SUCH_SESSION);
    capsule.call(&Spawn { spec: Box::new(shell("brief", "exit 2")), focus: false });
    assert_eq!(capsule.wait("brief", Until::Exit).exit, Some(ProcessExit::Code(2)));
    assert_eq!(capsule.wait("brief", Until::Exit).exit, Some(ProcessExit::Code(2)));
    assert_eq!(code("brief"), error_code::SESSION_ENDED);
}

/// A connection that can say anything.
struct Raw(std::os::unix::net::UnixStream, FrameDecoder);

impl Raw {
    fn connect(capsule: &Capsule) -> Self {
        let stream = socket::connect(&capsule.instance_dir.run_dir()).unwrap();
        stream.set_read_timeout(Some(CALL)).unwrap();
        Self(stream, FrameDecoder::new(MAX_FRAME))
    }

    fn greet(capsule: &Capsule) -> Self {
        let mut raw = Self::connect(capsule);
        let mut frame = Vec::new();
        encode_json(FrameKind::Hello, &Hello::ours(), &mut frame).unwrap();
        raw.0.write_all(&frame).unwrap();
        assert_eq!(raw.next().0, Some(FrameKind::Hello));
        raw
    }

    fn say(&mut self, kind: FrameKind, payload: &[u8]) {
        let mut frame = Vec::new();
        encode(kind, payload, &mut frame).unwrap();
        self.0.write_all(&frame).unwrap();
    }

    fn next(&mut self) -> (Option<FrameKind>, String) {
        loop {
            if let Some(frame) = self.1.next().unwrap() {
                return (frame.kind(), String::from_utf8_lossy(frame.payload).into_owned());
            }
            let mut chunk = [0; 4096];
            let n = self.0.read(&mut chunk).unwrap();
            assert!(n > 0, "closed without a word");
            self.1.push(&chunk[..n]);
        }
    }
}

fn what_is_not_understood_gets_an_error_and_not_silence() {
    let capsule = Capsule::running(&["shell"]);
    let mut raw = Raw::greet(&capsule);
    raw.say(FrameKind::Request, br#"{"id": 7, "verb": "levitate"}"#);
    let (kind, text) = raw.next();
    assert!(
        kind == Some(FrameKind::Reply) && text.contains("unknown_verb") && text.contains("\"id\":7"),
        "{text}"
    );
    raw.say(FrameKind::Request, b"{");
    assert!(raw.next().1.contains("bad_request"));
    raw.say(FrameKind::Request, br#"{"id": 8, "verb": "kill", "session": "../../etc"}"#);
    assert!(raw.next().1.contains("bad_request"));
    raw.0.write_all(&[0, 0, 0, 0, 99]).unwrap();
    assert!(raw.next().1.contains("unknown_frame"));
    raw.say(FrameKind::Request, br#"{"id": 9, "verb": "status"}"#);
    assert!(raw.next().1.contains("\"id\":9"));
    raw.0.write_all(&[0xff, 0xff, 0xff, 0x7f, 2]).unwrap();
    assert_eq!(raw.next().0, Some(FrameKind::Bye));

    let mut rude = Raw::connect(&capsule);
    rude.say(FrameKind::Request, br#"{"id": 1, "verb": "status"}"#);
    assert_eq!(rude.next().0, Some(FrameKind::Bye));

    let mut newer = Raw::connect(&capsule);
    newer.say(FrameKind::Hello, br#"{"protocol": [98, 99], "colour": "blue"}"#);
    assert_eq!(newer.next().0, Some(FrameKind::Hello));
    let (kind, text) = newer.next();
    assert!(kind == Some(FrameKind::Bye) && text.contains("98"), "{text}");
    assert_eq!(capsule.status().sessions.len(), 1);
}

fn a_name_is_cleaned_and_kept() {
    let capsule = Capsule::running(&["shell"]);
    capsule.call(&Rename { session: id("main"), name: " my\x1b[31m name ".into() });
    assert_eq!(capsule.status().sessions[0].name, "my[31m name");
}

fn a_shutdown_gives_attached_clients_the_reason() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    capsule.call(&Shutdown { reason: "time to go".into() });
    let end = terminal.end();
    assert!(end.starts_with("shutdown:") && end.contains("time to go"), "{end}");
    terminal.assert_restored();
    capsule.ended();
}

/// The test is the keeper here, and slow: it greets the mux, and tells of the session when a client has long asked for it.
fn a_client_that_is_quicker_than_a_slow_keeper_finds_every_session() {
    let dir = tempfile::tempdir().unwrap();
    let instance_dir = InstanceDir::new(dir.path());
    instance_dir.prepare_run().unwrap();
    instance_dir.prepare_state().unwrap();
    let listener = UnixListener::bind(instance_dir.socket()).unwrap();
    let (ours, theirs) = Link::pair().unwrap();
    let mut mux = Command::new(std::env::current_exe().unwrap());
    let mut mux = mux.args(["capsule", "mux"]).stdin(Stdio::from(theirs.into_fd())).spawn().unwrap();
    let (of, options) = (instance_dir.path().as_os_str().into(), serde_json::Value::Null);
    let hello = ToMux::Hello { link: 1, generation: 1, instance_dir: of, options, sessions: 1 };
    ours.send(&hello, &[listener.as_fd()]).unwrap();
    let asking = std::thread::spawn(move || {
        let mut client = Connection::connect(&instance_dir, CALL).unwrap();
        client.call(&GetStatus {}, CALL).unwrap()
    });
    // Long enough for a mux that does not wait to have answered.
    std::thread::sleep(Duration::from_millis(300));
    let master = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
    let info = SessionInfo {
        request: None,
        id: id("late"),
        name: "late".into(),
        program: "late".into(),
        pid: abide_model::Pid(1),
        size: TerminalSize::default(),
        exited: None,
        meta: serde_json::Value::Null,
    };
    ours.send(&ToMux::Session(info), &[master.as_fd()]).unwrap();
    let status = asking.join().unwrap();
    mux.kill().unwrap();
    mux.wait().unwrap();
    assert_eq!(status.sessions.len(), 1, "{status:?}");
}
