//! Setting, resetting and querying modes.

use crate::modes::{self, MouseEncoding, MouseMode, TermMode};
use crate::vt::{Margins, Vt};

/// The answers of DECRQM.
const UNKNOWN: u8 = 0;
const SET: u8 = 1;
const RESET: u8 = 2;

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
            3 => self.width_changed(),
            47 => self.show_alternate(on),
            1047 => self.alternate_1047(on),
            1048 if on => self.save_cursor(),
            1048 => self.restore_cursor(),
            1049 => self.alternate_1049(on),
            _ => {
                if let Some(mode) = modes::private(number) {
                    self.set_mode(mode, on);
                }
            }
        }
    }

    /// SM and RM.
    pub(crate) fn set_ansi_mode(&mut self, number: u16, on: bool) {
        if let Some(mode) = modes::ansi(number) {
            self.modes.set(mode, on);
        }
    }

    fn set_mode(&mut self, mode: TermMode, on: bool) {
        self.modes.set(mode, on);
        match mode {
            TermMode::Origin => self.move_to(0, 0),
            TermMode::Autowrap if !on => self.caret.pending = false,
            TermMode::InBandResize if on => self.report_size_in_band(),
            _ => {}
        }
    }

    /// DECCOLM: the width is the operator's to choose, but programs use it for what it does besides.
    fn width_changed(&mut self) {
        self.margins = Margins::whole(self.size);
        self.clear_screen();
        self.move_to(0, 0);
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

    /// DECRQM for a private mode: 0 unknown, 1 set, 2 reset.
    pub(crate) fn private_mode_state(&self, number: u16) -> u8 {
        match number {
            47 | 1047 | 1049 => state(self.alternate),
            1048 => state(self.saved[usize::from(self.alternate)].is_some()),
            _ => {
                if let Some(mouse) = MouseMode::from_number(number) {
                    return state(self.mouse == mouse);
                }
                if let Some(encoding) = MouseEncoding::from_number(number) {
                    return state(self.mouse_encoding == encoding);
                }
                modes::private(number).map_or(UNKNOWN, |mode| state(self.modes.has(mode)))
            }
        }
    }

    /// DECRQM for an ANSI mode.
    pub(crate) fn ansi_mode_state(&self, number: u16) -> u8 {
        modes::ansi(number).map_or(UNKNOWN, |mode| state(self.modes.has(mode)))
    }
}

fn state(on: bool) -> u8 {
    if on { SET } else { RESET }
}
