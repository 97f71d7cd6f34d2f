//! When a series of resumes leaves the rest alone: what keeps failing for one account would fail again, and may cost the
//! others their login.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::decide::Decided;
use crate::instance::Instance;
use crate::session::Session;

/// After so many failures in a row nothing more is started for an account: what fails them all will fail the rest too.
const FAILURES: usize = 3;

/// After so many agents that are not logged in nothing more is started for an account.
const LOGINS: usize = 2;

/// An agent with the directory that its credentials are in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    agent: String,
    dir: PathBuf,
}

impl Account {
    /// The account of `session`; `None` for a shell or another command, which needs none.
    pub fn of(session: &Session) -> Option<Self> {
        let dir = session.setup.as_ref().map(|setup| setup.config_dir.clone()).unwrap_or_default();
        Some(Self { agent: session.agent.clone()?, dir })
    }

    /// The accounts of what a resume of `instance` starts.
    pub fn all_of(instance: &Instance) -> Vec<Self> {
        instance.sessions_to_resume().iter().filter_map(|session| Self::of(session)).collect()
    }
}

/// How a resume went, for the accounts in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeResult {
    Up,
    /// An agent said that it is not logged in.
    NotLoggedIn,
    /// It failed for another reason.
    Failed,
}

#[derive(Debug, Default, Clone, Copy)]
struct Failures {
    in_a_row: usize,
    logins: usize,
}

/// Stops a series of resumes that keeps failing for an account. Shells have none, and are never held back.
#[derive(Debug, Default)]
pub struct Brake(BTreeMap<Account, Failures>);

impl Brake {
    /// Takes note of how a resume went that concerned `accounts`.
    pub fn note(&mut self, accounts: &[Account], result: ResumeResult) {
        for account in accounts {
            let failures = self.0.entry(account.clone()).or_default();
            match result {
                ResumeResult::Up => failures.in_a_row = 0,
                ResumeResult::NotLoggedIn => {
                    failures.in_a_row += 1;
                    failures.logins += 1;
                }
                ResumeResult::Failed => failures.in_a_row += 1,
            }
        }
    }

    /// Whether something with these `accounts` is better left alone, and why.
    pub fn holds(&self, accounts: &[Account]) -> Decided<bool> {
        for account in accounts {
            let Failures { in_a_row, logins } = self.0.get(account).copied().unwrap_or_default();
            if logins >= LOGINS {
                return Decided::new(true, format!("{} is not logged in", account.agent));
            }
            if in_a_row >= FAILURES {
                let why = format!("{} failed {in_a_row} times in a row", account.agent);
                return Decided::new(true, why);
            }
        }
        Decided::new(false, "nothing that it needs has kept failing")
    }
}

#[cfg(test)]
mod tests {
    use super::ResumeResult::{Failed, NotLoggedIn, Up};
    use super::*;

    fn account(agent: &str, dir: &str) -> Account {
        Account { agent: agent.to_owned(), dir: dir.into() }
    }

    fn after(results: &[ResumeResult]) -> Brake {
        let mut brake = Brake::default();
        results.iter().for_each(|result| brake.note(&[account("claude", "/a")], *result));
        brake
    }

    #[test]
    fn failures_in_a_row_hold_the_rest_of_that_account_and_single_ones_do_not() {
        let claude = [account("claude", "/a")];
        assert!(!after(&[Failed, Failed, Up, Failed, Failed]).holds(&claude).decision);
        assert!(after(&[Up, Failed, Failed, Failed]).holds(&claude).decision);
        assert!(!after(&[NotLoggedIn, Up]).holds(&claude).decision);
        assert!(after(&[NotLoggedIn, Up, NotLoggedIn]).holds(&claude).decision);
    }

    #[test]
    fn shells_other_agents_and_other_accounts_are_not_held_back() {
        let brake = after(&[NotLoggedIn, NotLoggedIn, Failed]);
        for accounts in [vec![], vec![account("codex", "/a")], vec![account("claude", "/b")]] {
            assert!(!brake.holds(&accounts).decision, "{accounts:?}");
        }
        let held = brake.holds(&[account("codex", "/a"), account("claude", "/a")]);
        assert!(held.decision && held.reason == "claude is not logged in", "{held:?}");
    }
}
