//! Files that `git status` does not compare and that appeared, or changed, since the tree was made.
//!
//! The rule: an ignored file counts as work (`.env`, a database, notes), because nothing else has it. What a build or an
//! installation makes again does not: no one wants a question about `target/` at every exit. A directory is such when
//! it says so itself (`CACHEDIR.TAG`) or has one of the names below; a file is, by its ending. A repository in such a
//! directory counts if it has commits of its own. What is not asked about is not deleted either: it goes to the trash
//! with its tree, and where its name is one that people use too, it stays there for its whole time.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use abide_model::evidence::FileChange;
use abide_sys::run::RunError;
use serde::{Deserialize, Serialize};

use crate::command::Git;
use crate::evidence::status::GitStatus;
use crate::gitdir;

/// Directories that tools fill and can fill again.
const REBUILT_DIRS: &str = "\
    node_modules bower_components target DerivedData venv .venv __pycache__ .tox .nox .eggs htmlcov .nyc_output .cache \
    .pytest_cache .mypy_cache .ruff_cache .gradle .next .nuxt .svelte-kit .turbo .parcel-cache .dart_tool .zig-cache \
    zig-cache zig-out elm-stuff .terraform .bundle .stack-work dist-newstyle .direnv";

/// The same, under names that people use for what they write, too.
const PERHAPS_REBUILT_DIRS: &str = "build dist out _build obj bin vendor deps Pods coverage .idea .vs";

/// Endings of files that tools make and can make again.
const REBUILT_FILES: &str = "\
    .o .obj .pyc .pyo .class .gcda .gcno .tsbuildinfo .egg-info .DS_Store Thumbs.db .eslintcache .coverage";

/// The same, with endings that people use for what they write, too.
const PERHAPS_REBUILT_FILES: &str = ".a .so .dylib .dll .swp .log .pid .tmp";

/// A directory with more files than this is one entry.
const LISTED: usize = 1000;

/// A directory with more files than this is not looked at to its end.
const WALKED: usize = 100_000;

/// What is remembered of a file: enough to see that it was written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    size: u64,
    modified: i64,
    nanos: i64,
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self { size: meta.size(), modified: meta.mtime(), nanos: meta.mtime_nsec() }
    }

    pub(crate) fn of_text(text: &str) -> Self {
        Self::sum(&Files::from([(text.to_owned(), Self { size: 0, modified: 0, nanos: 0 })]))
    }

    /// One for all of `files`. It is written down and compared by later versions, hence FNV-1a, which is the same in all.
    fn sum(files: &Files) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |bytes: &[u8]| {
            for byte in bytes {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        for (path, stamp) in files {
            add(path.as_bytes());
            add(&[0]);
            add(&stamp.size.to_le_bytes());
            add(&stamp.modified.to_le_bytes());
            add(&stamp.nanos.to_le_bytes());
        }
        Self { size: files.len() as u64, modified: hash.cast_signed(), nanos: 0 }
    }
}

type Files = BTreeMap<String, Stamp>;

/// Files by path; a repository, and a directory that is too large to list, is one entry that ends in a slash. What could
/// not be looked at to its end has no stamp, and always counts.
pub(crate) type Ignored = BTreeMap<String, Option<Stamp>>;

/// What a tree holds and git does not compare.
#[derive(Debug, Default)]
pub(crate) struct Uncompared {
    pub files: Ignored,
    /// What was left out because of its name alone.
    pub guesses: Vec<String>,
}

/// Lists what the tree that `git` is in, with the git directory `dir`, holds and `status` did not compare. `nested` are
/// the directories below it that are repositories of their own.
pub(crate) fn of(
    git: &Git,
    dir: &Path,
    status: &GitStatus,
    nested: &[PathBuf],
) -> Result<Uncompared, RunError> {
    let mut found = list(git.dir(), &status.ignored, nested);
    // Git is asked about all files only if there is need: of a large tree it would print megabytes at every exit.
    let index = fs::read(dir.join("index")).unwrap_or_default();
    let hides = status.head.as_ref().and_then(|head| hides(&index, head.len() / 2));
    if hides == Some(false) {
        return Ok(found);
    }
    for entry in git.run(["ls-files", "-v", "-z"])?.stdout.split(|b| *b == 0) {
        // A small letter is `--assume-unchanged`, an S is `--skip-worktree`.
        let [b'a'..=b'z' | b'S', b' ', path @ ..] = entry else { continue };
        let stamp = match git.dir().join(OsStr::from_bytes(path)).symlink_metadata() {
            // A submodule is looked at on its own.
            Ok(meta) if meta.is_dir() => continue,
            Ok(meta) => Some(Stamp::of(&meta)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            Err(_) => None,
        };
        found.files.insert(named(Path::new(OsStr::from_bytes(path))), stamp);
    }
    Ok(found)
}

/// Whether an index whose object ids have `id` bytes tells git not to look at a file; none if only git can say.
fn hides(index: &[u8], id: usize) -> Option<bool> {
    const ASSUME_UNCHANGED: u16 = 0x8000;
    const EXTENDED: u16 = 0x4000;
    const SKIP_WORKTREE: u16 = 0x4000;
    let number = |at: usize| Some(u32::from_be_bytes(*index.get(at..)?.first_chunk()?));
    let flags = |at: usize| Some(u16::from_be_bytes(*index.get(at..)?.first_chunk()?));
    let find = |at: usize, last: fn(u8) -> bool| Some(at + index.get(at..)?.iter().position(|b| last(*b))?);
    let version = number(4).filter(|version| matches!(version, 2..=4))?;
    let mut at = 12;
    for _ in 0..number(8)? {
        let after_stat_and_id = at + 40 + id;
        let mut name = after_stat_and_id + 2;
        let (plain, mut more) = (flags(after_stat_and_id)?, 0);
        if plain & EXTENDED != 0 {
            more = flags(name)?;
            name += 2;
        }
        if plain & ASSUME_UNCHANGED != 0 || more & SKIP_WORKTREE != 0 {
            return Some(true);
        }
        at = match version {
            // How much of the name before is left out, then the rest of this one.
            4 => find(find(name, |b| b & 0x80 == 0)? + 1, |b| b == 0)? + 1,
            _ => at + ((find(name, |b| b == 0)? - at) / 8 + 1) * 8,
        };
    }
    // Other entries may be in a file that this one is linked to.
    let is_linked = index.get(at..)?.windows(4).any(|word| word == b"link");
    (!is_linked).then_some(false)
}

/// Lists what is worth looking at among the `ignored` entries of the tree at `tree`.
pub(crate) fn list(tree: &Path, ignored: &[PathBuf], nested: &[PathBuf]) -> Uncompared {
    let mut found = Uncompared::default();
    let mut repositories = Vec::new();
    for entry in ignored {
        let mut files = Files::new();
        let is_whole = walk(tree, entry, &mut files, &mut |path, is_dir| {
            let rebuilt = rebuilt(tree, path, is_dir);
            if rebuilt == Rebuildable::Perhaps {
                found.guesses.push(format!("{} counts as build output", named(path)));
            }
            if rebuilt != Rebuildable::No {
                worked_in(tree, path, nested, &mut repositories, &mut found.guesses);
                return false;
            }
            let is_repository = is_dir && is_repository(tree, path);
            repositories.extend(is_repository.then(|| path.to_owned()));
            !is_repository
        });
        if is_whole && files.len() <= LISTED {
            found.files.extend(files.into_iter().map(|(path, stamp)| (path, Some(stamp))));
        } else {
            found.files.insert(slashed(entry), is_whole.then(|| Stamp::sum(&files)));
        }
    }
    for path in repositories {
        let mut files = Files::new();
        // To look at a repository may write its index, and all else in there is its own, whatever it is called.
        let is_whole = walk(tree, &path, &mut files, &mut |path, _| !path.ends_with(".git/index"));
        found.files.insert(slashed(&path), is_whole.then(|| Stamp::sum(&files)));
    }
    found
}

fn slashed(path: &Path) -> String {
    format!("{}/", named(path).trim_end_matches('/'))
}

/// The path as it is shown and written down. One that is not UTF-8 is quoted as git does it: two of them must not become
/// the same.
pub(crate) fn named(path: &Path) -> String {
    if let Some(text) = path.to_str() {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        quoted.push_str(&chunk.valid().replace('\\', r"\\").replace('"', "\\\""));
        chunk.invalid().iter().for_each(|byte| quoted.push_str(&format!("\\{byte:03o}")));
    }
    quoted + "\""
}

/// What of `now` was not there, or not the same, in `before`.
pub(crate) fn appeared(now: Ignored, before: &Ignored) -> Vec<FileChange> {
    now.into_iter()
        .filter(|(path, stamp)| stamp.is_none() || before.get(path) != Some(stamp))
        .map(|(path, _)| FileChange { code: "!!".to_owned(), path })
        .collect()
}

/// Collects the files at and below `path` that `enter` lets in, which also gets whether it is a directory; false if not all could be
/// looked at.
fn walk(tree: &Path, path: &Path, files: &mut Files, enter: &mut dyn FnMut(&Path, bool) -> bool) -> bool {
    let full = tree.join(path);
    let Ok(meta) = full.symlink_metadata() else { return false };
    if !enter(path, meta.is_dir()) {
        return true;
    }
    if !meta.is_dir() {
        files.insert(named(path), Stamp::of(&meta));
        return files.len() <= WALKED;
    }
    let Ok(mut entries) = fs::read_dir(&full) else { return false };
    entries.all(|entry| entry.is_ok_and(|entry| walk(tree, &path.join(entry.file_name()), files, enter)))
}

fn is_repository(tree: &Path, path: &Path) -> bool {
    tree.join(path).join(".git").exists()
}

/// Collects those of the `nested` repositories at and below `path` that are more than a dependency which was fetched; that
/// one is no more than that is a guess.
fn worked_in(
    tree: &Path,
    path: &Path,
    nested: &[PathBuf],
    found: &mut Vec<PathBuf>,
    guesses: &mut Vec<String>,
) {
    let mut outer: Option<&Path> = None;
    for repository in nested.iter().filter(|nested| nested.starts_with(path)) {
        // All that is in a repository counts with it.
        if outer.is_some_and(|outer| repository.starts_with(outer)) {
            continue;
        }
        if is_fetched(&tree.join(repository)) {
            guesses.push(format!("{} counts as a dependency", named(repository)));
        } else {
            outer = Some(repository);
            found.push(repository.clone());
        }
    }
}

/// Whether HEAD was only ever at commits from elsewhere, as its log says, and nothing is stashed.
fn is_fetched(repository: &Path) -> bool {
    let dir = gitdir::linked(repository).unwrap_or_else(|| repository.join(".git"));
    if dir.join("logs/refs/stash").exists() {
        return false;
    }
    let Ok(log) = fs::read(dir.join("logs/HEAD")) else { return false };
    let log = String::from_utf8_lossy(&log);
    let mut steps = log.lines().map(|line| line.split_once('\t').unwrap_or_default().1);
    steps.all(|step| ["clone: ", "checkout: ", "reset: "].iter().any(|kind| step.starts_with(kind)))
}

/// Whether something can be made again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rebuildable {
    No,
    /// Its name says so, but people use that name, too.
    Perhaps,
    Yes,
}

fn rebuilt(tree: &Path, path: &Path, is_dir: bool) -> Rebuildable {
    let dir = if is_dir { Some(path) } else { path.parent() };
    let has_name = |names: &str| {
        dir.is_some_and(|dir| {
            dir.components().any(|part| names.split(' ').any(|name| part.as_os_str() == name))
        })
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let has_ending = |endings: &str| !is_dir && endings.split(' ').any(|ending| name.ends_with(ending));
    let says_so = is_dir && tree.join(path).join("CACHEDIR.TAG").exists();
    if says_so || has_name(REBUILT_DIRS) || has_ending(REBUILT_FILES) {
        Rebuildable::Yes
    } else if has_name(PERHAPS_REBUILT_DIRS) || has_ending(PERHAPS_REBUILT_FILES) {
        Rebuildable::Perhaps
    } else {
        Rebuildable::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tree: &Path, entries: &[&str]) -> Vec<String> {
        let entries: Vec<_> = entries.iter().map(PathBuf::from).collect();
        list(tree, &entries, &[]).files.into_keys().collect()
    }

    #[test]
    fn files_count_and_what_a_build_makes_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        for file in
            [".env", "a.pyc", "target/x", "secrets/deep/key", "mine/CACHEDIR.TAG", "src/__pycache__/m.x"]
        {
            fs::create_dir_all(tree.join(file).parent().unwrap()).unwrap();
            fs::write(tree.join(file), "x").unwrap();
        }
        let all = [".env", "a.pyc", "target/", "secrets/", "mine/", "src/__pycache__/m.x"];
        assert_eq!(names(tree, &all), [".env", "secrets/deep/key"]);
        let before = list(tree, &[".env".into(), "secrets/".into()], &[]).files;
        fs::write(tree.join("secrets/deep/key"), "changed").unwrap();
        fs::write(tree.join("secrets/new"), "new").unwrap();
        let now = list(tree, &[".env".into(), "secrets/".into()], &[]).files;
        let paths: Vec<_> = appeared(now, &before).into_iter().map(|c| c.path).collect();
        assert_eq!(paths, ["secrets/deep/key", "secrets/new"]);
    }

    #[test]
    fn what_cannot_be_looked_at_counts_though_it_was_so_before() {
        let dir = tempfile::tempdir().unwrap();
        let look = || list(dir.path(), &["gone/".into()], &[]).files;
        assert_eq!(appeared(look(), &look()).len(), 1);
    }

    #[test]
    fn a_name_that_people_use_too_makes_a_guess_and_one_of_a_tool_does_not() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["target/x", "build/x", "a.o", "a.log"] {
            fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            fs::write(dir.path().join(file), "x").unwrap();
        }
        let found = list(dir.path(), &["target/", "build/", "a.o", "a.log"].map(PathBuf::from), &[]);
        assert!(found.files.is_empty(), "{found:?}");
        let guesses = ["build/", "a.log"].map(|name| format!("{name} counts as build output"));
        assert_eq!(found.guesses, guesses);
    }

    #[test]
    fn names_that_are_not_utf8_stay_different() {
        let name = |bytes: &[u8]| named(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(name(b"caf\xff.env"), "\"caf\\377.env\"");
        assert_ne!(name(b"caf\xff.env"), name(b"caf\xfe.env"));
        assert_eq!(name("caf\u{e9} \"x\"".as_bytes()), "caf\u{e9} \"x\"");
    }

    #[test]
    fn a_sum_is_the_same_in_every_version() {
        let stamp = Stamp { size: 3, modified: 7, nanos: 9 };
        let sum = Stamp::sum(&Files::from([("a/b".to_owned(), stamp)]));
        assert_eq!((sum.size, sum.modified), (1, -7_008_593_249_689_149_314));
    }

    #[test]
    fn an_index_tells_whether_it_hides_a_file_from_git() {
        let index = |version: u32, last: &[u16], end: &[u8]| {
            let mut bytes = [b"DIRC", &version.to_be_bytes()[..], &10_u32.to_be_bytes()].concat();
            for n in 1..=10 {
                let flags = if n == 10 { last } else { &[n] };
                let flags: Vec<u8> = flags.iter().flat_map(|flags| flags.to_be_bytes()).collect();
                let entry = [&[1; 60][..], &flags, &[0][..usize::from(version == 4)], &b"a".repeat(n.into())];
                let entry = entry.concat();
                let padding = if version == 4 { 1 } else { 8 - entry.len() % 8 };
                bytes.extend([entry, vec![0; padding]].concat());
            }
            hides(&[&bytes, end].concat(), 20)
        };
        for version in [2, 3, 4] {
            assert_eq!(index(version, &[10], b"TREE"), Some(false), "{version}");
            assert_eq!(index(version, &[0x800a], b"TREE"), Some(true), "{version}");
            assert_eq!(index(version, &[0x400a, 0x2000], b"TREE"), Some(false), "{version}");
            assert_eq!(index(version, &[0x400a, 0x4000], b"TREE"), Some(true), "{version}");
            assert_eq!(index(version, &[10], b"link"), None, "{version}");
        }
        assert_eq!(index(5, &[10], b""), None);
        assert_eq!(hides(b"", 20), None);
    }

    #[test]
    fn a_large_directory_and_a_repository_are_one_entry_each() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("data")).unwrap();
        fs::create_dir_all(dir.path().join("other/.git")).unwrap();
        for n in 0..=LISTED {
            fs::write(dir.path().join(format!("data/{n}")), "").unwrap();
        }
        assert_eq!(names(dir.path(), &["data/", "other/"]), ["data/", "other/"]);
    }
}
