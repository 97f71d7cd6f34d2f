//! How fast the model takes in output, and how large and how quick its checkpoints are.
//!
//! `cargo run --release -p abide-term --example throughput [MEGABYTES]`
#![allow(clippy::print_stdout)]

use std::fmt::Write;
use std::time::Instant;

use abide_term::{Options, Size, Term};

const SIZE: Size = Size { cols: 200, rows: 50 };
/// As much as a read of a busy PTY gives.
const CHUNK: usize = 64 << 10;

fn main() {
    let megabytes: usize = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(64);
    println!("{}x{}, {megabytes} MB of each, {} KiB a time", SIZE.cols, SIZE.rows, CHUNK >> 10);
    for (name, corpus) in [
        ("ASCII lines", ascii(megabytes << 20)),
        ("TUI redraw", tui(megabytes << 20)),
        ("unicode mix", unicode(megabytes << 20)),
        ("scrolling", scrolling(megabytes << 20)),
    ] {
        let best = (0..3).map(|_| run(corpus.as_bytes())).fold(0.0, f64::max);
        println!("{name:<14}{best:>8.0} MB/s");
    }
    for (name, line) in [("plain", "x".repeat(200)), ("styled", styled_line())] {
        let mut term = Term::new(SIZE, Options::default());
        for _ in 0..10_100 {
            term.feed(line.as_bytes());
            term.feed(b"\r\n");
        }
        println!("10,000 {name} lines");
        let start = Instant::now();
        let dump = term.dump();
        let dumped = start.elapsed();
        let start = Instant::now();
        let restored = Term::restore(&dump, Options::default());
        println!(
            "  dump {} bytes in {dumped:.1?}, restored in {:.1?} ({})",
            dump.len(),
            start.elapsed(),
            restored.is_some()
        );
        for cols in [100, 200, 120] {
            let start = Instant::now();
            term.resize(Size { cols, ..SIZE });
            println!("  resize to {cols} columns in {:.1?}", start.elapsed());
        }
    }
}

fn run(corpus: &[u8]) -> f64 {
    let mut term = Term::new(SIZE, Options::default());
    let start = Instant::now();
    for chunk in corpus.chunks(CHUNK) {
        term.feed(chunk);
    }
    corpus.len() as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Repeats what `block` writes, which gets a running number, until there are `len` bytes.
fn fill(len: usize, mut block: impl FnMut(&mut String, usize)) -> String {
    let mut out = String::new();
    let mut n = 0;
    while out.len() < len {
        block(&mut out, n);
        n += 1;
    }
    out
}

fn put(out: &mut String, args: std::fmt::Arguments) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(args);
}

/// Lines of source code of all lengths.
fn ascii(len: usize) -> String {
    const WORDS: [&str; 8] =
        ["fn", "let mut value", "= compute(", "self.table", "->", "Result<(), Error>", "{", "// why not"];
    fill(len, |out, n| {
        put(out, format_args!("{n:>8}  "));
        (0..n % 17).for_each(|i| put(out, format_args!("{} ", WORDS[(n + i * 3) % 8])));
        out.push_str("\r\n");
    })
}

/// Frames of a full-screen program: every row placed, coloured and cleared to its end.
fn tui(len: usize) -> String {
    fill(len, |out, n| {
        out.push_str("\x1b[?2026h\x1b[H");
        for y in 1..=50 {
            put(out, format_args!("\x1b[{y};1H\x1b[38;5;{}m│\x1b[0m ", (n + y) % 256));
            put(out, format_args!("\x1b[1;38;2;{};120;200mitem {:<5}\x1b[0m", (n * 7) % 256, n + y));
            put(
                out,
                format_args!(
                    "\x1b[2m some descriptive text for row {y}\x1b[22m \x1b[48;5;236m{:>6}%\x1b[49m",
                    n % 100
                ),
            );
            put(out, format_args!("\x1b[{y};120H\x1b[32m+{}\x1b[39m \x1b[31m-{}\x1b[39m\x1b[K", n % 50, y));
        }
        out.push_str("\x1b[?2026l");
    })
}

/// Text in several scripts, with wide characters, combining marks and emoji sequences.
fn unicode(len: usize) -> String {
    const PARTS: [&str; 8] = [
        "Привет, мир ",
        "漢字かな交じり文 ",
        "naïve café ",
        "┌──────┐│└──────┘ ",
        "👩‍👩‍👧 🇩🇪 ❤️ 👍🏽 ",
        "e\u{301}a\u{308}o\u{302} ",
        "한국어 텍스트 ",
        "→ ✓ • … “quoted” ",
    ];
    fill(len, |out, n| {
        (0..8).for_each(|i| out.push_str(PARTS[(n + i * 3) % 8]));
        out.push_str("\r\n");
    })
}

/// Short coloured lines, as a build prints.
fn scrolling(len: usize) -> String {
    fill(len, |out, n| {
        put(out, format_args!("\x1b[1m\x1b[32m   Compiling\x1b[0m crate-{n} v0.{}.{}\r\n", n % 30, n % 7));
        put(out, format_args!("[{n:>6}] ok: test case number {n} finished without complaint\r\n"));
    })
}

fn styled_line() -> String {
    (0..20).fold(String::new(), |mut out, i| {
        put(&mut out, format_args!("\x1b[38;5;{};{}mword{i:<6}", 100 + i, if i % 2 == 0 { 1 } else { 22 }));
        out
    }) + "\x1b[0m"
}
