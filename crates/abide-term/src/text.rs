//! Small matters of text: making it safe, hexadecimal, base64.

/// The text without control characters and at most `max` bytes long.
pub(crate) fn clean(bytes: &[u8], max: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        if out.len() + c.len_utf8() > max {
            break;
        }
        out.push(c);
    }
    out
}

/// A decimal number that takes up the whole slice.
pub(crate) fn number<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    if !bytes.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// Bytes from pairs of hexadecimal digits.
pub(crate) fn unhex(bytes: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16);
    let (pairs, []) = bytes.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect()
}

/// Upper-case pairs of hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02X}");
        out
    })
}

/// The base64 text of some bytes.
pub fn base64(data: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(data.len().div_ceil(3) * 4);
    for group in data.chunks(3) {
        let [a, b, c] = [0, 1, 2].map(|at| u32::from(group.get(at).copied().unwrap_or(0)));
        let bits = a << 16 | b << 8 | c;
        for digit in 0..4 {
            let present = digit <= group.len();
            let index = (bits >> (18 - 6 * digit) & 63) as usize;
            out.push(if present { char::from(DIGITS[index]) } else { '=' });
        }
    }
    out
}

/// The bytes that a base64 text stands for; padding may be missing, anything else out of place is an error.
pub(crate) fn unbase64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii();
    let padding = text.iter().rev().take_while(|b| **b == b'=').count();
    let text = &text[..text.len() - padding];
    if padding > 2 || text.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.chunks(4) {
        let mut bits = 0u32;
        for &byte in chunk {
            let value = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - chunk.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    Some(out)
}

/// The text of a row of cells, and the column in which each of its bytes begins.
pub fn row_text(term: &crate::Term, cells: &[crate::Cell]) -> (String, Vec<usize>) {
    let (mut text, mut columns) = (String::new(), Vec::new());
    let mut buffer = [0; 4];
    for (column, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_continuation()) {
        let grapheme = term.grapheme(cell, &mut buffer);
        text.push_str(if grapheme.is_empty() { " " } else { grapheme });
        columns.resize(text.len(), column);
    }
    (text, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_every_length_is_decoded_and_nonsense_is_not() {
        for (text, bytes) in [
            (&b""[..], &b""[..]),
            (b"Zg==", b"f"),
            (b"Zg", b"f"),
            (b"Zm8=", b"fo"),
            (b"Zm9v", b"foo"),
            (b"Zm9vYg==", b"foob"),
            (b"/+-_", &[0xff, 0xef, 0xbf]),
        ] {
            assert_eq!(unbase64(text).as_deref(), Some(bytes), "{text:?}");
            assert_eq!(unbase64(base64(bytes).as_bytes()).as_deref(), Some(bytes), "{text:?}");
        }
        assert_eq!(base64(b"foob"), "Zm9vYg==");
        for text in [&b"Z"[..], b"Z g=", b"Zg===", b"Zm9v!"] {
            assert_eq!(unbase64(text), None, "{text:?}");
        }
    }

    #[test]
    fn clean_text_has_no_controls_and_is_cut_at_a_character() {
        assert_eq!(clean(b"a\x1b[2J\x07b\xc2\x9bc\r\n", 100), "a[2Jbc");
        assert_eq!(clean("ééé".as_bytes(), 5), "éé");
    }

    #[test]
    fn hexadecimal_goes_both_ways() {
        assert_eq!(unhex(b"544e"), Some(b"TN".to_vec()));
        assert_eq!(hex(b"TN"), "544E");
        assert_eq!((unhex(b"5"), unhex(b"zz")), (None, None));
    }
}
