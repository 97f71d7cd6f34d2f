//! A clone that stands on its own: nothing the host does to its repository can break it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Git, GitDeadline};
use crate::error::{GitError, GitStep as _};
use crate::evidence::refs::{HEADS, REMOTES, Ref};
use crate::make::materialise::CloneObjects;
use crate::make::source::SourceRepository;
use crate::site::TreeRecord;

/// How the host's repository is read. What serves it asks whether it is safe by another path than the one that the
/// operator's git was in, and does not hear of settings from here.
const SERVE: &str = "git -c 'safe.directory=*' upload-pack";

/// What a clone calls the remote that is its host, and what if the host has a remote of that name.
const HOST: &str = "host";
const HOST_IF_TAKEN: &str = "abide-host";

/// What the names of refs begin with by which a clone that has `refs` knows its host's branches.
pub(crate) fn host_prefix(refs: &[Ref]) -> String {
    let prefix = |name| format!("{REMOTES}{name}/");
    let taken = prefix(HOST_IF_TAKEN);
    if refs.iter().any(|r| r.name.starts_with(&taken)) { taken } else { prefix(HOST) }
}

/// Git that reads the host's repository without asking whether that is safe: the operator's git was in it before.
fn trusting(git: &Git, source: &SourceRepository) -> Git {
    git.clone().configured("safe.directory", &source.repo)
}

/// Makes a clone of `source` at `tree`, with what `record` says checked out.
pub(crate) fn make(
    tree: &Path,
    source: &SourceRepository,
    record: &TreeRecord,
    objects: CloneObjects,
    deadline: GitDeadline,
) -> Result<(), GitError> {
    let settings = source.git.settings("--local", r"^(remote|branch|user|extensions)\.")?;
    // The host's own branches are seen under a remote of their own, so that `origin` can be what it is for the host.
    let taken = settings.iter().any(|(key, _)| key.starts_with("remote.host."));
    let host = if taken { HOST_IF_TAKEN } else { HOST };
    // Objects are hard links, as fast as sharing and as small; where there can be none, on another file system or of
    // another user's files, git copies, unless `--local` was asked for. Borrowing them instead (`--shared`, or the
    // alternates that the source may have, hence `--dissociate`) would let a collection of garbage in the source delete
    // ours.
    let mut args =
        vec!["clone", "-q", "--dissociate", "--no-checkout", "--upload-pack", SERVE, "--origin", host];
    if objects == CloneObjects::Copied {
        args.push("--no-hardlinks");
    }
    args.push("--");
    let args = args.iter().map(AsRef::as_ref).chain([source.top.as_os_str(), tree.as_os_str()]);
    trusting(&source.git, source).run(args)?;
    let git = Git::in_tree(tree, deadline).fetching();
    for (key, value) in &settings {
        carry_setting(&git, key, value, source, record)?;
    }
    carry_remote_refs(&git, source, host)?;
    carry_sparse(&git, source)?;
    check_out(&git, record)
}

fn carry_setting(
    git: &Git,
    key: &str,
    value: &str,
    source: &SourceRepository,
    record: &TreeRecord,
) -> Result<(), GitError> {
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let (name, last) = rest.rsplit_once('.').unwrap_or(("", rest));
    match (section, last) {
        ("remote", "url" | "pushurl") => {
            let url = without_credentials(&absolute(value, &source.top));
            git.run(["config", "--add", key, &url])?;
        }
        ("remote", "fetch") => drop(git.run(["config", "--add", key, value])?),
        // What a partial clone left out is not here either, and comes from the same remote.
        ("remote", "promisor" | "partialclonefilter") => drop(git.run(["config", key, value])?),
        ("extensions", "partialclone") => {
            git.run(["config", "core.repositoryFormatVersion", "1"])?;
            git.run(["config", key, value])?;
        }
        ("branch", "remote" | "merge") if Some(name) == record.branch.as_deref() => {
            git.run(["config", key, value])?;
        }
        ("user", _) => drop(git.run(["config", key, value])?),
        _ => {}
    }
    Ok(())
}

/// A remote's address, with a relative path made absolute: it was relative to another directory.
fn absolute(url: &str, top: &Path) -> String {
    let head = url.split('/').next().unwrap_or_default();
    if url.starts_with('/') || head.contains(':') {
        return url.to_owned();
    }
    let joined = top.join(url);
    joined.canonicalize().unwrap_or(joined).to_string_lossy().into_owned()
}

/// A remote's address without passwords and tokens: the tree may be read by who must not have them.
pub(crate) fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    // The user of an ssh address is part of where it leads; in any other it is half of a secret, or all of it.
    let user = if scheme.ends_with("ssh") { user.split(':').next().unwrap_or_default() } else { "" };
    let path =
        if scheme.starts_with("http") { path.split(['?', '#']).next().unwrap_or_default() } else { path };
    match user {
        "" => format!("{scheme}://{host}{path}"),
        user => format!("{scheme}://{user}@{host}{path}"),
    }
}

/// Gives the clone what the host knows of the remotes: a plain clone would take the host's branches for theirs.
fn carry_remote_refs(git: &Git, source: &SourceRepository, host: &str) -> Result<(), GitError> {
    let mut remote = source.refs.iter().filter(|r| r.name.starts_with(REMOTES)).peekable();
    if remote.peek().is_none() {
        return Ok(());
    }
    let args = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", "--upload-pack", SERVE];
    trusting(git, source).run(args.into_iter().chain([host, "+refs/remotes/*:refs/remotes/*"]))?;
    for (name, target) in remote.filter_map(|r| Some((&r.name, r.symref.as_ref()?))) {
        git.run(["symbolic-ref", name, target])?;
    }
    Ok(())
}

fn carry_sparse(git: &Git, source: &SourceRepository) -> Result<(), GitError> {
    let setting = |name: &str| -> Result<bool, GitError> {
        Ok(source.git.try_run(["config", "--type=bool", name])?.text() == "true")
    };
    if !setting("core.sparseCheckout")? {
        return Ok(());
    }
    let file = "info/sparse-checkout";
    let (from, to) = (source.git_dir.join(file), git.dir().join(".git").join(file));
    if !from.exists() {
        return Ok(());
    }
    let dir: PathBuf = git.dir().join(".git/info");
    fs::create_dir_all(&dir).doing("create", &dir)?;
    fs::copy(&from, &to).doing("copy", &from)?;
    git.run(["config", "core.sparseCheckout", "true"])?;
    if setting("core.sparseCheckoutCone")? {
        git.run(["config", "core.sparseCheckoutCone", "true"])?;
    }
    Ok(())
}

fn check_out(git: &Git, record: &TreeRecord) -> Result<(), GitError> {
    match (&record.base, &record.branch) {
        (Some(base), Some(branch)) => git.run(["checkout", "-q", "--no-track", "-B", branch, base])?,
        (Some(base), None) => git.run(["checkout", "-q", "--detach", base])?,
        (None, Some(branch)) => git.run(["symbolic-ref", "HEAD", &format!("{HEADS}{branch}")])?,
        (None, None) => return Ok(()),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_where_it_leads_and_loses_what_opens_it() {
        for (url, expected) in [
            ("https://user:pass@example.org/a/b.git", "https://example.org/a/b.git"),
            ("https://ghp_token@github.com/a/b", "https://github.com/a/b"),
            ("https://example.org/a?private_token=x", "https://example.org/a"),
            ("https://example.org:8443/a@b", "https://example.org:8443/a@b"),
            ("ssh://git:secret@example.org:22/a", "ssh://git@example.org:22/a"),
            ("git@example.org:a/b.git", "git@example.org:a/b.git"),
            ("file:///srv/a.git", "file:///srv/a.git"),
            ("/srv/a.git", "/srv/a.git"),
        ] {
            assert_eq!(without_credentials(url), expected);
        }
    }

    #[test]
    fn a_relative_address_is_made_absolute_and_no_other() {
        let top = Path::new("/no-such/top");
        assert_eq!(absolute("../b.git", top), "/no-such/top/../b.git");
        for url in ["/srv/a.git", "git@example.org:a", "https://example.org/a"] {
            assert_eq!(absolute(url, top), url);
        }
    }
}
