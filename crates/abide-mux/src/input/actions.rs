//! What the commands do.

use abide_term::input::keys::Key;
use abide_wire::link::ToKeeper;
use abide_wire::protocol::ByeReason;
use abide_wire::session::SessionId;

use crate::input::command::Command;
use crate::screen::layout::{Direction, TabId};
use crate::screen::placement::{Rect, TabPlacement};
use crate::screen::scroll::Scroll;
use crate::screen::view::InputMode;
use crate::server::Server;
use crate::server::client::ClientId;
use crate::server::spawn::Where;

/// The longest name that a session may have.
const MAX_NAME: usize = 64;

impl Server {
    /// The key after the prefix.
    pub fn on_command_key(&mut self, id: ClientId, key: Key, sequence: Option<&[u8]>) {
        let read_only = self.view(id).is_some_and(|view| view.read_only);
        match Command::of(key) {
            Some(command) if read_only && !command.only_looks() => {
                self.say(id, "this client is read-only; attach without --read-only to make changes");
            }
            Some(command) => self.command(id, command),
            None => {
                let prefix = self.options.live.prefix;
                let name = match (key, sequence) {
                    (Key::Char(ch), _) => ch.to_string(),
                    (Key::Ctrl(ch), _) => format!("C-{ch}"),
                    _ => "that key".to_owned(),
                };
                self.say(id, format!("{name} is not a command; {prefix} ? lists them"));
            }
        }
    }

    fn command(&mut self, id: ClientId, command: Command) {
        let Some(tab) = self.view(id).map(|view| view.tab) else { return };
        match command {
            Command::Detach => {
                if let Some(client) = self.clients.get_mut(&id) {
                    client.bye(ByeReason::Detached, "detached; everything keeps running", None);
                }
            }
            Command::NewShell => self.open_shell(id, Where::Tab),
            Command::Split(direction) => self.split(id, tab, direction),
            Command::NextTab => self.show_tab(id, self.layout.neighbour(tab, 1)),
            Command::PreviousTab => self.show_tab(id, self.layout.neighbour(tab, -1)),
            Command::Tab(number) => match self.layout.nth(number) {
                Some(tab) => self.show_tab(id, Some(tab)),
                None => self.say(id, format!("there is no tab {number}")),
            },
            Command::Kill => self.ask(id, InputMode::Kill),
            Command::Rename => {
                let name = self.focused_of(id).map(|session| session.label().to_owned()).unwrap_or_default();
                self.ask(id, |session| InputMode::Rename(session, name));
            }
            Command::Scroll => {
                if let Some(scroll) =
                    self.focused_of(id).map(|session| Scroll::at_end(session.id, &session.term))
                {
                    self.set_mode(id, InputMode::Scroll(scroll));
                }
            }
            Command::Zoom => self.change_tab(tab, |tab| tab.zoomed = !tab.zoomed),
            Command::NextPane => self.change_tab(tab, |tab| {
                tab.focus_next();
                tab.zoomed = false;
            }),
            Command::Pane(dx, dy) => self.change_tab(tab, |tab| {
                tab.zoomed = false;
                let size = tab.size.unwrap_or_default();
                if let Some(next) = TabPlacement::of(tab, size).towards(dx, dy) {
                    tab.focused = *next;
                }
            }),
            Command::Help => self.set_mode(id, InputMode::Help(0)),
        }
    }

    fn change_tab(&mut self, tab: TabId, change: impl FnOnce(&mut crate::screen::layout::Tab)) {
        if let Some(tab) = self.layout.tab_mut(tab) {
            change(tab);
            self.refit = true;
        }
    }

    /// Asks something about the focused session.
    fn ask(&mut self, id: ClientId, question: impl FnOnce(SessionId) -> InputMode) {
        if let Some(session) = self.focused_of(id).map(|session| session.id) {
            self.set_mode(id, question(session));
        }
    }

    pub fn show_tab(&mut self, id: ClientId, tab: Option<TabId>) {
        if let (Some(tab), Some(view)) = (tab, self.view_mut(id)) {
            view.show(tab);
            if !view.read_only {
                self.layout.look_at(tab);
            }
            self.refit = true;
        }
    }

    fn split(&mut self, id: ClientId, tab: TabId, direction: Direction) {
        let Some(session) = self.focused_of(id).map(|session| session.id) else { return };
        let area = self.layout.tab(tab).and_then(|tab| {
            let unzoomed = crate::screen::layout::Tab { zoomed: false, ..tab.clone() };
            TabPlacement::of(&unzoomed, tab.size?).focused_pane().map(|pane| pane.rect)
        });
        if area.is_some_and(|area: Rect| area.halves(direction).is_none()) {
            return self.say(id, "no room for another pane; z zooms, c opens a tab");
        }
        self.open_shell(id, Where::Beside(session, direction));
    }

    /// Opens a shell, which gets what is typed from now on.
    fn open_shell(&mut self, id: ClientId, place: Where) {
        self.set_mode(id, InputMode::Session);
        self.spawn_shell(id, place);
    }

    pub fn answer_kill(&mut self, id: ClientId, session: &SessionId, key: Key) {
        if matches!(key, Key::Char('y' | 'Y')) {
            self.tell_keeper(ToKeeper::Kill { id: *session });
        } else {
            self.say(id, "not killed");
        }
    }

    /// Gives a session another name; nothing at all gives it back its program's.
    pub fn rename(&mut self, session: &SessionId, name: &str) {
        let name: String = name.trim().chars().filter(|ch| !ch.is_control()).take(MAX_NAME).collect();
        if let Some(session) = self.session_mut(session) {
            session.name = name;
            self.refit = true;
        }
    }
}
