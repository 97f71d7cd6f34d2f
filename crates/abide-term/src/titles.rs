//! The window title, and the stack that a program can save it on.

/// A title is cut to this many bytes.
pub(crate) const MAX_TITLE: usize = 4 << 10;
/// Deepest stack of saved titles; the oldest gives way.
pub(crate) const MAX_STACK: usize = 10;
/// The icon's title, where a program names one of the two: it is not shown here.
const ICON: u16 = 1;

#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Titles {
    pub(crate) window: String,
    /// What was saved; `None` where it was the icon's title alone, which takes up its place all the same.
    pub(crate) stack: Vec<Option<String>>,
}

impl Titles {
    /// Saves the titles that `which` names: 0 both, 1 the icon's, 2 the window's.
    pub(crate) fn push(&mut self, which: u16) {
        if self.stack.len() == MAX_STACK {
            self.stack.remove(0);
        }
        self.stack.push((which != ICON).then(|| self.window.clone()));
    }

    /// Takes the top of the stack; the window's title, if it was saved there and `which` names it.
    pub(crate) fn pop(&mut self, which: u16) -> Option<String> {
        self.stack.pop().flatten().filter(|_| which != ICON)
    }
}
