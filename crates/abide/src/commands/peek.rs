//! `abide peek`

use abide_wire::protocol::{Format, Snapshot, SnapshotReply};

use super::session_target;
use crate::context::Context;
use crate::error::VerbResult;

const EXAMPLES: &str = "\
Examples:
  abide peek k7p9               the screen
  abide peek k7p9 --scrollback  the screen and the whole scrollback
  abide peek k7p9 --lines 200   the last 200 lines
  abide peek k7p9 --ansi        with colours
  abide peek k7p9 --json        every cell, for programs";

/// A long past comes in pieces of this many lines, and of fewer cells than a reply can hold.
const LINES_AT_A_TIME: usize = 10_000;
const CELLS_AT_A_TIME: usize = 50_000;
/// The widest terminal that there is.
const WIDEST: usize = 2048;

/// Print a session's screen without attaching
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID, ID/SESSION or name
    target: String,
    /// Include the scrollback
    #[arg(long)]
    scrollback: bool,
    /// Only the last N lines of scrollback and screen
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    lines: Option<usize>,
    /// Keep colours and attributes
    #[arg(long, visible_alias = "colour", conflicts_with = "json")]
    ansi: bool,
    /// Print JSON, cell by cell
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let (held, session) = session_target(&args.target, context)?;
    let format = match (args.json, args.ansi) {
        (true, _) => Format::Cells,
        (_, true) => Format::Ansi,
        _ => Format::Text,
    };
    let max = if args.json { CELLS_AT_A_TIME / WIDEST } else { LINES_AT_A_TIME };
    let scrollback = args.scrollback || args.lines.is_some();
    let mut ask = Snapshot { format, scrollback, last: args.lines, max: Some(max), ..Snapshot::default() };
    let mut is_first = true;
    loop {
        let piece = held.screen(&session, &ask)?;
        ask = Snapshot {
            // The end moves on while the session writes; the pieces go on where the last one ended.
            last: None,
            from: piece.next,
            // Now that the width is known.
            max: Some(if args.json { CELLS_AT_A_TIME / usize::from(piece.size.cols).max(1) } else { max }),
            ..ask
        };
        match format {
            Format::Cells => json(&piece, is_first, context)?,
            // With colours the lines hold the escape sequences of our own renderer, and no others.
            Format::Ansi => context.printer.raw(lines(&piece).as_bytes())?,
            Format::Text => context.printer.text(&lines(&piece))?,
        }
        is_first = false;
        if piece.next.is_none() {
            return Ok(());
        }
    }
}

fn lines(piece: &SnapshotReply) -> String {
    let mut text = piece.lines.join("\n");
    text.push('\n');
    text
}

/// One object, written as its rows come: all cells of a long past at once are more than memory should hold.
fn json(piece: &SnapshotReply, is_first: bool, context: &Context) -> VerbResult {
    let mut out = Vec::new();
    if is_first {
        let head = SnapshotReply { cells: Vec::new(), lines: Vec::new(), ..piece.clone() };
        let mut head = serde_json::to_value(head)?;
        if let Some(head) = head.as_object_mut() {
            // How many rows are of the past is known only at the end.
            let later = ["scrollback_lines", "lines", "cells", "next"];
            head.retain(|key, _| !later.contains(&key.as_str()));
        }
        let text = head.to_string();
        out.extend_from_slice(text.trim_end_matches('}').as_bytes());
        out.extend_from_slice(b",\"cells\":[");
    }
    for (at, row) in piece.cells.iter().enumerate() {
        out.extend_from_slice(if is_first && at == 0 { b"\n" } else { b",\n" });
        serde_json::to_writer(&mut out, row)?;
    }
    if piece.next.is_none() {
        out.extend_from_slice(b"]}\n");
    }
    context.printer.raw(&out)
}
