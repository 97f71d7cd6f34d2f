//! What the tests run in sessions, and the check of what such a session wrote.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;

use abide_model::Pid;
use abide_sys::process;
use serde::{Deserialize, Serialize};

pub fn run(part: &str, args: &[&str]) {
    match (part, args) {
        ("flood", [stop]) => flood(Path::new(stop)),
        ("lines", [count]) => lines(0..count.parse().unwrap()),
        ("report", [file]) => report(Path::new(file)),
        ("connect", [run_dir]) => connect(Path::new(run_dir)),
        other => panic!("no such part: {other:?}"),
    }
}

/// Numbered, checksummed lines until `stop` exists.
fn flood(stop: &Path) {
    let mut next = 0;
    while !stop.exists() {
        next = write_lines(next..next + 100);
    }
    finish(next);
}

fn lines(numbers: std::ops::Range<u64>) {
    let end = write_lines(numbers);
    finish(end);
}

fn write_lines(numbers: std::ops::Range<u64>) -> u64 {
    let end = numbers.end;
    let text: String = numbers.map(|n| format!("{n:016x} {:016x}\n", mix(n))).collect();
    std::io::stdout().write_all(text.as_bytes()).unwrap();
    end
}

fn finish(end: u64) {
    println!("END {end}");
    std::io::stdout().flush().unwrap();
}

fn mix(n: u64) -> u64 {
    (n ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

/// Checks a stream of such lines: none lost, none doubled, none changed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Stream {
    next: u64,
    partial: Vec<u8>,
    fault: Option<String>,
    end: Option<u64>,
}

impl Stream {
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\r' => {}
                b'\n' => self.line(),
                _ => self.partial.push(byte),
            }
        }
    }

    fn line(&mut self) {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.partial)).into_owned();
        if let Some(end) = line.strip_prefix("END ") {
            self.end = end.parse().ok();
            return;
        }
        let expected = format!("{:016x} {:016x}", self.next, mix(self.next));
        if line != expected && self.fault.is_none() {
            self.fault = Some(format!("expected {expected:?}, found {line:?}"));
        }
        self.next += 1;
    }

    /// `complete`, `fault: …`, or how far it is.
    pub fn summary(&self) -> String {
        match (&self.fault, self.end) {
            (Some(fault), _) => format!("fault: {fault}"),
            (None, Some(end)) if end == self.next => "complete".to_owned(),
            (None, Some(end)) => format!("fault: {} of {end} lines", self.next),
            (None, None) => format!("at {}", self.next),
        }
    }
}

/// What a session finds around itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    pub env: Vec<(String, String)>,
    pub descriptors: Vec<u32>,
    pub pid: Pid,
    pub session: Pid,
    pub group: Pid,
    pub foreground: Pid,
    pub cwd: String,
    pub cols: u16,
    pub rows: u16,
    pub utf8_erase: bool,
    pub ignored: String,
    pub blocked: String,
    pub umask: String,
}

fn report(file: &Path) {
    let stdin = std::io::stdin();
    let terminal = stdin.as_fd();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    let mut descriptors: Vec<u32> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .collect();
    descriptors.sort_unstable();
    // The last is that of the listing itself.
    descriptors.pop();
    let size = rustix::termios::tcgetwinsize(terminal).unwrap();
    let modes = rustix::termios::tcgetattr(terminal).unwrap().input_modes;
    let report = Report {
        env: std::env::vars().collect(),
        descriptors,
        pid: process::own_pid(),
        session: process::from_rustix(rustix::process::getsid(None).unwrap()),
        group: process::from_rustix(rustix::process::getpgrp()),
        foreground: process::from_rustix(rustix::termios::tcgetpgrp(terminal).unwrap()),
        cwd: std::env::current_dir().unwrap().display().to_string(),
        cols: size.ws_col,
        rows: size.ws_row,
        utf8_erase: modes.contains(rustix::termios::InputModes::IUTF8),
        ignored: field("SigIgn:"),
        blocked: field("SigBlk:"),
        umask: field("Umask:"),
    };
    let temporary = file.with_extension("new");
    std::fs::write(&temporary, serde_json::to_vec(&report).unwrap()).unwrap();
    std::fs::rename(temporary, file).unwrap();
    // Alive until told otherwise.
    Command::new("sleep").arg("1000").status().unwrap();
}

/// Plays another user who tries the socket; exits 0 if turned away.
fn connect(run_dir: &Path) {
    let mut stream = std::os::unix::net::UnixStream::connect(run_dir.join("sock")).unwrap();
    let mut byte = [0];
    assert_eq!(std::io::Read::read(&mut stream, &mut byte).unwrap(), 0);
}
