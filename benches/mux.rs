//! How abide's multiplexer compares with its peers: `cargo bench --bench mux -- --help`.
//!
//! # What is measured
//!
//! This program is the terminal. It opens a PTY of 200x50, runs the multiplexer's own attach command on it, reads what
//! would be drawn, and takes the time. Inside the session runs this same program again (`--inner`), which does what it
//! is told over a datagram socket: stream a corpus, fill the scrollback, answer keys, flood.
//!
//! | figure | from | to |
//! |---|---|---|
//! | throughput | the session is told to stream | the mark printed after the stream is read by the terminal |
//! | detached | first byte written | last byte written and, where there is a terminal model, its answer to a status query sent after the stream |
//! | echo | a key is written to the terminal | the token the session prints for that key is read; idle, and while a second session floods |
//! | tabs | the same | the same, while a program in a tab beside floods |
//! | ctrlc | `^C` is written amid a flood | the mark printed once the flooding process has died is read |
//! | attach | before the fork of the attach command | a mark near the top and the one at the bottom of the screen are both read |
//! | create | before the fork of the start command | the program in the session reads the clock, first thing |
//! | memory | | proportional set size of the multiplexer's processes: with one idle session, and per session with full scrollback |
//! | idle | | CPU time and voluntary context switches of servers and clients of idle attached sessions |
//!
//! `bare` is the program on the terminal with no multiplexer between: the speed of the kernel, of the corpus and of
//! this harness together.
//!
//! # How far to trust it
//!
//! Absolute values belong to the machine and the minute. The multiplexers therefore take turns, round by round, and
//! what counts is the ratio to a peer in the same run. Samples of all rounds are pooled; the tables show how far they
//! spread, and a ratio within that spread says nothing. A tail (p99, worst) on a machine that does other work measures
//! that work.
//!
//! A multiplexer need not draw what is overwritten before anyone could see it, so throughput is that of the program
//! inside, not of bytes reaching the terminal. A multiplexer that keeps no screen (`dtach`, `abduco`) has less to do;
//! the figures that are about the screen leave it out. Proportional set size charges code to all who map it: a server
//! whose binary others run as well looks smaller than it is alone.
//!
//! # What is touched
//!
//! Every measurement gets new directories for home, runtime and state. Whatever carries that directory in its
//! environment or command line is killed afterwards; a second process does the same when this one is interrupted.
#![allow(clippy::print_stdout, clippy::print_stderr)] // Tables for stdout, progress for stderr: all that it is for.

use std::error::Error;
use std::process::ExitCode;

#[path = "mux/clock.rs"]
mod clock;
#[path = "mux/control.rs"]
mod control;
#[path = "mux/corpus.rs"]
mod corpus;
#[path = "mux/figures.rs"]
mod figures;
#[path = "mux/footprint.rs"]
mod footprint;
#[path = "mux/inner.rs"]
mod inner;
#[path = "mux/latency.rs"]
mod latency;
#[path = "mux/metrics.rs"]
mod metrics;
#[path = "mux/options.rs"]
mod options;
#[path = "mux/processes.rs"]
mod processes;
#[path = "mux/report.rs"]
mod report;
#[path = "mux/rows.rs"]
mod rows;
#[path = "mux/sandbox.rs"]
mod sandbox;
#[path = "mux/session.rs"]
mod session;
#[path = "mux/sweeper.rs"]
mod sweeper;
#[path = "mux/terminal.rs"]
mod terminal;
#[path = "mux/throughput.rs"]
mod throughput;

/// The outcome of a step; the error is for the person who runs the benchmark.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [inner::RUN, dir, name] => inner::run(dir.as_ref(), name),
        [inner::FLOOD, _] => inner::flood_forever(),
        [sweeper::SWEEP, root] => sweeper::run(root.as_ref()),
        _ => return benchmark(&words),
    };
    // A session's standard error is the terminal that is being measured, and the sweeper's may be gone.
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn benchmark(words: &[&str]) -> ExitCode {
    let outcome = options::parse(words).and_then(|options| match options {
        Some(options) => figures::run(&options),
        None => {
            print!("{}", options::HELP);
            Ok(true)
        }
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(err) => {
            eprintln!("mux: {err}");
            ExitCode::from(2)
        }
    }
}
