//! The loop of an attached client: terminal, socket and signals, none of which may make it wait for another.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::signals::TerminalSignals;
use abide_sys::terminal::{self, OperatorTerminal};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::{
    Attach, Bye, ByeReason, CallError, Event, EventMessage, FrameDecoder, FrameKind, Hello, MAX_FRAME,
    Resize, encode, encode_json, header, negotiate,
};
use abide_wire::session::{SessionId, TerminalSize};
use abide_wire::socket;

use crate::connect::{self, Absence, Again};
use crate::environment::TerminalEnv;
use crate::probe::{PLAIN_QUESTION, QUESTION, TerminalProbe};
use crate::{AttachEnd, AttachMode, AttachOptions, OnShown};

/// While this much waits for the terminal, nothing is read from the mux, which then skips frames.
const MAX_DRAWING: usize = 64 << 10;
/// While this much waits for the mux, nothing is read from the terminal.
const MAX_TYPED: usize = 1 << 20;
const CHUNK: usize = 16 << 10;
const DEFAULT_PREFIX: u8 = 0x02;

pub(super) struct Attachment<'a> {
    instance_dir: &'a InstanceDir,
    options: &'a AttachOptions,
    terminal: OperatorTerminal,
    env: TerminalEnv,
    probe: TerminalProbe,
    socket: Option<UnixStream>,
    decoder: FrameDecoder,
    /// Frames on their way to the mux.
    out: Vec<u8>,
    /// What was typed while there was no connection.
    typed: Vec<u8>,
    /// The session that is shown, and that a mux which comes back is to show again.
    shown: Option<SessionId>,
    /// The mux is being replaced.
    absence: Option<Absence>,
    loan: Loan,
}

/// Who reads the terminal and draws on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loan {
    None,
    /// The mux may have it, and nothing is read here any more.
    Offered,
    /// The mux takes it, as soon as we have drawn what it sent.
    Accepted,
    Given,
    /// We do, because this mux does not want to, or should not.
    Refused,
}

impl<'a> Attachment<'a> {
    pub fn new(
        instance_dir: &'a InstanceDir,
        options: &'a AttachOptions,
        mut terminal: OperatorTerminal,
        socket: UnixStream,
        decoder: FrameDecoder,
    ) -> io::Result<Self> {
        let env = TerminalEnv::here();
        terminal.write(if env.takes_questions() { QUESTION } else { PLAIN_QUESTION });
        let probe = TerminalProbe::new(Instant::now());
        let socket = Some(socket);
        let (out, typed) = (Vec::new(), Vec::new());
        let mut attachment = Self {
            instance_dir,
            options,
            terminal,
            env,
            probe,
            socket,
            decoder,
            out,
            typed,
            shown: options.session,
            absence: None,
            loan: Loan::None,
        };
        attachment.note_extensions();
        attachment.send_attach(options.session)?;
        Ok(attachment)
    }

    /// Runs until there is a reason to end.
    pub fn run(&mut self, signals: &TerminalSignals, on_shown: OnShown<'_>) -> io::Result<AttachEnd> {
        let mut on_shown = Some(on_shown);
        // Frames that came together with the greeting.
        if let Some(end) = self.read_frames()? {
            return Ok(end);
        }
        loop {
            let ready = self.wait(signals)?;
            if ready.signals
                && let Some(end) = self.on_signals(signals)?
            {
                return Ok(end);
            }
            if ready.input
                && let Some(end) = self.on_input()?
            {
                return Ok(end);
            }
            if ready.socket
                && let Some(end) = self.on_socket()?
            {
                return Ok(end);
            }
            if let Some(end) = self.on_time()? {
                return Ok(end);
            }
            if self.terminal.flush().is_err() {
                return Ok(terminal_gone());
            }
            self.confirm_loan();
            self.send();
            self.offer_loan();
            if self.is_shown()
                && let Some(on_shown) = on_shown.take()
            {
                on_shown(self.shown);
            }
        }
    }

    fn wait(&self, signals: &TerminalSignals) -> io::Result<ReadyFds> {
        let mut fds = vec![PollFd::new(&signals.fd, PollFlags::IN)];
        let reads = self.reads_terminal() && self.out.len() + self.typed.len() < MAX_TYPED;
        fds.push(PollFd::from_borrowed_fd(self.terminal.input(), poll::flags(reads, false)));
        fds.push(PollFd::from_borrowed_fd(
            self.terminal.output(),
            poll::flags(false, self.terminal.pending() > 0),
        ));
        if let Some(socket) = &self.socket {
            let reads = self.terminal.pending() < MAX_DRAWING;
            let flags = poll::flags(reads, !self.out.is_empty());
            if !flags.is_empty() {
                fds.push(PollFd::from_borrowed_fd(socket.as_fd(), flags));
            }
        }
        let absence = self.absence.as_ref().map(|absence| absence.deadline(self.socket.is_none()));
        let deadline = self.probe.deadline().into_iter().chain(absence).min();
        poll::wait(&mut fds, deadline)?;
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(ReadyFds { signals: is_ready(0), input: is_ready(1), socket: is_ready(3) })
    }

    fn on_signals(&mut self, signals: &TerminalSignals) -> io::Result<Option<AttachEnd>> {
        while let Some(signal) = signals.fd.next()? {
            match signal {
                libc::SIGWINCH => self.send_size(),
                libc::SIGTSTP => {
                    self.step_aside();
                    terminal::stop();
                }
                libc::SIGCONT => {
                    self.step_aside();
                    self.terminal.enter()?;
                    self.note_extensions();
                    if self.probe.reported().kitty {
                        self.terminal.use_kitty();
                    }
                }
                libc::SIGHUP => return Ok(Some(terminal_gone())),
                signal => {
                    let message = format!("detached by signal {signal}; everything keeps running");
                    return Ok(Some(AttachEnd::Detached(message)));
                }
            }
        }
        Ok(None)
    }

    /// Gives the terminal back for the time being. The connection ends with that, and begins anew with the next screen.
    fn step_aside(&mut self) {
        self.terminal.leave();
        self.absence = None;
        self.lost_connection();
    }

    /// Whether the screen is drawn, and nothing is left to do until the operator does something.
    fn is_shown(&self) -> bool {
        matches!(self.loan, Loan::Given | Loan::Refused)
            && self.out.is_empty()
            && self.terminal.pending() == 0
    }

    fn reads_terminal(&self) -> bool {
        matches!(self.loan, Loan::None | Loan::Refused)
    }

    /// Lends the terminal, once there is nothing on the way to the mux that was typed before, and nothing to come from
    /// the terminal that was not typed.
    fn offer_loan(&mut self) {
        let sent = self.out.is_empty() && self.typed.is_empty() && self.absence.is_none();
        if self.loan != Loan::None || !sent || !self.probe.is_over() {
            return;
        }
        let Some(socket) = &self.socket else { return };
        // A process that has a descriptor can keep it. On this machine that gains nothing; from within a container it could read
        // what is typed into the shell afterwards.
        let lendable = self.terminal.lendable().filter(|_| socket::is_neighbour(socket));
        let Some(terminal) = lendable else { return self.loan = Loan::Refused };
        let frame = header(FrameKind::Lend, 0).unwrap_or_default();
        match socket::send_with(socket, &frame, terminal) {
            Ok(_) => self.loan = Loan::Offered,
            Err(err) if matches!(err.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.lost_connection(),
        }
    }

    /// Leaves the terminal to the mux once everything is drawn that it sent before.
    fn confirm_loan(&mut self) {
        if self.loan != Loan::Accepted || self.terminal.pending() > 0 {
            return;
        }
        self.terminal.lent_over(self.socket.as_ref().and_then(|socket| socket.try_clone().ok()));
        let _ = encode(FrameKind::Lent, &[], &mut self.out);
        self.loan = Loan::Given;
    }

    fn on_input(&mut self) -> io::Result<Option<AttachEnd>> {
        let mut chunk = [0; CHUNK];
        let Ok(n) = self.terminal.read(&mut chunk) else { return Ok(Some(terminal_gone())) };
        let known = self.probe.reported();
        let typed = self.probe.filter(&chunk[..n], Instant::now());
        let reported = self.probe.reported();
        if reported.kitty && !known.kitty {
            self.terminal.use_kitty();
        }
        if reported != known {
            self.note_extensions();
            self.send_attach(None)?;
        }
        self.type_in(&typed);
        Ok(self
            .leaves_unaided()
            .then(|| AttachEnd::Detached("detached; everything keeps running".to_owned())))
    }

    fn type_in(&mut self, typed: &[u8]) {
        self.typed.extend_from_slice(typed);
        if self.absence.is_none() {
            for piece in std::mem::take(&mut self.typed).chunks(CHUNK) {
                // A piece is never too long.
                let _ = encode(FrameKind::Input, piece, &mut self.out);
            }
        }
    }

    /// Whether the operator pressed the detach keys while there was no connection.
    fn leaves_unaided(&self) -> bool {
        let prefix = if self.options.prefix == 0 { DEFAULT_PREFIX } else { self.options.prefix };
        self.absence.is_some() && self.typed.windows(2).any(|keys| keys == [prefix, b'd'])
    }

    fn on_socket(&mut self) -> io::Result<Option<AttachEnd>> {
        let Some(socket) = &mut self.socket else { return Ok(None) };
        let mut chunk = [0; CHUNK];
        match socket.read(&mut chunk) {
            Ok(0) => self.lost_connection(),
            Ok(n) => self.decoder.push(&chunk[..n]),
            Err(err) if matches!(err.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.lost_connection(),
        }
        self.read_frames()
    }

    fn read_frames(&mut self) -> io::Result<Option<AttachEnd>> {
        loop {
            let (kind, payload) = match self.decoder.next() {
                Ok(Some(frame)) => (frame.kind(), frame.payload.to_vec()),
                Ok(None) => return Ok(None),
                Err(err) => return Ok(Some(connect::not_understood(&err.into()))),
            };
            match kind {
                Some(FrameKind::Output) => {
                    self.absence = None;
                    self.terminal.write(&payload);
                    self.type_in(&[]);
                }
                Some(FrameKind::Hello) => {
                    let hello: Hello = serde_json::from_slice(&payload)?;
                    if let Err(err) = negotiate(&hello.protocol) {
                        return Ok(Some(connect::not_understood(&CallError::Version(err))));
                    }
                }
                Some(FrameKind::Lent) => self.loan = Loan::Accepted,
                // We ask for nothing else that could be refused.
                Some(FrameKind::Reply) if self.loan == Loan::Offered => self.loan = Loan::Refused,
                Some(FrameKind::Event) => {
                    let message =
                        serde_json::from_slice::<EventMessage>(&payload).map(|message| message.event);
                    if let Ok(Event::Shown { session }) = message {
                        self.shown = Some(session);
                    }
                }
                Some(FrameKind::Bye) => {
                    // It comes after the last that the mux draws.
                    self.terminal.lent_over(None);
                    let bye: Bye = serde_json::from_slice(&payload)?;
                    match ended(bye) {
                        Some(end) => return Ok(Some(end)),
                        None => self.lost_connection(),
                    }
                }
                _ => {}
            }
        }
    }

    /// The mux is gone, for a moment or for good.
    fn lost_connection(&mut self) {
        let now = Instant::now();
        self.socket = None;
        self.loan = Loan::None;
        self.terminal.lent_over(None);
        self.decoder = FrameDecoder::new(MAX_FRAME);
        self.out.clear();
        self.absence.get_or_insert_with(|| Absence::new(now));
    }

    fn on_time(&mut self) -> io::Result<Option<AttachEnd>> {
        let now = Instant::now();
        let typed = self.probe.give_up(now);
        if !typed.is_empty() {
            self.type_in(&typed);
        }
        let Some(absence) = &mut self.absence else { return Ok(None) };
        if !self.terminal.is_taken() {
            // A panic has hung up and given it back; beginning anew would draw over what it prints.
            return Ok(Some(terminal_gone()));
        }
        if absence.is_too_long(now) {
            return Ok(Some(connect::absent_too_long()));
        }
        if absence.is_worth_a_word(now) {
            let row = size(&self.terminal).rows;
            let line = format!("\x1b[?2026l\x1b[m\x1b[{row};1H\x1b[7m the screen is being rebuilt… \x1b[m");
            self.terminal.write(line.as_bytes());
        }
        if self.socket.is_some() {
            return Ok(None);
        }
        match absence.try_again(self.instance_dir, now) {
            Again::Connected(socket) => {
                self.socket = Some(socket);
                encode_json(FrameKind::Hello, &Hello::ours(), &mut self.out)?;
                self.send_attach(self.shown)?;
            }
            Again::NotYet => {}
            Again::Gone => return Ok(Some(connect::why_gone(self.instance_dir))),
        }
        Ok(None)
    }

    /// Attaches, and shows `session` if one is named; or reports to the mux what the terminal has answered since.
    fn send_attach(&mut self, session: Option<SessionId>) -> io::Result<()> {
        let (size, reported) = (size(&self.terminal), self.probe.reported());
        let attach = Attach {
            cols: size.cols,
            rows: size.rows,
            read_only: self.options.mode == AttachMode::ReadOnly,
            caps: self.env.traits(reported, self.options.truecolor),
            colors: reported.colors(),
            session,
        };
        encode_json(FrameKind::Attach, &attach, &mut self.out)
    }

    /// What the mux may use of the terminal has to be undone at the end.
    fn note_extensions(&mut self) {
        let reported = self.probe.reported();
        if self.env.has_extensions() || reported.kitty || reported.modify_other_keys {
            self.terminal.use_extensions();
        }
    }

    /// Tells the mux the terminal's size, upon which it draws everything anew.
    fn send_size(&mut self) {
        let size = size(&self.terminal);
        let resize = Resize { cols: size.cols, rows: size.rows };
        let _ = encode(FrameKind::Resize, &resize.to_bytes(), &mut self.out);
    }

    fn send(&mut self) {
        let Some(socket) = &mut self.socket else { return };
        while !self.out.is_empty() {
            match socket.write(&self.out) {
                Ok(n) => _ = self.out.drain(..n),
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.lost_connection(),
            }
        }
    }
}

fn size(terminal: &OperatorTerminal) -> TerminalSize {
    terminal.size().map(|(cols, rows)| TerminalSize { cols, rows }).unwrap_or_default()
}

struct ReadyFds {
    signals: bool,
    input: bool,
    socket: bool,
}

fn terminal_gone() -> AttachEnd {
    AttachEnd::TerminalGone
}

/// How a good-bye ends the attachment; `None` if it is for a moment only.
fn ended(bye: Bye) -> Option<AttachEnd> {
    Some(match bye.reason {
        ByeReason::Restarting => return None,
        ByeReason::Detached => AttachEnd::Detached(bye.message),
        ByeReason::SessionEnded => AttachEnd::SessionEnded { exit: bye.exit, message: bye.message },
        ByeReason::Shutdown => AttachEnd::Shutdown(bye.message),
        ByeReason::Protocol | ByeReason::Other => AttachEnd::Lost(bye.message),
    })
}
