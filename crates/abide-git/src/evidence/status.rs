//! What `git status` says, read from its machine format.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use abide_model::evidence::FileChange;
use abide_sys::run::RunError;

use crate::command::Git;

/// One answer of `git status`.
#[derive(Debug, Default)]
pub(crate) struct GitStatus {
    /// The commit HEAD is at; none before the first.
    pub head: Option<String>,
    /// The branch HEAD is on, by its short name; none if it is detached.
    pub branch: Option<String>,
    /// Changed, conflicted and untracked files.
    pub changes: Vec<FileChange>,
    /// Blobs in the index that HEAD does not have.
    pub staged: Vec<String>,
    /// What git ignores: files, and directories that are ignored as a whole (with a slash at their end).
    pub ignored: Vec<PathBuf>,
    /// Whether files were only announced to the index, which then names the empty blob.
    pub announces_files: bool,
    /// What git could not look at, in its own words.
    pub complaints: Vec<String>,
}

/// Asks about the tree that `git` is in.
pub(crate) fn of(git: &Git) -> Result<GitStatus, RunError> {
    let out = git.run([
        "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all",
        // A directory that matches a pattern is one entry and is not walked: `node_modules` costs nothing.
        "--ignored=matching", "--ignore-submodules=none", "--no-renames",
    ])?;
    Ok(GitStatus { complaints: complaints(&out.stderr), ..parse(&out.stdout) })
}

/// What git says beside its answer: a directory that it could not open is missing there, and the answer looks clean.
fn complaints(stderr: &str) -> Vec<String> {
    let lines = stderr.lines().map(str::trim);
    let said = lines.filter(|line| !line.is_empty() && !line.starts_with("hint:"));
    said.map(|line| format!("git status: {line}")).collect()
}

fn parse(bytes: &[u8]) -> GitStatus {
    let mut status = GitStatus::default();
    for entry in bytes.split(|b| *b == 0).filter(|entry| entry.len() > 2) {
        let rest = &entry[2..];
        match entry[0] {
            b'#' => header(&mut status, &String::from_utf8_lossy(rest)),
            b'1' => changed(&mut status, rest, 7, 6..7),
            b'u' => changed(&mut status, rest, 9, 6..9),
            b'?' => status.changes.push(change("??", rest)),
            b'!' => status.ignored.push(OsString::from_vec(rest.to_vec()).into()),
            _ => status.changes.push(change("  ", rest)),
        }
    }
    status
}

fn header(status: &mut GitStatus, line: &str) {
    match line.split_once(' ') {
        Some(("branch.oid", oid)) if oid != "(initial)" => status.head = Some(oid.to_owned()),
        Some(("branch.head", name)) if name != "(detached)" => status.branch = Some(name.to_owned()),
        _ => {}
    }
}

/// Reads an entry that has `fields` fields before its path, of which those in `blobs` name blobs of the index.
fn changed(status: &mut GitStatus, entry: &[u8], fields: usize, blobs: std::ops::Range<usize>) {
    let mut parts = entry.splitn(fields + 1, |b| *b == b' ');
    let head: Vec<_> = parts.by_ref().take(fields).map(String::from_utf8_lossy).collect();
    let (Some(code), Some(path)) = (head.first(), parts.next()) else { return };
    status.changes.push(change(&code.replace('.', " "), path));
    status.announces_files |= code == ".A";
    // A submodule's entry names a commit of another repository.
    if head.get(1).is_some_and(|sub| sub.starts_with('N')) && !code.starts_with('.') {
        let new = head.get(blobs).unwrap_or_default().iter();
        status.staged.extend(new.filter(|oid| oid.bytes().any(|b| b != b'0')).map(|oid| oid.to_string()));
    }
}

fn change(code: &str, path: &[u8]) -> FileChange {
    FileChange { code: code.to_owned(), path: String::from_utf8_lossy(path).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_entry_is_read_and_odd_paths_stay_whole() {
        let zero = "0".repeat(40);
        let (a, b, c) = ("a".repeat(40), "b".repeat(40), "c".repeat(40));
        let text = format!(
            "# branch.oid {a}\0# branch.head feature/x\0\
             1 .M N... 100644 100644 100644 {a} {a} a file\nwith a break\0\
             1 A. N... 000000 100644 100644 {zero} {b} new\0\
             1 D. N... 100644 000000 000000 {a} {zero} old\0\
             1 .M SC.. 160000 160000 160000 {a} {a} sub\0\
             u UU N... 100644 100644 100644 100644 {a} {b} {c} both\0? unt r\0! target/\0"
        );
        let status = parse(text.as_bytes());
        assert_eq!(status.head.as_deref(), Some(a.as_str()));
        assert_eq!(status.branch.as_deref(), Some("feature/x"));
        let seen: Vec<_> = status.changes.iter().map(|c| (c.code.as_str(), c.path.as_str())).collect();
        assert_eq!(
            seen,
            [
                (" M", "a file\nwith a break"),
                ("A ", "new"),
                ("D ", "old"),
                (" M", "sub"),
                ("UU", "both"),
                ("??", "unt r")
            ]
        );
        assert_eq!(status.staged, [b.clone(), a, b, c]);
        assert_eq!(status.ignored, [PathBuf::from("target/")]);
    }

    #[test]
    fn whatever_git_complains_about_is_kept_and_hints_are_not() {
        let said = "warning: could not open directory 'locked/': Permission denied\nhint: try this\n\n";
        let expected = "git status: warning: could not open directory 'locked/': Permission denied";
        assert_eq!(complaints(said), [expected]);
        assert!(parse(b"1 .A N... 000000 000000 100644 0 0 new\0").announces_files);
    }

    #[test]
    fn a_detached_or_unborn_head_has_no_branch_or_no_commit() {
        let status = parse(b"# branch.oid (initial)\0# branch.head main\0");
        assert_eq!((status.head, status.branch.as_deref()), (None, Some("main")));
        let status = parse(b"# branch.oid abc\0# branch.head (detached)\0");
        assert_eq!((status.head.as_deref(), status.branch), (Some("abc"), None));
    }
}
