//! The vault: copies of the transcripts that an instance's sessions are in, inside its instance directory.
//!
//! Agents delete conversations after some weeks, and one does so when it resumes them. What is in the vault lives as long
//! as the instance and is put back before a resume if the agent's own is gone or damaged. A copy is never a second name of
//! the file: damage in place would hit both. It is made at once where the file system can share blocks, and grows with what
//! the agent appends (`log`). What an agent keeps in one file for all conversations is taken out of it (`extract`).

mod extract;
mod log;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use abide_agents::Agent;
use abide_agents::argv::is_plain_id;
use abide_model::SessionId;
use abide_sys::untrusted;

use self::log::{Compare, Compared};

/// Where in an instance directory the vault is.
const VAULT: &str = "vault";

/// What a copy is called that was set aside for another, after the file it is of.
const BEFORE: &str = ".before-resume";

/// The end of the name of what is not whole yet.
const UNFINISHED: &str = ".new";

/// What is kept of one conversation of one session: each file under the path that it has in the agent's directory.
pub(crate) struct Vault<'a> {
    dir: PathBuf,
    agent: &'a dyn Agent,
    id: &'a str,
    /// The agent's directory, without links.
    root: PathBuf,
}

impl<'a> Vault<'a> {
    /// The vault of conversation `id`; `None` if that cannot be the name of anything, or if the agent's directory should be in the
    /// instance's and leads out of it: a container can make it a link to the operator's.
    pub fn of(
        instance_dir: &Path,
        session: SessionId,
        agent: &'a dyn Agent,
        config_dir: &Path,
        id: &'a str,
    ) -> Option<Self> {
        let root = fs::canonicalize(config_dir).unwrap_or_else(|_| config_dir.to_owned());
        let dir = instance_dir.join(VAULT).join(session.to_string()).join(id);
        let real = fs::canonicalize(instance_dir);
        let is_inside = root.starts_with(instance_dir) || real.is_ok_and(|real| root.starts_with(real));
        let stays = !config_dir.starts_with(instance_dir) || is_inside;
        (is_plain_id(id) && stays).then_some(Self { dir, agent, id, root })
    }

    /// Keeps what there is of the conversation of `transcript` now, in files that nothing which happens to the agent's own
    /// can reach. What can be kept is kept; the first thing that cannot be is the error.
    pub fn keep(&self, transcript: &Path) -> io::Result<()> {
        if let Some(shared) = self.agent.profile().shared {
            return self.extract(shared, transcript);
        }
        let mut kept = Ok(());
        for file in self.files(&self.agent.belongings(transcript))? {
            kept = kept.and(self.keep_file(&file));
        }
        kept
    }

    fn keep_file(&self, file: &Path) -> io::Result<()> {
        let Ok(below) = file.strip_prefix(&self.root) else { return Ok(()) };
        let kept = self.dir.join(below);
        let (Ok(ours), theirs) = (fs::metadata(&kept), fs::metadata(file)?) else {
            make_dirs(kept.parent().unwrap_or(&self.dir))?;
            return copy(file, &kept);
        };
        // A second name of the file itself, as earlier versions made it, is no copy.
        if (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()) {
            return copy(file, &kept);
        }
        if ours.len() == theirs.len() && ours.modified()? == theirs.modified()? {
            return Ok(());
        }
        if !log::is_log(file) {
            return if theirs.len() > 0 { copy(file, &kept) } else { Ok(()) };
        }
        match log::compare(file, &kept, Compare::Ends)? {
            Compared::Same => log::mark(file, &kept),
            Compared::Grown => log::append(file, &kept),
            Compared::Shrunk => Ok(()),
            Compared::Differs if !log::is_sound(file)? => Ok(()),
            Compared::Differs => {
                set_aside(&kept)?;
                copy(file, &kept)
            }
        }
    }

    /// Whether there is anything to put back.
    pub fn holds_copy(&self) -> bool {
        self.files(&self.dir).is_ok_and(|files| !files.is_empty())
    }

    /// Puts back what the agent, which runs in `cwd` with `env`, has no longer or only in part. What takes the place of a
    /// transcript is kept beside it.
    pub fn restore(&self, cwd: &Path, env: &BTreeMap<OsString, OsString>) -> io::Result<RestoredTranscript> {
        if let Some(shared) = self.agent.profile().shared {
            let missing = self.give_back(shared, cwd, env)?;
            return Ok(RestoredTranscript { missing, ..RestoredTranscript::default() });
        }
        let (mut restored, mut outcome) = (RestoredTranscript::default(), Ok(()));
        for kept in self.files(&self.dir)? {
            let name = kept.to_string_lossy();
            if name.ends_with(UNFINISHED) {
                continue;
            }
            let plain = Path::new(name.strip_suffix(BEFORE).unwrap_or(&name));
            outcome = outcome.and(self.restore_file(plain, &mut restored));
        }
        outcome.map(|()| restored)
    }

    fn restore_file(&self, plain: &Path, restored: &mut RestoredTranscript) -> io::Result<()> {
        let Ok(below) = plain.strip_prefix(&self.dir) else { return Ok(()) };
        let target = self.root.join(below);
        let Some(longest) = longest([plain.to_owned(), with_suffix(plain, BEFORE)]) else { return Ok(()) };
        match fs::symlink_metadata(&target) {
            Ok(meta) if meta.is_file() && meta.len() > 0 => {}
            Ok(meta) if !meta.is_file() && !meta.is_dir() => return Ok(()),
            there => {
                if there.is_ok_and(|meta| meta.is_dir()) {
                    restored.beside.push(move_beside(&target)?);
                }
                restored.missing = true;
                self.make_dirs_inside(target.parent().unwrap_or(&self.root))?;
                return copy(&longest, &target);
            }
        }
        if !log::is_log(&target) || !plain.exists() {
            return Ok(());
        }
        let damaged = match log::compare(&target, plain, Compare::All)? {
            Compared::Same | Compared::Grown => return Ok(()),
            Compared::Shrunk => true,
            Compared::Differs => !log::is_sound(&target)?,
        };
        if !damaged {
            let longer = fs::metadata(&target)?.len() < fs::metadata(&longest)?.len();
            restored.other.extend(longer.then_some(longest));
            return Ok(());
        }
        let beside = move_beside(&target)?;
        copy(plain, &target)?;
        // What was written after the damage is no worse for it.
        if fs::metadata(&beside)?.len() > fs::metadata(&target)?.len() {
            log::append(&beside, &target)?;
        }
        restored.beside.push(beside);
        Ok(())
    }

    /// Makes `dir` in the agent's directory, unless a link on the way leads out of it.
    fn make_dirs_inside(&self, dir: &Path) -> io::Result<()> {
        let there = dir.ancestors().find(|dir| dir.symlink_metadata().is_ok()).unwrap_or(dir);
        let real = fs::canonicalize(there)?;
        if !real.starts_with(&self.root) && !self.root.starts_with(&real) {
            return Err(io::Error::other(format!(
                "{} leads out of {}",
                there.display(),
                self.root.display()
            )));
        }
        make_dirs(dir)
    }

    /// The plain files at or below `path`, without those that only say that the agent runs; none if nothing is there.
    fn files(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
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
            } else if meta.is_file() && !self.agent.is_passing(&path) {
                found.push(path);
            }
        }
        Ok(found)
    }
}

/// What was put back of a conversation.
#[derive(Debug, Default)]
pub(crate) struct RestoredTranscript {
    pub missing: bool,
    /// Something was damaged, and is here now.
    pub beside: Vec<PathBuf>,
    /// The agent has something else, which is left as it is; the longer copies that abide has are these.
    pub other: Vec<PathBuf>,
}

/// Moves `target` to a name of its own beside it.
fn move_beside(target: &Path) -> io::Result<PathBuf> {
    let names = (1..).map(|n| with_suffix(target, &format!(".damaged-{n}")));
    let free = names.into_iter().find(|name| fs::symlink_metadata(name).is_err());
    let name = free.ok_or(ErrorKind::AlreadyExists)?;
    fs::rename(target, &name)?;
    Ok(name)
}

/// Sets a copy aside whose file was replaced by another. The longest is not given up for it.
fn set_aside(kept: &Path) -> io::Result<()> {
    let before = with_suffix(kept, BEFORE);
    let length = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
    if length(kept) > length(&before) { fs::rename(kept, before) } else { Ok(()) }
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
        let mut source = untrusted::open(from)?;
        // What a crash left of an earlier copy, or a container put there.
        let _ = fs::remove_file(&temporary);
        let mut target = File::options().write(true).create_new(true).mode(0o600).open(&temporary)?;
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
