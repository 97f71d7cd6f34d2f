//! Questions to a name server and its answers, as bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const IN: u16 = 1;

/// The kind of address that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    V4 = 1,
    V6 = 28,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// There may be none.
    Addresses(Vec<IpAddr>),
    /// It is too long for a datagram.
    Truncated,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    /// It belongs to another question, or to none.
    #[error("an answer to something else")]
    NotOurs,
    #[error("there is no such name")]
    NoSuchName,
    #[error("the name server answered with error {0}")]
    Refused(u8),
    #[error("the name server's answer makes no sense")]
    Damaged,
}

/// The question for the addresses of `name`, which must be valid.
pub fn question(id: u16, name: &str, kind: AddressKind) -> Vec<u8> {
    // One question; recursion is desired.
    let mut message = [id.to_be_bytes(), [1, 0], [0, 1], [0, 0], [0, 0], [0, 0]].concat();
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        message.extend_from_slice(label.as_bytes());
    }
    message.push(0);
    message.extend_from_slice(&(kind as u16).to_be_bytes());
    message.extend_from_slice(&IN.to_be_bytes());
    message
}

/// What `message` answers to `question`.
pub fn answer(message: &[u8], question: &[u8]) -> Result<Answer, DnsError> {
    let header = message.get(..12).ok_or(DnsError::NotOurs)?;
    let asked = message.get(12..question.len()).ok_or(DnsError::NotOurs)?;
    let is_response = header[2] & 0x80 != 0 && header[4..6] == [0, 1];
    if header[..2] != question[..2] || !is_response || !asked.eq_ignore_ascii_case(&question[12..]) {
        return Err(DnsError::NotOurs);
    }
    match header[3] & 0x0f {
        0 => {}
        3 => return Err(DnsError::NoSuchName),
        code => return Err(DnsError::Refused(code)),
    }
    if header[2] & 0x02 != 0 {
        return Ok(Answer::Truncated);
    }
    let kind = u16::from_be_bytes([question[question.len() - 4], question[question.len() - 3]]);
    let mut rest = &message[question.len()..];
    let mut addresses = Vec::new();
    for _ in 0..u16::from_be_bytes([header[6], header[7]]) {
        let (record, after) = next_record(rest).ok_or(DnsError::Damaged)?;
        addresses.extend(record.address(kind));
        rest = after;
    }
    Ok(Answer::Addresses(addresses))
}

struct AnswerRecord<'a> {
    kind: u16,
    class: u16,
    data: &'a [u8],
}

impl AnswerRecord<'_> {
    fn address(&self, wanted: u16) -> Option<IpAddr> {
        if (self.kind, self.class) != (wanted, IN) {
            return None;
        }
        let v4 = <[u8; 4]>::try_from(self.data).map(|bytes| Ipv4Addr::from(bytes).into());
        v4.or_else(|_| <[u8; 16]>::try_from(self.data).map(|bytes| Ipv6Addr::from(bytes).into())).ok()
    }
}

/// The record that `bytes` begin with, and what follows it. Whose it is does not matter: it is that of the name asked for, or
/// of what that name stands for.
fn next_record(bytes: &[u8]) -> Option<(AnswerRecord<'_>, &[u8])> {
    let rest = after_name(bytes)?;
    let (fixed, rest) = rest.split_at_checked(10)?;
    let number = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let (data, rest) = rest.split_at_checked(number(8).into())?;
    Some((AnswerRecord { kind: number(0), class: number(2), data }, rest))
}

fn after_name(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let (&length, rest) = bytes.split_first()?;
        match length {
            0 => return Some(rest),
            // The rest of the name is elsewhere.
            0xc0.. => return rest.get(1..),
            1..=63 => bytes = rest.get(usize::from(length)..)?,
            _ => return None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const POINTER_TO_THE_NAME: [u8; 2] = [0xc0, 12];

    /// The answer of a name server to `question`, with a detour over another name.
    pub fn reply(question: &[u8], flags: [u8; 2], addresses: &[Vec<u8>]) -> Vec<u8> {
        let count = u8::try_from(addresses.len() + 1).unwrap();
        let mut message = [&question[..2], &flags, &[0, 1, 0, count, 0, 0, 0, 0], &question[12..]].concat();
        let record = |kind: u8, data: &[u8]| {
            let fixed = [0, kind, 0, 1, 0, 0, 0, 60, 0, u8::try_from(data.len()).unwrap()];
            [&POINTER_TO_THE_NAME[..], &fixed, data].concat()
        };
        message.extend(record(5, b"\x03cdn\x07example\x03org\x00"));
        for data in addresses {
            message.extend(record(if data.len() == 4 { 1 } else { 28 }, data));
        }
        message
    }

    #[test]
    fn a_question_is_spelled_as_servers_expect_it() {
        assert_eq!(
            question(0x1234, "a.example.org", AddressKind::V6),
            b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x03org\x00\x00\x1c\x00\x01"
        );
    }

    #[test]
    fn an_answer_has_the_addresses_of_the_kind_that_was_asked_for() {
        let (v4, v6) = (vec![9, 9, 9, 9], vec![0x20; 16]);
        let both = [v4, v6];
        let asked = question(7, "example.org", AddressKind::V4);
        let message = reply(&asked, [0x81, 0x80], &both);
        assert_eq!(answer(&message, &asked), Ok(Answer::Addresses(vec!["9.9.9.9".parse().unwrap()])));
        let asked = question(7, "example.org", AddressKind::V6);
        let message = reply(&asked, [0x81, 0x80], &both);
        let v6 = Ipv6Addr::from([0x20; 16]).into();
        assert_eq!(answer(&message, &asked), Ok(Answer::Addresses(vec![v6])));
    }

    #[test]
    fn what_is_no_answer_to_the_question_gives_no_address() {
        let asked = question(7, "example.org", AddressKind::V4);
        let good = reply(&asked, [0x81, 0x80], &[vec![9, 9, 9, 9]]);
        let with = |at: usize, byte: u8| {
            let mut message = good.clone();
            message[at] = byte;
            answer(&message, &asked)
        };
        assert_eq!(with(1, 8), Err(DnsError::NotOurs));
        assert_eq!(with(2, 0x01), Err(DnsError::NotOurs));
        assert_eq!(with(13, b'x'), Err(DnsError::NotOurs));
        assert_eq!(with(2, 0x83), Ok(Answer::Truncated));
        assert_eq!(with(3, 0x83), Err(DnsError::NoSuchName));
        assert_eq!(with(3, 0x85), Err(DnsError::Refused(5)));
        assert_eq!(with(7, 9), Err(DnsError::Damaged));
        for length in 0..good.len() {
            assert!(answer(&good[..length], &asked).is_err(), "{length}");
        }
        for at in 0..good.len() {
            for byte in [0, 1, 63, 64, 0xc0, 0xff] {
                // Whatever it is, it is read without harm.
                let _ = with(at, byte);
            }
        }
    }
}
