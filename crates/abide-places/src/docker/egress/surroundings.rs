//! The networks that this machine is in, and its own addresses.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::rules::AddressRange;

pub fn here() -> Vec<AddressRange> {
    let read = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let (routes, own) = (connected_v4(&read("route")), own_v4(&read("fib_trie")));
    let mut all: Vec<AddressRange> =
        routes.into_iter().chain(own).chain(connected_v6(&read("if_inet6"))).collect();
    all.sort_by_key(|range| (range.address, range.bits));
    all.dedup();
    all
}

/// The networks that `/proc/net/route` reaches without a gateway.
fn connected_v4(routes: &str) -> Vec<AddressRange> {
    let range = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok().map(u32::to_ne_bytes);
        let (network, gateway, mask) = (number(1)?, number(2)?, number(7)?);
        let bits = u8::try_from(u32::from_ne_bytes(mask).count_ones()).ok()?;
        let range = AddressRange { address: Ipv4Addr::from(network).into(), bits };
        (gateway == [0; 4] && bits > 0).then_some(range)
    };
    routes.lines().filter_map(range).collect()
}

/// The addresses that `/proc/net/fib_trie` calls local.
fn own_v4(trie: &str) -> Vec<AddressRange> {
    let lines: Vec<&str> = trie.lines().collect();
    let own = lines.windows(2).filter(|two| two[1].contains("/32 host LOCAL"));
    let address = |two: &[&str]| two[0].split_ascii_whitespace().last()?.parse::<Ipv4Addr>().ok();
    own.filter_map(address).map(|address| AddressRange { address: address.into(), bits: 32 }).collect()
}

/// The networks of the addresses in `/proc/net/if_inet6`.
fn connected_v6(addresses: &str) -> Vec<AddressRange> {
    let range = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let address = Ipv6Addr::from(u128::from_str_radix(words.first()?, 16).ok()?).into();
        Some(AddressRange { address, bits: u8::from_str_radix(words.get(2)?, 16).ok()? })
    };
    addresses.lines().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_addresses_are_read_as_the_kernel_writes_them() {
        let routes = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
            eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
            eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
            eth0\t0000000A\t010200C0\t0003\t0\t0\t0\t000000FF\t0\t0\t0\n";
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     \
            |-- 9.1.1.1\n        /32 host LOCAL\n     |-- 9.1.1.255\n        /32 link BROADCAST\n";
        let v6 = "fd000000000000000000000000000002 02 40 00 80     eth0\n";
        let range = |address: &str, bits| AddressRange { address: address.parse().unwrap(), bits };
        assert_eq!(connected_v4(routes), [range("192.0.2.0", 24)]);
        assert_eq!(own_v4(trie), [range("9.1.1.1", 32)]);
        assert_eq!(connected_v6(v6), [range("fd00::2", 64)]);
    }
}
