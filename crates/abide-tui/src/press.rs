//! What a key does to a page: moves the operator in it, or answers it.

use abide_term::input::keys::Key;

use crate::draw::list_rows;
use crate::page::{Page, PageView};

/// Columns and rows of the screen that the operator looks at.
type ScreenSize = (usize, usize);

/// Applies `key`. An answer ends the question.
///
/// A digit only marks a row, so that `3` and Enter answer the same on every surface, and no single key typed a moment
/// too late for somebody else decides anything that has not been given a letter of its own.
pub fn press<A: Clone>(page: &Page<A>, view: &mut PageView, key: Key, size: ScreenSize) -> Option<A> {
    match key {
        Key::Ctrl('c' | 'd') => return Some(page.lost.0.clone()),
        Key::Escape if view.typing || !view.filter.is_empty() => clear(page, view),
        Key::Escape => return Some(page.esc.0.clone()),
        Key::Enter if view.typing => view.typing = false,
        Key::Enter => {
            return match &page.enter {
                Some((answer, _)) => Some(answer.clone()),
                None => marked(page, view),
            };
        }
        Key::Backspace if view.typing => {
            view.typing = view.filter.pop().is_some();
            filtered(page, view);
        }
        Key::Char(ch) if view.typing => {
            view.filter.push(ch);
            filtered(page, view);
        }
        Key::Char(ch) => return character(page, view, ch, size),
        Key::Up | Key::Ctrl('p') => go(page, view, -1, size),
        Key::Down | Key::Ctrl('n') => go(page, view, 1, size),
        Key::Home => go(page, view, isize::MIN, size),
        Key::End => go(page, view, isize::MAX, size),
        Key::PageUp => turn(page, view, -1, size),
        Key::PageDown => turn(page, view, 1, size),
        Key::Backspace | Key::Left | Key::Right | Key::Ctrl(_) | Key::Nothing | Key::Other => {}
    }
    None
}

fn character<A: Clone>(page: &Page<A>, view: &mut PageView, ch: char, size: ScreenSize) -> Option<A> {
    if let Some(choice) = page.choices.iter().find(|choice| choice.key == Some(ch)) {
        return Some(choice.answer.clone());
    }
    match ch {
        'j' => go(page, view, 1, size),
        'k' => go(page, view, -1, size),
        '/' if page.filters() => view.typing = true,
        ' ' if page.choices.is_empty() => turn(page, view, 1, size),
        ' ' if page.enter.is_some() => return marked(page, view),
        '1'..='9' => {
            let at = ch as usize - '1' as usize;
            view.marked = page.shown(view).get(at).copied().unwrap_or(view.marked);
        }
        _ => {}
    }
    None
}

fn marked<A: Clone>(page: &Page<A>, view: &PageView) -> Option<A> {
    page.shown(view).contains(&view.marked).then(|| page.choices[view.marked].answer.clone())
}

/// Moves the mark; the list, where nothing can be marked.
fn go<A>(page: &Page<A>, view: &mut PageView, by: isize, size: ScreenSize) {
    if page.choices.is_empty() {
        return scroll(page, view, by, size);
    }
    let shown = page.shown(view);
    let at = shown.iter().position(|at| *at == view.marked).unwrap_or(0);
    let to = at.saturating_add_signed(by).min(shown.len().saturating_sub(1));
    view.marked = shown.get(to).copied().unwrap_or(view.marked);
}

/// Moves a screenful: the list, where there is one.
fn turn<A>(page: &Page<A>, view: &mut PageView, by: isize, size: ScreenSize) {
    if page.list.is_empty() {
        return go(page, view, by * 10, size);
    }
    // One row stays, for the eye to go on from.
    let rows = list_rows(page, view, size).saturating_sub(1).max(1);
    scroll(page, view, by * rows.cast_signed(), size);
}

fn scroll<A>(page: &Page<A>, view: &mut PageView, by: isize, size: ScreenSize) {
    let last = page.items(view).len().saturating_sub(list_rows(page, view, size));
    view.top = view.top.min(last).saturating_add_signed(by).min(last);
}

fn clear<A>(page: &Page<A>, view: &mut PageView) {
    view.typing = false;
    view.filter.clear();
    view.top = 0;
    if !page.shown(view).contains(&view.marked) {
        view.marked = page.marked;
    }
}

/// The filter has changed: what it found first is marked.
fn filtered<A>(page: &Page<A>, view: &mut PageView) {
    view.top = 0;
    if page.list.is_empty() {
        let shown = page.shown(view);
        let found = shown.iter().find(|at| page.choices[**at].hides && !view.filter.is_empty());
        view.marked = found.copied().unwrap_or(page.marked);
    }
}
