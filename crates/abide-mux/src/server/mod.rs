//! The loop: who is waited for, in which order they are served, and what is due when.
//!
//! The order within a round is what keeps a flood from being felt: clients' input goes to the programs before any
//! output is read, output is read in slices, and pictures are drawn last, from whatever state is newest by then.

pub(crate) mod attention;
pub(crate) mod awake;
pub(crate) mod client;
pub(crate) mod connections;
pub(crate) mod due;
pub(crate) mod endings;
pub(crate) mod keeper_link;
pub(crate) mod layout_file;
pub(crate) mod lent_terminal;
pub(crate) mod searching;
pub(crate) mod spawn;
pub(crate) mod verbs;
pub(crate) mod wait;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;
use std::time::Instant;

use abide_model::watching::Watch;
use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::signals::SignalFd;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::last_seen::LastSeenAll;
use abide_wire::link::{LINK_VERSION, Link, LinkError, ToKeeper, ToMux};
use abide_wire::mux_options::{LiveSettings, MuxOptions};
use abide_wire::protocol::Colors;
use abide_wire::session::{ProcessExit, SessionId};

use crate::screen::glyph::{LinkPolicy, Strings};
use crate::screen::layout::Layout;
use crate::server::attention::Attention;
use crate::server::awake::AwakeLock;
use crate::server::client::{Client, ClientId};
use crate::server::keeper_link::ToKeeperQueue;
use crate::server::layout_file::{LayoutFile, SavedLayout};
use crate::server::spawn::Asked;
use crate::server::wait::Waiting;
use crate::session::activity::FileWatch;
use crate::session::settling::Settling;
use crate::session::{MAX_INPUT, MuxSession};

/// How much of one session's output is read before everybody else has a turn.
const SLICE: usize = 32 << 10;
/// The same where others read as well, or a client shows another session: its input must not wait for long.
const LEAST_SLICE: usize = 8 << 10;
/// The same where no client could be kept waiting.
const UNSEEN_SLICE: usize = 256 << 10;

/// Why a mux cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MuxError {
    #[error("the keeper's first message was not a greeting")]
    NoGreeting,
    #[error("the keeper speaks version {0} of the link, and this program knows {LINK_VERSION}")]
    NewerKeeper(u32),
    #[error("the keeper is gone")]
    NoKeeper,
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Everything that the mux has.
pub(crate) struct Server {
    pub link: Link,
    pub listener: UnixListener,
    signals: SignalFd,
    pub instance_dir: InstanceDir,
    pub generation: u64,
    pub options: MuxOptions,
    pub watch: Watch,
    /// In the order in which they came. None is removed before the end of a round.
    pub sessions: Vec<MuxSession>,
    pub ended: VecDeque<(SessionId, ProcessExit)>,
    pub layout: Layout,
    /// What this mux found. After a resume the sessions come one by one, and each finds its place and its name in it.
    pub earlier: SavedLayout,
    pub file: LayoutFile,
    /// The colours of the terminal that was attached last, which are the answer when a program asks for its colours.
    pub colors: Option<Colors>,
    /// Sizes may have to follow a change of layout or of clients.
    pub refit: bool,
    pub clients: BTreeMap<ClientId, Client>,
    pub strings: Strings,
    pub attention: Attention,
    pub files: FileWatch,
    pub last_seen: LastSeenAll,
    pub waiting: Vec<Waiting>,
    pub asked: Vec<Asked>,
    /// The next number of each kind that needs one.
    pub numbers: u64,
    /// The capsule is stopping, for this reason.
    pub stopping: Option<String>,
    pub retiring: bool,
    pub syncing: Option<JoinHandle<()>>,
    pub awake: AwakeLock,
    /// Ended sessions whose journals are on their way to disk.
    pub settling: Settling,
    /// What was changed of the launcher's settings, in which run.
    pub changed_settings: Option<(u64, LiveSettings)>,
    /// What the keeper had no room for yet.
    pub to_keeper: ToKeeperQueue,
    /// The time of the present round.
    pub now: Instant,
}

/// A source of events that is ready to be read.
#[derive(Debug, Clone, Copy)]
enum ReadySource {
    Signals,
    Link,
    Listener,
    Settled,
    Files,
    Client(ClientId, PollFlags),
    Terminal(ClientId, PollFlags),
    Session(usize, PollFlags),
}

impl Server {
    /// Hears from the keeper what there is, and takes it over.
    pub fn start(link: BorrowedFd<'_>, watch: Watch) -> Result<Self, MuxError> {
        let link = Link::from_fd(link.try_clone_to_owned()?);
        let signals = SignalFd::block(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
        let greeting = link.recv::<ToMux>()?.ok_or(MuxError::NoKeeper)?;
        let (ToMux::Hello { link: version, generation, instance_dir, options, sessions }, fds) = greeting
        else {
            return Err(MuxError::NoGreeting);
        };
        if version > LINK_VERSION {
            return Err(MuxError::NewerKeeper(version));
        }
        let listener = UnixListener::from(fds.into_iter().next().ok_or(MuxError::NoGreeting)?);
        listener.set_nonblocking(true)?;
        let mut options = read_options(options);
        let instance_dir = InstanceDir::new(instance_dir.as_path());
        let file = LayoutFile::read(&instance_dir);
        let changed_settings = file.saved().changed_settings.clone().filter(|(of, _)| *of == generation);
        if let Some((_, settings)) = &changed_settings {
            options.live = settings.clone();
        }
        let last_seen = LastSeenAll::read(&instance_dir, generation);
        let settling = Settling::new()?;
        let policy = LinkPolicy::of(&options);
        let mut server = Self {
            link,
            listener,
            signals,
            instance_dir,
            generation,
            options,
            watch,
            sessions: Vec::new(),
            ended: VecDeque::new(),
            layout: file.saved().layout.clone(),
            earlier: file.saved().clone(),
            colors: file.saved().colors,
            file,
            refit: false,
            clients: BTreeMap::new(),
            strings: Strings::new(policy),
            attention: Attention::default(),
            files: FileWatch::default(),
            last_seen,
            waiting: Vec::new(),
            asked: Vec::new(),
            numbers: 0,
            changed_settings,
            settling,
            to_keeper: ToKeeperQueue::default(),
            stopping: None,
            retiring: false,
            syncing: None,
            awake: AwakeLock::default(),
            now: Instant::now(),
        };
        // Before any request, and before the layout is compared: a session that is announced a moment later would be unknown
        // to the one and lost from the other.
        for _ in 0..sessions {
            let (message, fds) = server.link.recv::<ToMux>()?.ok_or(MuxError::NoKeeper)?;
            server.on_message(message, fds.into_iter().next());
        }
        server.link.set_nonblocking()?;
        server.hear_keeper()?;
        let known: Vec<SessionId> = server.sessions.iter().map(|session| session.id).collect();
        server.layout.retain(|session| known.contains(session));
        server.tell_keeper(ToKeeper::Ready);
        Ok(server)
    }

    /// Serves until there is nothing more to do.
    pub fn serve(mut self) -> Result<(), MuxError> {
        let ended = loop {
            match self.round() {
                Ok(()) if self.retiring => break Ok(()),
                Ok(()) => {}
                Err(err) => break Err(err),
            }
        };
        self.leave();
        ended
    }

    fn round(&mut self) -> Result<(), MuxError> {
        let ready = self.wait()?;
        self.now = Instant::now();
        for &one in &ready {
            match one {
                ReadySource::Signals => self.on_signals()?,
                ReadySource::Link => {
                    self.to_keeper.flush(&self.link);
                    self.hear_keeper()?;
                }
                ReadySource::Settled => self.tell_settled(),
                ReadySource::Listener => self.accept(),
                ReadySource::Files => self.on_files(),
                ReadySource::Client(id, flags) if flags.intersects(!PollFlags::OUT) => {
                    self.hear_client(id, flags.contains(PollFlags::IN));
                }
                ReadySource::Terminal(id, flags) if flags.intersects(!PollFlags::OUT) => {
                    self.hear_terminal(id)
                }
                _ => {}
            }
        }
        self.serve_sessions(&ready);
        self.on_time();
        self.finish_sessions();
        self.forget_clients();
        self.rearrange();
        self.tell_what_is_shown();
        self.draw_due();
        self.flush_clients();
        self.after_drawing();
        Ok(())
    }

    fn wait(&self) -> Result<Vec<ReadySource>, MuxError> {
        let mut who =
            vec![ReadySource::Signals, ReadySource::Link, ReadySource::Settled, ReadySource::Listener];
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.link, poll::flags(true, !self.to_keeper.is_empty())),
            PollFd::new(&self.settling, PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        if !self.may_accept() {
            // New clients wait in the socket's queue in the meantime.
            who.pop();
            fds.pop();
        }
        if let Some(files) = self.files.fd() {
            who.push(ReadySource::Files);
            fds.push(PollFd::from_borrowed_fd(files, PollFlags::IN));
        }
        for (&id, client) in &self.clients {
            let reads = client.wants_to_read() && !self.is_blocked(client);
            // A client that hangs up wants its terminal back, also while it is not listened to.
            let on_socket = poll::flags(reads, client.wants_to_write()) | PollFlags::RDHUP;
            who.push(ReadySource::Client(id, on_socket));
            fds.push(PollFd::from_borrowed_fd(client.as_fd(), on_socket));
            if let Some(lent) = &client.lent {
                let on_terminal = poll::flags(reads && lent.is_ours, lent.out.waiting() > 0);
                who.push(ReadySource::Terminal(id, on_terminal));
                fds.push(PollFd::new(lent, on_terminal));
            }
        }
        for (index, session) in
            self.sessions.iter().enumerate().filter(|(_, session)| session.wants_to_read())
        {
            let flags = poll::flags(self.may_read(session), session.wants_to_write());
            if flags.is_empty() {
                continue;
            }
            who.push(ReadySource::Session(index, flags));
            fds.push(PollFd::from_borrowed_fd(session.as_fd(), flags));
        }
        poll::wait(&mut fds, self.deadline())?;
        let happened = who.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(happened.map(|(who, fd)| who.with(fd.revents())).collect())
    }

    /// A client that sends more than its session reads is not listened to, so that nothing is lost on the way.
    fn is_blocked(&self, client: &Client) -> bool {
        let session = client.filled.as_ref().and_then(|filled| self.session(filled));
        session.is_some_and(|session| session.input_waiting() >= MAX_INPUT)
    }

    fn serve_sessions(&mut self, ready: &[ReadySource]) {
        for one in ready {
            if let ReadySource::Session(index, flags) = *one
                && flags.contains(PollFlags::OUT)
            {
                self.sessions[index].flush();
            }
        }
        let readable = |one: &ReadySource| match *one {
            ReadySource::Session(index, flags) if flags.intersects(!PollFlags::OUT) => Some(index),
            _ => None,
        };
        // Whom a client has just typed to was not known when we asked who has something for us.
        let allowed = |index: &usize| self.may_read(&self.sessions[*index]);
        let readable: Vec<usize> = ready.iter().filter_map(readable).filter(allowed).collect();
        for &index in &readable {
            let budget = (self.slice(index) / readable.len()).max(LEAST_SLICE);
            let read = self.sessions[index].read(budget, self.now);
            if read >= budget && self.others_are_seen(index) {
                self.sessions[index].pause(self.now);
            }
            if read > 0 {
                self.on_output(index);
            }
            if self.sessions[index].fell_quiet() {
                self.draw_at_once(index);
            }
        }
    }

    fn slice(&self, index: usize) -> usize {
        if self.clients.is_empty() {
            UNSEEN_SLICE
        } else if self.others_are_seen(index) {
            LEAST_SLICE
        } else {
            SLICE
        }
    }

    fn may_read(&self, session: &MuxSession) -> bool {
        self.attention.allows(&session.id) && session.paused_until().is_none_or(|until| until <= self.now)
    }

    /// Whether clients are attached, and none of them shows the tab of this session.
    fn others_are_seen(&self, index: usize) -> bool {
        let own = self.layout.tab_of(&self.sessions[index].id).map(|tab| tab.id);
        let mut seen = self.clients.values().filter_map(|client| Some(client.view.as_ref()?.tab)).peekable();
        seen.peek().is_some() && seen.all(|tab| Some(tab) != own)
    }

    fn on_signals(&mut self) -> Result<(), MuxError> {
        while let Some(signal) = self.signals.next()? {
            // The keeper has no terminal that could hang up on us.
            if signal != libc::SIGHUP {
                self.tell_keeper(ToKeeper::Signalled { signal });
                self.retiring = true;
            }
        }
        Ok(())
    }

    /// Follows changes of the layout: every client looks at a tab that exists, every session has the size of its pane.
    pub fn rearrange(&mut self) {
        if std::mem::take(&mut self.refit) {
            self.fit_sessions();
            // A capsule that stops ends its sessions one by one; what comes back is the arrangement from before that.
            if self.stopping.is_none() {
                let mut names = self.earlier.names.clone();
                names.extend(self.sessions.iter().map(|session| (session.id, session.name.clone())));
                let (layout, colors) = (self.layout.clone(), self.colors);
                let changed_settings = self.changed_settings.clone();
                self.file.save(SavedLayout { layout, names, colors, changed_settings });
            }
        }
    }

    fn tell_what_is_shown(&mut self) {
        for client in self.clients.values_mut() {
            let tab = client.view.as_ref().and_then(|view| self.layout.tab(view.tab));
            if let Some(focused) = tab.map(|tab| tab.focused) {
                client.shows(focused);
            }
        }
    }

    /// A number that was never given before.
    pub fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub fn session(&self, id: &SessionId) -> Option<&MuxSession> {
        self.sessions.iter().find(|session| session.id == *id)
    }

    pub fn session_mut(&mut self, id: &SessionId) -> Option<&mut MuxSession> {
        self.sessions.iter_mut().find(|session| session.id == *id)
    }
}

impl ReadySource {
    fn with(self, flags: PollFlags) -> Self {
        match self {
            Self::Client(id, _) => Self::Client(id, flags),
            Self::Terminal(id, _) => Self::Terminal(id, flags),
            Self::Session(index, _) => Self::Session(index, flags),
            other => other,
        }
    }
}

/// Options that cannot be read are a mistake of the launcher's, and no reason to leave the sessions alone.
fn read_options(options: serde_json::Value) -> MuxOptions {
    if options.is_null() {
        return MuxOptions::default();
    }
    serde_json::from_value(options).unwrap_or_else(|err| {
        tracing::warn!("unreadable options, using the defaults: {err}");
        MuxOptions::default()
    })
}
