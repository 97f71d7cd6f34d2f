//! What real agents wrote to their terminals, played back into both.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;

use crate::machine::{Machine, Side};
use crate::pair::{Pair, SIZE};

/// How many times a stream is stopped to look at the screens.
const STOPS: usize = 24;

/// Cuts a stream into pieces that end before a control sequence, so that a title can be set in between.
fn pieces(stream: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = stream;
    for stops_left in (1..STOPS).rev() {
        let aim = rest.len() / (stops_left + 1);
        let Some(more) = rest[aim..].windows(2).position(|pair| pair == b"\x1b[") else { break };
        let (piece, tail) = rest.split_at(aim + more);
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    pieces
}

fn replay(agent: &'static str, stream: &[u8]) {
    let machine = Machine::new();
    // Opened for reading too, a pipe neither keeps its writer waiting nor ends for its reader.
    let mut writers = [Side::Abide, Side::Tmux].map(|side| {
        let pipe = machine.home(side).join("pipe");
        std::fs::create_dir_all(machine.home(side)).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        OpenOptions::new().read(true).write(true).open(pipe).unwrap()
    });
    let pair = Pair::start(&machine, agent, SIZE, &["sh", "-c", "stty raw -echo; exec cat ~/pipe"]);
    for (number, piece) in pieces(stream).into_iter().enumerate() {
        let marker = format!("{agent} stop {number}");
        for writer in &mut writers {
            writer.write_all(piece).unwrap();
            write!(writer, "\x1b]2;{marker}\x1b\\").unwrap();
        }
        pair.marked(&marker);
    }
}

#[test]
fn claude_looks_the_same() {
    replay("claude", include_bytes!("streams/claude.raw"));
}

#[test]
fn codex_looks_the_same() {
    replay("codex", include_bytes!("streams/codex.raw"));
}

#[test]
fn gemini_looks_the_same() {
    replay("gemini", include_bytes!("streams/gemini.raw"));
}

#[test]
fn opencode_looks_the_same() {
    replay("opencode", include_bytes!("streams/opencode.raw"));
}
