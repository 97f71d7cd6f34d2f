//! The parts of the state that a checkpoint writes one by one, each with the way to read it back.
//!
//! Screens, scrollback and the tables of clusters and links are not here: `dump` writes those in bulk.

use crate::checkpoint::encoding::{ByteReader, Writer};
use crate::colors::Palette;
use crate::modes::{ModeSet, MouseEncoding, MouseMode};
use crate::options::Rgb;
use crate::parse::charset::{Charset, Charsets};
use crate::parse::params::Params;
use crate::parse::parser::{MAX_CLIPBOARD, ParserState};
use crate::status::{ProgramStatus, parse_state};
use crate::term::Term;
use crate::titles::MAX_STACK;
use crate::vt::{Caret, Margins, SavedCursor};

/// A part of the state.
pub(crate) struct StatePart {
    pub(crate) save: fn(&Term, &mut Writer),
    pub(crate) load: fn(&mut Term, &mut ByteReader) -> Option<()>,
}

/// All parts, in the order of a checkpoint.
pub(crate) const PARTS: [StatePart; 9] = [
    StatePart { save: save_parser, load: load_parser },
    StatePart { save: save_cursor, load: load_cursor },
    StatePart { save: save_margins, load: load_margins },
    StatePart { save: save_modes, load: load_modes },
    StatePart { save: save_saved, load: load_saved },
    StatePart { save: save_keyboard, load: load_keyboard },
    StatePart { save: save_colors, load: load_colors },
    StatePart { save: save_titles, load: load_titles },
    StatePart { save: save_status, load: load_status },
];

fn save_parser(term: &Term, w: &mut Writer) {
    let parser = &term.parser;
    w.u8(parser.state as u8);
    let (values, colons, any, full) = parser.sequence.params.to_parts();
    w.usize(values.len());
    values.iter().for_each(|n| w.u16(*n));
    w.u32(colons);
    w.bool(any);
    w.bool(full);
    w.u8(parser.sequence.marker);
    w.u8(parser.sequence.intermediate);
    w.u8(parser.sequence.last);
    w.bytes(&parser.string);
    w.bool(parser.overflowed);
    w.bytes(&parser.partial[..usize::from(parser.partial_len)]);
}

fn load_parser(term: &mut Term, r: &mut ByteReader) -> Option<()> {
    let parser = &mut term.parser;
    parser.state = ParserState::from_u8(r.u8()?)?;
    let values = r.list(32, ByteReader::u16)?;
    parser.sequence.params = Params::from_parts(&values, r.u32()?, r.bool()?, r.bool()?)?;
    parser.sequence.marker = r.u8()?;
    parser.sequence.intermediate = r.u8()?;
    parser.sequence.last = r.u8()?;
    parser.string = Some(r.bytes()?).filter(|bytes| bytes.len() <= MAX_CLIPBOARD)?.to_vec();
    parser.overflowed = r.bool()?;
    let partial = Some(r.bytes()?).filter(|bytes| bytes.len() < 4)?;
    parser.partial[..partial.len()].copy_from_slice(partial);
    parser.partial_len = partial.len() as u8;
    Some(())
}

fn save_caret(caret: Caret, w: &mut Writer) {
    w.u16(caret.x as u16);
    w.u16(caret.y as u16);
    w.bool(caret.pending);
}

fn load_caret(r: &mut ByteReader) -> Option<Caret> {
    Some(Caret { x: r.u16()?.into(), y: r.u16()?.into(), pending: r.bool()? })
}

fn save_charsets(charsets: &Charsets, w: &mut Writer) {
    charsets.sets.iter().for_each(|set| w.u8(*set as u8));
    w.u8(charsets.active);
}

fn load_charsets(r: &mut ByteReader) -> Option<Charsets> {
    let mut sets = [Charset::Ascii; 2];
    for set in &mut sets {
        *set = Charset::from_u8(r.u8()?);
    }
    Some(Charsets { sets, active: r.u8()?.min(1) })
}

fn save_cursor(term: &Term, w: &mut Writer) {
    let vt = &term.vt;
    save_caret(vt.caret, w);
    w.pen(vt.pen);
    save_charsets(&vt.charsets, w);
    w.option(vt.last_char, |w, c| w.u32(c as u32));
    w.u8(vt.cursor_style);
}

fn load_cursor(term: &mut Term, r: &mut ByteReader) -> Option<()> {
    let vt = &mut term.vt;
    let caret = load_caret(r)?;
    vt.caret = Some(caret).filter(|caret| caret.x < vt.cols() && caret.y < vt.rows())?;
    vt.pen = r.pen()?;
    vt.charsets = load_charsets(r)?;
    vt.last_char = r.option(|r| char::from_u32(r.u32()?).filter(|c| !c.is_control()))?;
    vt.cursor_style = r.u8()?.min(6);
    Some(())
}

fn save_margins(term: &Term, w: &mut Writer) {
    let Margins { top, bottom } = term.vt.margins;
    [top, bottom].into_iter().for_each(|n| w.u16(n as u16));
    term.vt.tabs.0.iter().for_each(|word| w.u64(*word));
}

fn load_margins(term: &mut Term, r: &mut ByteReader) -> Option<()> {
    let vt = &mut term.vt;
    let [top, bottom] = [r.u16()?, r.u16()?].map(usize::from);
    let valid = top <= bottom && bottom < vt.rows();
    vt.margins = valid.then_some(Margins { top, bottom })?;
    for word in vt.tabs.0.iter_mut() {
        *word = r.u64()?;
    }
    Some(())
}

fn save_modes(term: &Term, w: &mut Writer) {
    let vt = &term.vt;
    w.u32(vt.modes.0);
    w.u8(vt.mouse as u8);
    w.u8(vt.mouse_encoding as u8);
    w.bool(vt.alternate);
}

fn load_modes(term: &mut Term, r: &mut ByteReader) -> Option<()> {
    let vt = &mut term.vt;
    vt.modes = ModeSet(r.u32()?);
    vt.mouse = MouseMode::from_u8(r.u8()?);
    vt.mouse_encoding = MouseEncoding::from_u8(r.u8()?);
    vt.alternate = r.bool()?;
    vt.keyboard.switch(vt.alternate);
    Some(())
}

fn save_saved(term: &Term, w: &mut Writer) {
    for saved in &term.vt.saved {
        w.option(saved.as_ref(), |w, saved| {
            save_caret(saved.caret, w);
            w.pen(saved.pen);
            save_charsets(&saved.charsets, w);
            w.bool(saved.origin);
        });
    }
}

fn load_saved(term: &mut Term, r: &mut ByteReader) -> Option<()> {
    for saved in &mut term.vt.saved {
        *saved = r.option(|r| {
            Some(SavedCursor {
                caret: load_caret(r)?,
                pen: r.pen()?,
                charsets: load_charsets(r)?,
                origin: r.bool()?,
            })
        })?;
    }
    Some(())
}

fn save_keyboard(term: &Term, w: &mut Writer) {
    term.vt.keyboard.stacks.iter().for_each(|stack| w.bytes(stack));
    w.u8(term.vt.keyboard.modify_other_keys);
}

fn load_keyboard(term: &mut Term, r: &mut ByteReader) -> Option<()> {
    for stack in &mut term.vt.keyboard.stacks {
        *stack = Some(r.bytes()?).filter(|bytes| bytes.len() <= 16)?.to_vec();
    }
    term.vt.keyboard.modify_other_keys = r.u8()?.min(2);
    Some(())
}

fn save_colors(term: &Term, w: &mut Writer) {
    let changed = &term.vt.palette.changed;
    w.usize(changed.len());
    for (n, Rgb { r, g, b }) in changed {
        w.u16(*n);
        [*r, *g, *b].into_iter().for_each(|n| w.u8(n));
    }
}

fn load_colors(term: &mut Term, r: &mut ByteReader) -> Option<()> {
    let colors = r.list(512, |r| Some((r.u16()?, Rgb::new(r.u8()?, r.u8()?, r.u8()?))))?;
    if !colors.iter().all(|(n, _)| Palette::is_valid_key(*n)) {
        return None;
    }
    term.vt.palette.changed = colors.into_iter().collect();
    Some(())
}

fn save_titles(term: &Term, w: &mut Writer) {
    let titles = &term.vt.titles;
    w.text(&titles.window);
    w.usize(titles.stack.len());
    for title in &titles.stack {
        w.option(title.as_deref(), Writer::text);
    }
    w.option(term.vt.cwd.as_deref(), Writer::text);
}

fn load_titles(term: &mut Term, r: &mut ByteReader) -> Option<()> {
    let titles = &mut term.vt.titles;
    titles.window = r.text()?;
    titles.stack = r.list(MAX_STACK, |r| r.option(ByteReader::text))?;
    term.vt.cwd = r.option(ByteReader::text)?;
    Some(())
}

fn save_status(term: &Term, w: &mut Writer) {
    w.option(term.vt.status.as_ref(), |w, status| {
        w.text(status.state.as_str());
        for field in [&status.id, &status.app, &status.kind, &status.title, &status.message] {
            w.option(field.as_deref(), Writer::text);
        }
        w.option(status.progress, Writer::u8);
    });
}

fn load_status(term: &mut Term, r: &mut ByteReader) -> Option<()> {
    term.vt.status = r.option(|r| {
        let state = parse_state(r.text()?.as_bytes());
        let mut text = || r.option(ByteReader::text);
        let (id, app, kind, title, message) = (text()?, text()?, text()?, text()?, text()?);
        Some(ProgramStatus { state, id, app, kind, progress: r.option(ByteReader::u8)?, title, message })
    })?;
    Some(())
}
