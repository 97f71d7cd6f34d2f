//! A project with a remote, and what git says about it.

use std::path::{Path, PathBuf};

use crate::common::{Host, unwatched_host};

/// A machine on which git can be used.
fn host_with_git() -> Host {
    let mut host = unwatched_host();
    for (name, value) in [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "Ada"),
        ("GIT_AUTHOR_EMAIL", "ada@example.org"),
        ("GIT_COMMITTER_NAME", "Ada"),
        ("GIT_COMMITTER_EMAIL", "ada@example.org"),
    ] {
        host.set(name, value);
    }
    host
}

/// A machine with the repository `repo` in its working directory, whose `origin` has everything.
pub fn host_with_repo() -> Host {
    let host = host_with_git();
    let work = host.work();
    git(&host, &work, &["init", "-q", "--bare", "-b", "main", "origin.git"]);
    git(&host, &work, &["init", "-q", "-b", "main", "repo"]);
    let repo = work.join("repo");
    std::fs::write(repo.join("README"), "hello\n").unwrap();
    std::fs::write(repo.join(".gitignore"), "*.secret\nbuild/\ntarget/\n").unwrap();
    git(&host, &repo, &["add", "-A"]);
    git(&host, &repo, &["commit", "-qm", "first"]);
    git(&host, &repo, &["remote", "add", "origin", work.join("origin.git").to_str().unwrap()]);
    git(&host, &repo, &["push", "-q", "-u", "origin", "main"]);
    host
}

/// A machine with copies of what [`host_with_repo`] has made on `first`.
pub fn host_like(first: &Host) -> Host {
    let host = host_with_git();
    let copied = host.command("cp").arg("-aT").args([first.work(), host.work()]).status().unwrap();
    assert!(copied.success());
    git(
        &host,
        &repo(&host),
        &["remote", "set-url", "origin", host.work().join("origin.git").to_str().unwrap()],
    );
    host
}

/// Runs git and gives what it printed.
#[track_caller]
pub fn git(host: &Host, dir: &Path, args: &[&str]) -> String {
    let out = host.command("git").current_dir(dir).args(args).output().unwrap();
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The repository on the host.
pub fn repo(host: &Host) -> PathBuf {
    host.work().join("repo")
}

/// Starts the stub in the repository, detached, and gives its instance's id.
#[track_caller]
pub fn load(host: &Host, args: &[&str]) -> String {
    let mut command = host.command(host.program());
    command.current_dir(repo(host)).args(["load", "stub", "--detach", "--new"]).args(args);
    let out = command.output().unwrap();
    let (said, complaint) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{said}{complaint}");
    said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned()
}

/// Where the isolated tree of an instance is.
pub fn tree(host: &Host, id: &str) -> PathBuf {
    host.home().join("instances").join(id).join("tree/repo")
}

/// The branches and worktree registrations that abide has made in the repository.
pub fn traces(host: &Host) -> Vec<String> {
    let branches = git(host, &repo(host), &["for-each-ref", "--format=%(refname)", "refs/heads/abide"]);
    let worktrees = git(host, &repo(host), &["worktree", "list", "--porcelain"]);
    let worktrees = worktrees.lines().filter_map(|line| line.strip_prefix("worktree ")).skip(1);
    branches.lines().chain(worktrees).map(str::to_owned).collect()
}
