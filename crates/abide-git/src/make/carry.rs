//! What a commit does not hold but the work needs: files that git ignores, and submodules.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path};

use crate::command::{Git, GitDeadline};
use crate::error::{GitError, GitStep as _};
use crate::make::clone::without_credentials;
use crate::make::source::SourceRepository;

/// The file in which a project lists what to carry over, in the syntax of `.gitignore`.
const INCLUDE: &str = ".worktreeinclude";

/// What was carried over.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// How many files.
    pub copied: usize,
    /// What the operator should know.
    pub notices: Vec<String>,
}

/// Copies the files that git ignores and that `patterns` or the project's own list name.
pub(crate) fn files(
    source: &SourceRepository,
    tree: &Path,
    patterns: &[String],
    deadline: GitDeadline,
) -> Result<Carried, GitError> {
    if source.bare {
        return Ok(Carried::default());
    }
    let mut list = fs::read(source.top.join(INCLUDE)).unwrap_or_default();
    for pattern in patterns {
        list.push(b'\n');
        list.extend_from_slice(pattern.as_bytes());
    }
    if list.iter().all(u8::is_ascii_whitespace) {
        return Ok(Carried::default());
    }
    let git = Git::at(&source.top, deadline);
    let named = git.fed(["ls-files", "-o", "-i", "-z", "--exclude-from=/dev/stdin"], &list)?.stdout;
    // Only what git ignores: anything else is the host's unfinished work, and is reported instead.
    let ignored = match named.is_empty() {
        true => return Ok(Carried::default()),
        false => git.try_fed(["check-ignore", "-z", "--stdin"], &named)?.stdout,
    };
    let paths: Vec<&Path> = ignored
        .split(|b| *b == 0)
        .filter(|p| !p.is_empty())
        .map(|p| Path::new(OsStr::from_bytes(p)))
        .collect();
    let mut carried = Carried::default();
    for path in paths {
        match copy(&source.top, tree, path) {
            Ok(()) => carried.copied += 1,
            Err(error) if error.kind() == OUTSIDE => carried.notices.push(format!(
                "{} was not copied: the tree has a link or file in place of its directory",
                path.display()
            )),
            failed => failed.doing("copy", &source.top.join(path))?,
        }
    }
    Ok(carried)
}

/// The kind of error for a path that leads out of the tree.
const OUTSIDE: io::ErrorKind = io::ErrorKind::NotADirectory;

/// Copies one file, or the link that it is, to the same place below `to`. What is there already stays.
fn copy(from: &Path, to: &Path, path: &Path) -> io::Result<()> {
    let outside = || io::Error::from(OUTSIDE);
    let mut dir = to.to_owned();
    for part in path.parent().unwrap_or(Path::new("")).components() {
        let Component::Normal(part) = part else { return Err(outside()) };
        dir.push(part);
        match fs::create_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            // A commit may have a link where the host has a directory, and it may lead anywhere.
            _ if dir.symlink_metadata()?.is_dir() => {}
            _ => return Err(outside()),
        }
    }
    let (source, target) = (from.join(path), to.join(path));
    let meta = source.symlink_metadata()?;
    let done = if meta.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(&source)?, &target)
    } else if meta.is_file() {
        copy_file(&source, &target, meta.permissions())
    } else {
        Ok(())
    };
    done.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
}

fn copy_file(source: &Path, target: &Path, permissions: fs::Permissions) -> io::Result<()> {
    // What git ignores is often secret, and must not be readable for a moment either.
    let mut new = File::options().write(true).create_new(true).mode(0o600).open(target)?;
    io::copy(&mut File::open(source)?, &mut new)?;
    new.set_permissions(permissions)
}

/// Fills the submodules that the host has, from what the host has of them: no network is needed. Returns what the
/// operator should know.
pub(crate) fn submodules(
    tree: &Path,
    host_git_dir: &Path,
    deadline: GitDeadline,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<String>, GitError> {
    let mut notices = Vec::new();
    if !tree.join(".gitmodules").is_file() || !host_git_dir.join("modules").is_dir() {
        return Ok(notices);
    }
    let git = Git::in_tree(tree, deadline);
    for (key, path) in git.settings("--file=.gitmodules", r"^submodule\..*\.path$")? {
        let name = key.trim_start_matches("submodule.").trim_end_matches(".path");
        let theirs = host_git_dir.join("modules").join(name);
        let is_plain =
            |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain(name) || !is_plain(&path) || !theirs.join("HEAD").is_file() {
            continue;
        }
        progress(&format!("filling submodule {path}"));
        match submodule(&git, name, &path, &theirs) {
            Ok(()) => notices.extend(submodules(&tree.join(&path), &theirs, deadline, progress)?),
            // The work can begin without it, and the project's own command will say more.
            Err(error) => notices.push(format!("submodule {path} was left empty: {error}")),
        }
    }
    Ok(notices)
}

fn submodule(git: &Git, name: &str, path: &str, theirs: &Path) -> Result<(), GitError> {
    let from = git.clone().configured("protocol.file.allow", "always");
    let from = from.configured(format!("submodule.{name}.url"), theirs);
    from.run(["submodule", "update", "-q", "--init", "--", path])?;
    let real = Git::in_tree(theirs, git.deadline()).try_run(["config", "remote.origin.url"])?;
    if real.status.success() {
        let inside = Git::in_tree(git.dir().join(path), git.deadline());
        inside.run(["remote", "set-url", "origin", &without_credentials(&real.text())])?;
    }
    Ok(())
}
