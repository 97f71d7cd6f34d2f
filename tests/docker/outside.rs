//! What containers can try to reach: servers of a test's own on addresses of this machine, and names that mean those addresses.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::thread;

use abide_model::container::EngineKind;
use abide_testkit::eventually;

use crate::contained::run;

/// The address at which clouds tell machines their secrets.
pub const METADATA: &str = "169.254.169.254";

/// A network of Docker's without containers, for the address that this machine has in it.
pub struct Neighbourhood {
    name: String,
    address: Ipv4Addr,
}

impl Neighbourhood {
    /// The one of the metadata address.
    pub fn metadata() -> Self {
        Self::new("metadata", &["--subnet", "169.254.169.0/24", "--gateway", METADATA])
    }

    fn new(word: &str, flags: &[&str]) -> Self {
        let name = format!("abide-test-{word}-{}", std::process::id());
        let args = [&["network", "create"], flags, &[&name]].concat();
        // Another test may have the same addresses for a moment.
        eventually("a network", || (run(EngineKind::Docker, &args).code == Some(0)).then_some(()));
        let format = "{{(index .IPAM.Config 0).Gateway}}";
        let address = run(EngineKind::Docker, &["network", "inspect", "--format", format, &name]).ok();
        Self { name, address: address.trim().parse().unwrap() }
    }
}

impl Drop for Neighbourhood {
    fn drop(&mut self) {
        run(EngineKind::Docker, &["network", "rm", &self.name]);
    }
}

pub struct Outside {
    lan: Neighbourhood,
    /// Where the servers listen, on every address of this machine.
    pub port: u16,
}

impl Outside {
    pub fn new() -> Self {
        let lan = Neighbourhood::new("lan", &[]);
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || listener.incoming().for_each(|client| greet(client.unwrap())));
        for socket in [UdpSocket::bind(("0.0.0.0", port)), bind_v6_only(port)] {
            let socket = socket.unwrap();
            thread::spawn(move || serve_datagrams(&socket, |_| b"hello".to_vec()));
        }
        let socket = UdpSocket::bind((lan.address, 53)).unwrap();
        let at = lan.address;
        thread::spawn(move || serve_datagrams(&socket, |question| answer(question, at)));
        Self { lan, port }
    }

    /// An address of this machine in a network that it is in.
    pub fn lan(&self) -> String {
        self.lan.address.to_string()
    }
}

fn bind_v6_only(port: u16) -> std::io::Result<UdpSocket> {
    use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
    let fd = socket(AddressFamily::INET6, SocketType::DGRAM, None)?;
    sockopt::set_ipv6_v6only(&fd, true)?;
    bind(&fd, &std::net::SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0))?;
    Ok(fd.into())
}

fn greet(mut client: std::net::TcpStream) {
    thread::spawn(move || {
        let mut head = Vec::new();
        let mut byte = [0; 1];
        while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|length| length > 0) {
            head.push(byte[0]);
        }
        let host =
            String::from_utf8_lossy(&head).lines().find(|line| line.starts_with("Host:")).map(str::to_owned);
        let body = format!("hello {}", host.unwrap_or_default());
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let _ = client.write_all(answer.as_bytes());
    });
}

pub fn serve_datagrams(socket: &UdpSocket, answer: impl Fn(&[u8]) -> Vec<u8>) {
    let mut datagram = [0; 512];
    while let Ok((length, client)) = socket.recv_from(&mut datagram) {
        let _ = socket.send_to(&answer(&datagram[..length]), client);
    }
}

/// Every name means this machine, except for `metadata.test`.
pub fn answer(question: &[u8], own: Ipv4Addr) -> Vec<u8> {
    let name_length = question[12..].iter().position(|&b| b == 0).unwrap() + 1;
    let question_end = 12 + name_length + 4;
    let is_v4 = question[question_end - 3] == 1;
    let metadata = question[12..].starts_with(b"\x08metadata");
    let address = if metadata { METADATA.parse().unwrap() } else { own };
    let mut message = question[..question_end].to_vec();
    message[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]);
    if is_v4 {
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        message.extend(address.octets());
    }
    message
}
