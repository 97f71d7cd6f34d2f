//! How long instances in containers take to start and to come back, against the same `docker` commands by hand, in one run.
//!
//! Needs an engine, and an image with `sh` and `git`: `cargo bench -p abide --bench containers -- IMAGE`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::expect_used)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 5;

fn main() {
    let image = std::env::args().skip(1).find(|word| !word.starts_with('-')).expect("the name of an image");
    let home = tempfile::tempdir().unwrap();
    let work = home.path().join("work");
    std::fs::create_dir_all(&work).unwrap();
    let config = home.path().join(".config/abide");
    std::fs::create_dir_all(&config).unwrap();
    let settings = format!("place = \"docker\"\n[container]\nimage = \"{image}\"\n");
    std::fs::write(config.join("config.toml"), settings).unwrap();
    let abide = |args: &[&str]| run(Command::new(env!("CARGO_BIN_EXE_abide")).args(args), home.path(), &work);
    let docker = |args: &[&str]| run(Command::new("docker").args(args), home.path(), &work);
    // The image is built once; what is measured reuses it.
    let first = id_of(&abide(&["load", "--detach", "sh"]));
    abide(&["eject", &first, "--clean"]);
    let mut took: [Vec<f64>; 8] = Default::default();
    for _ in 0..ROUNDS {
        let mut id = String::new();
        took[0].push(timed(|| id = id_of(&abide(&["load", "--detach", "sh"]))));
        took[2].push(timed(|| drop(abide(&["peek", &id]))));
        abide(&["stop", &id]);
        took[4].push(timed(|| drop(abide(&["resume", &id, "--detach"]))));
        let label = format!("label=abide.instance={id}");
        let container = docker(&["ps", "-aq", "--filter", &label]);
        docker(&["rm", "-f", container.trim()]);
        took[6].push(timed(|| drop(abide(&["resume", &id, "--detach"]))));
        abide(&["eject", &id, "--clean"]);

        let (name, network) = ("abide-bench-by-hand", "abide-bench-net");
        let start = || {
            docker(&["run", "-d", "--name", name, "--network", network, &image, "sleep", "600"]);
            docker(&["exec", name, "true"]);
        };
        docker(&["network", "create", network]);
        took[1].push(timed(start));
        took[3].push(timed(|| drop(docker(&["exec", name, "true"]))));
        docker(&["stop", "-t", "0", name]);
        took[5].push(timed(|| {
            docker(&["start", name]);
            docker(&["exec", name, "true"]);
        }));
        docker(&["rm", "-f", name]);
        took[7].push(timed(start));
        docker(&["rm", "-f", name]);
        docker(&["network", "rm", network]);
    }
    abide(&["trash", "empty", "--yes"]);
    abide(&["prune", "--yes"]);
    println!(
        "median of {ROUNDS} rounds in ms; by hand: `docker run`, `exec`, `start`, each with an `exec` after it"
    );
    for (row, what) in
        ["load", "tier 0 (a question)", "tier 1 (start)", "tier 2 (make again)"].iter().enumerate()
    {
        let (ours, theirs) = (median(&mut took[2 * row]), median(&mut took[2 * row + 1]));
        println!("{what:<22} abide {ours:>6.0}  by hand {theirs:>6.0}  added {:>6.0}", ours - theirs);
    }
}

fn run(command: &mut Command, home: &Path, work: &Path) -> String {
    command.current_dir(work).env("HOME", home).env_remove("ABIDE_HOME").env_remove("XDG_CONFIG_HOME");
    let out = command.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn id_of(said: &str) -> String {
    said.split_whitespace().next().unwrap().trim_start_matches("ab-").to_owned()
}

fn timed(body: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    body();
    begin.elapsed().as_secs_f64() * 1e3
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
