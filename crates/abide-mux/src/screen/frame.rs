//! What one client is to see, gathered from everything there is: the scene, the cursor, the modes of its terminal.

use std::time::Instant;

use abide_model::StatusBar;
use abide_wire::mux_options::MuxOptions;
use abide_wire::session::SessionId;

use crate::input::command::HELP;
use crate::screen::bar::{Bar, Mark, TabLabel};
use crate::screen::compose::{PaneSource, Scene, SceneShape, tab_area};
use crate::screen::glyph::Strings;
use crate::screen::layout::{Layout, Tab};
use crate::screen::modes::Outer;
use crate::screen::placement::TabPlacement;
use crate::screen::scroll::Scroll;
use crate::screen::view::{ClientView, InputMode};
use crate::session::MuxSession;

/// Everything that one client's frame is composed from.
pub(crate) struct FrameInputs<'a> {
    pub sessions: &'a [MuxSession],
    pub layout: &'a Layout,
    pub options: &'a MuxOptions,
    pub instance: &'a str,
}

impl<'a> FrameInputs<'a> {
    /// What brings a client's terminal up to date; `None` if it is.
    pub fn frame<'v>(
        &self,
        view: &'v mut ClientView,
        strings: &mut Strings,
        now: Instant,
    ) -> Option<&'v [u8]> {
        view.drawn(now);
        let tab = self.layout.tab(view.tab)?;
        let scene = self.scene(view, tab)?;
        let cursor = self.cursor(view, &scene);
        let outer = self.outer(view, tab);
        scene.draw(&mut view.painter, &mut view.seen, strings);
        view.shape = Some(scene.shape);
        view.painter.finish(cursor, &outer)
    }

    fn session(&self, id: &SessionId) -> Option<&'a MuxSession> {
        self.sessions.iter().find(|session| session.id == *id)
    }

    fn scene(&self, view: &mut ClientView, tab: &Tab) -> Option<Scene<'a>> {
        let focused = self.session(&tab.focused)?;
        let size = tab.size.unwrap_or_else(|| focused.size());
        let mut placement = TabPlacement::of(tab, size);
        placement.panes.retain(|pane| self.session(&pane.session).is_some());
        let sessions = placement.panes.iter().filter_map(|pane| self.session(&pane.session));
        let sources =
            sessions.map(|session| PaneSource { term: &session.term, held: session.is_held() }).collect();
        view.pan = pan(view, &placement, focused, self.options.live.status_bar);
        let (scroll, overlay) = match &view.mode {
            InputMode::Scroll(scroll) | InputMode::Search(scroll, _) => (Some(scroll.clone()), Vec::new()),
            InputMode::Help(page) => (None, help(self.options, *page, view.size.rows)),
            _ => (None, Vec::new()),
        };
        let line = self.line(view, focused);
        let shape = SceneShape {
            size: view.size,
            bar: self.options.live.status_bar,
            placement,
            pan: view.pan,
            scroll,
            overlay,
            covered: line.is_some(),
        };
        let bar = match line {
            Some(line) => Bar::Message(line),
            None => self.tabs(view, focused),
        };
        Some(Scene { shape, sources, bar, chrome: view.display.chrome() })
    }

    /// The line that takes the place of the status bar, if there is one.
    fn line(&self, view: &ClientView, focused: &MuxSession) -> Option<String> {
        match &view.mode {
            InputMode::Search(_, text) => Some(format!("/{text}")),
            InputMode::Rename(_, text) => Some(format!("{RENAME}{text}")),
            InputMode::Kill(session) => {
                let label = self.session(session).map_or("it", MuxSession::label);
                Some(format!("kill {label}? Unsaved work in it is lost. y/n"))
            }
            // Without a bar there would be nothing to tell that the keys go elsewhere.
            InputMode::Scroll(scroll) if self.options.live.status_bar == StatusBar::Off => {
                Some(view.message().map_or_else(|| position(scroll, focused), str::to_owned))
            }
            _ => view.message().map(str::to_owned),
        }
    }

    fn tabs(&self, view: &ClientView, focused: &MuxSession) -> Bar {
        let label = |(number, tab): (usize, &Tab)| {
            let marks =
                tab.root.sessions().into_iter().filter_map(|id| self.session(id)).map(|session| session.mark);
            let mark = marks.max().unwrap_or_default();
            TabLabel {
                number,
                name: self
                    .session(&tab.focused)
                    .map_or_else(String::new, |session| session.label().to_owned()),
                current: tab.id == view.tab,
                mark: if tab.zoomed && mark < Mark::Bell { Mark::Zoomed } else { mark },
            }
        };
        let prefix = self.options.live.prefix;
        let right = match &view.mode {
            _ if view.prefixed => format!("{prefix} …"),
            InputMode::Scroll(scroll) => position(scroll, focused),
            _ if view.read_only => "read-only".to_owned(),
            _ if self.options.live.notifications && !focused.term.title().is_empty() => {
                focused.term.title().to_owned()
            }
            _ => format!("{prefix} ? for help"),
        };
        Bar::Tabs {
            instance: self.instance.to_owned(),
            tabs: self.layout.tabs().iter().enumerate().map(label).collect(),
            right,
        }
    }

    fn cursor(&self, view: &ClientView, scene: &Scene<'_>) -> Option<(u16, u16)> {
        let in_line = |start: usize, text: &str| {
            let x = u16::try_from(start + unicode_width::UnicodeWidthStr::width(text)).unwrap_or(u16::MAX);
            scene.shape.bar_row().map(|y| (x.min(view.size.cols - 1), y))
        };
        match &view.mode {
            InputMode::Search(_, text) => return in_line(1, text),
            InputMode::Rename(_, text) => return in_line(RENAME.len(), text),
            InputMode::Scroll(_) | InputMode::Help(_) | InputMode::Kill(_) => return None,
            InputMode::Session => {}
        }
        let pane = scene.shape.placement.focused_pane()?;
        let session = self.session(&pane.session)?;
        if session.is_held() {
            return view.painter.cursor();
        }
        let cursor = session.term.cursor();
        let (x, y) = (cursor.x.min(pane.rect.cols.saturating_sub(1)), cursor.y);
        if !cursor.visible || y >= pane.rect.rows {
            return None;
        }
        scene.shape.on_screen(pane.rect.x + x, pane.rect.y + y)
    }

    fn outer(&self, view: &ClientView, tab: &Tab) -> Outer {
        let Some(session) = self.session(&tab.focused) else { return Outer::default() };
        let own =
            if self.options.live.notifications { printable(session.term.title()) } else { String::new() };
        let title = if own.is_empty() { printable(session.label()) } else { own };
        let outer = Outer::of(&session.term.modes(), &session.term.cursor(), &title, view.keys);
        let outer = outer.limited_to(view.display);
        if view.mode == InputMode::Session { outer } else { outer.for_ourselves() }
    }
}

const RENAME: &str = "name: ";

fn position(scroll: &Scroll, focused: &MuxSession) -> String {
    let (back, of) = scroll.position(&focused.term);
    let query = scroll.query();
    let search = if scroll.is_searching() {
        format!("searching for {query}")
    } else if query.is_empty() {
        "/ searches".to_owned()
    } else {
        format!("/{query} n N")
    };
    format!("{back}/{of} lines back, {search}, q ends")
}

/// What a title may hold: nothing that a terminal would take for the end of it.
fn printable(title: &str) -> String {
    title.chars().filter(|ch| !ch.is_control()).collect()
}

/// The first column and row of the tab that a client sees: all of it where it fits, else the part around the cursor.
fn pan(view: &ClientView, placement: &TabPlacement, focused: &MuxSession, bar: StatusBar) -> (u16, u16) {
    let area = tab_area(view.size, bar);
    let cursor = focused.term.cursor();
    let origin = placement.focused_pane().map_or((0, 0), |pane| (pane.rect.x, pane.rect.y));
    let along = |old: u16, point: u16, room: u16, whole: u16| {
        let last = whole.saturating_sub(room);
        old.max((point + 1).saturating_sub(room)).min(point).min(last)
    };
    let x = along(view.pan.0, origin.0 + cursor.x, area.cols, placement.size.cols);
    let y = along(view.pan.1, origin.1 + cursor.y, area.rows, placement.size.rows);
    (x, y)
}

/// What the title of the help and the bar leave of a screen.
fn help_lines(rows: u16) -> usize {
    usize::from(rows).saturating_sub(3).max(1)
}

/// How many pages the help has on a screen of so many rows.
pub(crate) fn help_pages(rows: u16) -> usize {
    HELP.len().div_ceil(help_lines(rows))
}

fn help(options: &MuxOptions, page: usize, rows: u16) -> Vec<String> {
    let (prefix, pages) = (options.live.prefix.to_string(), help_pages(rows));
    let title = match pages {
        1 => format!("keys after {prefix}"),
        _ => format!("keys after {prefix} ({}/{pages}, any key)", page + 1),
    };
    let mut lines = vec![format!(" {title:<46} "), " ".repeat(48)];
    lines.extend(HELP.iter().skip(page * help_lines(rows)).take(help_lines(rows)).map(|(keys, text)| {
        let keys = if *keys == "prefix" { &prefix } else { *keys };
        format!(" {keys:>8}  {text:<36} ")
    }));
    lines
}
