//! Searches that go on over several rounds of the loop: a long history must not keep everything else waiting.

use crate::screen::scroll::{Scroll, SearchStep};
use crate::screen::view::{ClientView, InputMode};
use crate::server::Server;
use crate::server::client::ClientId;

impl Server {
    /// Searches a part of what is left, and says when there is nothing.
    pub fn search_on(&mut self, id: ClientId, mut scroll: Scroll) {
        let step = match self.focused_of(id) {
            Some(session) => scroll.search_step(&session.term),
            None => SearchStep::NotFound,
        };
        let absent = format!("`{}` is not in the scrollback", scroll.query());
        self.set_mode(id, InputMode::Scroll(scroll));
        match step {
            SearchStep::Goes | SearchStep::Found => {}
            SearchStep::NotFound => self.say(id, absent),
            SearchStep::NoneFurther => self.say(id, "there is no further match"),
        }
    }

    /// Goes on with every search that is under way.
    pub fn go_on_searching(&mut self) {
        let searching =
            self.clients.iter().filter(|(_, client)| client.view.as_deref().is_some_and(is_searching));
        let searching: Vec<ClientId> = searching.map(|(id, _)| *id).collect();
        for id in searching {
            if let Some(InputMode::Scroll(scroll)) = self.view(id).map(|view| view.mode.clone()) {
                self.search_on(id, scroll);
            }
        }
    }
}

/// Whether a search of this client's is under way.
pub(crate) fn is_searching(view: &ClientView) -> bool {
    matches!(&view.mode, InputMode::Scroll(scroll) if scroll.is_searching())
}
