//! What git says a mount holds that exists nowhere else.

use serde::{Deserialize, Serialize};

use crate::choice::Isolation;

/// One path that differs from what is committed, as `git status` names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The two-letter code of `git status --porcelain`: ` M`, `??`, `UU`, `!!` for an ignored file that is new.
    pub code: String,
    /// The path within the mount, with bytes that are not UTF-8 replaced.
    pub path: String,
}

/// Commits that no remote has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ahead {
    /// The branch, or `HEAD` where it is detached.
    pub branch: String,
    pub commits: u64,
    /// What they are ahead of, or why there is nothing to compare with (`no upstream`, `upstream gone`).
    pub against: String,
}

/// Everything found in one isolated mount.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountEvidence {
    /// Where the mount is seen in the instance.
    pub target: String,
    /// How it was materialised.
    pub isolation: Isolation,
    /// The branch that is checked out; none for a detached HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Changed, untracked, conflicted and newly ignored files, in submodules too.
    pub files: Vec<FileChange>,
    /// Branches, or a detached HEAD, with commits that exist nowhere else.
    pub ahead: Vec<Ahead>,
    /// Stashes made since, by their message.
    pub stashes: Vec<String>,
    /// Tags and other refs made here whose objects no commit leads to, such as the message of a tag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<String>,
    /// Worktrees elsewhere that belong to this mount's repository and do not work without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<String>,
    /// A rebase, merge, cherry-pick or bisect that is not finished.
    pub operation: Option<String>,
    /// What could not be found out, and why. Not knowing counts as work.
    pub unknown: Vec<String>,
    /// What was taken for no work on grounds that may be wrong, such as the name of a directory. It is not asked about,
    /// but neither is it let go early.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guesses: Vec<String>,
}

/// What all the evidence of an instance amounts to, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Something could not be examined.
    Unknown,
    /// There are changes that were never committed.
    Dirty,
    /// There are commits that exist nowhere else.
    Unpushed,
    /// Nothing would be lost.
    Clean,
}

/// What happened to the host's repository since a tree was preserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRepo {
    Unchanged,
    /// It went on from there; how, line by line.
    Moved(Vec<String>),
    /// It went another way; how, line by line.
    Diverged(Vec<String>),
    /// That could not be found out; why, line by line.
    Unknown(Vec<String>),
}

impl MountEvidence {
    /// What this mount amounts to. A shared mount is the host's own and is never at risk from us.
    pub fn verdict(&self) -> Verdict {
        if self.isolation == Isolation::Shared {
            Verdict::Clean
        } else if !self.unknown.is_empty() {
            Verdict::Unknown
        } else if !self.files.is_empty()
            || !self.stashes.is_empty()
            || !self.linked.is_empty()
            || self.operation.is_some()
        {
            Verdict::Dirty
        } else if !self.ahead.is_empty() || !self.refs.is_empty() {
            Verdict::Unpushed
        } else {
            Verdict::Clean
        }
    }
}

/// Whether `mounts` may hold something that exists nowhere else: true unless it is certain that they do not.
pub fn may_hold_work(mounts: &[MountEvidence]) -> bool {
    let ours = |mount: &&MountEvidence| mount.isolation != Isolation::Shared;
    verdict(mounts) != Verdict::Clean || mounts.iter().filter(ours).any(|mount| !mount.guesses.is_empty())
}

/// The worst verdict among `mounts`; an instance without isolated mounts has nothing at risk.
pub fn verdict(mounts: &[MountEvidence]) -> Verdict {
    mounts.iter().map(MountEvidence::verdict).min().unwrap_or(Verdict::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(isolation: Isolation) -> MountEvidence {
        MountEvidence { isolation, ..Default::default() }
    }

    fn each_kind_of_work() -> Vec<(Verdict, MountEvidence)> {
        let base = || mount(Isolation::Worktree);
        vec![
            (Verdict::Clean, base()),
            (
                Verdict::Dirty,
                MountEvidence { files: vec![FileChange { code: "??".into(), path: "a".into() }], ..base() },
            ),
            (Verdict::Dirty, MountEvidence { stashes: vec!["wip".into()], ..base() }),
            (Verdict::Dirty, MountEvidence { operation: Some("rebase".into()), ..base() }),
            (
                Verdict::Unpushed,
                MountEvidence {
                    ahead: vec![Ahead { branch: "main".into(), commits: 1, against: "no upstream".into() }],
                    ..base()
                },
            ),
            (Verdict::Dirty, MountEvidence { linked: vec!["/elsewhere".into()], ..base() }),
            (Verdict::Unpushed, MountEvidence { refs: vec!["tag v1".into()], ..base() }),
            (Verdict::Clean, MountEvidence { guesses: vec!["build/".into()], ..base() }),
            (Verdict::Unknown, MountEvidence { unknown: vec!["git status: timed out".into()], ..base() }),
        ]
    }

    #[test]
    fn each_kind_of_work_is_at_risk_in_a_worktree_and_in_a_clone() {
        for (expected, found) in each_kind_of_work() {
            for isolation in [Isolation::Worktree, Isolation::Clone] {
                let found = MountEvidence { isolation, ..found.clone() };
                assert_eq!(found.verdict(), expected, "{found:?}");
            }
        }
    }

    #[test]
    fn a_shared_mount_is_the_hosts_own() {
        for (_, found) in each_kind_of_work() {
            assert_eq!(MountEvidence { isolation: Isolation::Shared, ..found }.verdict(), Verdict::Clean);
        }
    }

    #[test]
    fn one_unknown_mount_makes_the_whole_unknown() {
        let all: Vec<_> = each_kind_of_work().into_iter().map(|(_, m)| m).collect();
        assert_eq!(verdict(&all), Verdict::Unknown);
        assert_eq!(verdict(&all[..5]), Verdict::Dirty);
        assert_eq!(verdict(&[]), Verdict::Clean);
    }

    #[test]
    fn only_what_is_clean_without_a_guess_certainly_holds_no_work() {
        let none = mount(Isolation::Clone);
        assert!(!may_hold_work(std::slice::from_ref(&none)) && !may_hold_work(&[]));
        for (verdict, found) in each_kind_of_work() {
            let certain = verdict == Verdict::Clean && found.guesses.is_empty();
            assert_eq!(may_hold_work(&[none.clone(), found.clone()]), !certain, "{found:?}");
            assert!(!may_hold_work(&[MountEvidence { isolation: Isolation::Shared, ..found }]));
        }
    }
}
