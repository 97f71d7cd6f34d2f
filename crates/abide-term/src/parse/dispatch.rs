//! Which function each control and sequence calls. Nothing is done here: this is the table.

use crate::modes::TermMode;
use crate::outbox::TermEvent;
use crate::parse::charset::Charset;
use crate::parse::parser::Sequence;
use crate::parse::sgr;
use crate::screen::tabs::Tabs;
use crate::vt::Vt;

impl Vt {
    /// A C0 control.
    #[inline]
    pub(crate) fn control(&mut self, byte: u8) {
        match byte {
            b'\n' | 0x0b | 0x0c => self.line_feed(),
            b'\r' => self.carriage_return(),
            0x07 => self.outbox.event(TermEvent::Bell),
            0x08 => self.left(1),
            b'\t' => self.tab(1),
            0x0e => self.charsets.active = 1,
            0x0f => self.charsets.active = 0,
            _ => {}
        }
    }

    /// `ESC` with at most one intermediate (0 for none) and a final byte.
    pub(crate) fn escape(&mut self, intermediate: u8, last: u8) {
        match (intermediate, last) {
            (0, b'7') => self.save_cursor(),
            (0, b'8') => self.restore_cursor(),
            (0, b'=') => self.modes.set(TermMode::AppKeypad, true),
            (0, b'>') => self.modes.set(TermMode::AppKeypad, false),
            (0, b'D') => {
                self.index();
                self.caret.pending = false;
            }
            (0, b'E') => {
                self.index();
                self.carriage_return();
            }
            (0, b'H') => self.tabs.set(self.caret.x, true),
            (0, b'M') => {
                self.reverse_index();
                self.caret.pending = false;
            }
            (0, b'Z') => self.device_attributes(0),
            (0, b'c') => self.hard_reset(),
            (b'#', b'8') => self.alignment_pattern(),
            (b'(', set) => self.charsets.sets[0] = Charset::from_final(set),
            (b')', set) => self.charsets.sets[1] = Charset::from_final(set),
            _ => {}
        }
    }

    /// `CSI`.
    #[inline]
    pub(crate) fn csi(&mut self, sequence: &Sequence) {
        match (sequence.marker, sequence.intermediate) {
            (0, 0) => self.csi_plain(sequence),
            (b'?', 0) => self.csi_private(sequence),
            (marker, 0) => self.csi_extension(marker, sequence),
            (marker, intermediate) => self.csi_intermediate(marker, intermediate, sequence),
        }
    }

    /// `DCS`, complete.
    pub(crate) fn dcs(&mut self, header: &Sequence, data: &[u8]) {
        match (header.intermediate, header.last) {
            (b'$', b'q') => self.setting_report(data),
            (b'+', b'q') => self.capability_report(data),
            _ => {}
        }
    }

    /// `CSI` and a final byte, without marker or intermediate.
    fn csi_plain(&mut self, sequence: &Sequence) {
        let params = &sequence.params;
        match sequence.last {
            b'@' => self.insert_cells(params.count(0)),
            b'A' => self.up(params.count(0)),
            b'B' => self.down(params.count(0)),
            b'C' | b'a' => self.right(params.count(0)),
            b'D' => self.left(params.count(0)),
            b'E' => {
                self.down(params.count(0));
                self.carriage_return();
            }
            b'F' => {
                self.up(params.count(0));
                self.carriage_return();
            }
            b'G' | b'`' => self.move_to_column(params.count(0) - 1),
            b'H' | b'f' => self.move_to(params.count(1) - 1, params.count(0) - 1),
            b'I' => self.tab(params.count(0)),
            b'J' => self.erase_display(params.get(0)),
            b'K' => self.erase_line(params.get(0)),
            b'L' => self.insert_lines(params.count(0)),
            b'M' => self.delete_lines(params.count(0)),
            b'P' => self.delete_cells(params.count(0)),
            b'S' => self.scroll_up(params.count(0)),
            // With more parameters it is a mouse highlight request, which no terminal supports.
            b'T' if params.values().len() < 2 => self.insert_rows(self.margins.top, params.count(0)),
            b'^' => self.insert_rows(self.margins.top, params.count(0)),
            b'X' => self.erase_cells(params.count(0)),
            b'Z' => self.back_tab(params.count(0)),
            b'b' => self.repeat(params.count(0)),
            b'c' if params.get(0) == 0 => self.device_attributes(0),
            b'd' => self.move_to_row(params.count(0) - 1),
            b'e' => self.skip_rows(params.count(0)),
            b'g' => self.clear_tabs(params.get(0)),
            b'h' => params.values().iter().for_each(|n| self.set_ansi_mode(*n, true)),
            b'l' => params.values().iter().for_each(|n| self.set_ansi_mode(*n, false)),
            b'm' => sgr::apply(&mut self.pen, params),
            b'n' => self.status_report(params),
            b'r' => self.set_rows_margins(params.get(0), params.get(1)),
            b's' => self.save_cursor(),
            b't' => self.window_operation(params),
            b'u' => self.restore_cursor(),
            _ => {}
        }
    }

    /// `CSI ?`.
    fn csi_private(&mut self, sequence: &Sequence) {
        let params = &sequence.params;
        match sequence.last {
            // Nothing can be protected from erasing, so the selective functions are the same as the others.
            b'J' => self.erase_display(params.get(0)),
            b'K' => self.erase_line(params.get(0)),
            b'W' if params.get(0) == 5 => self.tabs = Tabs::default(),
            b'h' => params.values().iter().for_each(|n| self.set_private_mode(*n, true)),
            b'l' => params.values().iter().for_each(|n| self.set_private_mode(*n, false)),
            b'm' if params.get(0) == 4 => self.modify_other_keys_report(),
            b'n' => self.private_status_report(params),
            b'u' => self.keyboard_report(),
            _ => {}
        }
    }

    /// `CSI >`, `CSI =`, `CSI <`.
    fn csi_extension(&mut self, marker: u8, sequence: &Sequence) {
        let params = &sequence.params;
        match (marker, sequence.last) {
            (b'>' | b'=', b'c') if params.get(0) == 0 => self.device_attributes(marker),
            (b'>', b'm') if params.get(0) == 4 => {
                self.keyboard.modify_other_keys = params.get(1).min(2) as u8;
            }
            (b'>', b'm') if params.values().is_empty() => self.keyboard.modify_other_keys = 0,
            (b'>', b'n') if params.get(0) == 4 => self.keyboard.modify_other_keys = 0,
            (b'>', b'q') if params.get(0) == 0 => self.version_report(),
            (b'>', b'u') => self.keyboard.push(params.get(0)),
            (b'<', b'u') => self.keyboard.pop(params.count(0)),
            (b'=', b'u') => self.keyboard.set(params.get(0), params.or(1, 1)),
            _ => {}
        }
    }

    /// `CSI` with an intermediate byte.
    fn csi_intermediate(&mut self, marker: u8, intermediate: u8, sequence: &Sequence) {
        let params = &sequence.params;
        match (marker, intermediate, sequence.last) {
            (0, b'!', b'p') => self.soft_reset(),
            (0, b' ', b'q') => self.cursor_style = params.get(0).min(6) as u8,
            (0, b'$', b'p') => self.mode_report(params.get(0), false),
            (b'?', b'$', b'p') => self.mode_report(params.get(0), true),
            (0, b'*', b'y') => self.checksum_report(params),
            _ => {}
        }
    }

    fn clear_tabs(&mut self, which: u16) {
        match which {
            0 => self.tabs.set(self.caret.x, false),
            3 => self.tabs = Tabs::none(),
            _ => {}
        }
    }
}
