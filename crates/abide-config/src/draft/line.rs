//! Lines of a text by byte offsets.

/// The line end that a file uses.
pub(super) fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Where the text proper begins: some editors put a byte order mark before it.
pub(super) fn start(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

/// Where the line of `offset` begins.
pub(super) fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or_else(|| start(text), |newline| newline + 1)
}

/// Where the line after that of `offset` begins, or the text ends.
pub(super) fn line_end(text: &str, offset: usize) -> usize {
    text[offset..].find('\n').map_or(text.len(), |newline| offset + newline + 1)
}

/// Like [`line_end`], after making sure that the line has an end.
pub(super) fn end_line(text: &mut String, offset: usize, newline: &str) -> usize {
    // An offset behind the last line end is on no line yet: there is nothing to end.
    let line = line_start(text, offset);
    let end = line_end(text, offset);
    if end > line && !text[..end].ends_with('\n') {
        text.push_str(newline);
    }
    line_end(text, offset)
}

pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}
