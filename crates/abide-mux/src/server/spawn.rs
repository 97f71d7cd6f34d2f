//! Starting sessions: for a request, or for a key that opens a shell. The keeper does it; here is who asked.

use std::path::PathBuf;

use abide_wire::instance_dir::InstanceDir;
use abide_wire::link::{SessionInfo, ToKeeper};
use abide_wire::os_text::OsText;
use abide_wire::protocol::{Done, Event, RequestRefusal, SpawnReply, Upgrade, error_code};
use abide_wire::session::{META_SHELL, SessionId, SpawnSpec, TerminalSize};

use crate::screen::layout::Direction;
use crate::screen::placement::TabPlacement;
use crate::server::Server;
use crate::server::client::ClientId;
use crate::session::MuxSession;

/// The most requests that the keeper has not answered yet.
const MAX_ASKED: usize = 64;
/// Marks the shells that were opened by a key: their output is not needed once they have ended.
const PASSING: &str = "passing";

/// Something that the keeper was asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    number: u64,
    client: ClientId,
    what: What,
    /// The session that is to come.
    session: Option<SessionId>,
}

#[derive(Debug)]
enum What {
    /// By a request with this number.
    Spawn {
        request: u64,
        focus: bool,
    },
    Shell(Where),
    /// By a request with this number.
    Upgrade {
        request: u64,
    },
}

/// Where a new shell appears.
#[derive(Debug)]
pub(crate) enum Where {
    /// In a tab of its own.
    Tab,
    Beside(SessionId, Direction),
}

impl Server {
    /// Opens a shell where a client is: in the directory and with the environment of what it looks at.
    pub fn spawn_shell(&mut self, client: ClientId, place: Where) {
        let Some(session) = self.focused_of(client) else { return };
        let argv = shell_of(session).or_else(|| self.sessions.iter().find_map(shell_of));
        let argv = argv.unwrap_or_else(|| vec!["/bin/sh".into()]);
        let program =
            argv.first().map(|program| program.as_path().file_name().unwrap_or_default().to_os_string());
        let spec = SpawnSpec {
            id: self.free_id(),
            name: self.free_name(&program.unwrap_or_default().to_string_lossy()),
            // Not where it says it is: nothing makes sure that such a path exists, or that asking about it ever ends.
            cwd: process_cwd(session).unwrap_or_else(|| PathBuf::from("/")).into_os_string().into(),
            size: self.size_of_new(&place, session),
            env: Vec::new(),
            umask: None,
            meta: serde_json::json!({ META_SHELL: argv, PASSING: true }),
            argv,
        };
        let like = Some(session.id);
        self.ask_to_spawn(client, What::Shell(place), spec, like);
    }

    /// The size that a new shell will have, so that it begins with it.
    fn size_of_new(&self, place: &Where, session: &MuxSession) -> TerminalSize {
        let Some(tab) = self.layout.tab_of(&session.id) else { return session.size() };
        let size = tab.size.unwrap_or_else(|| session.size());
        let Where::Beside(beside, direction) = place else { return size };
        let mut layout = self.layout.clone();
        let new = self.free_id();
        let tab = layout.split(beside, *direction, &new);
        let placement = layout.tab(tab).map(|tab| TabPlacement::of(tab, size));
        let pane =
            placement.and_then(|placement| placement.panes.into_iter().find(|pane| pane.session == new));
        pane.map_or(size, |pane| pane.rect.size())
    }

    /// Starts what a request asks for.
    pub fn spawn_requested(&mut self, client: ClientId, request: u64, spec: SpawnSpec, focus: bool) {
        self.ask_to_spawn(client, What::Spawn { request, focus }, spec, None);
    }

    fn ask_to_spawn(&mut self, client: ClientId, what: What, spec: SpawnSpec, like: Option<SessionId>) {
        let number = self.next_number();
        let asked = Asked { number, client, what, session: Some(spec.id) };
        if self.asked.len() >= MAX_ASKED {
            return self.not_done(
                asked,
                RequestRefusal::new(error_code::TOO_LARGE, "too many sessions are being started"),
            );
        }
        let spec = Box::new(spec);
        let message = match like {
            Some(like) => ToKeeper::SpawnLike { request: number, spec, like },
            None => ToKeeper::Spawn { request: number, spec },
        };
        match self.link.send(&message, &[]) {
            Ok(()) => self.asked.push(asked),
            Err(err) => self.not_done(asked, RequestRefusal::new(error_code::SPAWN_FAILED, err.to_string())),
        }
    }

    /// A session was started: shows it to the client that asked for it.
    pub fn session_came(&mut self, info: &SessionInfo) {
        let asked = info.request.and_then(|number| self.take_asked(number));
        let tab = match &asked {
            Some(Asked { what: What::Shell(Where::Beside(session, direction)), .. }) => {
                self.layout.split(session, *direction, &info.id)
            }
            _ => self.layout.add_as_in(&self.earlier.layout, &info.id),
        };
        self.refit = true;
        let Some(asked) = asked else { return };
        match asked.what {
            What::Shell(_) => {
                self.show_tab(asked.client, Some(tab));
                self.release_held(asked.client);
            }
            What::Spawn { request, focus } => {
                if focus {
                    self.show_to_all(&info.id);
                }
                self.reply(asked.client, request, Ok(SpawnReply { session: info.id, pid: info.pid }));
            }
            What::Upgrade { .. } => {}
        }
        if let Some(status) = self.session(&info.id).map(|session| self.status_of(session)) {
            self.emit(&Event::Started { status: Box::new(status) }, Some(&info.id));
        }
    }

    /// Shows a session to every client that is attached.
    pub fn show_to_all(&mut self, session: &SessionId) {
        if let Some(tab) = self.layout.focus(session) {
            self.layout.look_at(tab);
            let clients: Vec<ClientId> = self.clients.keys().copied().collect();
            clients.into_iter().for_each(|id| self.show_tab(id, Some(tab)));
            self.refit = true;
        }
    }

    pub fn spawn_failed(&mut self, number: u64, errno: i32, text: &str) {
        if let Some(asked) = self.take_asked(number) {
            let errno = Some(errno).filter(|errno| *errno != 0);
            self.not_done(
                asked,
                RequestRefusal { errno, ..RequestRefusal::new(error_code::SPAWN_FAILED, text) },
            );
        }
    }

    /// Whether a shell that a client opened by a key has not come yet.
    pub fn awaits_shell(&self, client: ClientId) -> bool {
        self.asked.iter().any(|asked| asked.client == client && matches!(asked.what, What::Shell(_)))
    }

    fn take_asked(&mut self, number: u64) -> Option<Asked> {
        let at = self.asked.iter().position(|asked| asked.number == number)?;
        Some(self.asked.swap_remove(at))
    }

    fn not_done(&mut self, asked: Asked, refusal: RequestRefusal) {
        match asked.what {
            What::Shell(_) => {
                // It was meant for a program that does not exist; another one must not get it.
                if let Some(view) = self.view_mut(asked.client) {
                    view.held.clear();
                }
                self.say(asked.client, refusal.message);
            }
            What::Spawn { request, .. } | What::Upgrade { request } => {
                self.refuse(asked.client, request, refusal)
            }
        }
    }

    /// Asks the keeper to continue on another binary. The answer comes with the end of this mux, or with a refusal.
    pub fn upgrade(&mut self, client: ClientId, request: u64, upgrade: Upgrade) {
        // Only this mux has it, and the next one would not.
        if let Some(session) = self.sessions.iter().find(|session| session.input_waiting() > 0) {
            let waits = format!("{} has not read its earlier input yet; try again later", session.label());
            return self.refuse(client, request, RequestRefusal::new(error_code::UPGRADE_REFUSED, waits));
        }
        let number = self.next_number();
        self.asked.push(Asked { number, client, what: What::Upgrade { request }, session: None });
        self.tell_keeper(ToKeeper::Upgrade { exe: upgrade.exe });
    }

    pub fn upgrade_failed(&mut self, text: &str) {
        for asked in self.take_upgrades() {
            self.not_done(asked, RequestRefusal::new(error_code::UPGRADE_REFUSED, text));
        }
    }

    /// The keeper sends this mux home, which is how an upgrade that was asked for begins.
    pub fn upgrade_begins(&mut self) {
        for asked in self.take_upgrades() {
            if let What::Upgrade { request } = asked.what {
                self.reply(asked.client, request, Ok(Done {}));
            }
        }
    }

    fn take_upgrades(&mut self) -> Vec<Asked> {
        let (upgrades, rest) = std::mem::take(&mut self.asked)
            .into_iter()
            .partition(|asked| matches!(asked.what, What::Upgrade { .. }));
        self.asked = rest;
        upgrades
    }

    /// `program`, or with the first number that makes it a name no session has: two tabs that are called alike can only be
    /// told apart by their ids.
    fn free_name(&self, program: &str) -> String {
        let taken = |name: &str| self.sessions.iter().any(|session| session.label() == name);
        let numbered = (2..).map(|number| format!("{program}-{number}"));
        let mut names = std::iter::once(program.to_owned()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or_default()
    }

    /// An id that no session has, and no journal or name of an earlier one.
    fn free_id(&self) -> SessionId {
        let taken = |id: &SessionId| {
            self.session(id).is_some()
                || self.asked.iter().any(|asked| asked.session.as_ref() == Some(id))
                || self.instance_dir.journal(id).exists()
                || self.earlier.names.contains_key(id)
        };
        (1..u32::MAX).map(SessionId).find(|id| !taken(id)).unwrap_or(SessionId(u32::MAX))
    }
}

/// Whether a session was opened by a key, and leaves nothing to come back to when it ends.
pub(crate) fn is_passing(session: &MuxSession) -> bool {
    session.meta.get(PASSING).is_some()
}

/// Removes the journal of a session.
pub(crate) fn forget_journal(session: &MuxSession, instance_dir: &InstanceDir) {
    // The ring and whatever belongs to it are named after the session. What cannot be removed goes with the instance directory.
    let name = format!("{}.", session.id);
    for entry in std::fs::read_dir(instance_dir.journal_dir()).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(name.as_bytes()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The shell that the launcher named for a session's environment.
fn shell_of(session: &MuxSession) -> Option<Vec<OsText>> {
    let argv: Vec<OsText> = serde_json::from_value(session.meta.get(META_SHELL)?.clone()).ok()?;
    (!argv.is_empty()).then_some(argv)
}

/// Where a session's process is. Reading the link does not touch what it leads to.
fn process_cwd(session: &MuxSession) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{}/cwd", session.pid)).ok()
}
