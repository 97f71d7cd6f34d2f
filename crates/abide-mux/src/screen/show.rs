//! What the clients see: following the sessions' changes, fitting sizes, and drawing the frames that are due.

use std::io::Write;

use abide_term::{TermEvent, base64};
use abide_wire::protocol::Event;
use abide_wire::session::{SessionId, TerminalSize};

use crate::screen::bar::Mark;
use crate::screen::compose::tab_area;
use crate::screen::frame::FrameInputs;
use crate::screen::layout::{Tab, TabId};
use crate::screen::placement::TabPlacement;
use crate::screen::view::{ClientView, InputMode};
use crate::server::Server;
use crate::server::client::Client;

impl Server {
    /// A session has written something.
    pub fn on_output(&mut self, index: usize) {
        let events = self.sessions[index].take_events();
        for event in events {
            self.sessions[index].watching.heard(&event, self.now);
            self.on_term_event(index, event);
        }
        self.attention.wrote(&self.sessions[index].id, self.now);
        self.mark(index, Mark::Output);
        self.touch_session(index);
        self.check_waits_of(index);
    }

    /// What a session shows has changed.
    pub fn touch_session(&mut self, index: usize) {
        let Some(tab) = self.layout.tab_of(&self.sessions[index].id).map(|tab| tab.id) else { return };
        for view in views(self).filter(|view| view.tab == tab) {
            view.touch();
        }
    }

    /// Lets the next frames of a session be drawn without waiting, however many a flood before them has used up.
    pub fn draw_at_once(&mut self, index: usize) {
        let (now, tab) = (self.now, self.layout.tab_of(&self.sessions[index].id).map(|tab| tab.id));
        for view in views(self).filter(|view| Some(view.tab) == tab) {
            view.save_up(now);
        }
    }

    /// Marks a session's tab, unless a client shows it.
    pub fn mark(&mut self, index: usize, mark: Mark) {
        let tab = self.layout.tab_of(&self.sessions[index].id).map(|tab| tab.id);
        if views(self).any(|view| Some(view.tab) == tab) || self.sessions[index].mark >= mark {
            return;
        }
        self.sessions[index].mark = mark;
        views(self).for_each(ClientView::touch);
    }

    fn on_term_event(&mut self, index: usize, event: TermEvent) {
        let id = self.sessions[index].id;
        let session = Some(&id);
        match event {
            TermEvent::Bell => {
                self.mark(index, Mark::Bell);
                views(self).for_each(|view| view.pass_on(b"\x07"));
                self.emit(&Event::Bell { session: id }, session);
            }
            TermEvent::Title(title) => self.emit(&Event::Title { session: id, title }, session),
            TermEvent::Notify { text, sequence } => {
                if self.options.live.notifications {
                    let now = self.now;
                    let line = format!("{}: {text}", self.sessions[index].label());
                    self.mark(index, Mark::Bell);
                    let passed = self.sessions[index].may_notify(now).then(|| osc(&sequence));
                    for view in views(self) {
                        view.say(line.as_str(), now);
                        view.pass_on(b"\x07");
                        view.pass_on_string(passed.as_deref().unwrap_or_default());
                    }
                }
                self.emit(&Event::Notification { session: id, text }, session);
            }
            TermEvent::Progress(sequence) => {
                if self.options.live.notifications && self.sessions[index].may_notify(self.now) {
                    views(self).for_each(|view| view.pass_on_string(&osc(&sequence)));
                }
            }
            TermEvent::Clipboard { selection, data } if self.options.live.clipboard => {
                let bytes = clipboard(&selection, &data);
                let tab = self.layout.tab_of(&id).map(|tab| tab.id);
                for view in views(self).filter(|view| Some(view.tab) == tab && !view.read_only) {
                    view.pass_on_string(&bytes);
                }
            }
            TermEvent::Clipboard { .. } => {
                if !std::mem::replace(&mut self.sessions[index].clipboard_refused, true) {
                    let label = self.sessions[index].label();
                    let line = format!(
                        "{label} may not write to the clipboard; `abide config set terminal.clipboard allow` allows it"
                    );
                    self.say_to_all(&line);
                }
            }
            TermEvent::Status(_) => {}
        }
    }

    /// Shows every client a tab that exists, and gives every session the size of its pane: that of the client which
    /// was used last among those that look at it.
    pub fn fit_sessions(&mut self) {
        let Some(current) = self.layout.current().map(|tab| tab.id) else { return };
        let layout = &self.layout;
        for view in self.clients.values_mut().filter_map(|client| client.view.as_deref_mut()) {
            if layout.tab(view.tab).is_none() {
                view.show(current);
            }
            let focused = layout.tab(view.tab).map(|tab| tab.focused);
            if let InputMode::Scroll(scroll) | InputMode::Search(scroll, _) = &view.mode
                && Some(scroll.session) != focused
            {
                view.mode = InputMode::Session;
            }
            view.touch();
        }
        let tabs: Vec<TabId> = self.layout.tabs().iter().map(|tab| tab.id).collect();
        for tab in tabs {
            self.fit_tab(tab);
        }
        self.tell_focus();
    }

    /// Reports focus changes to the programs that asked for them.
    pub fn tell_focus(&mut self) {
        let clients = self.clients.values().filter(|client| !client.is_leaving());
        let views = clients.filter_map(|client| client.view.as_ref());
        let views = views.filter(|view| view.has_focus && !view.read_only);
        let focused: Vec<SessionId> =
            views.filter_map(|view| self.layout.tab(view.tab)).map(|tab| tab.focused).collect();
        for session in &mut self.sessions {
            session.tell_focus(focused.contains(&session.id));
        }
    }

    fn fit_tab(&mut self, id: TabId) {
        let bar = self.options.live.status_bar;
        let watching = self.clients.values().filter(|client| !client.is_leaving());
        let watching = watching.filter_map(|client| client.view.as_ref()).filter(|view| view.tab == id);
        let mut seen = false;
        let user =
            watching.inspect(|_| seen = true).filter(|view| !view.read_only).max_by_key(|view| view.used);
        let size = user.map(|view| tab_area(view.size, bar));
        let Some(tab) = self.layout.tab_mut(id) else { return };
        tab.size = size.or(tab.size);
        let panes = tab.size.map(|size| pane_sizes(tab, size)).unwrap_or_default();
        let members: Vec<SessionId> = tab.root.sessions().into_iter().cloned().collect();
        for (session, size) in panes {
            let resized = self.session_mut(&session).is_some_and(|session| session.resize(size));
            if resized {
                self.emit(&Event::Resized { session, size }, Some(&session));
            }
        }
        for session in self.sessions.iter_mut().filter(|session| seen && members.contains(&session.id)) {
            session.mark = Mark::Quiet;
        }
    }

    /// Draws for every client that has something to see, may have it by now, and has read the last frame.
    pub fn draw_due(&mut self) {
        let Self { clients, sessions, layout, options, strings, instance_dir, now, .. } = self;
        let instance = if options.name.is_empty() {
            instance_dir.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
        } else {
            options.name.clone()
        };
        let inputs = FrameInputs { sessions, layout, options, instance: &instance };
        for client in clients.values_mut().filter(|client| client.is_caught_up() && !client.is_leaving()) {
            let Client { view: Some(view), .. } = client else { continue };
            if view.frame_at().is_none_or(|at| at > *now) {
                continue;
            }
            let mut bytes = std::mem::take(&mut view.extras);
            if let Some(frame) = inputs.frame(view, strings, *now) {
                bytes.extend_from_slice(frame);
            }
            client.output(&bytes);
        }
    }
}

fn views(server: &mut Server) -> impl Iterator<Item = &mut ClientView> {
    server.clients.values_mut().filter_map(|client| client.view.as_deref_mut())
}

/// The sizes of all sessions of a tab, those that a zoom hides included: they come back in one piece.
fn pane_sizes(tab: &Tab, size: TerminalSize) -> Vec<(SessionId, TerminalSize)> {
    let unzoomed = Tab { zoomed: false, ..tab.clone() };
    let mut panes = TabPlacement::of(&unzoomed, size).panes;
    if tab.zoomed {
        panes.retain(|pane| pane.session != tab.focused);
        panes.extend(TabPlacement::of(tab, size).panes);
    }
    panes.into_iter().map(|pane| (pane.session, pane.rect.size())).collect()
}

/// A sequence that the model has made safe, as a terminal reads it.
fn osc(body: &str) -> Vec<u8> {
    format!("\x1b]{body}\x1b\\").into_bytes()
}

/// Passes a clipboard's contents on to a client's terminal.
fn clipboard(selection: &str, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let selection: String = selection.chars().filter(char::is_ascii_alphanumeric).collect();
    _ = write!(out, "\x1b]52;{selection};{}\x1b\\", base64(data));
    out
}
