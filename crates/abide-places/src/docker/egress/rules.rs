//! What the sessions behind a proxy may reach: the hosts on a list, at addresses that are no part of this machine's surroundings.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name that DNS has.
const NAME_LIMIT: usize = 253;

/// A host, as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// In lower case, without a dot at its end.
    Name(String),
    Address(IpAddr),
}

impl FromStr for Host {
    type Err = &'static str;

    /// Only the usual spelling of an address is one: `127.1` or `0x7f000001` are names, which no list has.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(inner) = bare {
            return inner.parse().map(|v6: Ipv6Addr| Self::Address(v6.into())).map_err(|_| "not an address");
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        match name.len() <= NAME_LIMIT && name.split('.').all(is_label) {
            true => Ok(Self::Name(name)),
            false => Err("not the name of a host"),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Whether `text` can be on a list: a host, or `*.` and a name.
pub fn is_listable(text: &str) -> bool {
    match text.strip_prefix("*.") {
        Some(name) => matches!(name.parse(), Ok(Host::Name(_))),
        None => text.parse::<Host>().is_ok(),
    }
}

/// All addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRange {
    pub address: IpAddr,
    /// How many bits they share.
    pub bits: u8,
}

impl AddressRange {
    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u8| {
            let rest = u32::from(width.saturating_sub(self.bits));
            a.checked_shr(rest).unwrap_or(0) == b.checked_shr(rest).unwrap_or(0)
        };
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

/// What a proxy goes by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Names, `*.` and a name for all below it, and addresses.
    pub hosts: Vec<String>,
    /// The networks that this machine is in.
    pub local: Vec<AddressRange>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is not on the list")]
    NotListed,
    #[error("its address {0} is {1}")]
    Special(IpAddr, &'static str),
    #[error("the list cannot be read: {0}")]
    NoRules(String),
}

impl Rules {
    /// Whether a request may name `host`.
    pub fn permit_host(&self, host: &Host) -> Result<(), Refusal> {
        let listed = match host {
            Host::Name(name) => self.hosts.iter().any(|pattern| matches(pattern, name)),
            Host::Address(address) => self.lists_address(*address),
        };
        if listed { Ok(()) } else { Err(Refusal::NotListed) }
    }

    /// Whether a name on the list may be reached at `address`: one that is not public must be on the list itself, since a name
    /// can be made to mean any address.
    pub fn permit_address(&self, address: IpAddr) -> Result<(), Refusal> {
        match self.special(address) {
            Some(what) if !self.lists_address(address) => Err(Refusal::Special(address, what)),
            _ => Ok(()),
        }
    }

    fn lists_address(&self, address: IpAddr) -> bool {
        self.hosts.iter().any(|host| host.parse() == Ok(Host::Address(address)))
    }

    fn special(&self, address: IpAddr) -> Option<&'static str> {
        let address = address.to_canonical();
        let local = || self.local.iter().any(|range| range.contains(address));
        special_class(address).or_else(|| local().then_some("in a network of this machine"))
    }
}

/// Whether `pattern` of a list means `name`; `*.example.org` means all below example.org, and not itself.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    match pattern.strip_prefix("*.") {
        Some(above) => name.strip_suffix(above).is_some_and(|below| below.len() > 1 && below.ends_with('.')),
        None => pattern == name,
    }
}

/// What an address is, where it is not one of the public internet.
fn special_class(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    Some(match address.octets() {
        [0, ..] => "unspecified",
        [127, ..] => "a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => "private",
        [169, 254, ..] => "link-local",
        [224..=239, ..] => "a multicast address",
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            "reserved"
        }
        [240..=255, ..] => "reserved",
        _ => return None,
    })
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        special_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xfc00..=0xfdff, ..] => Some("private"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0 | 0xdb8, ..] => Some("reserved"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("reserved"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(hosts: &[&str]) -> Rules {
        let local = AddressRange { address: "9.9.9.7".parse().unwrap(), bits: 24 };
        Rules { hosts: hosts.iter().map(|&host| host.to_owned()).collect(), local: vec![local] }
    }

    #[test]
    fn a_host_is_reached_only_if_the_list_names_it() {
        let rules = rules(&["example.org", "*.Example.com", "10.0.0.1", "fd00::1"]);
        for (host, listed) in [
            ("example.org", true),
            ("EXAMPLE.org.", true),
            ("www.example.org", false),
            ("example.org.evil.net", false),
            ("notexample.org", false),
            ("a.example.com", true),
            ("a.b.example.com", true),
            ("example.com", false),
            ("notexample.com", false),
            ("10.0.0.1", true),
            ("[fd00::1]", true),
            ("10.0.0.2", false),
            ("8.8.8.8", false),
            ("0x0a000001", false),
            ("167772161", false),
        ] {
            assert_eq!(rules.permit_host(&host.parse().unwrap()).is_ok(), listed, "{host}");
        }
    }

    #[test]
    fn what_is_no_host_is_not_taken_for_one() {
        for text in ["", ".", "a..b", "a b", "a/b", "user@a", "[::1", "[a]", "a:1", "ü.org", "*.example.org"]
        {
            assert!(text.parse::<Host>().is_err(), "{text}");
        }
        assert!("a".repeat(64).parse::<Host>().is_err());
        assert!("a.".repeat(127).parse::<Host>().is_ok());
        assert!("a.".repeat(128).parse::<Host>().is_err());
    }

    #[test]
    fn only_public_addresses_are_connected_to_unless_the_list_names_them() {
        let listed = rules(&["example.org", "10.0.0.1", "169.254.169.254"]);
        for (address, why) in [
            ("93.184.216.34", None),
            ("2606:2800::1", None),
            ("10.0.0.1", None),
            ("169.254.169.254", None),
            ("64:ff9b::5db8:d822", None),
            ("10.0.0.2", Some("private")),
            ("172.17.0.1", Some("private")),
            ("192.168.1.1", Some("private")),
            ("100.64.0.1", Some("private")),
            ("127.0.0.1", Some("a loopback address")),
            ("0.0.0.0", Some("unspecified")),
            ("169.254.169.253", Some("link-local")),
            ("224.0.0.1", Some("a multicast address")),
            ("255.255.255.255", Some("reserved")),
            ("192.0.2.2", Some("reserved")),
            ("9.9.9.9", Some("in a network of this machine")),
            ("::ffff:9.9.9.9", Some("in a network of this machine")),
            ("::1", Some("a loopback address")),
            ("::", Some("reserved")),
            ("::ffff:127.0.0.1", Some("a loopback address")),
            ("::7f00:1", Some("reserved")),
            ("64:ff9b::a9fe:a9fe", Some("link-local")),
            ("2002:7f00:1::", Some("a loopback address")),
            ("fe80::1", Some("link-local")),
            ("fd00::2", Some("private")),
            ("ff02::1", Some("a multicast address")),
            ("2001:db8::1", Some("reserved")),
        ] {
            let address: IpAddr = address.parse().unwrap();
            let expected = why.map_or(Ok(()), |why| Err(Refusal::Special(address, why)));
            assert_eq!(listed.permit_address(address), expected);
        }
    }

    #[test]
    fn a_range_has_the_addresses_that_begin_as_it_does() {
        let range = |address: &str, bits| AddressRange { address: address.parse().unwrap(), bits };
        for (range, address, inside) in [
            (range("192.168.4.1", 22), "192.168.7.255", true),
            (range("192.168.4.1", 22), "192.168.8.0", false),
            (range("9.1.1.1", 32), "9.1.1.1", true),
            (range("9.1.1.1", 32), "9.1.1.2", false),
            (range("0.0.0.0", 0), "9.1.1.2", true),
            (range("2606:1::", 64), "2606:1::ffff", true),
            (range("2606:1::", 64), "2606:1:0:1::", false),
            (range("::", 0), "9.1.1.2", false),
        ] {
            assert_eq!(range.contains(address.parse().unwrap()), inside, "{range:?} {address}");
        }
    }
}
