//! The smallest mux that does its duty: it journals, drains, and passes requests on to the keeper.
//!
//! Instead of a screen it keeps the state of a [`Stream`] checker, restored from the journal after each death.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use abide_journal::{Chunk, Journal};
use abide_model::SessionId;
use abide_sys::process;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::link::{Link, LinkError, SessionInfo, ToKeeper, ToMux};
use abide_wire::protocol::{
    Done, FrameDecoder, FrameKind, Hello, MAX_CLIENT_FRAME, ReplyTo, Request, RequestRefusal, RequestVerb,
    SessionStatus, SpawnReply, StatusReply, encode_json, error_code,
};
use abide_wire::socket;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::session::Stream;

/// Small, so that it goes round many times.
pub const JOURNAL_CAPACITY: u64 = 256 << 10;
const QUIET: Duration = Duration::from_millis(100);

struct Mux {
    link: Link,
    instance_dir: InstanceDir,
    generation: u64,
    listener: UnixListener,
    sessions: HashMap<SessionId, Session>,
    clients: Vec<Client>,
    waiting: HashMap<u64, (usize, u64)>,
    next_request: u64,
}

struct Session {
    info: SessionInfo,
    master: File,
    journal: Journal,
    stream: Stream,
    at_end: bool,
    last_output: Instant,
}

struct Client {
    id: usize,
    stream: UnixStream,
    decoder: FrameDecoder,
}

pub fn run() {
    let link = Link::from_fd(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let Some((ToMux::Hello { instance_dir, generation, .. }, mut fds)) = link.recv().unwrap() else {
        panic!("no hello")
    };
    link.set_nonblocking().unwrap();
    let listener = UnixListener::from(fds.remove(0));
    listener.set_nonblocking(true).unwrap();
    let mut mux = Mux {
        link,
        instance_dir: InstanceDir::new(instance_dir.as_path()),
        generation,
        listener,
        sessions: HashMap::new(),
        clients: Vec::new(),
        waiting: HashMap::new(),
        next_request: 0,
    };
    mux.tell(&ToKeeper::Ready);
    while mux.step() {}
}

impl Mux {
    fn tell(&self, message: &ToKeeper) {
        self.link.send(message, &[]).unwrap();
    }

    fn step(&mut self) -> bool {
        self.wait();
        loop {
            match self.link.recv::<ToMux>() {
                Ok(Some((ToMux::Retire, _))) | Ok(None) => {
                    self.sessions.values_mut().for_each(Session::sync);
                    return false;
                }
                Ok(Some((message, fds))) => self.on_keeper(message, fds),
                Err(LinkError::Io(err)) if err.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(err) => panic!("{err}"),
            }
        }
        if let Ok(stream) = socket::accept(&self.listener) {
            stream.set_nonblocking(true).unwrap();
            self.next_request += 1;
            self.clients.push(Client {
                id: self.next_request as usize,
                stream,
                decoder: FrameDecoder::new(MAX_CLIENT_FRAME),
            });
        }
        self.serve_clients();
        self.read_sessions();
        true
    }

    fn wait(&self) {
        let mut fds =
            vec![PollFd::new(&self.link, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.clients.iter().map(|client| PollFd::new(&client.stream, PollFlags::IN)));
        let open = self.sessions.values().filter(|session| !session.at_end);
        fds.extend(open.map(|session| PollFd::new(&session.master, PollFlags::IN)));
        let ending = self.sessions.values().any(|session| session.info.exited.is_some());
        let tick = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        match rustix::event::poll(&mut fds, ending.then_some(&tick)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(err) => panic!("{err}"),
        }
    }

    fn on_keeper(&mut self, message: ToMux, mut fds: Vec<OwnedFd>) {
        match message {
            ToMux::Session(info) => {
                if let Some((client, id)) = info.request.and_then(|request| self.waiting.remove(&request)) {
                    let reply = SpawnReply { session: info.id, pid: info.pid };
                    self.reply(client, &ReplyTo::new(id, Ok(reply)));
                }
                let session = Session::new(info, fds.remove(0), &self.instance_dir, self.generation);
                self.sessions.insert(session.info.id, session);
            }
            ToMux::Exited { id, exit } => {
                let session = self.sessions.get_mut(&id).unwrap();
                session.info.exited = Some(exit);
                session.last_output = Instant::now();
            }
            ToMux::SpawnFailed { request, errno, text } => {
                let (client, id) = self.waiting.remove(&request).unwrap();
                let refusal = RequestRefusal {
                    code: error_code::SPAWN_FAILED.into(),
                    message: text,
                    errno: Some(errno),
                };
                self.reply(client, &ReplyTo::<Done>::new(id, Err(refusal)));
            }
            ToMux::UpgradeFailed { text } => {
                for (_, (client, id)) in std::mem::take(&mut self.waiting) {
                    let refusal = RequestRefusal::new(error_code::UPGRADE_REFUSED, text.clone());
                    self.reply(client, &ReplyTo::<Done>::new(id, Err(refusal)));
                }
            }
            _ => {}
        }
    }

    fn serve_clients(&mut self) {
        let mut requests = Vec::new();
        self.clients.retain_mut(|client| {
            let mut chunk = [0; 4096];
            loop {
                match client.stream.read(&mut chunk) {
                    Ok(0) => return false,
                    Ok(n) => client.decoder.push(&chunk[..n]),
                    Err(err) => return err.kind() == std::io::ErrorKind::WouldBlock,
                }
                while let Some(frame) = client.decoder.next().unwrap() {
                    match frame.kind() {
                        Some(FrameKind::Hello) => {
                            let mut hello = Vec::new();
                            encode_json(FrameKind::Hello, &Hello::ours(), &mut hello).unwrap();
                            client.stream.write_all(&hello).unwrap();
                        }
                        Some(FrameKind::Request) => requests.push((client.id, Request::parse(frame.payload))),
                        _ => {}
                    }
                }
            }
        });
        for (client, request) in requests {
            match request {
                Ok(request) => self.on_request(client, request),
                Err(err) => self.reply(client, &ReplyTo::<Done>::new(err.id, Err(err.refusal))),
            }
        }
    }

    fn on_request(&mut self, client: usize, Request { id, verb }: Request) {
        let message = match verb {
            RequestVerb::GetStatus(_) => return self.reply(client, &ReplyTo::new(id, Ok(self.status()))),
            RequestVerb::Spawn(spawn) => {
                self.next_request += 1;
                self.waiting.insert(self.next_request, (client, id));
                return self.tell(&ToKeeper::Spawn { request: self.next_request, spec: spawn.spec });
            }
            RequestVerb::Upgrade(upgrade) => {
                self.waiting.insert(0, (client, id));
                return self.tell(&ToKeeper::Upgrade { exe: upgrade.exe });
            }
            RequestVerb::Kill(kill) => ToKeeper::Kill { id: kill.session },
            RequestVerb::Signal(signal) => ToKeeper::Signal { id: signal.session, signal: signal.signal },
            RequestVerb::Shutdown(shutdown) => ToKeeper::Shutdown { note: shutdown.reason },
            other => panic!("{other:?}"),
        };
        self.tell(&message);
        if matches!(&message, ToKeeper::Shutdown { note } if note == "die after asking") {
            std::process::abort();
        }
        self.reply(client, &ReplyTo::new(id, Ok(Done {})));
    }

    fn status(&self) -> StatusReply {
        let status = |session: &Session| SessionStatus {
            id: session.info.id,
            name: session.info.name.clone(),
            program: session.info.program.clone(),
            pid: session.info.pid,
            size: session.info.size,
            title: session.stream.summary(),
            exit: session.info.exited,
            activity: None,
            quiet_ms: 0,
            journaled: session.journal.is_on_disk(),
            meta: session.info.meta.clone(),
        };
        StatusReply {
            generation: self.generation,
            version: String::new(),
            keeper_pid: process::from_rustix(rustix::process::getppid().unwrap()),
            mux_pid: process::own_pid(),
            attached: 0,
            focused: None,
            awake: None,
            sessions: self.sessions.values().map(status).collect(),
        }
    }

    fn reply(&mut self, client: usize, reply: &impl serde::Serialize) {
        let mut frame = Vec::new();
        encode_json(FrameKind::Reply, reply, &mut frame).unwrap();
        if let Some(client) = self.clients.iter_mut().find(|c| c.id == client) {
            client.stream.write_all(&frame).unwrap();
        }
    }

    fn read_sessions(&mut self) {
        let mut done = Vec::new();
        for session in self.sessions.values_mut() {
            session.read();
            let quiet = session.at_end || session.last_output.elapsed() > QUIET;
            if session.info.exited.is_some() && quiet {
                done.push(session.info.id);
            }
        }
        for id in done {
            let mut session = self.sessions.remove(&id).unwrap();
            session.sync();
            let verdict = self.instance_dir.state_dir().join(format!("{id}.verdict"));
            std::fs::write(verdict.with_extension("new"), session.stream.summary()).unwrap();
            std::fs::rename(verdict.with_extension("new"), verdict).unwrap();
            self.tell(&ToKeeper::Drained { id });
        }
    }
}

impl Session {
    fn new(info: SessionInfo, master: OwnedFd, instance_dir: &InstanceDir, generation: u64) -> Self {
        rustix::io::ioctl_fionbio(&master, true).unwrap();
        let (mut journal, recovered) =
            Journal::open(&instance_dir.journal(&info.id), JOURNAL_CAPACITY, generation);
        let mut stream = Stream::default();
        if let Some(recovered) = recovered {
            assert!(!recovered.truncated, "checkpoints are made when due");
            if let Some(checkpoint) = &recovered.checkpoint {
                stream = serde_json::from_slice(&checkpoint.blob).unwrap();
            }
            let each = |chunk: Chunk<'_>| {
                if let Chunk::Output(bytes) = chunk {
                    stream.feed(bytes);
                }
            };
            recovered.replay(each).unwrap();
        }
        journal.resized(info.size);
        Self { info, master: File::from(master), journal, stream, at_end: false, last_output: Instant::now() }
    }

    fn sync(&mut self) {
        self.journal.sync_job().unwrap().unwrap().run().unwrap();
    }

    fn read(&mut self) {
        // Bounded, so that a session that floods does not keep the others waiting.
        for _ in 0..64 {
            match rustix::io::read(&self.master, self.journal.space()) {
                Ok(0) | Err(Errno::IO) => {
                    // Before the process has ended this only says that nobody has the terminal open just now.
                    self.at_end = self.info.exited.is_some();
                    return;
                }
                Ok(n) => {
                    self.stream.feed(self.journal.commit(n));
                    self.last_output = Instant::now();
                    if self.journal.due() {
                        self.journal.checkpoint(&serde_json::to_vec(&self.stream).unwrap()).unwrap();
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(err) => panic!("{err}"),
            }
        }
    }
}
