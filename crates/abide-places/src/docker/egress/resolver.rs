//! Names looked up by asking the name servers, without the C library's resolver: that of a static program must not be used.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use abide_sys::atomic;

use super::dns::{self, AddressKind, Answer, DnsError};

/// How long a name server may take.
const TO_ANSWER: Duration = Duration::from_secs(3);
/// How often each name server is asked, and how many are.
const TRIES: usize = 2;
const SERVERS: usize = 3;
/// The longest datagram of an answer, since no longer ones are offered to be read.
const DATAGRAM: usize = 512;

/// The name servers that a `resolv.conf` names.
pub fn name_servers(resolv_conf: &str) -> Vec<SocketAddr> {
    let words = resolv_conf.lines().map(|line| line.split_ascii_whitespace());
    let address = |mut words: std::str::SplitAsciiWhitespace<'_>| match words.next() {
        Some("nameserver") => words.next()?.parse::<IpAddr>().ok(),
        _ => None,
    };
    words.filter_map(address).take(SERVERS).map(|address| SocketAddr::new(address, 53)).collect()
}

/// The addresses of `name`: those of IPv6 only where there are no others.
pub fn addresses(servers: &[SocketAddr], name: &str) -> io::Result<Vec<IpAddr>> {
    let found = ask_all(servers, name, AddressKind::V4)?;
    if found.is_empty() { ask_all(servers, name, AddressKind::V6) } else { Ok(found) }
}

fn ask_all(servers: &[SocketAddr], name: &str, kind: AddressKind) -> io::Result<Vec<IpAddr>> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "there is no name server");
    for server in servers.iter().cycle().take(servers.len() * TRIES) {
        match ask(*server, name, kind) {
            Ok(found) => return Ok(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn ask(server: SocketAddr, name: &str, kind: AddressKind) -> io::Result<Vec<IpAddr>> {
    let [a, b, ..] = atomic::random()?.to_ne_bytes();
    let question = dns::question(u16::from_ne_bytes([a, b]), name, kind);
    match by_datagram(server, &question)? {
        Answer::Addresses(found) => Ok(found),
        Answer::Truncated => match by_stream(server, &question)? {
            Answer::Addresses(found) => Ok(found),
            Answer::Truncated => Err(failure(DnsError::Damaged)),
        },
    }
}

fn failure(error: DnsError) -> io::Error {
    let kind = match error {
        DnsError::NoSuchName => io::ErrorKind::NotFound,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}

fn by_datagram(server: SocketAddr, question: &[u8]) -> io::Result<Answer> {
    let own: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((own, 0))?;
    socket.connect(server)?;
    socket.send(question)?;
    let deadline = Instant::now() + TO_ANSWER;
    let mut datagram = [0; DATAGRAM];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the name server does not answer"));
        }
        socket.set_read_timeout(Some(left))?;
        let length = socket.recv(&mut datagram)?;
        match dns::answer(&datagram[..length], question) {
            // A late or forged one.
            Err(DnsError::NotOurs) => {}
            answer => return answer.map_err(failure),
        }
    }
}

fn by_stream(server: SocketAddr, question: &[u8]) -> io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&server, TO_ANSWER)?;
    stream.set_read_timeout(Some(TO_ANSWER))?;
    stream.set_write_timeout(Some(TO_ANSWER))?;
    let length = u16::try_from(question.len()).map_err(|_| failure(DnsError::Damaged))?;
    stream.write_all(&[&length.to_be_bytes(), question].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message)?;
    dns::answer(&message, question).map_err(failure)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::docker::egress::dns::tests::reply;

    #[test]
    fn name_servers_are_read_from_where_programs_find_them() {
        let text = "# nameserver 1.1.1.1\nsearch a b\nnameserver  127.0.0.11 x\noptions ndots:0\nnameserver fe80::1%eth0\nnameserver ::1\n";
        let found: Vec<String> = name_servers(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["127.0.0.11:53", "[::1]:53"]);
    }

    #[test]
    fn a_truncated_answer_is_asked_for_again_over_a_stream_and_a_forged_one_is_ignored() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let socket = UdpSocket::bind(server).unwrap();
        let asked = std::thread::spawn(move || {
            let mut datagram = [0; DATAGRAM];
            let (length, client) = socket.recv_from(&mut datagram).unwrap();
            let question = &datagram[..length];
            let mut forged = reply(question, [0x81, 0x80], &[vec![6, 6, 6, 6]]);
            forged[0] ^= 0xff;
            socket.send_to(&forged, client).unwrap();
            socket.send_to(&reply(question, [0x83, 0x80], &[]), client).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = vec![0; length + 2];
            stream.read_exact(&mut question).unwrap();
            let many: Vec<_> = (0..100).map(|n| vec![9, 9, 9, n]).collect();
            let message = reply(&question[2..], [0x81, 0x80], &many);
            stream.write_all(&u16::try_from(message.len()).unwrap().to_be_bytes()).unwrap();
            stream.write_all(&message).unwrap();
        });
        let found = addresses(&[server], "example.org").unwrap();
        asked.join().unwrap();
        assert_eq!((found.len(), found[99]), (100, "9.9.9.99".parse().unwrap()));
    }

    #[test]
    fn a_name_that_does_not_exist_is_asked_for_once() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = socket.local_addr().unwrap();
        let asked = std::thread::spawn(move || {
            let mut datagram = [0; DATAGRAM];
            let (length, client) = socket.recv_from(&mut datagram).unwrap();
            socket.send_to(&reply(&datagram[..length], [0x81, 0x83], &[]), client).unwrap();
        });
        let error = addresses(&[server, server], "nowhere.example").unwrap_err();
        asked.join().unwrap();
        assert_eq!(
            (error.kind(), error.to_string()),
            (io::ErrorKind::NotFound, "there is no such name".into())
        );
    }
}
