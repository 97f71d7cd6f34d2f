//! What a program asked of the keyboard: the flags of the kitty protocol, and xterm's modifyOtherKeys.
//!
//! The flags are a stack, one for each screen, so that a program which ends on the alternate screen leaves the shell's
//! keyboard as it was.

/// Flags that the kitty protocol defines.
const FLAGS: u8 = 0b1_1111;
/// Deepest stack; the oldest entry gives way.
pub(crate) const MAX_STACK: usize = 16;

/// State of the keyboard.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Keyboard {
    /// The stacks of the shown and of the other screen; the last entry is in force.
    pub(crate) stacks: [Vec<u8>; 2],
    /// Which of the stacks is in use.
    pub(crate) alternate: bool,
    pub(crate) modify_other_keys: u8,
}

impl Keyboard {
    fn stack(&mut self) -> &mut Vec<u8> {
        &mut self.stacks[usize::from(self.alternate)]
    }

    pub(crate) fn flags(&self) -> u8 {
        self.stacks[usize::from(self.alternate)].last().copied().unwrap_or(0)
    }

    pub(crate) fn switch(&mut self, alternate: bool) {
        self.alternate = alternate;
    }

    pub(crate) fn push(&mut self, flags: u16) {
        let stack = self.stack();
        if stack.len() == MAX_STACK {
            stack.remove(0);
        }
        stack.push(flags as u8 & FLAGS);
    }

    pub(crate) fn pop(&mut self, count: usize) {
        let stack = self.stack();
        stack.truncate(stack.len().saturating_sub(count));
    }

    /// Changes the flags in force: `how` is 1 to replace, 2 to add, 3 to remove.
    pub(crate) fn set(&mut self, flags: u16, how: u16) {
        let flags = flags as u8 & FLAGS;
        let now = self.flags();
        let next = match how {
            2 => now | flags,
            3 => now & !flags,
            _ => flags,
        };
        match self.stack().last_mut() {
            Some(last) => *last = next,
            None => self.stack().push(next),
        }
    }

    pub(crate) fn reset(&mut self) {
        self.stack().clear();
        self.modify_other_keys = 0;
    }
}
