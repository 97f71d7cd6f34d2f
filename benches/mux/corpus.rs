//! What the sessions print: deterministic, so that every multiplexer in every round gets the same bytes.
//!
//! The text holds neither capitals nor digits outside escape sequences, and a mark holds nothing else. A multiplexer
//! that redraws only the cells that changed thus has to draw every cell of a mark, in one piece.

use std::fmt::Write;

const MARK_EDGE: u8 = b'Q';
/// How long every mark is.
pub const MARK_LENGTH: usize = 8;

/// The `number`th mark: unlike anything else that is printed, and unlike any other mark.
pub fn mark(number: u32) -> String {
    format!("Q{number:06}Q")
}

/// A byte without which no text holds a mark: looking for it is all that most output costs.
pub fn may_hold_mark(text: &[u8]) -> bool {
    text.contains(&MARK_EDGE)
}

/// What an endless run of a stream repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Lines of text of varying length, as `cat` of a log or a source file.
    Ascii,
    /// The redraws of a full-screen program: colours, cursor moves, partial rewrites, some Unicode.
    Tui,
}

impl Stream {
    /// How it is called in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ascii => "ascii",
            Self::Tui => "tui",
        }
    }

    /// The stream called `name`.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Ascii, Self::Tui].into_iter().find(|stream| stream.name() == name)
    }

    /// About a quarter of a megabyte that may be repeated without a seam.
    pub fn block(self) -> Vec<u8> {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut block = String::new();
        let mut frame = 0;
        while block.len() < 256 * 1024 {
            match self {
                Self::Ascii => {
                    let length = 10 + random.below(110);
                    line(&mut block, &mut random, length);
                    block.push('\n');
                }
                Self::Tui => {
                    draw(&mut block, &mut random, frame);
                    frame += 1;
                }
            }
        }
        block.into_bytes()
    }
}

/// `lines` different lines that fill `columns` each. The letters are random: text of an agent compresses better, and
/// a multiplexer that keeps its scrollback compressed should not be flattered.
pub fn full_lines(lines: usize, columns: usize) -> Vec<String> {
    let mut random = Random(0xd1b5_4a32_d192_ed03);
    let full = |_| {
        let mut text = String::with_capacity(columns);
        line(&mut text, &mut random, columns);
        text
    };
    (0..lines).map(full).collect()
}

/// Appends words of together exactly `length` letters and spaces.
fn line(out: &mut String, random: &mut Random, length: usize) {
    let mut left = length;
    while left > 0 {
        let word = (2 + random.below(8)).min(left);
        for _ in 0..word {
            out.push(char::from(b'a' + (random.below(26) as u8)));
        }
        left -= word;
        if left > 0 {
            out.push(' ');
            left -= 1;
        }
    }
}

const ROWS: usize = 44;
const COLUMNS: usize = 190;
const SPINNER: [char; 8] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧'];

/// Appends one synchronized frame: a full redraw now and then, and between them what agents do all day: a spinner,
/// scattered rewrites, and a block of lines at the bottom that is erased upwards and printed again.
fn draw(out: &mut String, random: &mut Random, frame: usize) {
    out.push_str("\x1b[?2026h\x1b[?25l");
    if frame.is_multiple_of(24) {
        redraw_all(out, random);
    }
    let spinner = SPINNER[frame % SPINNER.len()];
    put(out, format_args!("\x1b[{ROWS};3H\x1b[38;5;{}m{spinner}\x1b[0m", 30 + frame % 200));
    for _ in 0..6 {
        let (row, column) = (2 + random.below(ROWS - 12), 3 + random.below(COLUMNS - 60));
        let (red, green, blue) = (random.below(256), random.below(256), random.below(256));
        put(out, format_args!("\x1b[{row};{column}H\x1b[1;38;2;{red};{green};{blue}m"));
        let length = 8 + random.below(40);
        line(out, random, length);
        out.push_str("\x1b[0m");
    }
    put(out, format_args!("\x1b[{};1H", ROWS - 2));
    out.push_str(&"\x1b[2K\x1b[1A".repeat(6));
    for _ in 0..6 {
        put(out, format_args!("\r\x1b[2m│\x1b[22m \x1b[{}m", 31 + random.below(6)));
        let length = 30 + random.below(120);
        line(out, random, length);
        out.push_str("\x1b[39m\x1b[K\n");
    }
    out.push_str("\x1b[?25h\x1b[?2026l");
}

fn redraw_all(out: &mut String, random: &mut Random) {
    for row in 1..=ROWS {
        put(out, format_args!("\x1b[{row};1H\x1b[2K\x1b[48;5;{}m", 232 + row % 4));
        if row == 1 || row == ROWS {
            out.push_str(&"─".repeat(COLUMNS));
        } else {
            out.push_str("│ ");
            let length = COLUMNS / 2 + random.below(COLUMNS / 2 - 4);
            line(out, random, length);
            put(out, format_args!("\x1b[{COLUMNS}G│"));
        }
        out.push_str("\x1b[0m");
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

/// xorshift64*: enough disorder for text and pauses, and the same disorder every time.
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let scrambled = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        (scrambled >> 33) as usize % limit
    }
}
