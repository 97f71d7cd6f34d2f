//! Commits that exist nowhere else.
//!
//! In a worktree the refs of the host's repository are all in sight: its own branches keep commits safe, and only what
//! this tree made is asked about. In a clone every ref but what it knows of remotes is the tree's own, and what the host
//! has is asked of the host. In both, what the host's refs reached when the tree was made is the host's business for as
//! long as the host has it, be it in a log only: once it is collected there, the tree may hold the last copy.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use abide_model::evidence::{Ahead, MountEvidence};
use abide_model::{Isolation, Timestamp};
use abide_sys::run::RunError;

use crate::command::{Git, quoted};
use crate::error::GitError;
use crate::evidence::linked::LinkedWorktrees;
use crate::evidence::merged::{self, Merged};
use crate::evidence::refs::{self, HEADS, REMOTES, Ref, STASH, TAGS, short};
use crate::evidence::status::GitStatus;
use crate::gitdir::{self, Trail};

/// What the question is about.
pub(crate) struct AheadQuery<'a> {
    pub git: &'a Git,
    pub isolation: Isolation,
    pub status: &'a GitStatus,
    pub refs: &'a [Ref],
    pub trail: &'a Trail,
    /// The repository that the tree was taken from; none for one inside a tree, where what was recorded has to do.
    pub host: Option<&'a Path>,
    /// What the names of refs begin with by which a clone knows the host's branches.
    pub host_prefix: Option<&'a str>,
    /// What the host's refs reached when the tree was made.
    pub recorded: &'a BTreeMap<String, String>,
    /// The branch made for this tree.
    pub scratch: Option<&'a str>,
    /// The branch that the tree began at.
    pub base: Option<&'a str>,
    /// When the tree was made.
    pub made: Timestamp,
    /// Worktrees that keep commits of theirs in this repository.
    pub linked: &'a LinkedWorktrees,
}

/// The end of a line of commits that this tree made.
#[derive(Debug, Clone)]
struct Tip {
    oid: String,
    /// What people call it.
    label: String,
    against: String,
    /// Nothing but a log, or what a clone knows of its host, names it: it counts if no other tip reaches it.
    left: bool,
}

impl Tip {
    fn oid(&self) -> &str {
        &self.oid
    }
}

impl AheadQuery<'_> {
    /// The ends of everything this tree made.
    fn tips(&self) -> Vec<Tip> {
        let ours = self.refs.iter().filter(|r| self.is_ours(r));
        let mut tips: Vec<_> = ours.map(|r| self.tip(&r.oid, short(&r.name), self.against(r))).collect();
        if let (None, Some(head)) = (&self.status.branch, &self.status.head) {
            tips.push(self.tip(head, "HEAD", "detached".to_owned()));
        }
        for oid in &self.trail.left {
            let tip = self.tip(oid, &format!("HEAD at {oid:.10}, left"), "detached".to_owned());
            tips.push(Tip { left: true, ..tip });
        }
        for r in self.refs.iter().filter(|r| self.is_of_host(r) && r.symref.is_none()) {
            tips.push(Tip { left: true, ..self.tip(&r.oid, short(&r.name), self.against(r)) });
        }
        let linked = self.linked.tips.iter();
        tips.extend(linked.map(|(oid, label)| self.tip(oid, label, "of a worktree elsewhere".to_owned())));
        tips
    }

    fn tip(&self, oid: &str, label: &str, against: String) -> Tip {
        Tip { oid: oid.to_owned(), label: label.to_owned(), against, left: false }
    }

    /// Whether this tree made what the ref reaches.
    fn is_ours(&self, r: &Ref) -> bool {
        if self.isolation == Isolation::Clone {
            // Any other ref goes with the clone too; the host has those that are as they were recorded.
            return r.name != STASH && !r.name.starts_with(REMOTES);
        }
        if refs::is_of_one_worktree(&r.name) {
            return true;
        }
        let Some(name) = r.name.strip_prefix(HEADS) else { return false };
        // A branch that was checked out here and moved on elsewhere is no longer ours.
        let is_where_we_left_it =
            || self.trail.branches.contains(name) && self.trail.commits.contains(&r.oid);
        Some(name) == self.scratch || Some(name) == self.status.branch.as_deref() || is_where_we_left_it()
    }

    /// Whether it is what a clone knows of a branch of its host's, from whenever it last fetched or pushed. Branches of
    /// other instances are theirs to keep.
    fn is_of_host(&self, r: &Ref) -> bool {
        let name = self.host_prefix.and_then(|prefix| r.name.strip_prefix(prefix));
        name.is_some_and(|name| refs::keeps(&format!("{HEADS}{name}")))
    }

    fn against(&self, r: &Ref) -> String {
        match &r.upstream {
            Some(upstream) if self.refs.iter().any(|other| other.name == *upstream) => {
                short(upstream).to_owned()
            }
            Some(_) => "upstream gone".to_owned(),
            None if self.refs.iter().any(|other| other.name.starts_with(REMOTES)) => "no upstream".to_owned(),
            None => "no remote".to_owned(),
        }
    }

    /// The refs that stay, whatever becomes of this tree.
    fn kept(&self) -> impl Iterator<Item = &Ref> {
        self.refs.iter().filter(|r| refs::keeps(&r.name) && !self.is_ours(r) && !self.is_of_host(r))
    }

    /// Adds to `found` what this tree holds that no remote and no other branch of the host has, and that the host did
    /// not have all the time, each with `prefix` before its name. `spare` is a directory for [`merged::into_any`].
    pub(crate) fn look(&self, spare: &Path, prefix: &str, found: &mut MountEvidence) -> Result<(), GitError> {
        let mut safe = SafeCommits::new(self.git, self.kept().map(|r| &r.oid));
        let mut tips = self.tips();
        let host_refs = self.host_refs(&mut safe, found);
        tips.retain(|tip| !safe.commits.contains(&tip.oid));
        if self.isolation == Isolation::Clone {
            self.look_at_objects(&safe, prefix, &mut tips, found)?;
        }
        let alone = self.alone(&safe, &tips, host_refs.as_deref())?;
        if !alone.commits.is_empty() {
            self.peel(&mut tips)?;
        }
        tips.retain(|tip| alone.commits.contains(&tip.oid));
        if tips.iter().any(|tip| tip.left) {
            // A branch may have been made of it after all.
            let named = safe.beyond(tips.iter().filter(|tip| !tip.left).map(Tip::oid))?;
            tips.retain(|tip| !tip.left || !named.contains(&tip.oid));
        }
        let targets = self.targets(&alone);
        for tip in &tips {
            let label = format!("{prefix}{}", tip.label);
            match merged::into_any(&self.git.hurried(), &tip.oid, &targets, spare) {
                Merged::Yes => found.guesses.push(format!("{label} was merged as other commits")),
                not => {
                    if let Merged::Unknown(why) = not {
                        found.unknown.push(format!("{label}: {why}"));
                    }
                    let commits = safe.beyond([tip.oid()])?.intersection(&alone.commits).count() as u64;
                    let against = match alone.dropped.contains(&tip.oid) {
                        true => "the repository no longer has them".to_owned(),
                        false => tip.against.clone(),
                    };
                    found.ahead.push(Ahead { branch: label, commits, against });
                }
            }
        }
        Ok(())
    }

    /// The refs that the host has now, as far as it can be asked. Those of a clone's host are added to what is `safe`.
    fn host_refs(&self, safe: &mut SafeCommits, found: &mut MountEvidence) -> Option<Vec<Ref>> {
        let host = self.host?;
        if self.isolation != Isolation::Clone {
            return Some(self.refs.to_vec());
        }
        let refs = match host.is_dir() {
            true => safe.add_host(host).map_err(GitError::from),
            false => Err(GitError::RepositoryGone(host.to_owned())),
        };
        refs.map_err(|error| found.unknown.push(error.to_string())).ok()
    }

    /// The commits that `tips` reach and that would be lost with the tree.
    fn alone(&self, safe: &SafeCommits, tips: &[Tip], host_refs: Option<&[Ref]>) -> Result<Alone, GitError> {
        let tips = || tips.iter().map(Tip::oid);
        let mut commits = safe.beyond(tips())?;
        if commits.is_empty() {
            return Ok(Alone::default());
        }
        let recorded = || self.recorded.iter().filter(|(name, _)| refs::keeps(name));
        let given = safe.with(recorded().map(|(_, oid)| oid.clone()));
        let made_here = given.beyond(tips())?;
        let mut dropped: HashSet<_> = commits.difference(&made_here).cloned().collect();
        let Some(host) = self.host else { return Ok(Alone { commits: made_here, dropped: HashSet::new() }) };
        if let (false, Some(refs)) = (dropped.is_empty(), host_refs) {
            let scratch = self.scratch.map(|name| format!("{HEADS}{name}"));
            let stays = refs.iter().filter(|r| {
                r.name != STASH && !refs::is_of_one_worktree(&r.name) && Some(&r.name) != scratch.as_ref()
            });
            let logged = gitdir::logged(host, self.git.deadline(), recorded().map(|(name, _)| name))?;
            let had = safe.with(stays.map(|r| r.oid.clone()).chain(logged));
            let lost = had.beyond(recorded().map(|(_, oid)| oid.as_str()))?;
            dropped.retain(|oid| lost.contains(oid));
        }
        commits.retain(|oid| made_here.contains(oid) || dropped.contains(oid));
        Ok(Alone { commits, dropped })
    }

    /// Adds refs to what is no commit, and tags with a message, that were made here: no commit leads to them, so that no
    /// comparison of commits finds them missing. What is none of a commit is taken out of `tips`.
    fn look_at_objects(
        &self,
        safe: &SafeCommits,
        prefix: &str,
        tips: &mut Vec<Tip>,
        found: &mut MountEvidence,
    ) -> Result<(), GitError> {
        let is_new =
            |r: &&Ref| self.is_ours(r) && !r.name.starts_with(HEADS) && !safe.commits.contains(&r.oid);
        if !self.refs.iter().any(|r| is_new(&r)) {
            return Ok(());
        }
        let objects = refs::objects(self.git)?;
        for r in self.refs.iter().filter(is_new) {
            let Some(object) = objects.get(&r.name) else { continue };
            let name = format!("{prefix}{}", short(&r.name));
            if object.leads_to != "commit" {
                tips.retain(|tip| tip.oid != r.oid);
                found.refs.push(format!("{name}, of a {}", object.leads_to));
            } else if r.name.starts_with(TAGS) && object.kind == "tag" {
                // A fetch brings the tags of others along, and git does not note which ones it brought.
                match object.tagged {
                    Some(when) if when < self.made.0 / 1000 => {
                        found
                            .guesses
                            .push(format!("tag {name} is older than the tree, so it counts as fetched"));
                    }
                    _ => found.refs.push(format!("tag {name}, with its message")),
                }
            }
        }
        Ok(())
    }

    /// Follows tags to what they are of: an annotated one is an object of its own.
    fn peel(&self, tips: &mut [Tip]) -> Result<(), GitError> {
        let asked: String = tips.iter().map(|tip| format!("{}^{{}}\n", tip.oid)).collect();
        let out = self.git.fed(["cat-file", "--batch-check=%(objectname)"], asked.as_bytes())?;
        for (tip, oid) in tips.iter_mut().zip(out.text().lines()) {
            oid.clone_into(&mut tip.oid);
        }
        Ok(())
    }

    /// The commits into which the work may have been merged, the likeliest first.
    fn targets(&self, alone: &Alone) -> Vec<&str> {
        let rank = |r: &Ref| {
            let (remote, last) = (r.name.strip_prefix(REMOTES), r.name.rsplit('/').next());
            match remote.and_then(|rest| rest.split_once('/')) {
                Some((_, branch)) if Some(branch) == self.base => Some(0),
                Some(_) if matches!(last, Some("HEAD" | "main" | "master")) => Some(1),
                Some(_) => None,
                // A branch of the host's that moved since the tree was made.
                None => self.recorded.get(&r.name).filter(|oid| **oid != r.oid).map(|_| 2),
            }
        };
        let known = self.refs.iter().filter(|r| self.is_of_host(r) && !alone.commits.contains(&r.oid));
        let mut ranked: Vec<_> =
            self.kept().chain(known).filter_map(|r| Some((rank(r)?, r.oid.as_str()))).collect();
        ranked.sort_unstable();
        ranked.dedup_by_key(|(_, oid)| *oid);
        ranked.into_iter().map(|(_, oid)| oid).collect()
    }
}

/// Commits that would be lost with a tree.
#[derive(Default)]
struct Alone {
    commits: HashSet<String>,
    /// Those of them that the host had when the tree was made.
    dropped: HashSet<String>,
}

/// Commits that are safe, with all that they reach.
pub(crate) struct SafeCommits {
    git: Git,
    commits: HashSet<String>,
}

impl SafeCommits {
    pub(crate) fn new<'a>(git: &Git, commits: impl Iterator<Item = &'a String>) -> Self {
        Self { git: git.clone(), commits: commits.cloned().collect() }
    }

    /// The same with `commits`.
    fn with(&self, commits: impl Iterator<Item = String>) -> Self {
        Self { git: self.git.clone(), commits: self.commits.iter().cloned().chain(commits).collect() }
    }

    /// Adds what the repository `host` has now, and returns all its refs.
    fn add_host(&mut self, host: &Path) -> Result<Vec<Ref>, RunError> {
        let refs = refs::all(&Git::of_repository(host, self.git.deadline()))?;
        self.commits.extend(refs.iter().filter(|r| refs::keeps(&r.name)).map(|r| r.oid.clone()));
        let objects = quoted(&host.join("objects"));
        self.git = self.git.clone().with("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        Ok(refs)
    }

    /// The commits that `tips` reach and that are not safe.
    pub(crate) fn beyond<'a>(
        &self,
        tips: impl IntoIterator<Item = &'a str>,
    ) -> Result<HashSet<String>, GitError> {
        let mut input: String = tips.into_iter().flat_map(|oid| [oid, "\n"]).collect();
        if input.is_empty() {
            return Ok(HashSet::new());
        }
        input.extend(self.commits.iter().flat_map(|oid| ["^", oid, "\n"]));
        // What was recorded may be gone from the host, and then keeps nothing safe.
        let out = self.git.fed(["rev-list", "--ignore-missing", "--stdin"], input.as_bytes())?;
        Ok(out.text().lines().map(str::to_owned).collect())
    }
}
