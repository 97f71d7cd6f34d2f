//! Which session is in which conversation, over all instances.

use std::path::Path;

use abide_model::{Conversation, Instance, InstanceId, Session, SessionId, Timestamp};
use abide_store::{ClaimsLock, Store, StoreError};

/// A session of an instance.
pub(crate) type Who = (InstanceId, SessionId);

/// The conversation of every session, under a lock that prevents changes. Most agents let two processes write one transcript, which
/// then has two ends of which one is lost; so the code that binds a session to a conversation looks here first, and has
/// written it down before this is dropped.
pub(crate) struct Claims {
    instances: Vec<Instance>,
    _lock: ClaimsLock,
}

impl Claims {
    pub fn take(store: &Store) -> Result<Self, StoreError> {
        let lock = store.lock_claims()?;
        let instances = store.list()?.iter().filter_map(|entry| entry.sound().cloned()).collect();
        Ok(Self { instances, _lock: lock })
    }

    fn others(&self, own: Who) -> impl Iterator<Item = (&Instance, &Session)> {
        let all = self.instances.iter().flat_map(|i| i.sessions.iter().map(move |session| (i, session)));
        all.filter(move |(instance, session)| (instance.id, session.id) != own)
    }

    /// The session other than `own` that is in conversation `id`. One that left it, or is in the trash, does not hold it.
    pub fn holder(&self, own: Option<Who>, id: &str) -> Option<String> {
        self.holder_since(own, id, Timestamp(i64::MIN))
    }

    /// The same, of those who were bound to it after `since`: of two that are bound to one, as after a return from the
    /// trash, the later has it.
    pub fn holder_since(&self, own: Option<Who>, id: &str, since: Timestamp) -> Option<String> {
        let none = (InstanceId::from_bits(0), SessionId(0));
        let has = |session: &Session| {
            session.conversation.as_ref().is_some_and(|bound| bound.id == id && bound.bound > since)
        };
        let holder = self.others(own.unwrap_or(none)).find(|(_, session)| has(session));
        holder.map(|(instance, session)| format!("{}/{}", instance.id.display_name(), session.id))
    }

    /// Goes on as if session `who` were bound to `conversation`.
    pub fn suppose(&mut self, who: Who, conversation: Conversation) {
        let instance = self.instances.iter_mut().find(|instance| instance.id == who.0);
        let sessions = instance.into_iter().flat_map(|instance| &mut instance.sessions);
        if let Some(session) = sessions.into_iter().find(|session| session.id == who.1) {
            session.bind(conversation);
        }
    }

    /// The conversation that session `who` is bound to.
    pub fn bound(&self, who: Who) -> Option<&str> {
        let instance = self.instances.iter().find(|instance| instance.id == who.0)?;
        let session = instance.sessions.iter().find(|session| session.id == who.1)?;
        session.conversation.as_ref().map(|bound| bound.id.as_str())
    }

    /// The sessions that were seen in conversation `id`, though they are bound to another one.
    pub fn astray_in(&self, id: &str) -> Vec<String> {
        let all = self.instances.iter().flat_map(|i| i.sessions.iter().map(move |session| (i, session)));
        let astray = all.filter(|(_, session)| session.astray.as_ref().is_some_and(|one| one.id == id));
        astray.map(|(instance, session)| format!("{}/{}", instance.id, session.id)).collect()
    }

    /// Every conversation that a session other than `own` was ever in, be it closed or in the trash by now.
    pub fn ever(&self, store: &Store, own: Who) -> Result<Vec<String>, StoreError> {
        let ids = |instance: &Instance| instance.claimed().map(str::to_owned).collect::<Vec<_>>();
        let mut claimed: Vec<String> =
            self.others(own).flat_map(|(_, session)| session.claimed().map(str::to_owned)).collect();
        claimed.extend(self.instances.iter().flat_map(|i| i.parked.iter().map(|c| c.id.clone())));
        for entry in store.trashed()? {
            claimed.extend(entry.content.as_ref().map(ids).unwrap_or_default());
        }
        Ok(claimed)
    }

    /// Whether a session other than `own` runs `agent` in `cwd`, and its conversation is unknown.
    pub fn rivals(&self, own: Who, agent: &str, cwd: &Path) -> bool {
        let rival = |session: &Session| {
            let same = || session.agent.as_deref().is_some_and(|name| same_agent(name, session, agent));
            session.conversation.is_none() && session.cwd == cwd && same()
        };
        self.others(own).any(|(_, session)| rival(session))
    }
}

fn same_agent(name: &str, session: &Session, agent: &str) -> bool {
    let described = session.setup.as_ref().map(|setup| &setup.described);
    abide_agents::for_session(name, &session.argv, described).name() == agent
}
