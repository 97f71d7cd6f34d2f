//! Making foreign text safe to print.

use std::borrow::Cow;
use std::fmt;

/// Reads a value from the text that stands for it, where that lies: a list of thousands reads many.
pub fn parsed<'de, T, E, D>(deserializer: D, parse: fn(&str) -> Result<T, E>) -> Result<T, D::Error>
where
    E: fmt::Display,
    D: serde::Deserializer<'de>,
{
    struct Parser<T, E>(fn(&str) -> Result<T, E>);

    impl<T, E: fmt::Display> serde::de::Visitor<'_> for Parser<T, E> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<X: serde::de::Error>(self, text: &str) -> Result<T, X> {
            (self.0)(text).map_err(X::custom)
        }
    }

    deserializer.deserialize_str(Parser(parse))
}

/// `text` without anything that could act on a terminal or reorder what is read.
///
/// Titles, branch names, paths and agent output reach our lists; a control byte among them would run on the
/// operator's terminal. Each such character is shown as `·` rather than dropped, so that two names do not look alike.
pub fn sanitised(text: &str) -> Cow<'_, str> {
    // Most text is plain ASCII, and seen to be harmless much sooner than character by character.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        Cow::Borrowed(text)
    } else if text.chars().any(is_unsafe) {
        Cow::Owned(text.chars().map(|c| if is_unsafe(c) { '·' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Like [`sanitised`], but line breaks and tabs stay: for texts that we lay out over several lines ourselves.
pub fn sanitised_lines(text: &str) -> Cow<'_, str> {
    let keep = |c: char| matches!(c, '\n' | '\t') || !is_unsafe(c);
    if text.chars().all(keep) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().map(|c| if keep(c) { c } else { '·' }).collect())
    }
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        // Bidirectional controls, line and paragraph separators, and the invisible tag characters.
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

/// Shows a value sanitised: `{}` of `Safe(x)` may be printed whatever `x` holds.
pub struct Safe<T>(pub T);

impl<T: fmt::Display> fmt::Display for Safe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&sanitised(&self.0.to_string()))
    }
}

/// The name in `known` that `word` was probably meant to be, for a "did you mean".
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|name| (distance(word, name), name))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, name)| name)
}

/// Edits (insert, delete, replace, swap of neighbours) between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<_>>(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        let [before, last, row] = &mut rows;
        row[0] = i;
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

/// Has a type written to files and messages as it shows itself, and read as it is parsed.
#[macro_export]
macro_rules! serde_as_text {
    ($name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::text::parsed(deserializer, str::parse)
            }
        }
    };
}
pub use serde_as_text;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_escape_sequence_is_shown_and_does_nothing() {
        assert_eq!(sanitised("a\x1b]0;evil\x07b\u{9b}c"), "a·]0;evil·b·c");
        assert_eq!(sanitised("right\u{202e}tfel"), "right·tfel");
        assert_eq!(sanitised("Ünïcode 🚀 fine"), "Ünïcode 🚀 fine");
        assert_eq!(sanitised_lines("one\n\ttwo\r\x1b"), "one\n\ttwo··");
    }

    #[test]
    fn a_slip_of_the_finger_finds_the_name_that_was_meant() {
        let known = ["ask", "keep", "clean"];
        assert_eq!(nearest("kep", known), Some("keep"));
        assert_eq!(nearest("claen", known), Some("clean"));
        assert_eq!(nearest("banana", known), None);
    }

    proptest! {
        #[test]
        fn nothing_that_acts_on_a_terminal_survives(text in ".*") {
            prop_assert!(!sanitised(&text).chars().any(is_unsafe));
            prop_assert_eq!(sanitised(&text).chars().count(), text.chars().count());
        }

        #[test]
        fn a_word_is_nearest_to_itself(word in "[a-z]{1,12}", other in "[a-z]{1,12}") {
            prop_assert_eq!(nearest(&word, [other.as_str(), word.as_str()]), Some(word.as_str()));
        }
    }
}
