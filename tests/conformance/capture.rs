//! Reads what `tmux capture-pane -e` prints: text with SGR, and line drawing between SO and SI.
//!
//! A reader of its own instead of our terminal model, so that a bug of the model does not judge itself.

use unicode_width::UnicodeWidthChar;

use crate::screen::{Cell, Look};

/// What line drawing shows for `` ` `` to `~`.
const LINE_DRAWING: &str = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";

const ATTRIBUTES: [(u16, &str); 8] = [
    (1, "bold"),
    (2, "dim"),
    (3, "italic"),
    (5, "blink"),
    (7, "inverse"),
    (8, "hidden"),
    (9, "strike"),
    (53, "overline"),
];

const UNDERLINES: [&str; 5] =
    ["underline", "double-underline", "curly-underline", "dotted-underline", "dashed-underline"];

/// The rows of a captured screen. Only what tmux kept of a row is known; the rest of it is blank.
pub fn rows(captured: &str, cols: usize) -> Vec<Vec<Cell>> {
    let mut pen = Pen::default();
    captured.lines().map(|line| pen.row(line, cols)).collect()
}

/// The state that goes on from one captured line to the next.
#[derive(Default)]
struct Pen {
    look: Look,
    drawing: bool,
}

impl Pen {
    fn row(&mut self, line: &str, cols: usize) -> Vec<Cell> {
        let mut row: Vec<Cell> = Vec::new();
        let mut chars = line.chars();
        while let Some(ch) = chars.next() {
            match ch {
                '\x1b' => match chars.next() {
                    Some('[') => {
                        let params: String = chars.by_ref().take_while(|ch| *ch != 'm').collect();
                        self.sgr(&params);
                    }
                    // Links, which tmux writes from 3.4 on and which are not compared.
                    Some(']') => drop(chars.by_ref().find(|ch| *ch == '\\')),
                    other => panic!("tmux wrote ESC {other:?} in {line:?}"),
                },
                '\x0e' => self.drawing = true,
                '\x0f' => self.drawing = false,
                _ => self.put(ch, &mut row),
            }
        }
        row.resize(cols, Cell::default());
        row
    }

    fn put(&self, ch: char, row: &mut Vec<Cell>) {
        let ch = match ch {
            '`'..='~' if self.drawing => {
                LINE_DRAWING.chars().nth(ch as usize - '`' as usize).expect("31 characters")
            }
            _ => ch,
        };
        let width = ch.width().unwrap_or(0);
        match row.iter_mut().rfind(|cell| !cell.text.is_empty()) {
            Some(last) if width == 0 => last.text.push(ch),
            _ => row.push(Cell { text: ch.to_string(), look: self.look.clone() }),
        }
        if width == 2 {
            row.push(Cell { text: String::new(), look: self.look.clone() });
        }
    }

    fn sgr(&mut self, params: &str) {
        let mut params = params.split(';');
        while let Some(param) = params.next() {
            let mut parts = param.split(':').map(|part| part.parse::<u16>().unwrap_or(0));
            let number = parts.next().unwrap_or(0);
            match number {
                0 => self.look = Look::default(),
                4 => self.underline(parts.next().unwrap_or(1)),
                21 => self.underline(2),
                30..=37 => self.look.fg = (number - 30).to_string(),
                90..=97 => self.look.fg = (number - 82).to_string(),
                39 => self.look.fg = "default".to_owned(),
                40..=47 => self.look.bg = (number - 40).to_string(),
                100..=107 => self.look.bg = (number - 92).to_string(),
                49 => self.look.bg = "default".to_owned(),
                38 => self.look.fg = color(&mut params),
                48 => self.look.bg = color(&mut params),
                // The colour of an underline is not compared.
                58 => drop(color(&mut params)),
                59 => {}
                _ => self.attribute(number),
            }
        }
    }

    fn attribute(&mut self, number: u16) {
        let known = ATTRIBUTES.iter().find(|(code, _)| *code == number);
        let (_, name) = known.unwrap_or_else(|| panic!("tmux wrote SGR {number}"));
        self.add(name);
    }

    fn underline(&mut self, shape: u16) {
        self.look.attrs.retain(|name| !UNDERLINES.contains(&name.as_str()));
        if let Some(name) = usize::from(shape).checked_sub(1).and_then(|at| UNDERLINES.get(at)) {
            self.add(name);
        }
    }

    fn add(&mut self, name: &str) {
        if let Err(at) = self.look.attrs.binary_search_by(|have| have.as_str().cmp(name)) {
            self.look.attrs.insert(at, name.to_owned());
        }
    }
}

/// The rest of `38;5;N` or `38;2;R;G;B`.
fn color<'a>(params: &mut impl Iterator<Item = &'a str>) -> String {
    let mut next = || params.next().and_then(|param| param.parse::<u8>().ok()).unwrap_or(0);
    match next() {
        5 => next().to_string(),
        _ => format!("#{:02x}{:02x}{:02x}", next(), next(), next()),
    }
}

#[test]
fn a_captured_screen_is_read_cell_by_cell() {
    let rows = rows("\x1b[1m\x1b[31mr\x1b[0m\x0eq\x0f日e\u{301}\x1b[48;2;1;2;3m \n\x1b[4:3mx", 7);
    let told: Vec<String> = rows[0].iter().map(ToString::to_string).collect();
    assert_eq!(told[0], "\"r\" 1 on default bold");
    assert_eq!(told[1], "\"─\" default on default ");
    assert_eq!((rows[0][2].text.as_str(), rows[0][3].text.as_str()), ("日", ""));
    assert_eq!(rows[0][4].text, "e\u{301}");
    assert_eq!(rows[0][5].look.bg, "#010203");
    assert_eq!(rows[0][6], Cell::default());
    assert_eq!(rows[1][0].to_string(), "\"x\" default on #010203 curly-underline");
}
