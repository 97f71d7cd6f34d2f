//! What a session in tmux is doing. No process watches it: it is examined on demand, with everything that an agent says
//! elsewhere, its title and its screen. What a program says through its terminal tmux keeps to itself.

use std::time::{Duration, Instant};

use abide_journal::snapshot;
use abide_model::Doing;
use abide_model::activity::{self, ActivityEvidence};
use abide_model::watching::{Watched, WatcherInput};
use abide_sys::clock;
use abide_wire::protocol::{ActivityReport, EvidenceReply, Snapshot, SourceReport};

use super::{Tmux, drawing, size, waiting};
use crate::tmux::TmuxPane;
use crate::tmux::pane_process::{Heard, InPane};

impl Tmux {
    /// What the session in `pane` is doing, and who says so. `None` where nothing says.
    pub(super) fn look(&self, pane: &TmuxPane) -> Option<EvidenceReply> {
        let (session, generation) = (pane.session.parse().ok()?, self.record.generation);
        let known = InPane::read(&self.instance_dir, &session, generation)?;
        let mut watcher = abide_agents::activity::watch(Watched { pid: known.pid, meta: &known.meta })?;
        let now = Instant::now();
        if let Some(heard) = Heard::last(&self.instance_dir, &session, generation) {
            let at = now.checked_sub(heard.at.age(clock::now())).unwrap_or(now);
            watcher.hear(&heard.report, at);
        }
        let captured = self.server.capture(&pane.id).ok()?;
        let drawn =
            snapshot::drawn_by(&session, size(pane), &drawing(&captured), &Snapshot::default()).ok()?;
        let seen = watcher.look(&WatcherInput { now, title: &pane.title, screen: Some(&drawn.lines) });
        let quiet = Duration::from_millis(waiting::quiet_ms(pane));
        (!seen.evidence.is_empty()).then(|| reply(&seen.evidence, quiet))
    }

    /// The same, of one of which nothing says anything.
    pub(super) fn unknown(&self, pane: &TmuxPane) -> EvidenceReply {
        let because = "no reports: tmux does not pass on terminal notifications".to_owned();
        let for_ms = waiting::quiet_ms(pane);
        let activity = ActivityReport {
            state: Doing::Unknown,
            for_ms,
            because,
            question: None,
            is_waiting_shell: false,
        };
        EvidenceReply { activity, statements: Vec::new() }
    }
}

fn reply(evidence: &[ActivityEvidence], quiet: Duration) -> EvidenceReply {
    let millis = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    let activity::Activity { doing, age, because, question, .. } =
        activity::decide(evidence, quiet, Doing::Unknown);
    let statement = |one: &ActivityEvidence| SourceReport {
        source: one.source,
        says: one.says,
        for_ms: millis(one.age),
        detail: one.detail.clone(),
    };
    EvidenceReply {
        activity: ActivityReport {
            state: doing,
            for_ms: millis(age),
            because,
            question,
            is_waiting_shell: false,
        },
        statements: evidence.iter().map(statement).collect(),
    }
}
