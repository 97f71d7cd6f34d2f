//! Decisions about instances, each with its reason.

use std::borrow::Cow;

use crate::choice::Policy;
use crate::evidence::Verdict;
use crate::status::{Ending, Kept};

/// A decision and why it fell that way. The reason is what logs, `abide explain` and the tests read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided<T, R = Cow<'static, str>> {
    pub decision: T,
    pub reason: R,
}

impl<T, R> Decided<T, R> {
    /// `decision`, for `reason`.
    pub fn new(decision: T, reason: impl Into<R>) -> Self {
        Self { decision, reason: reason.into() }
    }
}

/// How the supervisor of an instance came to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The last session ended by itself.
    LastSessionEnded,
    /// It was asked to stop from outside: by a shutdown, an engine, a service manager.
    Signalled,
    Fatal,
}

/// What the operator chose when asked at the end of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitChoice {
    /// Go back to the agent.
    Return,
    /// Keep everything for later.
    Keep,
    /// Discard it, having seen what goes.
    Discard,
    /// No operator was there to choose, or none answered: it stays kept as it is.
    Unanswered,
}

/// What is known when an instance ends.
#[derive(Debug, Clone, Copy)]
pub struct EndFacts {
    /// The policy of the launch if it had one, else of the workspace, else the default.
    pub policy: Policy,
    /// How it came to stop.
    pub stopped: Stopped,
    /// What the mounts hold.
    pub verdict: Verdict,
}

/// What to do with an instance that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    Finish(Ending),
    Keep(Kept),
}

/// Decides about an instance whose sessions have all ended.
///
/// What holds work is kept before the operator is asked about it: a question that is never answered, because the terminal went
/// away or the machine did, then has its harmless answer already.
pub fn leave(facts: &EndFacts) -> Decided<Leave> {
    match facts.stopped {
        Stopped::Signalled => {
            return Decided::new(Leave::Keep(Kept::Stopped), "it was stopped, not finished");
        }
        Stopped::Fatal => return Decided::new(Leave::Keep(Kept::Crashed), "its supervisor failed"),
        Stopped::LastSessionEnded => {}
    }
    match (facts.policy, at_risk(facts.verdict)) {
        (Policy::Keep, _) => Decided::new(Leave::Keep(Kept::Kept), "the policy is keep"),
        (Policy::Clean, _) => Decided::new(Leave::Finish(Ending::Policy), "the policy is clean"),
        (Policy::Ask, None) => Decided::new(Leave::Finish(Ending::Clean), "nothing is at risk"),
        (Policy::Ask, Some(kept)) => Decided::new(Leave::Keep(kept), "work is at risk"),
    }
}

fn at_risk(verdict: Verdict) -> Option<Kept> {
    match verdict {
        Verdict::Clean => None,
        Verdict::Dirty => Some(Kept::Dirty),
        Verdict::Unpushed => Some(Kept::Unpushed),
        Verdict::Unknown => Some(Kept::Unknown),
    }
}

/// Which of the instances that a scope keeps, given oldest first, are one too many where it keeps at most `max`: the
/// oldest, of those that hold nothing. What holds work stays, even if there are too many of them. 0 is no limit.
pub fn surplus(kept: &[Verdict], max: usize) -> Vec<usize> {
    let over = if max == 0 { 0 } else { kept.len().saturating_sub(max) };
    let clean = kept.iter().enumerate().filter(|(_, verdict)| **verdict == Verdict::Clean);
    clean.map(|(index, _)| index).take(over).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clean_instances_are_too_many_and_the_oldest_first() {
        use Verdict::{Clean, Dirty, Unknown, Unpushed};
        assert_eq!(surplus(&[Clean, Clean, Clean], 2), [0]);
        assert_eq!(surplus(&[Dirty, Clean, Unknown, Clean], 1), [1, 3]);
        assert!(surplus(&[Dirty, Unpushed, Unknown], 1).is_empty());
        assert!(surplus(&[Clean, Clean], 2).is_empty());
        assert!(surplus(&[Clean; 9], 0).is_empty(), "0 is no limit");
    }

    const VERDICTS: [Verdict; 4] = [Verdict::Clean, Verdict::Dirty, Verdict::Unpushed, Verdict::Unknown];
    const POLICIES: [Policy; 3] = [Policy::Ask, Policy::Keep, Policy::Clean];

    fn leaving(policy: Policy, stopped: Stopped, verdict: Verdict) -> EndFacts {
        EndFacts { policy, stopped, verdict }
    }

    #[test]
    fn being_stopped_from_outside_is_never_finishing() {
        for policy in POLICIES {
            for verdict in VERDICTS {
                for (stopped, kept) in [(Stopped::Signalled, Kept::Stopped), (Stopped::Fatal, Kept::Crashed)]
                {
                    let decided = leave(&leaving(policy, stopped, verdict));
                    assert_eq!(decided.decision, Leave::Keep(kept), "{policy} {verdict:?}");
                }
            }
        }
    }

    #[test]
    fn the_policy_decides_if_the_operator_did_not() {
        use Verdict::{Clean, Dirty, Unknown, Unpushed};
        let ended = Stopped::LastSessionEnded;
        for (policy, verdict, expected) in [
            (Policy::Keep, Clean, Leave::Keep(Kept::Kept)),
            (Policy::Keep, Dirty, Leave::Keep(Kept::Kept)),
            (Policy::Clean, Dirty, Leave::Finish(Ending::Policy)),
            (Policy::Ask, Clean, Leave::Finish(Ending::Clean)),
            (Policy::Ask, Dirty, Leave::Keep(Kept::Dirty)),
            (Policy::Ask, Unpushed, Leave::Keep(Kept::Unpushed)),
            (Policy::Ask, Unknown, Leave::Keep(Kept::Unknown)),
        ] {
            assert_eq!(leave(&leaving(policy, ended, verdict)).decision, expected, "{policy} {verdict:?}");
        }
    }

    #[test]
    fn without_a_policy_nothing_at_risk_is_ever_removed() {
        for stopped in [Stopped::LastSessionEnded, Stopped::Signalled, Stopped::Fatal] {
            for verdict in [Verdict::Dirty, Verdict::Unpushed, Verdict::Unknown] {
                for policy in [Policy::Ask, Policy::Keep] {
                    let decided = leave(&leaving(policy, stopped, verdict));
                    assert!(
                        !matches!(decided.decision, Leave::Finish(_)),
                        "{policy} {verdict:?} {stopped:?}"
                    );
                }
            }
        }
    }
}
