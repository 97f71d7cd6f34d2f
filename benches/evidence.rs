//! How long it takes to look at 20 worktrees of a repository with 50,000 files, against the same git commands by hand.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use abide_git::{CloneObjects, WantedTree};
use abide_model::evidence::{MountEvidence, Verdict, verdict};
use abide_model::recipe::Mount;
use abide_model::{Extra, Isolation};

const MOUNTS: usize = 20;
const FILES: usize = 50_000;
const ROUNDS: usize = 7;
const CORES: usize = 2;
const LIMIT: Duration = Duration::from_secs(600);

/// What one would type to see what a tree holds: with what git ignores, and the least that says anything.
const BY_HAND: [(&str, &[&str]); 2] = [
    ("the same by hand", &["status", "--porcelain=v2", "-z", "--branch", "-uall", "--ignored=matching"]),
    ("the least by hand", &["status", "--porcelain"]),
];

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let repo = repository(dir.path());
    let instance_dir = dir.path().join("instance_dir");
    let mounts: Vec<Mount> = (0..MOUNTS).map(|n| mount(&repo, n)).collect();
    for mount in &mounts {
        let id = "k7p9m2xq".parse().unwrap();
        let wanted = WantedTree {
            id,
            instance_dir: &instance_dir,
            mount,
            base: None,
            branch: None,
            limit: LIMIT,
            objects: CloneObjects::Linked,
        };
        abide_git::materialise(&wanted, &mut |_| {}).unwrap();
    }
    let trees: Vec<PathBuf> =
        mounts.iter().map(|mount| abide_git::tree(&instance_dir, mount).unwrap()).collect();
    println!("{MOUNTS} worktrees with {FILES} files each, {ROUNDS} rounds; median (fastest to slowest)");
    let all: Vec<_> = mounts.iter().map(|mount| (instance_dir.as_path(), mount)).collect();
    let look = || abide_git::evidence_of(&all, LIMIT);
    compare("nothing was done in them", &trees, Verdict::Clean, look);
    for (n, tree) in trees.iter().enumerate() {
        std::fs::write(tree.join("d1/f1"), format!("changed {n}")).unwrap();
        git(tree, &["commit", "-q", "-a", "-m", "work"]);
        std::fs::write(tree.join("d1/f2"), "changed").unwrap();
    }
    compare("each has a commit and a change", &trees, Verdict::Dirty, look);
}

/// Takes turns, so that whatever else the machine does is in every column.
fn compare(what: &str, trees: &[PathBuf], expected: Verdict, look: impl Fn() -> Vec<MountEvidence>) {
    println!("\n{what}");
    let mut took = vec![Vec::new(); 1 + BY_HAND.len()];
    for _ in 0..ROUNDS {
        for (column, (_, status)) in BY_HAND.iter().enumerate() {
            took[1 + column].push(timed(|| by_hand(trees, status)));
        }
        took[0].push(timed(|| assert_eq!(verdict(&look()), expected)));
    }
    let medians: Vec<f64> = took.iter_mut().map(|times| median(times)).collect();
    let names = ["abide"].into_iter().chain(BY_HAND.iter().map(|(name, _)| *name));
    for ((name, times), median) in names.zip(&took).zip(&medians) {
        let ratio = medians[0] / median;
        println!(
            "{name:<18} {median:>8.0} ms  ({:.0} to {:.0}), ratio {ratio:.2}",
            times[0],
            times[ROUNDS - 1]
        );
    }
}

fn timed(body: impl FnOnce()) -> f64 {
    let start = Instant::now();
    body();
    start.elapsed().as_secs_f64() * 1000.0
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

fn by_hand(trees: &[PathBuf], status: &[&str]) {
    let left = Mutex::new(trees.iter());
    std::thread::scope(|scope| {
        for _ in 0..CORES {
            scope.spawn(|| {
                let next = || left.lock().unwrap().next();
                while let Some(tree) = next() {
                    git(tree, status);
                    git(tree, &["for-each-ref"]);
                    git(tree, &["rev-list", "HEAD", "--not", "--remotes", "main"]);
                }
            });
        }
    });
}

/// A repository with [`FILES`] files in a thousand directories, and a remote that has all of it.
fn repository(dir: &Path) -> PathBuf {
    let repo = dir.join("repo");
    for n in 0..FILES {
        let sub = repo.join(format!("d{}", n % 1000));
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::write(sub.join(format!("f{}", n / 1000)), if n % 7 == 0 { "text\n" } else { "" }).unwrap();
    }
    std::fs::write(repo.join(".gitignore"), "target/\n*.o\n").unwrap();
    git(&repo, &["init", "-q", "-b", "main"]);
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "all of it"]);
    git(dir, &["clone", "-q", "--bare", "repo", "remote.git"]);
    git(&repo, &["remote", "add", "origin", "../remote.git"]);
    git(&repo, &["fetch", "-q", "origin"]);
    repo
}

fn mount(repo: &Path, n: usize) -> Mount {
    Mount {
        source: repo.to_owned(),
        target: format!("/work/{n}").into(),
        isolation: Isolation::Worktree,
        read_only: false,
        copy: Vec::new(),
        tree: Some(format!("tree-{n}")),
        base: None,
        branch: None,
        extra: Extra::new(),
    }
}

fn git(dir: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(["-c", "user.name=bench", "-c", "user.email=b@example.org"]).args(args);
    assert!(command.stdout(Stdio::null()).status().unwrap().success(), "{command:?}");
}
