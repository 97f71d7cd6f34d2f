//! Whether and how the operator can be asked here: decided once, from plain facts.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use abide_model::{Decided, vars};
use abide_sys::terminal::size_of;

/// How questions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// As dialogs that take the whole screen.
    Rich,
    Plain,
    None,
}

/// What is known about where we run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurfaceFacts {
    /// Whether there is input to read answers from.
    pub stdin: bool,
    /// Whether output goes to a screen.
    pub stdout: bool,
    /// Whether messages go to a screen.
    pub stderr: bool,
    /// What the terminal says it is.
    pub term: Option<OsString>,
    /// Its columns and rows.
    pub size: Option<(u16, u16)>,
    /// Whether the operator wants plain text.
    pub plain: bool,
    /// Whether the operator wants no colours.
    pub no_color: bool,
}

/// The smallest screen that dialogs are made for.
pub const SMALLEST: (u16, u16) = (80, 24);

impl SurfaceFacts {
    /// The facts of this process.
    pub fn here() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self {
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
            term: std::env::var_os(vars::TERM),
            size: size_of(io::stdout()),
            plain: set(vars::ABIDE_PLAIN),
            no_color: set(vars::NO_COLOR),
        }
    }
}

/// Decides how to ask.
pub fn surface(facts: &SurfaceFacts) -> Decided<Surface> {
    if !facts.stdin {
        return Decided::new(
            Surface::None,
            "standard input is not a terminal, so no question can be answered",
        );
    }
    if !facts.stderr {
        return Decided::new(
            Surface::None,
            "standard error is not a terminal, so a question would not be seen",
        );
    }
    if facts.plain {
        return Decided::new(Surface::Plain, format!("{} is set", vars::ABIDE_PLAIN));
    }
    if !facts.stdout {
        return Decided::new(Surface::Plain, "standard output is not a terminal");
    }
    match &facts.term {
        None => return Decided::new(Surface::Plain, "TERM is not set"),
        Some(term) if term.is_empty() || term == "dumb" => {
            return Decided::new(Surface::Plain, "the terminal cannot draw (TERM=dumb)");
        }
        Some(_) => {}
    }
    let (cols, rows) = SMALLEST;
    match facts.size {
        None => Decided::new(Surface::Plain, "the terminal does not report its size"),
        Some((c, r)) if c < cols || r < rows => {
            Decided::new(Surface::Plain, format!("the terminal is {c}x{r}, smaller than {cols}x{rows}"))
        }
        Some(_) => Decided::new(Surface::Rich, "the terminal can draw"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lack_has_its_answer_and_its_reason() {
        let good = SurfaceFacts {
            stdin: true,
            stdout: true,
            stderr: true,
            term: Some("xterm".into()),
            size: Some(SMALLEST),
            plain: false,
            no_color: true,
        };
        type Change = fn(&mut SurfaceFacts);
        let table: [(Change, Surface, &str); 11] = [
            (|_| {}, Surface::Rich, "can draw"),
            (|f| f.stdin = false, Surface::None, "input"),
            (|f| f.stderr = false, Surface::None, "error"),
            (|f| f.stdout = false, Surface::Plain, "output"),
            (|f| f.plain = true, Surface::Plain, "ABIDE_PLAIN"),
            (|f| f.term = None, Surface::Plain, "TERM is not set"),
            (|f| f.term = Some("dumb".into()), Surface::Plain, "TERM=dumb"),
            (|f| f.size = None, Surface::Plain, "size"),
            (|f| f.size = Some((79, 24)), Surface::Plain, "79x24"),
            (|f| f.size = Some((80, 23)), Surface::Plain, "80x23"),
            (|f| (f.stdin, f.plain) = (false, true), Surface::None, "input"),
        ];
        for (change, expected, reason) in table {
            let mut facts = good.clone();
            change(&mut facts);
            let decided = surface(&facts);
            assert_eq!(decided.decision, expected, "{facts:?}");
            assert!(decided.reason.contains(reason), "{}", decided.reason);
        }
    }
}
