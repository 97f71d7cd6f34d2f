//! A page as a picture: a box in the middle of an otherwise empty screen.

use crate::canvas::Canvas;
use crate::line::{Line, Tone};
use crate::page::{Page, PageView};

/// Wider, and lines become tiring to read.
const WIDEST: usize = 104;
/// Narrower, where there is room, and pages that follow each other would differ too much.
const NARROWEST: usize = 76;
/// So much of a long list says how wide it is.
const SAMPLE: usize = 200;
/// From this width on there is room for a margin.
const ROOMY: usize = 80;

/// A row inside the box, and whether the scroll bar is beside it.
type BoxRow = (Line, bool);

/// Draws `page` on a screen of `size`, columns and rows.
pub fn draw<A>(page: &Page<A>, view: &PageView, size: (usize, usize)) -> Canvas {
    let (cols, rows) = size;
    let layout = BoxLayout::of(page, view, size);
    let mut inside = layout.inside(page, view);
    // Where there is no room for everything, what can be answered is more than what it is about.
    let excess = (inside.len() + layout.hints.len() + 3).saturating_sub(rows).min(inside.len());
    inside.drain(..excess);
    let height = inside.len() + layout.hints.len() + 3;

    let mut canvas = Canvas::new(cols, rows);
    let (left, mut y) = (cols.saturating_sub(layout.width) / 2, rows.saturating_sub(height) / 2);
    let right = left + layout.width;
    let mut put = |left_side: &str, line: &Line, right_side: Line| {
        canvas.put(left, y, right, &Line::toned(Tone::Dim, left_side));
        canvas.put(left + 2, y, right.saturating_sub(2), &line.fit(inner(layout.width)));
        canvas.put(right.saturating_sub(1), y, right, &right_side);
        y += 1;
    };
    let side = |bar: bool| if bar { Line::toned(Tone::Accent, "┃") } else { Line::toned(Tone::Dim, "│") };
    let line = "─".repeat(layout.width.saturating_sub(2));
    let empty = Line::default();
    let title = Line::toned(Tone::Strong, " abide").and(Tone::Dim, " · ").and(Tone::Plain, &page.title);
    let title = title.and(Tone::Plain, " ");

    put(&format!("╭{line}"), &title, Line::toned(Tone::Dim, "╮"));
    for (row, bar) in &inside {
        put("│", row, side(*bar));
    }
    put(&format!("├{line}"), &empty, Line::toned(Tone::Dim, "┤"));
    for hint in &layout.hints {
        put("│", hint, side(false));
    }
    put(&format!("╰{line}"), &empty, Line::toned(Tone::Dim, "╯"));
    canvas
}

/// How many rows of the list a screen of `size` shows.
pub(crate) fn list_rows<A>(page: &Page<A>, view: &PageView, size: (usize, usize)) -> usize {
    BoxLayout::of(page, view, size).list
}

/// What goes into the box, and how much of it there is room for.
struct BoxLayout {
    width: usize,
    /// Whether sections are kept apart by empty rows.
    gaps: bool,
    about: Vec<Line>,
    /// How many rows of the list there is room for.
    list: usize,
    notes: Vec<Line>,
    /// How many choices there is room for.
    choices: usize,
    detail: Vec<Line>,
    hints: Vec<Line>,
}

impl BoxLayout {
    fn of<A>(page: &Page<A>, view: &PageView, (cols, rows): (usize, usize)) -> Self {
        let margin = if cols >= ROOMY { 2 } else { 0 };
        let width = cols.saturating_sub(2 * margin).min(wanted(page).clamp(NARROWEST, WIDEST));
        let wrap = |lines: &[Line]| lines.iter().flat_map(|line| line.wrap(inner(width))).collect::<Vec<_>>();
        let (about, notes) = (wrap(&page.about), wrap(&page.notes));
        let details: Vec<_> = page.choices.iter().map(|choice| wrap(&choice.detail)).collect();
        let mut detail = details.get(view.marked).cloned().unwrap_or_default();
        // As long as the longest, or the box would change its size under the operator's eyes.
        let longest = details.iter().map(Vec::len).max().unwrap_or(0).min(rows / 4);
        detail.resize(longest, Line::default());
        let footer = |scrolls: bool| flow(&hints(page, view, scrolls), inner(width));
        let hints = footer(true);
        let (items, shown) = (page.list.len(), page.choices.len());

        let filter = usize::from(page.filters());
        let fixed = 3 + about.len() + notes.len() + detail.len() + hints.len() + filter;
        let sections = [about.len(), items, notes.len(), shown, detail.len()];
        let between = sections.iter().filter(|rows| **rows > 0).count().saturating_sub(1);
        let gaps = rows >= fixed + between + items.min(3) + shown.min(3);
        let room = rows.saturating_sub(fixed + if gaps { between } else { 0 });
        let (list, choices) = share(room, items, shown);
        let hints = if list < items { hints } else { footer(false) };
        Self { width, gaps, about, list, notes, choices, detail, hints }
    }

    fn inside<A>(&self, page: &Page<A>, view: &PageView) -> Vec<BoxRow> {
        let plain = |lines: &[Line]| lines.iter().map(|line| (line.clone(), false)).collect::<Vec<_>>();
        let filter: Vec<BoxRow> = page.filters().then(|| (filter(view), false)).into_iter().collect();
        let (list, choices) = (self.items(page, view), self.choices(page, view));
        let (list, choices) = match page.list.is_empty() {
            true => (list, [filter, choices].concat()),
            false => ([filter, list].concat(), choices),
        };
        let sections = [plain(&self.about), list, plain(&self.notes), choices, plain(&self.detail)];
        let gap: &[BoxRow] = if self.gaps { &[(Line::default(), false)] } else { &[] };
        sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join(gap)
    }

    fn items<A>(&self, page: &Page<A>, view: &PageView) -> Vec<BoxRow> {
        let items = page.items(view);
        let top = view.top.min(items.len().saturating_sub(self.list));
        window(items.len(), top, self.list, |at| {
            Line::toned(Tone::Plain, "  ".repeat(items[at].level)).followed_by(&items[at].line)
        })
    }

    fn choices<A>(&self, page: &Page<A>, view: &PageView) -> Vec<BoxRow> {
        let shown = page.shown(view);
        let at = shown.iter().position(|at| *at == view.marked).unwrap_or(0);
        let top = at.saturating_sub(self.choices / 2).min(shown.len().saturating_sub(self.choices));
        window(shown.len(), top, self.choices, |number| {
            let at = shown[number];
            let (mark, tone) = if at == view.marked { ("▸", Tone::Accent) } else { (" ", Tone::Dim) };
            let tag = match page.choices[at].key {
                Some(key) => key.to_string(),
                None if number < 9 => (number + 1).to_string(),
                None => " ".to_owned(),
            };
            let line = &page.choices[at].line;
            let tag = Line::toned(tone, format!("{mark} {tag}  "));
            tag.followed_by(&if at == view.marked { line.raised() } else { line.clone() })
        })
    }
}

/// How wide a box has to be to show every line whole.
fn wanted<A>(page: &Page<A>) -> usize {
    let items = page.list.iter().take(SAMPLE).map(|item| item.line.width() + 2 * item.level);
    let choices = page.choices.iter().map(|choice| choice.line.width() + 5);
    items.chain(choices).max().unwrap_or(0) + 4
}

fn inner(width: usize) -> usize {
    width.saturating_sub(4)
}

/// Divides `room` rows between a list and choices that may both want more. The choices are what the page is for, and
/// the list can be scrolled, but something of it must be seen.
fn share(room: usize, items: usize, shown: usize) -> (usize, usize) {
    let least = items.min((room / 2).max(3));
    let choices = shown.min(room.saturating_sub(least).max(1)).min(room);
    (items.min(room - choices), choices)
}

/// `rows` of `all` lines from `top` on, with a scroll bar if that is not all, and empty ones if there are too few.
fn window(all: usize, top: usize, rows: usize, line: impl Fn(usize) -> Line) -> Vec<BoxRow> {
    let bar = (rows * rows / all.max(1)).max(1);
    // The bar is at the end only when there is nothing more to come.
    let start = if all > rows { top * rows.saturating_sub(bar) / (all - rows) } else { 0 };
    let row = |row: usize| {
        let shown = if top + row < all { line(top + row) } else { Line::default() };
        (shown, all > rows && (start..start + bar).contains(&row))
    };
    (0..rows).map(row).collect()
}

fn filter(view: &PageView) -> Line {
    let line = Line::toned(Tone::Dim, "Filter: ");
    if !view.typing && view.filter.is_empty() {
        return line.and(Tone::Dim, "press /");
    }
    line.and(Tone::Strong, &view.filter).and(Tone::Accent, if view.typing { "▏" } else { "" })
}

/// What the keys do.
fn hints<A>(page: &Page<A>, view: &PageView, scrolls: bool) -> Vec<(&'static str, &'static str)> {
    if view.typing {
        return vec![("type", "to find"), ("Enter", "done"), ("Esc", "show all")];
    }
    let mut hints = Vec::new();
    let chooses = page.choices.len() > 1;
    if chooses {
        hints.push(("↑↓", "move"));
    }
    if chooses && page.enter.is_some() {
        hints.push(("Space", "change"));
    }
    hints.push(("Enter", page.enter.as_ref().map_or("choose", |(_, hint)| hint)));
    if scrolls {
        hints.push((if chooses { "PgUp/PgDn" } else { "↑↓" }, "scroll"));
    }
    hints.push(("Esc", if view.filter.is_empty() { page.esc.1 } else { "show all" }));
    if page.lost.1 != page.esc.1 {
        hints.push(("Ctrl-C", page.lost.1));
    }
    hints
}

/// Hints side by side, in as many rows as they need.
fn flow(hints: &[(&str, &str)], limit: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (key, what) in hints {
        let hint = Line::toned(Tone::Accent, key).and(Tone::Dim, format!(" {what}"));
        match lines.last_mut() {
            Some(line) if line.width() + 3 + hint.width() <= limit => {
                *line = std::mem::take(line).and(Tone::Dim, " · ").followed_by(&hint);
            }
            _ => lines.push(hint),
        }
    }
    lines
}
