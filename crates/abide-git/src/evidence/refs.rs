//! The refs of a repository, and which of them keep commits safe.

use std::collections::BTreeMap;

use abide_sys::run::RunError;

use crate::command::Git;

pub(crate) const HEADS: &str = "refs/heads/";
pub(crate) const REMOTES: &str = "refs/remotes/";
pub(crate) const TAGS: &str = "refs/tags/";
pub(crate) const STASH: &str = "refs/stash";

/// Under this name are the branches that live as long as an instance.
pub(crate) const SCRATCH: &str = "refs/heads/abide/";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ref {
    pub oid: String,
    pub name: String,
    /// The full name of what it tracks, whether that still exists or not.
    pub upstream: Option<String>,
    /// What it stands for, if it is only another name.
    pub symref: Option<String>,
}

/// All refs that are seen from where `git` is.
pub(crate) fn all(git: &Git) -> Result<Vec<Ref>, RunError> {
    let format = "--format=%(objectname)%00%(refname)%00%(upstream)%00%(symref)";
    let out = git.run(["for-each-ref", format])?;
    let text = String::from_utf8_lossy(&out.stdout);
    Ok(text.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Ref> {
    let mut fields = line.split('\0');
    let (oid, name) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let mut optional = || fields.next().filter(|field| !field.is_empty()).map(str::to_owned);
    Some(Ref { oid, name, upstream: optional(), symref: optional() })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefObject {
    /// The kind of the object that it names.
    pub kind: String,
    /// The kind of what a tag is of; of any other object, its own.
    pub leads_to: String,
    /// When the tag was made, in seconds.
    pub tagged: Option<i64>,
}

/// What all refs are of, by their names.
pub(crate) fn objects(git: &Git) -> Result<BTreeMap<String, RefObject>, RunError> {
    let format = "--format=%(refname)%00%(objecttype)%00%(*objecttype)%00%(taggerdate:unix)";
    let out = git.run(["for-each-ref", format])?;
    let text = String::from_utf8_lossy(&out.stdout);
    let object = |line: &str| {
        let mut fields = line.split('\0').map(str::to_owned);
        let (name, kind, peeled) = (fields.next()?, fields.next()?, fields.next()?);
        let leads_to = if peeled.is_empty() { kind.clone() } else { peeled };
        Some((name, RefObject { kind, leads_to, tagged: fields.next().and_then(|date| date.parse().ok()) }))
    };
    Ok(text.lines().filter_map(object).collect())
}

/// Whether what the ref `name` reaches stays, whatever becomes of our trees.
///
/// A stash sits on top of the very commits that are asked about; another instance's branch goes with that instance;
/// and some refs belong to one worktree alone.
pub(crate) fn keeps(name: &str) -> bool {
    name != STASH && !name.starts_with(SCRATCH) && !is_of_one_worktree(name)
}

/// Whether each worktree has the ref `name` for itself.
pub(crate) fn is_of_one_worktree(name: &str) -> bool {
    const OWN: [&str; 3] = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"];
    OWN.iter().any(|prefix| name.starts_with(prefix))
}

/// The refs as they are recorded.
pub(crate) fn recorded(refs: &[Ref]) -> BTreeMap<String, String> {
    refs.iter().map(|r| (r.name.clone(), r.oid.clone())).collect()
}

/// The stashes of the repository, newest first: commit and message.
pub(crate) fn stashes(git: &Git, refs: &[Ref]) -> Result<Vec<(String, String)>, RunError> {
    let Some(top) = refs.iter().find(|r| r.name == STASH) else { return Ok(Vec::new()) };
    let out = git.run(["log", "-g", "-z", "--no-show-signature", "--format=%H%x00%gs", STASH, "--"])?;
    let text = String::from_utf8_lossy(&out.stdout);
    let mut fields = text.split('\0');
    let mut found = Vec::new();
    while let (Some(oid), Some(message)) = (fields.next(), fields.next()) {
        found.push((oid.to_owned(), message.to_owned()));
    }
    if found.is_empty() {
        found.push((top.oid.clone(), "a stash without a message".to_owned()));
    }
    Ok(found)
}

/// The short name people use for a ref.
pub(crate) fn short(name: &str) -> &str {
    [HEADS, REMOTES, TAGS].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}
