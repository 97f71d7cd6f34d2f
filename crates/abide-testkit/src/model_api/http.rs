//! As much of HTTP as the agents need: one request per connection, a body that ends with it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// More than any agent sends.
const MAX_BODY: u64 = 64 << 20;

/// A request and its body.
pub(super) struct HttpRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Value,
}

impl HttpRequest {
    pub(super) fn read(stream: &TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let first = line(&mut reader)?;
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (mut length, mut chunked) = (0, false);
        loop {
            let header = line(&mut reader)?.to_ascii_lowercase();
            let Some((name, value)) = header.split_once(':') else { break };
            match name {
                "content-length" => length = value.trim().parse().unwrap_or(0),
                "transfer-encoding" => chunked = value.contains("chunked"),
                _ => {}
            }
        }
        let bytes = if chunked { read_chunks(&mut reader)? } else { read_exactly(&mut reader, length)? };
        Ok(Self { method, path, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    }
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    match reader.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end().to_owned()),
    }
}

fn read_exactly(reader: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(length.min(MAX_BODY)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let length = u64::from_str_radix(&line(reader)?, 16).map_err(io::Error::other)?;
        bytes.extend(read_exactly(reader, length)?);
        line(reader)?;
        if length == 0 {
            return Ok(bytes);
        }
    }
}

/// Answers with a value.
pub(super) fn json(mut stream: &TcpStream, status: u16, value: &Value) -> io::Result<()> {
    let body = value.to_string();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Answer\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
}

/// Begins an answer that is sent event by event and ends with the connection.
pub(super) fn begin_events(mut stream: &TcpStream) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 Answer\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\nconnection: close\r\n\r\n"
    )
}

/// Sends events. A bare string is sent as it is.
pub(super) fn events(mut stream: &TcpStream, events: &[Value]) -> io::Result<()> {
    for event in events {
        if let Some(name) = event["type"].as_str() {
            writeln!(stream, "event: {name}")?;
        }
        match event {
            Value::String(text) => write!(stream, "data: {text}\n\n")?,
            event => write!(stream, "data: {event}\n\n")?,
        }
    }
    Ok(())
}

/// Waits a little, and fails if the other end has gone meanwhile.
pub(super) fn still_there(stream: &TcpStream, wait: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(wait))?;
    match stream.peek(&mut [0]) {
        Ok(0) => Err(io::ErrorKind::ConnectionAborted.into()),
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}
