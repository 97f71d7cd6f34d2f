//! A host of a test's own: a repository, its remote, an instance directory, and git in an environment that is nobody else's.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

use abide_git::{Materialised, WantedTree};
use abide_model::evidence::MountEvidence;
use abide_model::recipe::Mount;
use abide_model::{Extra, InstanceId, Isolation};

pub const LONG: Duration = Duration::from_secs(120);
pub const ID: &str = "k7p9m2xq";

pub struct Host {
    dir: tempfile::TempDir,
    pub repo: PathBuf,
    pub remote: PathBuf,
    pub instance_dir: PathBuf,
}

/// Makes the library see no configuration of whoever runs the tests.
fn isolate() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (name, value) in ENV {
            // SAFETY: every test comes here first, so nobody reads the environment while it changes.
            unsafe { std::env::set_var(name, value) };
        }
    });
}

const ENV: [(&str, &str); 3] =
    [("HOME", "/nonexistent"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")];

pub fn id() -> InstanceId {
    ID.parse().unwrap()
}

/// Runs git in `dir` and gives what it printed and whether it succeeded.
pub fn try_git<S: AsRef<OsStr>>(dir: &Path, args: impl IntoIterator<Item = S>) -> (bool, String) {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).envs(ENV).env("LC_ALL", "C");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "tester").env(format!("GIT_{who}_EMAIL"), "t@example.org");
    }
    command
        .args(["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", "-C"])
        .arg(dir)
        .args(args);
    let out = command.env("GIT_EDITOR", "true").output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

#[track_caller]
pub fn git<S: AsRef<OsStr>>(dir: &Path, args: impl IntoIterator<Item = S>) -> String {
    let (done, said) = try_git(dir, args);
    assert!(done, "git in {}: {said}", dir.display());
    said
}

/// Runs git commands written as words.
#[track_caller]
pub fn gits(dir: &Path, lines: &[&str]) {
    for line in lines {
        git(dir, line.split(' '));
    }
}

pub fn write(path: impl AsRef<Path>, text: &str) {
    std::fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Commits `text` as `file`.
pub fn commit(dir: &Path, file: &str, text: &str) {
    write(dir.join(file), text);
    gits(dir, &[&format!("add -- {file}"), &format!("commit -q -m {file}-{}", text.len())]);
}

/// A mount of `source` whose tree is called `shop`.
pub fn mount(source: PathBuf, isolation: Isolation) -> Mount {
    Mount {
        source,
        target: "/work/shop".into(),
        isolation,
        read_only: false,
        copy: Vec::new(),
        base: None,
        tree: Some("shop".into()),
        branch: None,
        extra: Extra::new(),
    }
}

impl Host {
    /// A repository at a path that is awkward to spell, with a remote, some files and a list of what is ignored.
    pub fn new() -> Self {
        let host = Self::bare();
        let remote = host.remote.clone();
        std::fs::create_dir(&remote).unwrap();
        git(&remote, ["init", "-q", "--bare"]);
        gits(&host.repo, &[&format!("remote add origin {}", remote.display()), "push -q -u origin main"]);
        git(&host.repo, ["remote", "set-head", "origin", "main"]);
        host
    }

    /// The same without a remote.
    pub fn bare() -> Self {
        let host = Self::empty();
        write(host.repo.join(".gitignore"), "*.env\n.env\ntarget/\nsecrets/\n");
        write(host.repo.join("sub dir/deep"), "deep\n");
        gits(&host.repo, &["add -A", "commit -q -m begin"]);
        commit(&host.repo, "file", "one\ntwo\nthree\n");
        host
    }

    /// The same without a commit.
    pub fn empty() -> Self {
        isolate();
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let repo = top.join("sh op\n\u{fc}");
        let instance_dir = top.join("home/instances").join(ID);
        for path in [&repo, &instance_dir] {
            std::fs::create_dir_all(path).unwrap();
        }
        git(&repo, ["init", "-q"]);
        Self { remote: top.join("remote.git"), dir, repo, instance_dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub fn mount(&self, isolation: Isolation) -> Mount {
        mount(self.repo.clone(), isolation)
    }

    pub fn wanted<'a>(&'a self, mount: &'a Mount) -> WantedTree<'a> {
        WantedTree {
            id: id(),
            instance_dir: &self.instance_dir,
            mount,
            base: None,
            branch: None,
            limit: LONG,
            objects: abide_git::CloneObjects::Linked,
        }
    }

    /// A tree of the repository.
    #[track_caller]
    pub fn make(&self, isolation: Isolation) -> (Mount, Materialised) {
        let mount = self.mount(isolation);
        let made = abide_git::materialise(&self.wanted(&mount), &mut |_| {}).unwrap();
        (mount, made)
    }

    /// Takes everything in the tree as made by its set-up.
    #[track_caller]
    pub fn settle(&self, mount: &Mount) {
        abide_git::settle(&self.instance_dir, mount, &abide_git::BeforeSetup::default(), LONG).unwrap();
    }

    pub fn evidence(&self, mount: &Mount) -> MountEvidence {
        abide_git::evidence_of(&[(&self.instance_dir, mount)], LONG).remove(0)
    }

    /// What the repository is made of, apart from what it knows of its remote.
    pub fn state(&self) -> String {
        let refs = git(&self.repo, ["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]);
        let config = std::fs::read_to_string(self.repo.join(".git/config")).unwrap();
        let worktrees = self.repo.join(".git/worktrees").exists();
        format!(
            "{refs}{config}{}worktrees: {worktrees}",
            git(&self.repo, ["worktree", "list", "--porcelain"])
        )
    }

    /// Deletes everything in the repository that nothing refers to; the list of stashes is a log, and stays.
    pub fn collect_garbage(&self) {
        let branches = git(&self.repo, ["for-each-ref", "--format=%(refname)", "refs/heads"]);
        for name in branches.lines().chain(["HEAD"]) {
            git(&self.repo, ["reflog", "expire", "--expire=now", name]);
        }
        gits(&self.repo, &["gc -q --prune=now"]);
    }
}
