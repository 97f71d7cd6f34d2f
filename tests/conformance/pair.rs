//! One program in both terminals: the same keys go to both, and after each step both show the same.

use std::time::{Duration, Instant};

use abide_testkit::eventually;

use crate::abide::Abide;
use crate::allowed;
use crate::machine::Machine;
use crate::screen::{Difference, Screen};
use crate::tmux::Tmux;

/// Columns and rows.
pub type Size = (u16, u16);

/// The size that most programs are compared at.
pub const SIZE: Size = (100, 30);

/// A screen that has not changed for so long is taken to be finished, if both are equal.
const QUIET: Duration = Duration::from_millis(200);
/// Screens that differ get this much longer, since one program may only be late.
const LATE: Duration = Duration::from_secs(3);
/// A step that takes longer has failed.
const DEADLINE: Duration = Duration::from_secs(30);

/// A piece of what is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A key by the name that both terminals know.
    Named(String),
    /// Text as it is.
    Text(String),
}

/// Reads `:wq<Enter>`: names of keys stand between `<` and `>`.
pub fn keys(typed: &str) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = typed;
    while let Some((text, tail)) = rest.split_once('<') {
        let (name, after) = tail.split_once('>').expect("a key's name ends in >");
        if !text.is_empty() {
            keys.push(Key::Text(text.to_owned()));
        }
        keys.push(Key::Named(name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        keys.push(Key::Text(rest.to_owned()));
    }
    keys
}

/// A program that runs in abide and in tmux.
pub struct Pair<'a> {
    program: &'static str,
    abide: Abide<'a>,
    tmux: Tmux<'a>,
}

impl<'a> Pair<'a> {
    /// Starts `argv` in both; `program` is its name in the list of allowed differences.
    pub fn start(machine: &'a Machine, program: &'static str, size: Size, argv: &[&str]) -> Self {
        let pair = Self {
            program,
            abide: Abide::start(machine, size, argv),
            tmux: Tmux::start(machine, size, argv),
        };
        machine.open_gate();
        pair
    }

    /// Types into both, waits until both have changed, show `expected` and stand still, and compares them. Gives abide's.
    #[track_caller]
    pub fn step(&self, typed: &str, expected: &str) -> Screen {
        let keys = keys(typed);
        // A screen that is as it was has not heard of the keys yet.
        let before = (self.abide.screen(), self.tmux.screen());
        self.abide.type_keys(&keys);
        self.tmux.type_keys(&keys);
        self.compare(&format!("after {typed:?}"), QUIET, |screen| {
            *screen != before.0 && *screen != before.1 && screen.text().contains(expected)
        })
    }

    /// Types into both where tmux is known to go wrong: abide must come to show `shown`, and tmux must not.
    #[track_caller]
    pub fn diverges(&self, typed: &str, shown: &str) -> Screen {
        let keys = keys(typed);
        let before = self.tmux.screen();
        self.abide.type_keys(&keys);
        self.tmux.type_keys(&keys);
        eventually(&format!("{} after {typed:?} to be right in abide alone", self.program), || {
            let (abide, tmux) = (self.abide.screen(), self.tmux.screen());
            let right = abide.text().contains(shown) && !tmux.text().contains(shown);
            (tmux != before && right).then_some(abide)
        })
    }

    /// Waits until both show `expected` and stand still, and compares them.
    #[track_caller]
    pub fn shows(&self, expected: &str) {
        self.compare("at the start", QUIET, |screen| screen.text().contains(expected));
    }

    /// Changes the size of both, and compares them when both show `expected`.
    #[track_caller]
    pub fn resize(&self, size: Size, expected: &str) {
        self.abide.resize(size);
        self.tmux.resize(size);
        let (cols, rows) = (usize::from(size.0), usize::from(size.1));
        self.compare(&format!("at {cols}x{rows}"), QUIET, |screen| {
            screen.size() == (cols, rows) && screen.text().contains(expected)
        });
    }

    /// Changes the size of both where text on the primary screen is wrapped anew.
    ///
    /// When lines become more, tmux lets as many go at the top, even if there is room below; abide uses the room. So
    /// tmux must show what abide shows, scrolled until the cursors meet.
    #[track_caller]
    pub fn reflow(&self, size: Size, expected: &str) {
        self.abide.resize(size);
        self.tmux.resize(size);
        let size = (usize::from(size.0), usize::from(size.1));
        let ready = |screen: &Screen| screen.size() == size && screen.text().contains(expected);
        self.compare_as(&format!("wrapped anew at {size:?}"), QUIET, ready, |abide, tmux| {
            abide.scroll(abide.cursor.row.saturating_sub(tmux.cursor.row));
        });
    }

    /// Compares when the title of both has become `marker`, which the program sets after everything else.
    #[track_caller]
    pub fn marked(&self, marker: &str) {
        self.compare(marker, Duration::ZERO, |screen| screen.title == marker);
    }

    #[track_caller]
    fn compare(&self, step: &str, quiet: Duration, ready: impl Fn(&Screen) -> bool) -> Screen {
        self.compare_as(step, quiet, ready, |_, _| {})
    }

    /// Compares when both are ready, after `adjust` has changed abide's screen in view of tmux's.
    #[track_caller]
    fn compare_as(
        &self,
        step: &str,
        quiet: Duration,
        ready: impl Fn(&Screen) -> bool,
        adjust: impl Fn(&mut Screen, &Screen),
    ) -> Screen {
        let started = Instant::now();
        let mut changed = started;
        let mut last: Option<(Screen, Screen)> = None;
        loop {
            let now = (self.abide.screen(), self.tmux.screen());
            if last.as_ref() != Some(&now) {
                changed = Instant::now();
            }
            let still = changed.elapsed();
            let ready = ready(&now.0) && ready(&now.1);
            let mut adjusted = now.0.clone();
            adjust(&mut adjusted, &now.1);
            let differences = self.differences(&adjusted, &now.1);
            if ready && differences.is_empty() && still >= quiet {
                return now.0;
            }
            if (ready && still >= quiet + LATE) || started.elapsed() > DEADLINE {
                self.fail(step, &differences, &now);
            }
            last = Some(now);
            std::thread::sleep(Duration::from_millis(40));
        }
    }

    fn differences(&self, abide: &Screen, tmux: &Screen) -> Vec<Difference> {
        let mut found = abide.differences(tmux);
        found.retain(|difference| !allowed::allows(self.program, difference));
        found
    }

    #[track_caller]
    fn fail(&self, step: &str, differences: &[Difference], (abide, tmux): &(Screen, Screen)) -> ! {
        let some: Vec<String> = differences.iter().take(12).map(ToString::to_string).collect();
        panic!(
            "{} {step}: {} differences\n{}\n--- abide:\n{}--- tmux:\n{}",
            self.program,
            differences.len(),
            some.join("\n"),
            abide.text(),
            tmux.text()
        );
    }
}

#[test]
fn typed_keys_are_read_by_name() {
    let named = |name: &str| Key::Named(name.to_owned());
    let text = |text: &str| Key::Text(text.to_owned());
    assert_eq!(keys(":q<Enter>"), [text(":q"), named("Enter")]);
    assert_eq!(keys("<Up><C-c>x"), [named("Up"), named("C-c"), text("x")]);
}
