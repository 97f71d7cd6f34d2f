//! Window and icon title, and the stack that a program can save them on.

/// A title is cut to this many bytes.
pub(crate) const MAX_TITLE: usize = 4 << 10;
/// Deepest stack of saved titles; the oldest gives way.
pub(crate) const MAX_STACK: usize = 10;

/// The titles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Titles {
    pub(crate) window: String,
    pub(crate) icon: String,
    /// Saved pairs of window and icon title.
    pub(crate) stack: Vec<(Option<String>, Option<String>)>,
}

impl Titles {
    /// Saves the titles that `which` names: 0 both, 1 the icon's, 2 the window's.
    pub(crate) fn push(&mut self, which: u16) {
        let window = (which != 1).then(|| self.window.clone());
        let icon = (which != 2).then(|| self.icon.clone());
        if self.stack.len() == MAX_STACK {
            self.stack.remove(0);
        }
        self.stack.push((window, icon));
    }

    /// Takes the titles that `which` names from the stack; `None` where nothing changes.
    pub(crate) fn pop(&mut self, which: u16) -> (Option<String>, Option<String>) {
        let (window, icon) = self.stack.pop().unwrap_or_default();
        (window.filter(|_| which != 1), icon.filter(|_| which != 2))
    }
}
