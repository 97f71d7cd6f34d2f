//! Decoding one UTF-8 character at a time from a stream that may be cut anywhere or be no UTF-8 at all.

/// What the first bytes of a slice are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// A character, and how many bytes it took.
    Char(char, usize),
    /// The longest prefix that cannot become a character; it stands for one U+FFFD.
    Invalid(usize),
    /// A character that the slice ends in the middle of.
    Incomplete,
}

/// Decodes the character at the start of `bytes`, which must not be empty.
#[inline]
pub(crate) fn decode(bytes: &[u8]) -> Decoded {
    let first = bytes[0];
    // The second byte's range depends on the first: it excludes overlong forms, surrogates and what is past U+10FFFF.
    let (len, low, high) = match first {
        0x00..=0x7f => return Decoded::Char(char::from(first), 1),
        0xc2..=0xdf => (2, 0x80, 0xbf),
        0xe0 => (3, 0xa0, 0xbf),
        0xed => (3, 0x80, 0x9f),
        0xe1..=0xef => (3, 0x80, 0xbf),
        0xf0 => (4, 0x90, 0xbf),
        0xf1..=0xf3 => (4, 0x80, 0xbf),
        0xf4 => (4, 0x80, 0x8f),
        _ => return Decoded::Invalid(1),
    };
    let mut code = u32::from(first) & (0x7f >> len);
    for i in 1..len {
        let Some(&byte) = bytes.get(i) else { return Decoded::Incomplete };
        let (low, high) = if i == 1 { (low, high) } else { (0x80, 0xbf) };
        if byte < low || byte > high {
            return Decoded::Invalid(i);
        }
        code = code << 6 | u32::from(byte) & 0x3f;
    }
    match char::from_u32(code) {
        Some(c) => Decoded::Char(c, len),
        None => Decoded::Invalid(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_standard_library_on_every_prefix_of_valid_text() {
        for c in ['é', '漢', '\u{ffff}', '\u{10ffff}', '\u{800}', '\u{10000}'] {
            let mut buf = [0; 4];
            let bytes = c.encode_utf8(&mut buf).as_bytes();
            assert_eq!(decode(bytes), Decoded::Char(c, bytes.len()));
            for cut in 1..bytes.len() {
                assert_eq!(decode(&bytes[..cut]), Decoded::Incomplete);
            }
        }
    }

    #[test]
    fn invalid_bytes_are_cut_where_the_standard_library_cuts_them() {
        for bytes in [
            &b"\xff"[..],
            b"\xc0\x80",
            b"\xe0\x80\x80",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b"\xe2\x82A",
            b"\x80",
        ] {
            let expected = std::str::from_utf8(bytes).unwrap_err().error_len().unwrap();
            assert_eq!(decode(bytes), Decoded::Invalid(expected), "{bytes:x?}");
        }
    }
}
