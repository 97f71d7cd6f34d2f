//! What the control requests do.

use abide_journal::snapshot;
use abide_model::Pid;
use abide_sys::process;
use abide_term::input::keys;
use abide_wire::link::ToKeeper;
use abide_wire::mux_options::LiveSettings;
use abide_wire::protocol::{
    Done, Input, Kill, Request, RequestRefusal, RequestVerb, ResizeTo, Send, SessionStatus, Signal, Snapshot,
    SnapshotReply, StatusReply, Subscribe, SubscribeReply, error_code,
};
use abide_wire::session::SessionId;

use crate::screen::glyph::{LinkPolicy, Strings};
use crate::server::Server;
use crate::server::client::ClientId;
use crate::server::wait::no_such_session;
use crate::session::MuxSession;

impl Server {
    pub fn on_request(&mut self, client: ClientId, Request { id, verb }: Request) {
        match verb {
            RequestVerb::GetStatus(_) => {
                self.look_closely();
                let status = self.status();
                self.reply(client, id, Ok(status));
            }
            RequestVerb::Snapshot(ask) => self.reply(client, id, self.snapshot(&ask)),
            RequestVerb::Spawn(spawn) => self.spawn_requested(client, id, *spawn.spec, spawn.focus),
            RequestVerb::Wait(wait) => self.begin_wait(client, id, wait),
            RequestVerb::Upgrade(upgrade) => self.upgrade(client, id, upgrade),
            RequestVerb::Subscribe(subscribe) => {
                let subscription = self.subscribe(client, subscribe);
                self.reply(client, id, subscription);
            }
            RequestVerb::Kill(Kill { session }) => {
                self.reply(client, id, self.pass_on(&session, ToKeeper::Kill { id: session }));
            }
            RequestVerb::Signal(Signal { session, signal }) => {
                self.reply(client, id, self.pass_on(&session, ToKeeper::Signal { id: session, signal }));
            }
            RequestVerb::ResizeTo(resize) => {
                let done = self.resize_requested(&resize);
                self.reply(client, id, done);
            }
            RequestVerb::Send(send) => {
                let done = self.send_requested(&send);
                self.reply(client, id, done);
            }
            RequestVerb::Rename(rename) => {
                let done = self.living(&rename.session).map(|_| Done {});
                self.rename(&rename.session, &rename.name);
                self.reply(client, id, done);
            }
            RequestVerb::Focus(focus) => {
                let done = self.living(&focus.session).map(|_| Done {});
                self.show_to_all(&focus.session);
                self.reply(client, id, done);
            }
            RequestVerb::HookReport(report) => {
                let done = self.on_report(client, &report);
                self.reply(client, id, done);
            }
            RequestVerb::GetEvidence(ask) => {
                let evidence = self.evidence(&ask);
                self.reply(client, id, evidence);
            }
            RequestVerb::Configure(configure) => {
                self.change_settings(&configure.settings);
                self.reply(client, id, Ok(Done {}));
            }
            RequestVerb::Shutdown(shutdown) => {
                self.tell_keeper(ToKeeper::Shutdown { note: shutdown.reason });
                self.reply(client, id, Ok(Done {}));
            }
        }
    }

    fn change_settings(&mut self, settings: &LiveSettings) {
        self.options.live = settings.clone();
        self.strings = Strings::new(LinkPolicy::of(&self.options));
        self.changed_settings = Some((self.generation, settings.clone()));
        for client in self.clients.values_mut() {
            if let Some(view) = &mut client.view {
                let size = view.size;
                view.resize(size);
            }
        }
        for session in &mut self.sessions {
            session.clipboard_refused = false;
        }
        self.refit = true;
    }

    fn living(&self, id: &SessionId) -> Result<&MuxSession, RequestRefusal> {
        match self.session(id) {
            Some(session) if session.exit.is_none() => Ok(session),
            Some(_) => Err(session_ended(id)),
            None if self.exit_of(id).is_some() => Err(session_ended(id)),
            None => Err(no_such_session(id)),
        }
    }

    /// Has the keeper do something to a living session.
    fn pass_on(&self, session: &SessionId, message: ToKeeper) -> Result<Done, RequestRefusal> {
        self.living(session)?;
        self.link
            .send(&message, &[])
            .map_err(|err| RequestRefusal::new(error_code::INTERNAL, err.to_string()))?;
        Ok(Done {})
    }

    fn status(&self) -> StatusReply {
        StatusReply {
            generation: self.generation,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            keeper_pid: rustix::process::getppid().map_or_else(Pid::default, process::from_rustix),
            mux_pid: process::own_pid(),
            attached: self.attached(),
            focused: self.layout.current().map(|tab| tab.focused),
            awake: self.awake.held().map(str::to_owned),
            sessions: self
                .layout
                .sessions()
                .into_iter()
                .filter_map(|id| self.session(id))
                .map(|session| self.status_of(session))
                .collect(),
        }
    }

    pub fn status_of(&self, session: &MuxSession) -> SessionStatus {
        SessionStatus {
            id: session.id,
            name: session.name.clone(),
            program: session.program.clone(),
            pid: session.pid,
            size: session.size(),
            title: session.term.title().to_owned(),
            exit: session.exit,
            activity: Some(session.activity(self.now)),
            quiet_ms: u64::try_from(session.quiet_for(self.now).as_millis()).unwrap_or(u64::MAX),
            journaled: session.is_journaled(),
            meta: session.meta.clone(),
        }
    }

    fn snapshot(&self, ask: &Snapshot) -> Result<SnapshotReply, RequestRefusal> {
        let focused = || self.layout.current().map(|tab| tab.focused);
        let no_session = || RequestRefusal::new(error_code::NO_SUCH_SESSION, "there is no session");
        let id = ask.session.or_else(focused).ok_or_else(no_session)?;
        let session = self.session(&id).ok_or_else(|| no_such_session(&id))?;
        snapshot::take(&id, &session.term, ask)
    }

    fn subscribe(
        &mut self,
        client: ClientId,
        subscribe: Subscribe,
    ) -> Result<SubscribeReply, RequestRefusal> {
        let subscription = self.next_number();
        let client = self.clients.get_mut(&client);
        let client =
            client.ok_or_else(|| RequestRefusal::new(error_code::INTERNAL, "the connection is gone"))?;
        client.subscribe(subscription, subscribe.kinds, subscribe.session)?;
        Ok(SubscribeReply { subscription })
    }

    fn resize_requested(&mut self, resize: &ResizeTo) -> Result<Done, RequestRefusal> {
        self.living(&resize.session)?;
        let tab = self.layout.tab_of(&resize.session).map(|tab| tab.id);
        let shown = self.clients.values().filter_map(|client| client.view.as_ref());
        if shown.filter(|view| !view.read_only).any(|view| Some(view.tab) == tab) {
            let text = "an attached client determines the size; detach it first";
            return Err(RequestRefusal::new(error_code::BAD_REQUEST, text));
        }
        if let Some(tab) = tab.and_then(|tab| self.layout.tab_mut(tab)) {
            // Alone in its tab, it is the tab.
            tab.size = (tab.root.sessions().len() == 1).then_some(resize.size).or(tab.size);
        }
        if let Some(session) = self.session_mut(&resize.session) {
            session.resize(resize.size);
            let event =
                abide_wire::protocol::Event::Resized { session: resize.session, size: session.size() };
            self.emit(&event, Some(&resize.session));
        }
        Ok(Done {})
    }

    fn send_requested(&mut self, send: &Send) -> Result<Done, RequestRefusal> {
        let modes = self.living(&send.session)?.term.modes();
        let mut bytes = Vec::new();
        for input in &send.input {
            match input {
                Input::Bytes(raw) => bytes.extend_from_slice(raw),
                Input::Text(text) => push_pasted(text, modes.bracketed_paste, &mut bytes),
                Input::Key(name) => {
                    let unknown = || {
                        let text = format!("`{}` is not the name of a key", name.escape_default());
                        RequestRefusal::new(error_code::BAD_REQUEST, text)
                    };
                    bytes.extend(keys::named(name, &modes).ok_or_else(unknown)?);
                }
            }
        }
        let now = self.now;
        self.last_seen.note(&self.instance_dir, &send.session, |seen| seen.typed(&bytes));
        let taken = self.session_mut(&send.session).is_some_and(|session| {
            session.watching.typed(now);
            session.send(&bytes)
        });
        if taken {
            self.note_entry(&send.session, &bytes);
            return Ok(Done {});
        }
        let text = "the program does not read its input; try again later";
        Err(RequestRefusal::new(error_code::TOO_LARGE, text))
    }
}

/// Text as a terminal pastes it: line ends are Returns, and nothing in it can end the paste.
fn push_pasted(text: &str, bracketed: bool, bytes: &mut Vec<u8>) {
    let text = text.replace("\r\n", "\r").replace('\n', "\r");
    if !bracketed {
        return bytes.extend_from_slice(text.as_bytes());
    }
    bytes.extend_from_slice(abide_term::input::tokens::PASTE_BEGIN);
    bytes.extend_from_slice(text.replace('\x1b', "").as_bytes());
    bytes.extend_from_slice(abide_term::input::tokens::PASTE_END);
}

fn session_ended(id: &SessionId) -> RequestRefusal {
    RequestRefusal::new(error_code::SESSION_ENDED, format!("session {id} has ended"))
}
