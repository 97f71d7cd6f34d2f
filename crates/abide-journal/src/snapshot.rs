//! A session's screen as a reply: as text, with colours, or cell by cell.

use std::ops::Range;

use abide_term::{Attrs, Cell, Color, Options, Style, Term, Underline, row_text, style_codes};
use abide_wire::protocol::{self, Format, RequestRefusal, Snapshot, SnapshotReply, error_code};
use abide_wire::session::{SessionId, TerminalSize};

/// Cell by cell, more than this would not fit into a reply.
const MAX_CELLS: usize = 100_000;

const ATTRIBUTES: [(Attrs, &str); 8] = [
    (Attrs::BOLD, "bold"),
    (Attrs::DIM, "dim"),
    (Attrs::ITALIC, "italic"),
    (Attrs::BLINK, "blink"),
    (Attrs::INVERSE, "inverse"),
    (Attrs::HIDDEN, "hidden"),
    (Attrs::STRIKE, "strike"),
    (Attrs::OVERLINE, "overline"),
];

/// Takes the snapshot of `term` that is asked for.
pub fn take(id: &SessionId, term: &Term, ask: &Snapshot) -> Result<SnapshotReply, RequestRefusal> {
    let (size, format) = (term.size(), ask.format);
    let range = rows(term, ask);
    if format == Format::Cells && range.len() * usize::from(size.cols) > MAX_CELLS {
        let text = "too many cells for one reply; ask for fewer lines, or for text";
        return Err(RequestRefusal::new(error_code::TOO_LARGE, text));
    }
    let (mut lines, mut cells) = (Vec::new(), Vec::new());
    let mut take_row = |row: &[Cell]| match format {
        Format::Text => lines.push(row_text(term, row).0.trim_end().to_owned()),
        Format::Ansi => lines.push(ansi(term, row)),
        Format::Cells => cells.push(row.iter().map(|cell| described(term, cell)).collect()),
    };
    let (past, mut row) = (term.scrollback_len(), Vec::new());
    for index in range.clone() {
        match index.checked_sub(past) {
            None => {
                term.scrollback_row(index, &mut row);
                take_row(&row);
            }
            Some(y) => take_row(term.row(u16::try_from(y).unwrap_or(u16::MAX))),
        }
    }
    let scrollback_lines = range.end.min(past).saturating_sub(range.start);
    let is_all = range.end == past + usize::from(size.rows);
    let next = (!is_all).then(|| first_line(term) + range.end as u64);
    let cursor = term.cursor();
    Ok(SnapshotReply {
        session: *id,
        size: TerminalSize { cols: size.cols, rows: size.rows },
        cursor: protocol::SnapshotCursor { col: cursor.x, row: cursor.y, visible: cursor.visible },
        alternate: term.modes().alternate_screen,
        title: term.title().to_owned(),
        scrollback_lines,
        next,
        lines,
        cells,
    })
}

/// The number of the oldest line that is still there, counted from the session's beginning.
fn first_line(term: &Term) -> u64 {
    term.scrolled_off().saturating_sub(term.scrollback_len() as u64)
}

/// Which rows of the past and, after it, of the screen are asked for.
fn rows(term: &Term, ask: &Snapshot) -> Range<usize> {
    let past = term.scrollback_len();
    let end = past + usize::from(term.size().rows);
    let wanted = if ask.scrollback { 0 } else { past };
    let wanted = ask.last.map_or(wanted, |last| wanted.max(end.saturating_sub(last)));
    let from =
        ask.from.map(|line| usize::try_from(line.saturating_sub(first_line(term))).unwrap_or(usize::MAX));
    let start = from.map_or(wanted, |from| wanted.max(from)).min(end);
    start..ask.max.map_or(end, |max| end.min(start.saturating_add(max.max(1))))
}

/// The snapshot of a screen that another program keeps, as tmux does: `output` draws it, after what scrolled off before it.
pub fn drawn_by(
    session: &SessionId,
    size: TerminalSize,
    output: &[u8],
    ask: &Snapshot,
) -> Result<SnapshotReply, RequestRefusal> {
    let size = abide_term::Size { cols: size.cols, rows: size.rows };
    let lines = output.iter().filter(|byte| **byte == b'\n').count();
    let mut term = Term::new(size, Options { scrollback: lines, ..Options::default() });
    term.feed(output);
    take(session, &term, ask)
}

fn ansi(term: &Term, row: &[Cell]) -> String {
    let used = row.iter().rposition(|cell| *cell != Cell::default()).map_or(0, |last| last + 1);
    let (mut out, mut pen, mut buffer) = (Vec::new(), Style::default(), [0; 4]);
    for cell in row[..used].iter().filter(|cell| !cell.is_continuation()) {
        let look = cell.style();
        style_codes::change(&pen, &look, &mut out);
        pen = look;
        let text = term.grapheme(cell, &mut buffer);
        out.extend_from_slice(if text.is_empty() { " " } else { text }.as_bytes());
    }
    style_codes::change(&pen, &Style::default(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn described(term: &Term, cell: &Cell) -> protocol::SnapshotCell {
    let style = cell.style();
    let mut attrs: Vec<String> = ATTRIBUTES
        .iter()
        .filter(|(attr, _)| style.attrs.contains(*attr))
        .map(|(_, name)| (*name).to_owned())
        .collect();
    attrs.extend(underline(style.underline).map(str::to_owned));
    let width = if cell.is_continuation() {
        0
    } else if cell.is_wide() {
        2
    } else {
        1
    };
    protocol::SnapshotCell {
        text: term.grapheme(cell, &mut [0; 4]).to_owned(),
        width,
        fg: color(style.fg),
        bg: color(style.bg),
        attrs,
    }
}

fn underline(underline: Underline) -> Option<&'static str> {
    match underline {
        Underline::None => None,
        Underline::Single => Some("underline"),
        Underline::Double => Some("double-underline"),
        Underline::Curly => Some("curly-underline"),
        Underline::Dotted => Some("dotted-underline"),
        Underline::Dashed => Some("dashed-underline"),
    }
}

fn color(color: Color) -> String {
    match color {
        Color::Default => "default".to_owned(),
        Color::Indexed(n) => n.to_string(),
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(output: &[u8], format: Format, scrollback: bool) -> SnapshotReply {
        let mut term = Term::new(abide_term::Size { cols: 10, rows: 2 }, Options::default());
        term.feed(output);
        take(&SessionId(1), &term, &Snapshot { format, scrollback, ..Snapshot::default() }).unwrap()
    }

    #[test]
    fn text_has_one_line_for_each_row_and_the_past_only_on_demand() {
        let output = b"one\r\ntwo\r\nthree";
        assert_eq!(snapshot(output, Format::Text, false).lines, ["two", "three"]);
        let whole = snapshot(output, Format::Text, true);
        assert_eq!(
            (whole.lines, whole.scrollback_lines),
            (vec!["one".into(), "two".into(), "three".into()], 1)
        );
    }

    #[test]
    fn a_long_scrollback_is_sent_in_pieces_and_its_end_alone_if_that_is_wanted() {
        let mut term = Term::new(abide_term::Size { cols: 10, rows: 2 }, Options::default());
        (0..100).for_each(|n| term.feed(format!("{n}\r\n").as_bytes()));
        let whole: Vec<String> = (0..100).map(|n| n.to_string()).chain([String::new()]).collect();
        let mut ask = Snapshot { scrollback: true, max: Some(7), ..Snapshot::default() };
        let mut lines = Vec::new();
        loop {
            let piece = take(&SessionId(1), &term, &ask).unwrap();
            assert!(piece.lines.len() <= 7);
            lines.extend(piece.lines);
            let Some(next) = piece.next else { break };
            ask.from = Some(next);
        }
        assert_eq!(lines, whole);
        let ask = Snapshot { scrollback: true, last: Some(5), ..Snapshot::default() };
        let end = take(&SessionId(1), &term, &ask).unwrap();
        assert_eq!((end.lines.as_slice(), end.scrollback_lines), (&whole[96..], 3));
    }

    #[test]
    fn ansi_lines_stand_alone() {
        let lines = snapshot(b"a\x1b[31mb\r\nc", Format::Ansi, false).lines;
        assert_eq!(lines, ["a\x1b[31mb\x1b[m", "\x1b[31mc\x1b[m"]);
    }

    #[test]
    fn cells_say_everything_about_themselves() {
        let reply = snapshot("\x1b[1;4;38;2;1;2;255;48;5;7m漢".as_bytes(), Format::Cells, false);
        let cell = &reply.cells[0][0];
        assert_eq!((cell.text.as_str(), cell.width), ("漢", 2));
        assert_eq!((cell.fg.as_str(), cell.bg.as_str()), ("#0102ff", "7"));
        assert_eq!(cell.attrs, ["bold", "underline"]);
        assert_eq!((reply.cells[0][1].width, reply.cells[0][2].width), (0, 1));
    }

    #[test]
    fn more_cells_than_a_reply_can_hold_are_refused() {
        let mut term = Term::new(abide_term::Size { cols: 200, rows: 50 }, Options::default());
        for _ in 0..1000 {
            term.feed(b"x\r\n");
        }
        let ask = Snapshot { format: Format::Cells, scrollback: true, ..Snapshot::default() };
        let refusal = take(&SessionId(1), &term, &ask).unwrap_err();
        assert_eq!(refusal.code, error_code::TOO_LARGE);
    }
}
