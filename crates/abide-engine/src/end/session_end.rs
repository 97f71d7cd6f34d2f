//! Gathers what is known of sessions whose processes have ended, and writes down what their ends mean.

use std::time::Duration;

use abide_agents::activity::ended_in;
use abide_model::session::SessionExit;
use abide_model::session_end::{self, Interruption, LastActivity, Meaning, SessionEnd};
use abide_model::{Decided, Instance, Session, Timestamp};
use abide_sys::clock;
use abide_wire::exit_record::{ExitRecord, RecordedSession};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::last_seen::{LastSeen, LastSeenAll};

use crate::conversation::agent_environment::agent_of;
use crate::end::finish;

/// An interrupt that was typed this long before the end led to it.
const INTERRUPTED_WITHIN_MS: i64 = 3000;

/// The signals by which tmux, or a key in its pane, ends a program; and by which abide ends one there.
const FROM_TMUX: [i32; 3] = [1, 2, 15];

/// Writes down how the sessions of `record` ended, and what was left open.
pub(crate) fn note(instance_dir: &InstanceDir, instance: &mut Instance, record: &ExitRecord) {
    let seen = LastSeenAll::read(instance_dir, record.generation);
    for recorded in &record.sessions {
        let Some(session) = instance.sessions.iter_mut().find(|session| session.id == recorded.id) else {
            continue;
        };
        let last = seen.of(&recorded.id);
        session.interruption = interruption(session, &last);
        let Some(mut exit) = exit_of(recorded) else {
            session.exit = None;
            continue;
        };
        let Decided { decision, reason } = meaning(session, recorded, record, &last, &exit);
        exit.cut = (decision == Meaning::CutShort).then(|| reason.into_owned());
        session.exit = Some(exit);
    }
}

/// What the end of `session` in the run of `record` means; `None` while it runs.
pub(crate) fn of(
    instance_dir: &InstanceDir,
    session: &Session,
    record: &ExitRecord,
) -> Option<Decided<Meaning>> {
    let recorded = record.sessions.iter().find(|recorded| recorded.id == session.id)?;
    let last = LastSeenAll::read(instance_dir, record.generation).of(&session.id);
    Some(meaning(session, recorded, record, &last, &exit_of(recorded)?))
}

pub(crate) fn exit_of(recorded: &RecordedSession) -> Option<SessionExit> {
    let at = recorded.ended_ms.map_or_else(clock::now, finish::moment);
    recorded.exit.map(|exit| SessionExit { stopped: recorded.stopped, ..finish::exit_of(exit, at) })
}

fn meaning(
    session: &Session,
    recorded: &RecordedSession,
    record: &ExitRecord,
    last: &LastSeen,
    exit: &SessionExit,
) -> Decided<Meaning> {
    let by_tmux = record.tmux.is_some() && exit.signal.is_some_and(|signal| FROM_TMUX.contains(&signal));
    let recently = |at: i64| exit.at.0.saturating_sub(at) < INTERRUPTED_WITHIN_MS;
    let lasted = recorded.ended_ms.and_then(|ended| ended.checked_sub(record.started_ms));
    let interruption = interruption(session, last);
    session_end::meaning(&SessionEnd {
        exit,
        is_agent: session.agent.is_some(),
        has_spoken: session.has_spoken(),
        is_resumed: session.generation > 1,
        lasted: lasted.map_or(Duration::MAX, Duration::from_millis),
        is_asked: recorded.asked || by_tmux,
        is_interrupted: last.interrupted_ms.is_some_and(recently),
        was_typed_to: last.typed,
        interruption: interruption.as_ref(),
    })
}

fn interruption(session: &Session, last: &LastSeen) -> Option<Interruption> {
    let (agent, _) = agent_of(session).filter(|_| last.told)?;
    let transcript = session.conversation.as_ref().and_then(|bound| bound.transcript.as_ref());
    let transcript = transcript.and_then(|path| ended_in(&*agent, path, Timestamp(last.at_ms)));
    let (doing, detail) = (last.doing, last.detail.clone());
    session_end::interruption(&LastActivity { doing, detail, transcript })
}
