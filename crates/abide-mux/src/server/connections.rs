//! Connections: who is let in, what their frames are, and telling them things.

use std::io;

use abide_wire::protocol::{
    Attach, ByeReason, Event, FrameKind, Hello, ReplyTo, Request, RequestRefusal, Resize, TerminalTrait,
    error_code, negotiate,
};
use abide_wire::session::{SessionId, TerminalSize};
use abide_wire::socket;
use serde::Serialize;

use crate::screen::view::ClientView;
use crate::server::Server;
use crate::server::client::{Client, ClientId};

/// How many connections are served at a time.
const MAX_CLIENTS: usize = 256;

/// How many connections are taken up before those that are there are heard again: what one of ours says first has then
/// arrived before it could be taken for one that says nothing.
const AT_ONCE: usize = 32;

impl Server {
    pub fn may_accept(&self) -> bool {
        self.clients.len() < MAX_CLIENTS || self.clients.values().any(|client| !client.greeted)
    }

    /// Takes up connections of our own user. Where there is no room, one that has said nothing for the longest time goes:
    /// a program that forgets its connections must not lock the operator out.
    pub fn accept(&mut self) {
        for _ in 0..AT_ONCE {
            if !self.may_accept() {
                return;
            }
            match socket::accept(&self.listener).and_then(Client::new) {
                Ok(client) => {
                    self.make_room();
                    let id = ClientId(self.next_number());
                    self.clients.insert(id, client);
                }
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => return,
                Err(err) => return tracing::warn!("a connection was turned away: {err}"),
            }
        }
    }

    fn make_room(&mut self) {
        // Ids rise, so the first is the oldest.
        let mute = self.clients.iter().find(|(_, client)| !client.greeted).map(|(id, _)| *id);
        if let Some(mute) = mute.filter(|_| self.clients.len() >= MAX_CLIENTS) {
            self.clients.remove(&mute);
        }
    }

    /// Takes in what a client sent.
    pub fn hear_client(&mut self, id: ClientId, readable: bool) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if readable {
            client.receive();
        } else {
            client.hung_up();
        }
        while let Some((kind, payload)) = self.clients.get_mut(&id).and_then(Client::next_frame) {
            self.on_frame(id, kind, &payload);
        }
    }

    /// Takes in what was typed on a terminal that is lent to us.
    pub fn hear_terminal(&mut self, id: ClientId) {
        // A client that has just hung up has its terminal back, and what is typed there is not for us.
        let Some(client) = self.clients.get_mut(&id).filter(|client| !client.is_leaving()) else { return };
        let typed = client.typed();
        if typed.is_empty() {
            return;
        }
        // Keys are faster than the client's word that the terminal has another size now.
        if let (Some(lent), Some(view)) = (&client.lent, &mut client.view) {
            self.refit |= view.follow(lent.size());
        }
        self.on_input(id, &typed);
    }

    fn on_frame(&mut self, id: ClientId, kind: Option<FrameKind>, payload: &[u8]) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        match kind {
            Some(FrameKind::Hello) => self.on_hello(id, payload),
            _ if !client.greeted => client.bye(ByeReason::Protocol, "the first frame must be a hello", None),
            Some(FrameKind::Request) => match Request::parse(payload) {
                Ok(request) => self.on_request(id, request),
                Err(err) => client.reply::<()>(err.id, Err(err.refusal)),
            },
            Some(FrameKind::Attach) => match serde_json::from_slice(payload) {
                Ok(attach) => self.attach(id, &attach),
                Err(err) => client.bye(ByeReason::Protocol, &format!("unreadable attach: {err}"), None),
            },
            Some(FrameKind::Input) => self.on_input(id, payload),
            Some(FrameKind::Resize) => {
                if let (Some(size), Some(view)) = (Resize::from_bytes(payload), &mut client.view) {
                    view.resize(TerminalSize { cols: size.cols, rows: size.rows });
                    self.refit = true;
                }
            }
            Some(FrameKind::Bye) => client.bye(ByeReason::Detached, "detached", None),
            Some(FrameKind::Lend) => client.borrow_terminal(),
            Some(FrameKind::Lent) => {
                if let Some(lent) = &mut client.lent {
                    lent.is_ours = true;
                }
            }
            // What only we send.
            Some(FrameKind::Reply | FrameKind::Event | FrameKind::Output) => {}
            None => {
                let refusal = RequestRefusal::new(
                    error_code::UNKNOWN_FRAME,
                    "a frame kind that this version does not know",
                );
                client.send(FrameKind::Reply, &ReplyTo::<()>::new(0, Err(refusal)));
            }
        }
    }

    fn on_hello(&mut self, id: ClientId, payload: &[u8]) {
        let generation = Some(self.generation);
        let Some(client) = self.clients.get_mut(&id) else { return };
        let theirs: Hello = match serde_json::from_slice(payload) {
            Ok(hello) => hello,
            Err(err) => return client.bye(ByeReason::Protocol, &format!("unreadable hello: {err}"), None),
        };
        match negotiate(&theirs.protocol) {
            Ok(version) => {
                client.greeted = true;
                client
                    .send(FrameKind::Hello, &Hello { protocol: vec![version], generation, ..Hello::ours() });
            }
            // Ours as well, so that the client can say what both sides speak.
            Err(err) => {
                client.send(FrameKind::Hello, &Hello { generation, ..Hello::ours() });
                client.bye(ByeReason::Protocol, &err.to_string(), None);
            }
        }
    }

    /// Makes a client a terminal, or takes note of what it has learnt about itself.
    fn attach(&mut self, id: ClientId, attach: &Attach) {
        let used = self.next_number();
        let wanted = attach.session.as_ref();
        let shown = wanted.and_then(|session| match attach.read_only {
            true => self.layout.tab_of(session).map(|tab| tab.id),
            false => self.layout.focus(session),
        });
        let tab = shown.or(self.layout.current().map(|tab| tab.id));
        let exit =
            wanted.and_then(|session| self.exit_of(session)).or(self.ended.back().map(|(_, exit)| *exit));
        if let Some(colors) = attach.colors.filter(|_| !attach.read_only) {
            self.colors = Some(colors);
            self.sessions.iter_mut().for_each(|session| session.use_colors(colors));
        }
        if !attach.read_only {
            let known = [TerminalTrait::KittyKeyboard, TerminalTrait::ModifyOtherKeys];
            let tells = attach.caps.iter().any(|cap| known.contains(cap));
            self.sessions.iter_mut().for_each(|session| session.term.set_tells_modified_keys(tells));
        }
        let Some(client) = self.clients.get_mut(&id) else { return };
        let Some(tab) = tab else {
            return client.bye(ByeReason::SessionEnded, "there is no session left", exit);
        };
        if let Some(note) = &self.stopping {
            return client.bye(ByeReason::Shutdown, &crate::server::endings::stop_message(note), None);
        }
        match &mut client.view {
            Some(view) => {
                view.update(attach);
                view.follow(Some(TerminalSize { cols: attach.cols, rows: attach.rows }));
            }
            None => client.view = Some(Box::new(ClientView::new(attach, tab, used, self.now))),
        }
        self.refit = true;
        self.clients_changed();
    }

    fn clients_changed(&mut self) {
        let attached = self.attached();
        self.emit(&Event::Clients { attached }, None);
    }

    pub fn attached(&self) -> usize {
        self.clients.values().filter(|client| client.view.is_some() && !client.is_leaving()).count()
    }

    /// Closes the connections that are over.
    pub fn forget_clients(&mut self) {
        let over: Vec<ClientId> =
            self.clients.iter().filter(|(_, client)| client.is_over(self.now)).map(|(id, _)| *id).collect();
        for id in over {
            let was_attached = self.clients.remove(&id).is_some_and(|client| client.view.is_some());
            self.forget_waits_of(id);
            if was_attached {
                self.refit = true;
                self.clients_changed();
            }
        }
    }

    pub fn flush_clients(&mut self) {
        for client in self.clients.values_mut() {
            client.flush();
        }
    }

    /// Tells everybody who wants to hear it what happened.
    pub fn emit(&mut self, event: &Event, session: Option<&SessionId>) {
        for client in self.clients.values_mut() {
            client.notify(event, session);
        }
    }

    /// Shows a line to everybody who is attached.
    pub fn say_to_all(&mut self, text: &str) {
        let now = self.now;
        for view in self.clients.values_mut().filter_map(|client| client.view.as_mut()) {
            view.say(text, now);
        }
    }

    /// Shows a line to one client.
    pub fn say(&mut self, id: ClientId, text: impl Into<String>) {
        let now = self.now;
        if let Some(view) = self.view_mut(id) {
            view.say(text, now);
        }
    }

    pub fn view_mut(&mut self, id: ClientId) -> Option<&mut ClientView> {
        self.clients.get_mut(&id)?.view.as_deref_mut()
    }

    pub fn view(&self, id: ClientId) -> Option<&ClientView> {
        self.clients.get(&id)?.view.as_deref()
    }

    pub fn reply<T: Serialize>(&mut self, id: ClientId, request: u64, outcome: Result<T, RequestRefusal>) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.reply(request, outcome);
        }
    }

    pub fn refuse(&mut self, id: ClientId, request: u64, refusal: RequestRefusal) {
        self.reply::<()>(id, request, Err(refusal));
    }
}
