//! Setting, resetting, querying, saving and restoring modes.

use crate::modes::{self, MouseEncoding, MouseMode, TermMode};
use crate::vt::{Margins, Vt};

/// A program cannot save more modes than this: there are fewer.
pub(crate) const MAX_SAVED: usize = 96;

/// The answers of DECRQM.
const UNKNOWN: u8 = 0;
const SET: u8 = 1;
const RESET: u8 = 2;
const NEVER_SET: u8 = 4;

impl Vt {
    /// DECSET and DECRST.
    pub(crate) fn set_private_mode(&mut self, number: u16, on: bool) {
        if let Some(mouse) = MouseMode::from_number(number) {
            self.mouse = if on { mouse } else { MouseMode::None };
            return;
        }
        if let Some(encoding) = MouseEncoding::from_number(number) {
            if on {
                self.mouse_encoding = encoding;
            } else if self.mouse_encoding == encoding {
                self.mouse_encoding = MouseEncoding::X10;
            }
            return;
        }
        match number {
            47 => self.show_alternate(on),
            1047 => self.alternate_1047(on),
            1048 if on => self.save_cursor(),
            1048 => self.restore_cursor(),
            1049 => self.alternate_1049(on),
            _ => match modes::private(number) {
                Some(mode) => self.set_mode(mode, on),
                None => self.modes.remember(number, on),
            },
        }
    }

    /// SM and RM.
    pub(crate) fn set_ansi_mode(&mut self, number: u16, on: bool) {
        if let Some(mode) = modes::ansi(number) {
            self.modes.set(mode, on);
        }
    }

    fn set_mode(&mut self, mode: TermMode, on: bool) {
        match mode {
            TermMode::Columns132 if !self.modes.has(TermMode::AllowColumns) => return,
            TermMode::LeftRightMargins if self.level < 4 => return,
            TermMode::KeepOnColumns if self.level < 5 => return,
            _ => self.modes.set(mode, on),
        }
        match mode {
            TermMode::Columns132 => self.columns_changed(),
            TermMode::Origin => self.move_to(0, 0),
            TermMode::Autowrap if !on => self.caret.pending = false,
            TermMode::LeftRightMargins if !on => {
                self.margins.left = 0;
                self.margins.right = self.cols() - 1;
            }
            TermMode::InBandResize if on => self.report_size_in_band(),
            _ => {}
        }
    }

    /// DECCOLM: the width is the operator's to choose, but the side effects are what programs use it for.
    fn columns_changed(&mut self) {
        self.margins = Margins::whole(self.size);
        self.modes.set(TermMode::LeftRightMargins, false);
        if !self.modes.has(TermMode::KeepOnColumns) {
            self.clear_screen();
        }
        self.caret.x = 0;
        self.caret.y = 0;
        self.caret.pending = false;
    }

    fn alternate_1047(&mut self, on: bool) {
        if !on && self.alternate {
            self.clear_screen();
        }
        self.show_alternate(on);
    }

    fn alternate_1049(&mut self, on: bool) {
        if on && !self.alternate {
            self.save_cursor();
            self.show_alternate(true);
            self.clear_screen();
        } else if !on {
            let was_alternate = self.alternate;
            self.alternate_1047(false);
            if was_alternate {
                self.restore_cursor();
            }
        }
    }

    /// DECRQM for a private mode: 0 unknown, 1 set, 2 reset, 4 permanently reset.
    pub(crate) fn private_mode_state(&self, number: u16) -> u8 {
        match number {
            47 | 1047 | 1049 => state(self.alternate),
            1048 => state(self.saved[usize::from(self.alternate)].is_some()),
            60 => NEVER_SET,
            _ => {
                if let Some(mouse) = MouseMode::from_number(number) {
                    return state(self.mouse == mouse);
                }
                if let Some(encoding) = MouseEncoding::from_number(number) {
                    return state(self.mouse_encoding == encoding);
                }
                let known = modes::private(number).map(|mode| self.modes.has(mode));
                known.or(self.modes.remembered(number)).map_or(UNKNOWN, state)
            }
        }
    }

    /// DECRQM for an ANSI mode.
    pub(crate) fn ansi_mode_state(&self, number: u16) -> u8 {
        match modes::ansi(number) {
            Some(mode) => state(self.modes.has(mode)),
            None if modes::is_never_set(number) => NEVER_SET,
            None => UNKNOWN,
        }
    }

    /// XTSAVE.
    pub(crate) fn save_mode(&mut self, number: u16) {
        let on = match self.private_mode_state(number) {
            SET => true,
            RESET => false,
            _ => return,
        };
        self.saved_modes.retain(|(n, _)| *n != number);
        if self.saved_modes.len() < MAX_SAVED {
            self.saved_modes.push((number, on));
        }
    }

    /// XTRESTORE.
    pub(crate) fn restore_mode(&mut self, number: u16) {
        if let Some(&(_, on)) = self.saved_modes.iter().find(|(n, _)| *n == number) {
            self.set_private_mode(number, on);
        }
    }
}

fn state(on: bool) -> u8 {
    if on { SET } else { RESET }
}
