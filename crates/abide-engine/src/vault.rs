//! The vault: copies of the transcripts that an instance's sessions are in, inside its unit.
//!
//! Agents delete conversations after some weeks, and one does so when it resumes them. What is in the vault lives as long
//! as the instance and is put back before a resume if the agent's own is gone. What an agent keeps in one file for all
//! conversations is taken out of it (`extract`).

mod extract;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use abide_agents::Agent;
use abide_agents::argv::is_plain_id;
use abide_model::SessionId;

/// Where in a unit the vault is.
const VAULT: &str = "vault";

/// What the copy that is taken before a resume is called, after the file it is of.
const BEFORE: &str = ".before-resume";

/// The end of the name of what is not whole yet.
const UNFINISHED: &str = ".new";

/// A conversation of more files than this is not kept whole.
const MAX_FILES: usize = 512;

/// What is kept of one conversation of one session: each file under the path that it has in the agent's directory.
pub(crate) struct Vault<'a> {
    dir: PathBuf,
    agent: &'a dyn Agent,
    id: &'a str,
    /// The agent's directory, without links.
    root: PathBuf,
}

impl<'a> Vault<'a> {
    /// The vault of conversation `id`; `None` if that can not be the name of anything.
    pub fn of(
        unit: &Path,
        session: SessionId,
        agent: &'a dyn Agent,
        config_dir: &Path,
        id: &'a str,
    ) -> Option<Self> {
        let root = fs::canonicalize(config_dir).unwrap_or_else(|_| config_dir.to_owned());
        let dir = unit.join(VAULT).join(session.to_string()).join(id);
        is_plain_id(id).then_some(Self { dir, agent, id, root })
    }

    /// Keeps what there is of the conversation of `transcript` now. Agents append to transcripts, so that a second name of
    /// the same file has everything up to the moment at which the first is removed, and costs but a look at it.
    pub fn keep(&self, transcript: &Path) -> io::Result<()> {
        if let Some(shared) = self.agent.profile().shared {
            return self.extract(shared, transcript);
        }
        self.each(transcript, |file, kept| match hard_link(file, kept)? {
            true => Ok(()),
            false => copy_if_grown(file, kept),
        })
    }

    /// Takes a copy that nothing which the agent does to its own files can reach.
    pub fn keep_before_resume(&self, transcript: &Path) -> io::Result<()> {
        if self.agent.profile().shared.is_some() {
            return Ok(());
        }
        self.each(transcript, |file, kept| copy_if_grown(file, &with_suffix(kept, BEFORE)))
    }

    fn each(&self, transcript: &Path, keep: impl Fn(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
        for file in files(&self.agent.belongings(transcript))? {
            let Ok(below) = file.strip_prefix(&self.root) else { continue };
            let kept = self.dir.join(below);
            make_dirs(kept.parent().unwrap_or(&self.dir))?;
            keep(&file, &kept)?;
        }
        Ok(())
    }

    /// Puts back what the agent, which runs in `cwd` with `env`, no longer has, and says whether anything was. What it has
    /// is never overwritten.
    pub fn restore(&self, cwd: &Path, env: &BTreeMap<OsString, OsString>) -> io::Result<bool> {
        if let Some(shared) = self.agent.profile().shared {
            return self.give_back(shared, cwd, env);
        }
        let mut restored = false;
        for kept in files(&self.dir)? {
            let name = kept.to_string_lossy();
            if name.ends_with(UNFINISHED) {
                continue;
            }
            let plain = Path::new(name.strip_suffix(BEFORE).unwrap_or(&name));
            let Ok(below) = plain.strip_prefix(&self.dir) else { continue };
            let target = self.root.join(below);
            if fs::symlink_metadata(&target).is_ok_and(|meta| meta.len() > 0) {
                continue;
            }
            let Some(best) = longest([plain.to_owned(), with_suffix(plain, BEFORE)]) else { continue };
            make_dirs(target.parent().unwrap_or(&self.root))?;
            copy(&best, &target)?;
            restored = true;
        }
        Ok(restored)
    }
}

/// The plain files at or below `path`; none if nothing is there.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if meta.is_dir() {
            left.extend(fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        } else if meta.is_file() {
            found.push(path);
        }
        if found.len() + left.len() > MAX_FILES {
            return Err(io::Error::other("it consists of too many files"));
        }
    }
    Ok(found)
}

fn longest(paths: [PathBuf; 2]) -> Option<PathBuf> {
    let sized = paths.into_iter().filter_map(|path| Some((fs::metadata(&path).ok()?.len(), path)));
    sized.max_by_key(|(len, _)| *len).filter(|(len, _)| *len > 0).map(|(_, path)| path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes `kept` a second name of `file`, which then grows with it. False where that can not be.
fn hard_link(file: &Path, kept: &Path) -> io::Result<bool> {
    let theirs = fs::metadata(file)?;
    if let Ok(ours) = fs::metadata(kept) {
        if (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()) {
            return Ok(true);
        }
        // The agent has begun a new file under the same name: the longest is not given up for it.
        let before = with_suffix(kept, BEFORE);
        let longest = fs::metadata(&before).map_or(true, |before| before.len() < ours.len());
        if longest && ours.len() > theirs.len() {
            fs::rename(kept, before)?;
        }
    }
    let temporary = with_suffix(kept, UNFINISHED);
    let _ = fs::remove_file(&temporary);
    match fs::hard_link(file, &temporary) {
        Ok(()) => fs::rename(&temporary, kept).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Copies `file` unless `kept` is that already. A copy that is longer than the file is never given up for it.
fn copy_if_grown(file: &Path, kept: &Path) -> io::Result<()> {
    let theirs = fs::metadata(file)?;
    let current = |ours: fs::Metadata| {
        ours.len() > theirs.len() || (ours.len() == theirs.len() && ours.mtime() >= theirs.mtime())
    };
    if fs::metadata(kept).is_ok_and(current) { Ok(()) } else { copy(file, kept) }
}

/// Copies `from` to `to` for our eyes only: there whole or not at all, with the time it was last written to.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let temporary = with_suffix(to, UNFINISHED);
    let copied = || -> io::Result<()> {
        let mut source = File::open(from)?;
        let mut options = File::options();
        let mut target = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        target.set_permissions(fs::Permissions::from_mode(0o600))?;
        io::copy(&mut source, &mut target)?;
        target.set_modified(source.metadata()?.modified()?)?;
        target.sync_all()?;
        fs::rename(&temporary, to)
    };
    copied().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

fn make_dirs(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(test)]
mod tests;
