//! The status bar: the instance, its tabs, and on the right a hint; or a message or a prompt in place of all that.

use abide_term::Style;
use unicode_width::UnicodeWidthStr;

use crate::screen::chrome::Chrome;
use crate::screen::compose::push_text;
use crate::screen::glyph::Glyph;

/// One tab as the bar shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TabLabel {
    pub number: usize,
    pub name: String,
    pub current: bool,
    pub mark: Mark,
}

/// What a tab wants to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Mark {
    #[default]
    Quiet,
    /// It has output that no client has shown.
    Output,
    /// It rang the bell, or waits for a decision.
    Bell,
    /// One pane hides the others.
    Zoomed,
}

/// What the bar says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bar {
    Tabs {
        instance: String,
        tabs: Vec<TabLabel>,
        right: String,
    },
    /// Something for the operator to read.
    Message(String),
}

/// What a name may have even where it leaves little room.
const MIN_NAME: usize = 12;

impl Bar {
    /// The bar, exactly `cols` wide.
    pub fn glyphs(&self, cols: u16, chrome: &Chrome) -> Vec<Glyph> {
        let cols = usize::from(cols);
        let mut glyphs = Vec::with_capacity(cols);
        let (instance, tabs, right) = match self {
            Self::Tabs { instance, tabs, right } => (instance, tabs, right),
            Self::Message(text) => {
                push_text(text, chrome.message, cols, &mut glyphs);
                glyphs.resize(cols, Glyph::new(' ', chrome.message));
                return glyphs;
            }
        };
        // The tabs say more than a long name.
        push_text(&format!(" {instance} "), chrome.name, (cols / 3).max(MIN_NAME).min(cols), &mut glyphs);
        let mut hint = Vec::new();
        push_text(&format!(" {right} "), chrome.ground, cols / 2, &mut hint);
        // All tabs say more than a hint.
        let all: usize = tabs.iter().map(|tab| label(tab, "+").width()).sum();
        if glyphs.len() + all + hint.len() > cols {
            hint.clear();
        }
        let room = cols.saturating_sub(hint.len());
        let (hidden, shown) = visible(tabs, room.saturating_sub(glyphs.len()));
        if !hidden.is_empty() {
            push_text("<", mark_style(hidden, chrome), room, &mut glyphs);
        }
        let mut after = shown.iter();
        let fits = |tab: &TabLabel, at: usize, last: bool| {
            tab.current || at + label(tab, "+").width() + usize::from(!last) <= room
        };
        while let Some(tab) = after.as_slice().first() {
            if !fits(tab, glyphs.len(), after.len() == 1) {
                break;
            }
            after.next();
            let (style, mark) = match tab.mark {
                Mark::Bell => (chrome.alert, "!"),
                _ if tab.current && tab.mark == Mark::Zoomed => (chrome.current, "Z"),
                _ if tab.current => (chrome.current, ""),
                Mark::Output => (chrome.ground, "+"),
                Mark::Quiet | Mark::Zoomed => (chrome.ground, ""),
            };
            push_text(&label(tab, mark), style, room, &mut glyphs);
        }
        if !after.as_slice().is_empty() {
            push_text(">", mark_style(after.as_slice(), chrome), room, &mut glyphs);
        }
        if glyphs.len() <= room {
            glyphs.resize(room, Glyph::new(' ', chrome.ground));
            glyphs.extend(hint);
        }
        glyphs.resize(cols, Glyph::new(' ', chrome.ground));
        glyphs
    }
}

/// The longest name of a tab in the bar: one must not hide all others.
const MAX_NAME: usize = 24;

fn label(tab: &TabLabel, mark: &str) -> String {
    let mut name = String::new();
    for ch in tab.name.chars() {
        if name.width() >= MAX_NAME {
            name.push('…');
            break;
        }
        name.push(ch);
    }
    format!(" {}:{name}{mark} ", tab.number)
}

/// How the mark looks that stands for tabs without room.
fn mark_style(hidden: &[TabLabel], chrome: &Chrome) -> Style {
    if hidden.iter().any(|tab| tab.mark == Mark::Bell) { chrome.alert } else { chrome.ground }
}

/// The tabs before those that fit, and these with the rest; the current one always fits.
fn visible(tabs: &[TabLabel], room: usize) -> (&[TabLabel], &[TabLabel]) {
    let width = |tab: &TabLabel| label(tab, "+").width();
    let current = tabs.iter().position(|tab| tab.current).unwrap_or(0);
    let mut first = 0;
    // Two columns for the marks of what is hidden.
    while first < current && tabs[first..=current].iter().map(width).sum::<usize>() + 2 > room {
        first += 1;
    }
    tabs.split_at(first.min(tabs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::display::TerminalCharset;
    use crate::screen::glyph::Text;

    fn text(bar: &Bar, cols: u16) -> String {
        let glyphs = bar.glyphs(cols, &Chrome::new(true, TerminalCharset::Unicode));
        assert_eq!(glyphs.len(), usize::from(cols));
        let chars = glyphs.iter().filter_map(|glyph| match glyph.text {
            Text::Char(ch) => Some(ch),
            _ => None,
        });
        chars.collect()
    }

    fn tabs(count: usize, current: usize) -> Bar {
        let tab = |number| TabLabel {
            number,
            name: format!("name{number}"),
            current: number == current,
            mark: if number == 1 { Mark::Output } else { Mark::Quiet },
        };
        Bar::Tabs { instance: "ab-1".into(), tabs: (0..count).map(tab).collect(), right: "hint".into() }
    }

    #[test]
    fn everything_is_there_when_there_is_room() {
        assert_eq!(text(&tabs(2, 0), 40), " ab-1  0:name0  1:name1+           hint ");
    }

    #[test]
    fn the_current_tab_is_visible_however_many_there_are_and_however_narrow_it_is() {
        for cols in [40, 80] {
            assert!(text(&tabs(30, 25), cols).contains("25:name25"), "{cols}");
        }
        for cols in 1..40 {
            text(&tabs(30, 25), cols);
        }
    }

    #[test]
    fn tabs_without_room_leave_a_mark_and_a_long_name_leaves_room_for_others() {
        let shown = text(&tabs(30, 15), 60);
        assert!(shown.contains('<') && shown.trim_end().ends_with('>'), "{shown}");
        let shown = text(&tabs(4, 0), 40);
        assert!(!shown.contains("hint") && shown.contains("0:name0"), "{shown}");
        let tab = |number, name: String| TabLabel { number, name, current: number == 0, mark: Mark::Quiet };
        let long = vec![tab(0, "n".repeat(200)), tab(1, "other".into())];
        let bar = Bar::Tabs { instance: "ab-1".into(), tabs: long, right: String::new() };
        assert!(text(&bar, 80).contains("1:other"));
    }

    #[test]
    fn neither_a_long_name_of_the_instance_nor_wide_names_hide_the_current_tab() {
        let tab =
            |number, current| TabLabel { number, name: "漢字漢字".into(), current, mark: Mark::Quiet };
        let tabs = vec![tab(0, false), tab(1, false), tab(2, true)];
        let bar = Bar::Tabs { instance: "n".repeat(62), tabs, right: String::new() };
        assert!(text(&bar, 60).contains("2:漢字漢字"), "{}", text(&bar, 60));
    }

    #[test]
    fn control_characters_in_names_do_not_reach_the_terminal() {
        let bar = Bar::Message("a\x1b[31mb\u{9b}c".into());
        assert_eq!(text(&bar, 8), "a[31mbc ");
    }
}
