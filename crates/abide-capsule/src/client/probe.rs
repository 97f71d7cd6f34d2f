//! Finding out what the terminal can do, by asking it and taking its answers out of what is typed.
//!
//! Nobody waits for the answers: over a slow line they come late, and from some terminals never. Until then everything
//! works, with less.

use std::time::{Duration, Instant};

/// Asks for the flags of the kitty keyboard protocol, which few answer, and for the device attributes, which all do.
pub(super) const QUESTION: &[u8] = b"\x1b[?u\x1b[c";

/// After this an answer is no answer any more, but something typed.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How long the rest of what may be an answer is waited for.
const REST_WITHIN: Duration = Duration::from_millis(50);
/// No answer is longer.
const MAX_ANSWER: usize = 64;

/// Takes the answers out of the input.
#[derive(Debug)]
pub(super) struct Probe {
    until: Option<Instant>,
    held: Vec<u8>,
    held_since: Option<Instant>,
    kitty: bool,
}

enum Found {
    Answer { length: usize, last: u8 },
    Incomplete,
    Nothing,
}

impl Probe {
    /// A probe whose question is about to be asked.
    pub fn new(now: Instant) -> Self {
        Self { until: Some(now + ANSWERS_WITHIN), held: Vec::new(), held_since: None, kitty: false }
    }

    /// Whether the terminal has said that it knows the kitty keyboard protocol.
    pub fn knows_kitty(&self) -> bool {
        self.kitty
    }

    /// Whether no answer is waited for any more, and nothing held back.
    pub fn is_over(&self) -> bool {
        self.until.is_none() && self.held.is_empty()
    }

    /// Takes in what the terminal sent, and gives what of it was typed.
    pub fn filter(&mut self, input: &[u8], now: Instant) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(input);
        let mut typed = Vec::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        while let Some(&first) = rest.first() {
            match if self.until.is_some() { find(rest) } else { Found::Nothing } {
                Found::Answer { length, last } => {
                    self.kitty |= last == b'u';
                    if last == b'c' {
                        // Everybody answers this one, and in the order of the questions.
                        self.until = None;
                    }
                    rest = &rest[length..];
                }
                Found::Incomplete => break,
                Found::Nothing => {
                    typed.push(first);
                    rest = &rest[1..];
                }
            }
        }
        self.held = rest.to_vec();
        self.held_since = (!self.held.is_empty()).then_some(now);
        typed
    }

    /// When something is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.held_since.map(|since| since + REST_WITHIN).into_iter().chain(self.until).min()
    }

    /// What is no answer after all, because the rest of it has not come.
    pub fn give_up(&mut self, now: Instant) -> Vec<u8> {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
        }
        let late = self.held_since.is_some_and(|since| since + REST_WITHIN <= now);
        if !late && self.until.is_some() {
            return Vec::new();
        }
        self.held_since = None;
        std::mem::take(&mut self.held)
    }
}

/// The answer at the beginning of `bytes`.
fn find(bytes: &[u8]) -> Found {
    const START: &[u8] = b"\x1b[?";
    if !bytes.starts_with(START) {
        return if START.starts_with(bytes) { Found::Incomplete } else { Found::Nothing };
    }
    match bytes.iter().skip(START.len()).position(|byte| !matches!(byte, b'0'..=b'9' | b';')) {
        None if bytes.len() < MAX_ANSWER => Found::Incomplete,
        None => Found::Nothing,
        Some(at) => match bytes[START.len() + at] {
            last @ (b'u' | b'c') => Found::Answer { length: START.len() + at + 1, last },
            _ => Found::Nothing,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(chunks: &[&[u8]]) -> (Vec<u8>, bool) {
        let now = Instant::now();
        let mut probe = Probe::new(now);
        let mut typed: Vec<u8> = chunks.iter().flat_map(|chunk| probe.filter(chunk, now)).collect();
        typed.extend(probe.give_up(now + ANSWERS_WITHIN));
        (typed, probe.knows_kitty())
    }

    #[test]
    fn answers_are_taken_out_and_keys_typed_meanwhile_are_kept() {
        let stream = b"ab\x1b[?0uc\x1b[A\x1b[?62;22cd\x1b[?1u";
        let (whole, kitty) = typed(&[stream]);
        assert!(kitty);
        assert_eq!(whole, b"abc\x1b[Ad\x1b[?1u", "after the last answer everything is typed");
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(typed(&bytes).0, whole);
    }

    #[test]
    fn a_terminal_that_answers_nothing_loses_no_key() {
        assert_eq!(typed(&[b"\x1b", b"[", b"?", b"25"]), (b"\x1b[?25".to_vec(), false));
        assert_eq!(typed(&[b"\x1b[?25h"]), (b"\x1b[?25h".to_vec(), false));
    }

    #[test]
    fn a_lone_escape_is_not_kept_for_long() {
        let now = Instant::now();
        let mut probe = Probe::new(now);
        assert_eq!(probe.filter(b"\x1b", now), b"");
        assert_eq!(probe.deadline(), Some(now + REST_WITHIN));
        assert_eq!(probe.give_up(now + REST_WITHIN), b"\x1b");
    }
}
