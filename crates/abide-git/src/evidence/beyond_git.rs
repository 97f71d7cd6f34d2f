//! What people and their tools put into the git directory of a clone: hooks, notes, rules of what is ignored, settings.
//! Nothing else has it, and no comparison of commits or files finds it.

use std::fs;
use std::path::{Path, PathBuf};

use abide_sys::run::RunError;

use crate::command::Git;
use crate::evidence::ignored::{self, Stamp, Uncompared};

/// What git keeps at the top of its directory, and what agents leave there by themselves.
const GITS_OWN: &str = "\
    hooks info HEAD config config.worktree index packed-refs shallow objects refs reftable logs branches modules worktrees sequencer \
    AUTO_MERGE EDIT_DESCRIPTION ADD_EDIT.patch gc.pid gc.log lfs rr-cache svn annex opencode";
const BEGINNINGS: &str =
    "BISECT_ MERGE_ rebase- sharedindex. index. next-index- fsmonitor packed-refs. abide-spare";
const ENDINGS: &str = "_HEAD _MSG _EDITMSG .lock";

/// Those of `info` that people write.
const WRITTEN_INFO: [&str; 3] = ["exclude", "attributes", "grafts"];

/// Settings that git, and abide in making the clone, write; that of who commits is asked for by git itself.
const SETTINGS: &str = "core. branch. remote. submodule. extensions. user. gc. maintenance. lfs. filter.lfs.";

/// Lists it for the clone that `git` is in, by paths in its tree.
pub(crate) fn of(git: &Git) -> Result<Uncompared, RunError> {
    let mut entries = below(git.dir(), ".git");
    entries.retain(|entry| !is_gits_own(&entry.to_string_lossy()[".git/".len()..]));
    let hooks = below(git.dir(), ".git/hooks").into_iter();
    entries.extend(hooks.filter(|hook| hook.extension().is_none_or(|ending| ending != "sample")));
    let info = below(git.dir(), ".git/info").into_iter();
    entries.extend(info.filter(|file| WRITTEN_INFO.iter().any(|name| file.ends_with(name))));
    let mut found = ignored::list(git.dir(), &entries, &[]);
    for (key, value) in git.settings("--local", "")? {
        if !SETTINGS.split(' ').any(|section| key.starts_with(section)) {
            found.files.insert(format!(".git/config: {key}"), Some(Stamp::of_text(&value)));
        }
    }
    Ok(found)
}

/// What is in the directory `dir` of the tree, by paths in the tree.
fn below(tree: &Path, dir: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(tree.join(dir)).into_iter().flatten().flatten();
    entries.map(|entry| Path::new(dir).join(entry.file_name())).collect()
}

fn is_gits_own(name: &str) -> bool {
    GITS_OWN.split(' ').any(|own| own == name)
        || BEGINNINGS.split(' ').any(|beginning| name.starts_with(beginning))
        || ENDINGS.split(' ').any(|ending| name.ends_with(ending))
}
