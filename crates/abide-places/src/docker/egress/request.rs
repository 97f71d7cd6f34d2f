//! The head of a request to a proxy, and what is passed on of it.

use super::rules::Host;

/// What a client asks a proxy for.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub host: Host,
    pub port: u16,
    pub kind: RequestKind,
}

#[derive(Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// `CONNECT`: the bytes that follow are passed on both ways, as they are.
    Tunnel,
    /// A request of plain HTTP, with the head that its server gets.
    Forward(Vec<u8>),
}

/// The headers that are the proxy's own to write, or for it alone.
const NOT_PASSED_ON: [&[u8]; 5] =
    [b"host", b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization"];

/// Where the head of a message ends, if all of it is there.
pub fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Reads the head of a request, which ends with an empty line.
pub fn parse(head: &[u8]) -> Result<Request, &'static str> {
    let body = head.strip_suffix(b"\r\n\r\n").ok_or("no end of the head")?;
    let lines = split_lines(body)?;
    let (first, headers) = lines.split_first().ok_or("no request line")?;
    let words: Vec<&str> = std::str::from_utf8(first).map_err(|_| "not a request line")?.split(' ').collect();
    let [method, target, version @ ("HTTP/1.0" | "HTTP/1.1")] = words[..] else {
        return Err("not a request of HTTP/1");
    };
    if method.is_empty() || !method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
        return Err("not a method");
    }
    if method == "CONNECT" {
        let (host, port) = authority(target, None)?;
        return Ok(Request { host, port, kind: RequestKind::Tunnel });
    }
    let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let rest = scheme.map(|_| &target[7..]).ok_or("the target must begin with http://")?;
    let (authority_text, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (host, port) = authority(authority_text, Some(80))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut passed_on =
        format!("{method} {slash}{path} {version}\r\nHost: {authority_text}\r\n").into_bytes();
    for header in headers {
        let name = header.split(|&b| b == b':').next().unwrap_or_default();
        if !NOT_PASSED_ON.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            passed_on.extend_from_slice(header);
            passed_on.extend_from_slice(b"\r\n");
        }
    }
    // The next request could be for another host.
    passed_on.extend_from_slice(b"Connection: close\r\n\r\n");
    Ok(Request { host, port, kind: RequestKind::Forward(passed_on) })
}

/// The lines of a head. What servers read differently from each other is refused: it could hide a second request.
fn split_lines(head: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    let mut lines = Vec::new();
    for line in head.split(|&b| b == b'\n') {
        lines.push(line.strip_suffix(b"\r").unwrap_or(line));
    }
    let last = lines.len().saturating_sub(1);
    let ended = head.split(|&b| b == b'\n').take(last).all(|line| line.ends_with(b"\r"));
    if !ended || lines.iter().any(|line| line.iter().any(|b| matches!(b, b'\r' | 0))) {
        return Err("a line that does not end as lines do");
    }
    let is_header = |line: &&[u8]| {
        let name = line.iter().position(|&b| b == b':').map(|at| &line[..at]);
        name.is_some_and(|name| !name.is_empty() && name.iter().all(|b| b.is_ascii_graphic()))
    };
    match lines.iter().skip(1).all(is_header) {
        true => Ok(lines),
        false => Err("a line that is not a header"),
    }
}

/// `host:port`; without a port where there is a usual one.
fn authority(text: &str, usual: Option<u16>) -> Result<(Host, u16), &'static str> {
    let end_of_host = text.rfind(']').map_or(0, |at| at + 1);
    let colon = text[end_of_host..].find(':').map(|at| end_of_host + at);
    let (host, port) = match colon {
        Some(at) => (&text[..at], text[at + 1..].parse().ok().filter(|&port| port > 0)),
        None => (text, usual),
    };
    Ok((host.parse()?, port.ok_or("no port")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(host: &str) -> Host {
        Host::Name(host.to_owned())
    }

    #[test]
    fn a_tunnel_names_a_host_and_a_port() {
        for (target, expected) in [
            ("example.org:443", Ok((name("example.org"), 443))),
            ("EXAMPLE.org.:22", Ok((name("example.org"), 22))),
            ("10.0.0.1:443", Ok((Host::Address("10.0.0.1".parse().unwrap()), 443))),
            ("[fd00::1]:443", Ok((Host::Address("fd00::1".parse().unwrap()), 443))),
            ("example.org", Err("no port")),
            ("example.org:0", Err("no port")),
            ("example.org:99999", Err("no port")),
            ("example.org:443:1", Err("no port")),
            ("user@example.org:443", Err("not the name of a host")),
            (":443", Err("not the name of a host")),
            ("https://example.org:443", Err("no port")),
        ] {
            let read = parse(format!("CONNECT {target} HTTP/1.1\r\nHost: other.org\r\n\r\n").as_bytes());
            let expected = expected.map(|(host, port)| Request { host, port, kind: RequestKind::Tunnel });
            assert_eq!(read, expected, "{target}");
        }
    }

    #[test]
    fn a_plain_request_goes_to_the_host_of_its_target_and_to_no_other() {
        let head = "POST http://Example.org:8080/a?b=c HTTP/1.1\r\nHost: other.org\r\nAccept: */*\r\n\
            Proxy-Connection: keep-alive\r\nproxy-authorization: x\r\nConnection: keep-alive\r\n\
            Content-Length: 3\r\n\r\n";
        let read = parse(head.as_bytes()).unwrap();
        assert_eq!((read.host, read.port), (name("example.org"), 8080));
        let RequestKind::Forward(passed_on) = read.kind else { panic!() };
        assert_eq!(
            String::from_utf8(passed_on).unwrap(),
            "POST /a?b=c HTTP/1.1\r\nHost: Example.org:8080\r\nAccept: */*\r\nContent-Length: 3\r\n\
             Connection: close\r\n\r\n"
        );
        let read = parse(b"GET http://example.org?x HTTP/1.0\r\n\r\n").unwrap();
        assert_eq!(read.port, 80);
        let RequestKind::Forward(passed_on) = read.kind else { panic!() };
        assert!(passed_on.starts_with(b"GET /?x HTTP/1.0\r\nHost: example.org\r\n"));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for head in [
            "",
            "\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
            "GET https://example.org/ HTTP/1.1\r\n\r\n",
            "GET http://example.org/ HTTP/2.0\r\n\r\n",
            "GET http://example.org/ x HTTP/1.1\r\n\r\n",
            "GET http://a@example.org/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nA: b\n C: d\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nHost : x\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nno header\r\n\r\n",
            "GET http://example.org/ HTTP/1.1\r\nA: b",
            "G\u{e9}T http://example.org/ HTTP/1.1\r\n\r\n",
        ] {
            assert!(parse(head.as_bytes()).is_err(), "{head:?}");
        }
    }
}
