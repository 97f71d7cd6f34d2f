//! Asking: on the surface that there is, and never without an answer.

use std::io;

use crate::page::Page;
use crate::plain;
use crate::rich::DialogTerminal;
use crate::surface::{Surface, SurfaceFacts, surface};

/// How the operator is asked.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    surface: Surface,
    colour: bool,
}

impl Ask {
    /// As this terminal allows.
    pub fn here() -> Self {
        let facts = SurfaceFacts::here();
        let decided = surface(&facts);
        tracing::debug!(surface = ?decided.decision, reason = %decided.reason, "how to ask");
        Self::on(decided.decision, !facts.no_color)
    }

    /// On a given surface.
    pub fn on(surface: Surface, colour: bool) -> Self {
        Self { surface, colour }
    }

    /// Whether a question can be asked. If not, every question has its harmless answer.
    pub fn can_ask(&self) -> bool {
        self.surface != Surface::None
    }

    /// Takes the terminal for a few questions in a row.
    pub(crate) fn begin(&self) -> Asking {
        Asking { surface: self.surface, colour: self.colour, stage: None }
    }
}

/// The terminal, for as long as questions are asked. Dropping it gives the terminal back.
pub(crate) struct Asking {
    surface: Surface,
    colour: bool,
    stage: Option<DialogTerminal>,
}

impl Asking {
    /// Asks `page`.
    pub fn page<A: Clone + PartialEq>(&mut self, page: &Page<A>) -> A {
        if self.surface == Surface::Rich {
            match self.rich(page) {
                Ok(answer) => return answer,
                Err(error) => {
                    tracing::warn!(%error, page = page.title, "a dialog could not be drawn; asking in plain text");
                    self.surface = Surface::Plain;
                    self.stage = None;
                }
            }
        }
        if self.surface == Surface::Plain {
            let asked = plain::Stdin::take()
                .and_then(|mut stdin| plain::ask(page, &mut stdin, &mut io::stderr().lock()));
            match asked {
                Ok(answer) => return answer,
                Err(error) => {
                    tracing::warn!(%error, page = page.title, "a question could not be asked");
                    self.surface = Surface::None;
                }
            }
        }
        page.without_answer()
    }

    fn rich<A: Clone>(&mut self, page: &Page<A>) -> io::Result<A> {
        let stage = match self.stage.take() {
            Some(stage) => stage,
            None => DialogTerminal::open(self.colour)?,
        };
        self.stage.insert(stage).ask(page)
    }
}
