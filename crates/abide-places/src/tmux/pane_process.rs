//! A session in a pane of a tmux server: what tmux starts there is a process of ours, the parent of the session's.
//!
//! tmux starts that process and nothing else. What it is to run may hold secrets, and would be in an argument
//! and in the server's memory; so it comes over the instance directory's socket, from a launcher that
//! waits at its [`LaunchSocket`] until every pane has connected. The parent ends the session when it is asked to, and knows how it ended.

mod hold;
mod seen;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use abide_model::Pid;
use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::process::own_pid;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::session::{SessionId, SpawnSpec};
use abide_wire::socket::{self, SocketFile};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use hold::{CLOSE, End, EndCause, PaneSession, STOP};
pub use seen::{Heard, InPane};

/// How long a pane may take to connect, and either side to answer.
const PATIENCE: Duration = Duration::from_secs(10);

const LIMIT: u64 = 4 << 20;

/// What a pane says first.
#[derive(Debug, Serialize, Deserialize)]
struct PaneHello {
    session: SessionId,
    pid: Pid,
}

/// What a pane is to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// Which run of the instance it is part of.
    pub generation: u64,
    pub spec: SpawnSpec,
}

/// What became of it: the process, or why there is none.
type StartResult = Result<Pid, String>;

/// Where the panes of one launch ask what to run. When it is dropped, no pane is admitted any more.
pub struct LaunchSocket {
    instance_dir: InstanceDir,
    listener: UnixListener,
    file: SocketFile,
}

impl LaunchSocket {
    /// Listens in `instance_dir`, which no process serves.
    pub fn open(instance_dir: &InstanceDir) -> io::Result<Self> {
        instance_dir.prepare_run()?;
        let (listener, file) = socket::bind(&instance_dir.run_dir())?;
        listener.set_nonblocking(true)?;
        Ok(Self { instance_dir: instance_dir.clone(), listener, file })
    }

    /// The next pane that connects.
    pub fn admit(&self) -> io::Result<WaitingPane> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if poll::wait(&mut [PollFd::new(&self.listener, PollFlags::IN)], Some(deadline))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // A connection for anything else is not the one that is waited for.
            if let Ok(pane) = socket::accept(&self.listener).and_then(WaitingPane::new) {
                return Ok(pane);
            }
        }
    }
}

impl Drop for LaunchSocket {
    fn drop(&mut self) {
        if let Err(err) = socket::unbind(&self.instance_dir.run_dir(), self.file) {
            tracing::warn!("the socket cannot be removed: {err}");
        }
    }
}

/// A pane that waits for its order. If it is dropped without one, the pane ends.
pub struct WaitingPane {
    pub session: SessionId,
    /// The process in the pane.
    pub pid: Pid,
    stream: BufReader<UnixStream>,
}

impl WaitingPane {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        let mut stream = ready(stream)?;
        let PaneHello { session, pid } = receive(&mut stream)?;
        Ok(Self { session, pid, stream })
    }

    /// Has it run `order`; gives the process of the session when that runs.
    pub fn start(mut self, order: &Order) -> io::Result<Pid> {
        send(&mut self.stream, order)?;
        receive::<StartResult>(&mut self.stream)?.map_err(io::Error::other)
    }
}

/// Connects to the launch socket of `instance_dir` as the pane of `session`. The launcher is to hear what became of the order.
pub fn connect(instance_dir: &InstanceDir, session: SessionId) -> io::Result<(Order, Launcher)> {
    let mut stream = ready(socket::connect(&instance_dir.run_dir())?)?;
    send(&mut stream, &PaneHello { session, pid: own_pid() })?;
    // The launcher waits for all panes before it answers the first.
    stream.get_ref().set_read_timeout(Some(2 * PATIENCE))?;
    let order = receive(&mut stream)?;
    Ok((order, Launcher(stream)))
}

/// The launcher, as a pane knows it.
pub struct Launcher(BufReader<UnixStream>);

impl Launcher {
    /// Tells what became of the order. One that is gone by now wanted the session to run, and it runs.
    pub fn tell(mut self, answer: StartResult) {
        let _ = send(&mut self.0, &answer);
    }
}

fn ready(stream: UnixStream) -> io::Result<BufReader<UnixStream>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
}

fn send(stream: &mut BufReader<UnixStream>, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.get_mut().write_all(&line)
}

fn receive<M: DeserializeOwned>(stream: &mut BufReader<UnixStream>) -> io::Result<M> {
    let mut line = Vec::new();
    stream.take(LIMIT).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_wire::session::TerminalSize;

    fn order(value: &str) -> Order {
        let spec = SpawnSpec {
            id: SessionId(1),
            name: "one".into(),
            argv: vec!["true".into()],
            env: vec![("VALUE".into(), value.into())],
            cwd: "/".into(),
            size: TerminalSize::default(),
            umask: None,
            meta: serde_json::Value::Null,
        };
        Order { generation: 3, spec }
    }

    #[test]
    fn an_order_of_any_size_reaches_the_pane_that_connected_and_its_answer_the_launcher() {
        let dir = tempfile::tempdir().unwrap();
        let instance_dir = InstanceDir::new(dir.path());
        let socket = LaunchSocket::open(&instance_dir).unwrap();
        for answer in [Ok(Pid(7)), Err("no such program".to_owned())] {
            let order = order(&"v".repeat(1 << 20));
            std::thread::scope(|scope| {
                let pane = scope.spawn(|| {
                    let (order, launcher) = connect(&instance_dir, SessionId(1)).unwrap();
                    launcher.tell(answer.clone());
                    order
                });
                // A connection that wants something else of the socket is not taken for a pane.
                drop(socket::connect(&instance_dir.run_dir()).unwrap());
                let waiting = socket.admit().unwrap();
                assert_eq!(waiting.session, SessionId(1));
                assert_eq!(waiting.start(&order).map_err(|e| e.to_string()), answer);
                assert_eq!(pane.join().unwrap().spec, order.spec);
            });
        }
        drop(socket);
        assert!(connect(&instance_dir, SessionId(1)).is_err());
        assert_eq!(std::fs::read_dir(instance_dir.run_dir()).unwrap().count(), 0);
    }

    #[test]
    fn a_pane_whose_launcher_died_gets_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let instance_dir = InstanceDir::new(dir.path());
        let socket = LaunchSocket::open(&instance_dir).unwrap();
        std::thread::scope(|scope| {
            let pane = scope.spawn(|| connect(&instance_dir, SessionId(1)).map(|(order, _)| order));
            drop(socket.admit().unwrap());
            assert!(pane.join().unwrap().is_err());
        });
    }
}
