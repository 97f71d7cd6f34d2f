//! The line between the benchmark and the programs that run inside the sessions.
//!
//! It is a datagram socket in the sandbox and not the terminal: a session is then commanded in the same way whether a
//! client is attached or not, and no multiplexer's handling of input is part of a figure that is not about input.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Result;
use crate::clock::Moment;

const HARNESS: &str = "harness";
const LONGEST: usize = 256;

/// The benchmark's end.
pub struct Control {
    socket: UnixDatagram,
    dir: PathBuf,
}

impl Control {
    /// Listens in `dir`.
    pub fn listen(dir: &Path) -> Result<Self> {
        Ok(Self { socket: UnixDatagram::bind(dir.join(HARNESS))?, dir: dir.to_owned() })
    }

    /// Where the programs inside find this end.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Commands the program of session `name`.
    pub fn tell(&self, name: &str, command: &str) -> Result<()> {
        self.socket
            .send_to(command.as_bytes(), self.dir.join(name))
            .map_err(|err| format!("the program in {name} cannot be told `{command}`: {err}"))?;
        Ok(())
    }

    /// Waits until the program of session `name` reports `event`; gives the numbers it reports with it.
    ///
    /// One session is waited for at a time: what others say meanwhile is of no interest.
    pub fn wait(&self, name: &str, event: &str, limit: Duration) -> Result<Vec<u64>> {
        let deadline = Moment::after(limit);
        loop {
            let left = deadline.remaining();
            if left.is_zero() {
                return Err(format!("{name} did not report `{event}` within {limit:?}").into());
            }
            self.socket.set_read_timeout(Some(left))?;
            let mut buffer = [0; LONGEST];
            let length = match self.socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(err) if matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
                Err(err) => return Err(err.into()),
            };
            let text = String::from_utf8_lossy(&buffer[..length]);
            let mut words = text.split(' ');
            if words.next() == Some(name) && words.next() == Some(event) {
                return Ok(words.map(str::parse).collect::<std::result::Result<_, _>>()?);
            }
        }
    }
}

/// The end of the program inside.
pub struct Line {
    socket: UnixDatagram,
    name: String,
}

impl Line {
    /// Joins the benchmark that listens in `dir`, as session `name`.
    pub fn join(dir: &Path, name: &str) -> Result<Self> {
        let socket = UnixDatagram::bind(dir.join(name))?;
        socket.connect(dir.join(HARNESS))?;
        Ok(Self { socket, name: name.to_owned() })
    }

    /// Reports `event` with its numbers.
    pub fn report(&self, event: &str, numbers: &[u64]) -> Result<()> {
        let mut text = format!("{} {event}", self.name);
        for number in numbers {
            text.push_str(&format!(" {number}"));
        }
        self.socket.send(text.as_bytes())?;
        Ok(())
    }

    /// Waits for the next command.
    pub fn command(&self) -> Result<String> {
        let mut buffer = [0; LONGEST];
        let length = self.socket.recv(&mut buffer)?;
        Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }
}
