//! The operator's terminal in the hands of the mux: when it has it, and that it lets go of it in time.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use abide_wire::protocol::{
    Attach, Connection, FrameDecoder, FrameKind, Hello, MAX_FRAME, ReplyTo, RequestRefusal, Spawn, encode,
    encode_json, error_code, header,
};
use abide_wire::socket;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::Signal;
use rustix::pty::OpenptFlags;

use crate::support::{CALL, Capsule, part, send_signal, shell, wait_for};
use crate::terminal::Terminal;
use crate::tests;
use crate::trouble::{resident_kib, wake_ups};

tests![
    keys_and_pictures_do_not_pass_through_the_client,
    nothing_is_drawn_after_the_terminal_was_given_back,
    a_client_that_is_killed_takes_its_terminal_along,
    what_is_typed_while_the_mux_is_replaced_arrives_and_the_next_mux_gets_the_terminal,
    a_terminal_that_takes_nothing_costs_only_its_own_frames,
    what_a_program_does_not_read_is_left_in_the_terminal,
    what_is_no_terminal_of_ours_is_refused_and_closed,
    a_client_that_is_detached_or_hangs_up_has_its_terminal_back_at_once,
    a_mux_that_knows_nothing_of_loans_gets_what_is_typed,
];

/// How often the mux has a terminal open.
fn openings(capsule: &Capsule, device: &Path) -> usize {
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", capsule.status().mux_pid)).unwrap();
    let targets = descriptors.map(|fd| std::fs::read_link(fd.unwrap().path()).unwrap_or_default());
    targets.filter(|to| to == device).count()
}

fn lent(capsule: &Capsule, text: &str) -> Terminal {
    let mut terminal = Terminal::attach(capsule, 80, 24, &[]);
    terminal.wait_text(text);
    wait_until_lent(capsule, &mut terminal);
    terminal
}

fn wait_until_lent(capsule: &Capsule, terminal: &mut Terminal) {
    wait_for("the loan", || {
        terminal.pump();
        (openings(capsule, &terminal.device()) == 1).then_some(())
    });
}

fn keys_and_pictures_do_not_pass_through_the_client() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = lent(&capsule, "ready$");
    wait_for("the client's last word", || {
        let before = wake_ups(terminal.client_pid());
        std::thread::sleep(Duration::from_millis(100));
        (before == wake_ups(terminal.client_pid())).then_some(())
    });
    let before = wake_ups(terminal.client_pid());
    for n in 0..10 {
        terminal.type_keys(&format!("key {n}\r"));
        terminal.wait_text(&format!("you said key {n}"));
    }
    assert_eq!(wake_ups(terminal.client_pid()), before);
    terminal.resize(60, 20);
    terminal.wait_until("the new size", |term| term.text().lines().count() == 20);
    terminal.type_keys("size\r");
    terminal.wait_text("size=60x19");
}

fn nothing_is_drawn_after_the_terminal_was_given_back() {
    let mut capsule = Capsule::new();
    capsule.launch(part("main", &["flood"]));
    for way in ["\x02d", "TERM", "STOP"] {
        let mut terminal = lent(&capsule, "flood");
        match way {
            "TERM" => terminal.signal(Signal::TERM),
            "STOP" => terminal.signal(Signal::TSTP),
            keys => terminal.type_keys(keys),
        }
        if way == "STOP" {
            wait_for("the stop", || {
                terminal.pump();
                terminal.is_stopped().then_some(())
            });
        } else {
            assert!(terminal.end().starts_with("detached"));
        }
        assert_eq!((openings(&capsule, &terminal.device()), capsule.status().attached), (0, 0));
        terminal.pump();
        terminal.assert_restored();
        let end = &terminal.written[terminal.written.len() - 20..];
        assert!(end.ends_with(b"\x1b[?1049l\x1b[23;0t"), "{}", end.escape_ascii());
    }
}

fn a_client_that_is_killed_takes_its_terminal_along() {
    let capsule = Capsule::running(&["shell"]);
    let terminal = lent(&capsule, "ready$");
    terminal.signal(Signal::KILL);
    wait_for("the end of the loan", || (openings(&capsule, &terminal.device()) == 0).then_some(()));
    assert_eq!(capsule.status().attached, 0);
}

fn what_is_typed_while_the_mux_is_replaced_arrives_and_the_next_mux_gets_the_terminal() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = lent(&capsule, "ready$");
    let status = capsule.status();
    send_signal(status.keeper_pid, Signal::STOP);
    send_signal(status.mux_pid, Signal::KILL);
    terminal.wait_text("the screen is being rebuilt");
    terminal.type_keys("meanwhile\r");
    terminal.pump();
    send_signal(status.keeper_pid, Signal::CONT);
    terminal.wait_text("you said meanwhile");
    wait_until_lent(&capsule, &mut terminal);
    terminal.type_keys("afterwards\r");
    terminal.wait_text("you said afterwards");
    terminal.type_keys("\x02d");
    assert!(terminal.end().starts_with("detached"));
    terminal.assert_restored();
}

fn a_terminal_that_takes_nothing_costs_only_its_own_frames() {
    let mut capsule = Capsule::new();
    capsule.launch(part("main", &["flood"]));
    let mut stalled = lent(&capsule, "flood");
    capsule.call(&Spawn { spec: Box::new(part("other", &["shell"])), focus: false });
    let mut other = Terminal::attach(&capsule, 80, 24, &["session=other"]);
    other.wait_text("ready$");
    let before = stalled.written.len();
    for n in 0..200 {
        other.type_keys(&format!("key {n}\r"));
        other.wait_text(&format!("you said key {n}"));
    }
    let used = resident_kib(capsule.status().mux_pid);
    assert!(used < 40 << 10, "{used} KiB");
    // What is typed is heard all the while.
    stalled.type_keys("\x03");
    wait_for("the end of the flood", || (capsule.status().sessions.len() == 1).then_some(()));
    stalled.wait_text("you said key 199");
    let drawn = stalled.written.len() - before;
    assert!(drawn < 80_000, "{drawn} bytes of frames that nobody could see");
}

fn what_a_program_does_not_read_is_left_in_the_terminal() {
    let mut capsule = Capsule::new();
    let (start, file) = (capsule.file("start"), capsule.file("read"));
    let paste: Vec<u8> =
        (0..9_000_000u32).map(|n| b'a' + (n.wrapping_mul(2_654_435_761) >> 29) as u8).collect();
    let script = format!(
        "stty raw -echo; echo deaf; until [ -e {} ]; do sleep 0.01; done; head -c {} >{}; echo full; sleep 1000",
        start.display(),
        paste.len(),
        file.display(),
    );
    capsule.launch(shell("main", &script));
    let mut terminal = lent(&capsule, "deaf");
    let (mut typed, mut since) = (0, Instant::now());
    // More than is ever kept for a program would be taken within this time by a mux that goes on reading.
    while typed < paste.len() && since.elapsed() < Duration::from_secs(2) {
        match terminal.try_type(&paste[typed..]) {
            0 => terminal.pump(),
            n => (typed, since) = (typed + n, Instant::now()),
        }
    }
    assert!(typed < paste.len(), "all of it was taken");
    std::fs::write(start, "").unwrap();
    terminal.type_bytes(&paste[typed..]);
    terminal.wait_text("full");
    assert!(std::fs::read(&file).unwrap() == paste, "not what was typed");
}

/// A client that attaches and sends a frame with descriptors.
fn send_with(capsule: &Capsule, kind: FrameKind, fds: &[BorrowedFd<'_>]) -> UnixStream {
    let (mut stream, _) = Connection::connect(&capsule.instance_dir, CALL).unwrap().into_parts();
    let mut frame = Vec::new();
    encode_json(FrameKind::Attach, &Attach { cols: 80, rows: 24, ..Attach::default() }, &mut frame).unwrap();
    stream.write_all(&frame).unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
    let frame = header(kind, 0).unwrap();
    rustix::net::sendmsg(&stream, &[IoSlice::new(&frame)], &mut control, SendFlags::empty()).unwrap();
    stream
}

/// Reads until a frame of that kind has come; gives what it holds. What else came is forgotten.
fn wait_for_kind(stream: &mut UnixStream, wanted: FrameKind) -> Vec<u8> {
    let mut decoder = FrameDecoder::new(MAX_FRAME);
    let mut byte = [0];
    loop {
        while let Some(frame) = decoder.next().unwrap() {
            if frame.kind() == Some(wanted) {
                return frame.payload.to_vec();
            }
        }
        // One at a time, so that what follows is there for the next who waits.
        assert_ne!(stream.read(&mut byte).unwrap(), 0, "{wanted:?} did not come");
        decoder.push(&byte);
    }
}

fn what_is_no_terminal_of_ours_is_refused_and_closed() {
    let capsule = Capsule::running(&["shell"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let blocking = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    let terminal = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::io::ioctl_fionbio(&terminal, true).unwrap();
    let (writer_fd, terminal_fd) = (writer.as_fd(), terminal.as_fd());
    for fds in [&[][..], &[writer_fd], &[blocking.as_fd()], &[terminal_fd, writer_fd], &[writer_fd; 4]] {
        wait_for_kind(&mut send_with(&capsule, FrameKind::Lend, fds), FrameKind::Reply);
    }
    // A frame that has no use for one.
    let mut other = send_with(&capsule, FrameKind::Request, &[writer_fd]);
    wait_for_kind(&mut other, FrameKind::Reply);
    drop(writer);
    rustix::io::ioctl_fionbio(&reader, true).unwrap();
    wait_for("the end of the last copy", || (reader.read(&mut [0]).ok() == Some(0)).then_some(()));
    wait_for_kind(&mut send_with(&capsule, FrameKind::Lend, &[terminal_fd]), FrameKind::Lent);
}

fn a_client_that_is_detached_or_hangs_up_has_its_terminal_back_at_once() {
    let mut capsule = Capsule::new();
    capsule.launch(shell("main", "stty raw -echo; exec sleep 1000"));
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = rustix::pty::openpt(flags).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags).unwrap();
    rustix::io::ioctl_fionbio(&slave, true).unwrap();
    let device = std::fs::read_link(format!("/proc/self/fd/{}", slave.as_raw_fd())).unwrap();
    let borrowed = || {
        let mut stream = send_with(&capsule, FrameKind::Lend, &[slave.as_fd()]);
        stream.set_read_timeout(Some(CALL)).unwrap();
        wait_for_kind(&mut stream, FrameKind::Lent);
        assert_eq!(openings(&capsule, &device), 1);
        stream
    };
    let mut told = borrowed();
    told.write_all(&header(FrameKind::Bye, 0).unwrap()).unwrap();
    wait_for_kind(&mut told, FrameKind::Bye);
    assert_eq!(openings(&capsule, &device), 0);

    // It is not listened to, because the program does not read what it sent.
    let mut hangs_up = borrowed();
    let mut typed = Vec::new();
    encode(FrameKind::Input, &[b'x'; 64 << 10], &mut typed).unwrap();
    for _ in 0..66 {
        hangs_up.write_all(&typed).unwrap();
    }
    hangs_up.shutdown(Shutdown::Write).unwrap();
    let end = std::io::copy(&mut hangs_up, &mut std::io::sink());
    // What it sent is not read any more, of which it is told.
    assert!(!end.is_err_and(|err| err.kind() != std::io::ErrorKind::ConnectionReset));
    assert_eq!(openings(&capsule, &device), 0);

    let mut window_closed = borrowed();
    drop(master);
    wait_for_kind(&mut window_closed, FrameKind::Bye);
    assert_eq!(openings(&capsule, &device), 0);
}

fn a_mux_that_knows_nothing_of_loans_gets_what_is_typed() {
    let capsule = Capsule::new();
    std::fs::create_dir(capsule.instance_dir.run_dir()).unwrap();
    let (listener, _) = socket::bind(&capsule.instance_dir.run_dir()).unwrap();
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    let mut client = socket::accept(&listener).unwrap();
    client.set_read_timeout(Some(CALL)).unwrap();
    wait_for_kind(&mut client, FrameKind::Hello);
    let mut frames = Vec::new();
    encode_json(FrameKind::Hello, &Hello::ours(), &mut frames).unwrap();
    encode(FrameKind::Output, b"of an older version", &mut frames).unwrap();
    client.write_all(&frames).unwrap();
    // Which is also when the terminal answers what it was asked.
    terminal.wait_text("of an older version");
    wait_for_kind(&mut client, FrameKind::Lend);
    terminal.type_keys("held back ");
    let mut refusal = Vec::new();
    let reply = ReplyTo::<()>::new(0, Err(RequestRefusal::new(error_code::UNKNOWN_FRAME, "what is this?")));
    encode_json(FrameKind::Reply, &reply, &mut refusal).unwrap();
    client.write_all(&refusal).unwrap();
    assert_eq!(wait_for_kind(&mut client, FrameKind::Input), b"held back ");
    terminal.type_keys("and not");
    assert_eq!(wait_for_kind(&mut client, FrameKind::Input), b"and not");
}
