//! Waiting for something in a pane. tmux does not report what happens there, so it is asked again and again.

use std::time::{Duration, Instant};

use abide_model::activity::{self, Background};
use abide_model::{Doing, SessionId};
use abide_sys::clock;
use abide_wire::protocol::{EvidenceReply, Snapshot, Until, WaitOutcome, WaitReply};

use super::{Tmux, size};
use crate::substrate::{NoAnswer, Substrate};
use crate::tmux::{TmuxPane, enter};

/// How often tmux is asked.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a pane has shown nothing new, at least: tmux counts in whole seconds.
pub(super) fn quiet_ms(pane: &TmuxPane) -> u64 {
    let since = clock::now().0.saturating_sub(pane.active.saturating_mul(1000)).saturating_sub(1000);
    u64::try_from(since).unwrap_or(0)
}

fn is_idle(seen: &EvidenceReply, background: Background) -> bool {
    let doing = seen.activity.state;
    let waits = background == Background::Ignored
        && activity::is_only_background(doing, seen.statements.iter().map(|one| one.says));
    waits || doing != Doing::Working
}

pub(super) fn wait(
    tmux: &Tmux,
    session: &SessionId,
    until: &Until,
    timeout_ms: Option<u64>,
) -> Result<WaitReply, NoAnswer> {
    let deadline = timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
    let reply = |outcome, exit, line| Ok(WaitReply { outcome, exit, line, problem: None });
    let mut idle: Option<Instant> = None;
    // A session that never was is an error; one that ends meanwhile is an end.
    tmux.pane(session)?;
    loop {
        let Some(pane) = tmux.panes()?.into_iter().find(|pane| pane.session == session.to_string()) else {
            let outcome = if *until == Until::Exit { WaitOutcome::Reached } else { WaitOutcome::Exited };
            return reply(outcome, tmux.exit(session), None);
        };
        match until {
            Until::Exit => {}
            Until::Idle { quiet_ms: wanted, background } => {
                let told = tmux.look(&pane).map(|seen| is_idle(&seen, *background));
                idle = told.unwrap_or(false).then(|| idle.unwrap_or_else(Instant::now));
                // What was just typed may not have been taken notice of.
                let settled = idle.is_some_and(|since| since.elapsed() >= activity::SETTLE);
                if settled || told.is_none() && quiet_ms(&pane) >= *wanted {
                    return reply(WaitOutcome::Reached, None, None);
                }
            }
            Until::Text { pattern } => {
                let found = new_line(tmux, session, &pane, pattern);
                if found.is_some() {
                    return reply(WaitOutcome::Reached, None, found);
                }
            }
            // Of a pane it is known what it shows, and not when it was typed into.
            Until::Echoed { .. } => return reply(WaitOutcome::Reached, None, None),
            Until::Ready => {
                let known = tmux.look(&pane).is_none_or(|seen| seen.activity.state != Doing::Unknown);
                if known {
                    return reply(WaitOutcome::Reached, None, None);
                }
            }
            Until::NeedsInput => {
                if tmux.look(&pane).is_some_and(|seen| seen.activity.state == Doing::NeedsInput) {
                    return reply(WaitOutcome::Reached, None, None);
                }
            }
        }
        if deadline.is_some_and(|at| Instant::now() >= at) {
            return reply(WaitOutcome::TimedOut, None, None);
        }
        std::thread::sleep(PAUSE);
    }
}

/// The first line on the pane's screen that holds `text` and is not of an earlier run. The pane may end meanwhile, which
/// the next round sees.
fn new_line(tmux: &Tmux, session: &SessionId, pane: &TmuxPane, text: &str) -> Option<String> {
    let lines = tmux.screen(session, &Snapshot::default()).ok()?.lines;
    if !lines.iter().any(|line| line.contains(text)) {
        return None;
    }
    let earlier = rows_of_earlier_run(tmux, session, pane).unwrap_or(0);
    lines.into_iter().skip(earlier).find(|line| line.contains(text))
}

/// How many rows at the top of the screen an earlier run left. Where they cannot be distinguished from others any more, as after the
/// program has cleared the screen, all rows count as new.
fn rows_of_earlier_run(tmux: &Tmux, session: &SessionId, pane: &TmuxPane) -> Option<usize> {
    let past = enter::past(&tmux.instance_dir, session, size(pane)).filter(|_| !pane.alternate)?;
    let all = tmux.screen(session, &Snapshot { scrollback: true, ..Snapshot::default() }).ok()?;
    let left = all.lines.starts_with(&past).then_some(past.len())?;
    Some(left.saturating_sub(all.scrollback_lines))
}
