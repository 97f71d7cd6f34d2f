//! What a key does to a page: moves the operator in it, or answers it.

use crate::draw::list_rows;
use crate::keys::DialogKey;
use crate::page::{Page, PageView};

/// Columns and rows of the screen that the operator looks at.
type ScreenSize = (usize, usize);

/// Applies `key`. An answer ends the question.
///
/// A digit only marks a row, so that `3` and Enter answer the same on every surface, and no single key typed a moment
/// too late for somebody else decides anything that has not been given a letter of its own.
pub fn press<A: Clone>(page: &Page<A>, view: &mut PageView, key: DialogKey, size: ScreenSize) -> Option<A> {
    match key {
        DialogKey::Quit => return Some(page.lost.0.clone()),
        DialogKey::Esc if view.typing || !view.filter.is_empty() => clear(page, view),
        DialogKey::Esc => return Some(page.esc.0.clone()),
        DialogKey::Enter if view.typing => view.typing = false,
        DialogKey::Enter => {
            return match &page.enter {
                Some((answer, _)) => Some(answer.clone()),
                None => marked(page, view),
            };
        }
        DialogKey::Backspace if view.typing => {
            view.typing = view.filter.pop().is_some();
            filtered(page, view);
        }
        DialogKey::Char(ch) if view.typing => {
            view.filter.push(ch);
            filtered(page, view);
        }
        DialogKey::Char(ch) => return character(page, view, ch, size),
        DialogKey::Up => go(page, view, -1, size),
        DialogKey::Down => go(page, view, 1, size),
        DialogKey::Home => go(page, view, isize::MIN, size),
        DialogKey::End => go(page, view, isize::MAX, size),
        DialogKey::PageUp => turn(page, view, -1, size),
        DialogKey::PageDown => turn(page, view, 1, size),
        DialogKey::Backspace => {}
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
