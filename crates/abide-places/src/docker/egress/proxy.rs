//! The proxy that sessions reach the outside through: a thread per connection, each bounded in what it reads and how long it takes.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use abide_sys::clock;

use super::denials::{self, Denial};
use super::request::{self, Request, RequestKind};
use super::resolver;
use super::rules::{Host, Refusal, Rules};

/// Where it listens, on every address that its container has.
pub const PORT: u16 = 3128;

const CONNECTIONS: usize = 256;
const HEAD_LIMIT: usize = 32 << 10;
const TO_SAY_WHAT: Duration = Duration::from_secs(20);
const TO_CONNECT: Duration = Duration::from_secs(15);
/// How many addresses of a host are tried.
const ADDRESSES: usize = 4;
/// How long a connection may be silent in both directions.
const SILENCE: Duration = Duration::from_secs(3600);
/// How often a silent connection is looked at.
const BETWEEN_LOOKS: Duration = Duration::from_secs(60);

/// The files of a proxy.
#[derive(Debug, Clone)]
pub struct ProxyFiles {
    /// What it goes by: read for every request, so that a change counts at once.
    pub rules: PathBuf,
    /// The directory that it writes to.
    pub log: PathBuf,
}

impl ProxyFiles {
    /// Those in `dir`.
    pub fn below(dir: &Path) -> Self {
        Self { rules: dir.join("rules.json"), log: dir.join("log") }
    }

    /// There once the proxy listens.
    pub fn serving(&self) -> PathBuf {
        self.log.join("serving")
    }
}

struct Proxy {
    files: ProxyFiles,
    connections: AtomicUsize,
    logging: Mutex<()>,
}

/// Serves until something cannot be done without.
pub fn serve(files: ProxyFiles) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    fs::write(files.serving(), "")?;
    let proxy = Arc::new(Proxy { files, connections: AtomicUsize::new(0), logging: Mutex::new(()) });
    loop {
        match listener.accept() {
            Ok((client, _)) => proxy.clone().take(client),
            // Too many files, or a client that has gone already.
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Why a client does not get what it asked for.
enum Failure {
    Bad(&'static str),
    Denied(Refusal),
    Unreachable(io::Error),
}

impl Proxy {
    fn take(self: Arc<Self>, mut client: TcpStream) {
        if self.connections.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS {
            let _ = client.set_write_timeout(Some(TO_CONNECT));
            let _ = reply(&mut client, "503 Service Unavailable", "too many connections at a time");
            self.connections.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        let proxy = self.clone();
        let served = thread::Builder::new().stack_size(256 << 10).spawn(move || {
            let _ = proxy.serve_one(client);
            proxy.connections.fetch_sub(1, Ordering::SeqCst);
        });
        if served.is_err() {
            self.connections.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn serve_one(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_write_timeout(Some(SILENCE))?;
        let (head, after) = read_head(&mut client)?;
        let connected = request::parse(&head).map_err(Failure::Bad).and_then(|request| {
            let server = self.connect(&request)?;
            Ok((request, server))
        });
        let (request, mut server) = match connected {
            Ok(connected) => connected,
            Err(Failure::Bad(why)) => return reply(&mut client, "400 Bad Request", why),
            Err(Failure::Denied(why)) => {
                return reply(&mut client, "403 Forbidden", &format!("refused: {why}"));
            }
            Err(Failure::Unreachable(why)) => {
                return reply(&mut client, "502 Bad Gateway", &why.to_string());
            }
        };
        server.set_write_timeout(Some(SILENCE))?;
        match &request.kind {
            RequestKind::Tunnel => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
            RequestKind::Forward(head) => server.write_all(head)?,
        }
        server.write_all(&after)?;
        relay(&client, &server)
    }

    /// Connects to an address that was checked, and to no other: a second look-up could give another one.
    fn connect(&self, request: &Request) -> Result<TcpStream, Failure> {
        let denied = |refusal: Refusal| {
            self.log(request, &refusal);
            Failure::Denied(refusal)
        };
        let rules = self.rules().map_err(denied)?;
        rules.permit_host(&request.host).map_err(denied)?;
        let found = addresses_of(&request.host).map_err(Failure::Unreachable)?;
        let checked = found.iter().map(|&address| rules.permit_address(address).map(|()| address));
        let (permitted, refused): (Vec<_>, Vec<_>) = checked.partition(Result::is_ok);
        if let (true, Some(Err(refusal))) = (permitted.is_empty(), refused.into_iter().next()) {
            return Err(denied(refusal));
        }
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in permitted.into_iter().flatten().take(ADDRESSES) {
            match TcpStream::connect_timeout(&SocketAddr::new(address, request.port), TO_CONNECT) {
                Ok(server) => return Ok(server),
                Err(error) => last = error,
            }
        }
        Err(Failure::Unreachable(last))
    }

    fn rules(&self) -> Result<Rules, Refusal> {
        let read = fs::read(&self.files.rules).and_then(|text| Ok(serde_json::from_slice(&text)?));
        read.map_err(|error| Refusal::NoRules(error.to_string()))
    }

    fn log(&self, request: &Request, refusal: &Refusal) {
        let _one_at_a_time = self.logging.lock().unwrap_or_else(PoisonError::into_inner);
        let denial = Denial {
            at: clock::now(),
            host: request.host.to_string(),
            port: request.port,
            why: refusal.to_string(),
        };
        if let Err(error) = denials::append(&self.files.log, &denial) {
            // The engine keeps it.
            let _ = writeln!(io::stderr(), "{denial:?} is not logged: {error}");
        }
    }
}

fn addresses_of(host: &Host) -> io::Result<Vec<IpAddr>> {
    match host {
        Host::Address(address) => Ok(vec![*address]),
        Host::Name(name) => {
            let servers = resolver::name_servers(&fs::read_to_string("/etc/resolv.conf")?);
            let failed = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
            resolver::addresses(&servers, name).map_err(failed)
        }
    }
}

/// The head of a request, and what came after it.
fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let deadline = Instant::now() + TO_SAY_WHAT;
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = request::head_end(&bytes) {
            let after = bytes.split_off(end);
            return Ok((bytes, after));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || bytes.len() > HEAD_LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
}

fn reply(client: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let body = format!("abide: {why}\n");
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}", body.len());
    client.write_all(format!("{head}\r\nConnection: close\r\n\r\n{body}").as_bytes())
}

/// Passes on what each of two says to the other, until both have ended or are silent for too long.
fn relay(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    for stream in [client, server] {
        stream.set_read_timeout(Some(BETWEEN_LOOKS))?;
    }
    let (begun, heard) = (Instant::now(), AtomicU64::new(0));
    let pass_on = |from: &TcpStream, to: &TcpStream| {
        if one_way(from, to, begun, &heard).is_err() {
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
        }
    };
    thread::scope(|scope| {
        let back = thread::Builder::new().stack_size(256 << 10);
        back.spawn_scoped(scope, || pass_on(server, client))?;
        pass_on(client, server);
        Ok(())
    })
}

fn one_way(mut from: &TcpStream, mut to: &TcpStream, begun: Instant, heard: &AtomicU64) -> io::Result<()> {
    let mut piece = vec![0; 32 << 10];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return to.shutdown(Shutdown::Write),
            Ok(length) => {
                heard.store(begun.elapsed().as_secs(), Ordering::Relaxed);
                to.write_all(&piece[..length])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let last = Duration::from_secs(heard.load(Ordering::Relaxed));
                if begun.elapsed().saturating_sub(last) > SILENCE {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}
