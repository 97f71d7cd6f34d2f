//! Mouse reports: read as the client's terminal sends them, written as the session asked for them.

use abide_term::{Modes, MouseEncoding, MouseMode};

/// What happened, in cells from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MouseEvent {
    /// The button with its modifiers, as the protocol numbers them.
    button: u16,
    pub x: u16,
    pub y: u16,
    release: bool,
}

const MOTION: u16 = 32;
const WHEEL: u16 = 64;
const NO_BUTTON: u16 = 3;
/// Shift, Alt and Control.
const MODIFIERS: u16 = 4 | 8 | 16;

impl MouseEvent {
    /// Reads a mouse report; `None` if the sequence is something else.
    pub fn read(sequence: &[u8]) -> Option<Self> {
        match sequence {
            [0x1b, b'[', b'<', params @ .., last @ (b'M' | b'm')] => {
                let text = std::str::from_utf8(params).ok()?;
                let mut numbers = text.split(';').map(|number| number.parse::<u16>().ok());
                let (button, x, y) = (numbers.next()??, numbers.next()??, numbers.next()??);
                Some(Self { button, x: x.checked_sub(1)?, y: y.checked_sub(1)?, release: *last == b'm' })
            }
            [0x1b, b'[', b'M', button, x, y] => {
                let button = u16::from(button.checked_sub(32)?);
                let (x, y) = (x.checked_sub(33)?, y.checked_sub(33)?);
                let release = button & 3 == NO_BUTTON && button & (MOTION | WHEEL) == 0;
                Some(Self { button, x: x.into(), y: y.into(), release })
            }
            _ => None,
        }
    }

    /// The direction of the wheel, if it was turned: -1 is up.
    pub fn wheel(&self) -> Option<i32> {
        match self.button & !MODIFIERS {
            WHEEL => Some(-1),
            65 => Some(1),
            _ => None,
        }
    }

    /// Whether a button went down.
    pub fn is_press(&self) -> bool {
        !self.release && self.button & (MOTION | WHEEL) == 0
    }

    /// The same event at another place.
    pub fn at(self, x: u16, y: u16) -> Self {
        Self { x, y, ..self }
    }

    /// The report that a program in these modes gets; `None` if it does not want this event.
    pub fn write(&self, modes: &Modes, cell_pixels: (u16, u16)) -> Option<Vec<u8>> {
        let moved = self.button & MOTION != 0;
        let dragged = moved && self.button & 3 != NO_BUTTON;
        let wanted = match modes.mouse {
            MouseMode::None => false,
            MouseMode::X10 => self.is_press(),
            MouseMode::Normal => !moved,
            MouseMode::Button => !moved || dragged,
            MouseMode::Any => true,
        };
        if !wanted {
            return None;
        }
        let button = if modes.mouse == MouseMode::X10 { self.button & !MODIFIERS } else { self.button };
        let (x, y) = (self.x + 1, self.y + 1);
        // Without numbers of their own, releases do not say of which button.
        let old_button = 32 + if self.release { button & MODIFIERS | NO_BUTTON } else { button };
        let last = if self.release { 'm' } else { 'M' };
        match modes.mouse_encoding {
            MouseEncoding::Sgr => Some(format!("\x1b[<{button};{x};{y}{last}").into_bytes()),
            MouseEncoding::SgrPixels => {
                // The middle of the cell: nothing finer is known.
                let at = |cell: u16, side: u16| u32::from(cell) * u32::from(side) + u32::from(side / 2) + 1;
                let (x, y) = (at(self.x, cell_pixels.0), at(self.y, cell_pixels.1));
                Some(format!("\x1b[<{button};{x};{y}{last}").into_bytes())
            }
            MouseEncoding::Urxvt => Some(format!("\x1b[{old_button};{x};{y}M").into_bytes()),
            MouseEncoding::X10 => old_report(old_button, x, y, 223, |value, out| out.push(value as u8)),
            MouseEncoding::Utf8 => old_report(old_button, x, y, 2015, |value, out| {
                let ch = char::from_u32(value.into()).unwrap_or(' ');
                out.extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes());
            }),
        }
    }
}

/// The reports whose three values are characters; beyond the largest such value there are none.
fn old_report(
    button: u16,
    x: u16,
    y: u16,
    largest: u16,
    push: impl Fn(u16, &mut Vec<u8>),
) -> Option<Vec<u8>> {
    if x > largest || y > largest {
        return None;
    }
    let mut out = b"\x1b[M".to_vec();
    for value in [button, x + 32, y + 32] {
        push(value, &mut out);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(mouse: MouseMode, mouse_encoding: MouseEncoding) -> Modes {
        Modes { mouse, mouse_encoding, ..Modes::default() }
    }

    fn written(sequence: &[u8], mouse: MouseMode, encoding: MouseEncoding) -> Option<String> {
        let event = MouseEvent::read(sequence).unwrap();
        event.write(&modes(mouse, encoding), (8, 16)).map(|bytes| bytes.escape_ascii().to_string())
    }

    #[test]
    fn a_report_is_written_in_the_encoding_that_was_asked_for() {
        let press = b"\x1b[<0;10;5M";
        let release = b"\x1b[<0;10;5m";
        let any = MouseMode::Any;
        assert_eq!(written(press, any, MouseEncoding::Sgr).unwrap(), "\\x1b[<0;10;5M");
        assert_eq!(written(release, any, MouseEncoding::Sgr).unwrap(), "\\x1b[<0;10;5m");
        assert_eq!(written(press, any, MouseEncoding::X10).unwrap(), "\\x1b[M *%");
        assert_eq!(written(release, any, MouseEncoding::X10).unwrap(), "\\x1b[M#*%");
        assert_eq!(written(press, any, MouseEncoding::Urxvt).unwrap(), "\\x1b[32;10;5M");
        assert_eq!(written(press, any, MouseEncoding::SgrPixels).unwrap(), "\\x1b[<0;77;73M");
        assert_eq!(written(b"\x1b[<0;300;5M", any, MouseEncoding::X10), None);
        assert!(written(b"\x1b[<0;300;5M", any, MouseEncoding::Utf8).is_some());
    }

    #[test]
    fn a_program_gets_only_the_events_that_it_wants() {
        let sgr = MouseEncoding::Sgr;
        let (motion, drag, release) = (b"\x1b[<35;1;1M", b"\x1b[<32;1;1M", b"\x1b[<0;1;1m");
        for (mode, wants) in [
            (MouseMode::None, [false, false, false]),
            (MouseMode::X10, [false, false, false]),
            (MouseMode::Normal, [false, false, true]),
            (MouseMode::Button, [false, true, true]),
            (MouseMode::Any, [true, true, true]),
        ] {
            let got = [&motion[..], drag, release].map(|event| written(event, mode, sgr).is_some());
            assert_eq!(got, wants, "{mode:?}");
        }
    }

    #[test]
    fn old_reports_of_the_outer_terminal_are_understood_too() {
        let event = MouseEvent::read(b"\x1b[M`*%").unwrap();
        assert_eq!((event.wheel(), event.x, event.y), (Some(-1), 9, 4));
        assert_eq!(MouseEvent::read(b"\x1b[A"), None);
    }
}
