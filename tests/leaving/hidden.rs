//! States of a tree that `git status` says nothing of, for the matrix.

use std::path::{Path, PathBuf};

use crate::common::Host;
use crate::matrix::{Means, State, change, commit};
use crate::repo::{git, repo};

/// A repository at `lib` of the tree, which has it as one commit and has pushed that.
fn embed(host: &Host, tree: &Path) -> PathBuf {
    let lib = tree.join("lib");
    git(host, tree, &["init", "-q", "-b", "main", "lib"]);
    commit(host, &lib, "code");
    git(host, tree, &["-c", "advice.addEmbeddedRepo=false", "add", "lib"]);
    git(host, tree, &["commit", "-qm", "lib"]);
    git(host, tree, &["push", "-q", "origin", "HEAD:refs/heads/with-lib"]);
    lib
}

/// Lets the remote's main, and what the tree knows of it, be `text` in the file `table`.
fn upstream_has(host: &Host, tree: &Path, text: &str) {
    let other = host.work().join("upstream");
    let name = other.to_str().unwrap();
    if !other.exists() {
        git(host, &host.work(), &["clone", "-q", host.work().join("origin.git").to_str().unwrap(), name]);
    }
    change(&other, "table", text);
    git(host, &other, &["add", "table"]);
    git(host, &other, &["commit", "-qm", "table"]);
    git(host, &other, &["push", "-q", "origin", "main"]);
    git(host, tree, &["fetch", "-q", "origin"]);
}

pub const STATES: &[State] = &[
    State { name: "embedded repository", means: Means::Unpushed, make: |host, tree| drop(embed(host, tree)) },
    State {
        name: "embedded repository with a stash",
        means: Means::Dirty,
        make: |host, tree| {
            let lib = embed(host, tree);
            change(&lib, "code", "stashed\n");
            git(host, &lib, &["stash", "-q"]);
        },
    },
    State {
        name: "repository deep in what is built",
        means: Means::Dirty,
        make: |host, tree| {
            let own = tree.join("build/a/b/c/d");
            std::fs::create_dir_all(&own).unwrap();
            git(host, &own, &["init", "-q"]);
            commit(host, &own, "code");
        },
    },
    State {
        name: "nested repository with a damaged HEAD",
        means: Means::Unknown,
        make: |host, tree| {
            let own = tree.join("nested");
            std::fs::create_dir_all(&own).unwrap();
            git(host, &own, &["init", "-q"]);
            std::fs::write(own.join(".git/HEAD"), "torn").unwrap();
        },
    },
    State {
        name: "same patch at another place",
        means: Means::Unpushed,
        make: |host, tree| {
            let block = "begin\n  a\n  b\n  c\nend\n";
            let new = block.replace("  b\n", "  b\n  NEW\n");
            upstream_has(host, tree, &format!("{block}{block}"));
            git(host, tree, &["reset", "-q", "--hard", "origin/main"]);
            upstream_has(host, tree, &format!("{new}{block}"));
            change(tree, "table", &format!("{block}{new}"));
            git(host, tree, &["commit", "-qam", "mine"]);
        },
    },
    State {
        name: "private ref",
        means: Means::Unpushed,
        make: |host, tree| {
            commit(host, tree, "hidden");
            git(host, tree, &["update-ref", "refs/worktree/mine", "HEAD"]);
            git(host, tree, &["reset", "-q", "--hard", "HEAD~1"]);
        },
    },
    State {
        name: "commits that the host has dropped",
        means: Means::Unpushed,
        make: |host, tree| {
            let repo = repo(host);
            for dir in [&repo, tree] {
                git(host, dir, &["update-ref", "-d", "refs/remotes/origin/main"]);
            }
            git(host, &repo, &["checkout", "-q", "--orphan", "other"]);
            git(host, &repo, &["commit", "-qm", "begun again"]);
            git(host, &repo, &["branch", "-q", "-D", "main"]);
            git(host, &repo, &["reflog", "expire", "--expire=now", "HEAD"]);
        },
    },
    State {
        name: "announced file",
        means: Means::Dirty,
        make: |host, tree| {
            change(tree, "announced", "not staged\n");
            git(host, tree, &["add", "-N", "announced"]);
        },
    },
];

/// What only a repository of its own can have.
pub const OF_A_CLONE: &[State] = &[
    State {
        name: "worktree elsewhere with commits",
        means: Means::Dirty,
        make: |host, tree| {
            let place = host.work().join("elsewhere");
            git(host, tree, &["worktree", "add", "-q", "--detach", place.to_str().unwrap()]);
            commit(host, &place, "detached");
        },
    },
    State {
        name: "tag with a message",
        means: Means::Unpushed,
        make: |host, tree| drop(git(host, tree, &["tag", "-a", "-m", "important", "v1"])),
    },
    State {
        name: "tag of a blob",
        means: Means::Unpushed,
        make: |host, tree| {
            let oid = git(host, tree, &["hash-object", "-w", "README"]);
            git(host, tree, &["tag", "kept", oid.trim()]);
        },
    },
    State {
        name: "branch that was pushed to the host and deleted there",
        means: Means::Unpushed,
        make: |host, tree| {
            commit(host, tree, "handed-over");
            git(host, tree, &["push", "-q", "host", "HEAD:refs/heads/handed-over"]);
            git(host, &repo(host), &["branch", "-q", "-D", "handed-over"]);
        },
    },
    State {
        name: "hook written by hand",
        means: Means::Dirty,
        make: |_, tree| change(tree, ".git/hooks/pre-push", "#!/bin/sh\nmake check\n"),
    },
    State {
        name: "core.worktree elsewhere",
        means: Means::Unknown,
        make: |host, tree| {
            let place = host.work().join("compared");
            std::fs::create_dir(&place).unwrap();
            git(host, tree, &["config", "core.worktree", place.to_str().unwrap()]);
        },
    },
];
