//! New conversation ids.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// A random UUID (version 4).
pub fn mint_uuid() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(spelled(u128::from_be_bytes(bytes)))
}

fn spelled(bits: u128) -> String {
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0b11 << 62;
    let bits = bits & !VERSION & !VARIANT | 0x4 << 76 | 0b10 << 62;
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_variant_are_where_the_standard_puts_them() {
        assert_eq!(spelled(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(spelled(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn no_two_are_the_same() {
        let (a, b) = (mint_uuid().unwrap(), mint_uuid().unwrap());
        assert!(crate::argv::is_uuid(&a) && crate::argv::is_uuid(&b));
        assert_ne!(a, b);
    }
}
