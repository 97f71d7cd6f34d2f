//! What the tests run in sessions.

use std::io::{Read, Write};
use std::path::Path;

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

pub fn run(part: &str, args: &[&str]) {
    match (part, args) {
        ("shell", []) => shell(),
        ("raw", [setup]) => raw(&unescape(setup)),
        ("swallow", [file, count]) => swallow(Path::new(file), count.parse().unwrap()),
        ("flood", []) => flood(),
        ("lines", [count]) => lines(count.parse().unwrap()),
        ("paint", [file]) => say(&std::fs::read(file).unwrap()),
        other => panic!("no such part: {other:?}"),
    }
}

fn say(bytes: &[u8]) {
    let mut out = std::io::stdout();
    out.write_all(bytes).unwrap();
    out.flush().unwrap();
}

/// A shell that is the same everywhere: says what it is told to, and what it finds.
fn shell() {
    say(b"ready$ ");
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).unwrap() > 0 {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["exit", code] => std::process::exit(code.parse().unwrap()),
            ["env", name] => {
                say(format!("{name}={}\r\n", std::env::var(name).unwrap_or_default()).as_bytes())
            }
            ["cwd"] => say(format!("cwd={}\r\n", std::env::current_dir().unwrap().display()).as_bytes()),
            ["size"] => {
                let size = rustix::termios::tcgetwinsize(std::io::stdout()).unwrap();
                say(format!("size={}x{}\r\n", size.ws_col, size.ws_row).as_bytes());
            }
            ["lines", count] => lines(count.parse().unwrap()),
            ["say", text] => say(&unescape(text)),
            words => say(format!("you said {}\r\n", words.join(" ")).as_bytes()),
        }
        say(b"ready$ ");
        line.clear();
    }
}

fn unescape(text: &str) -> Vec<u8> {
    text.replace("\\e", "\x1b").replace("\\a", "\x07").into_bytes()
}

fn lines(count: u64) {
    for n in 1..=count {
        say(format!("line {n}\r\n").as_bytes());
    }
}

fn make_raw() {
    let mut termios = tcgetattr(std::io::stdin()).unwrap();
    termios.make_raw();
    tcsetattr(std::io::stdin(), OptionalActions::Now, &termios).unwrap();
}

/// Writes `setup`, then shows every byte that arrives.
fn raw(setup: &[u8]) {
    make_raw();
    say(setup);
    say(b"listening\r\n");
    let mut buffer = [0; 1024];
    loop {
        let n = std::io::stdin().read(&mut buffer).unwrap();
        say(format!("<{}>\r\n", buffer[..n].escape_ascii()).as_bytes());
    }
}

/// Reads `count` bytes slowly and in order, writes them to `file`, and says so.
fn swallow(file: &Path, count: usize) {
    make_raw();
    say(b"hungry\r\n");
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    while all.len() < count {
        let n = std::io::stdin().read(&mut buffer).unwrap();
        all.extend_from_slice(&buffer[..n]);
        // Echoes something all the while: input and output must not wait for each other.
        say(b".");
    }
    std::fs::write(file, all).unwrap();
    say(b"\r\nfull\r\n");
    std::thread::park();
}

/// Writes for ever.
fn flood() {
    let block: String =
        (0..1000).map(|n| format!("flood {n} of a program that never stops writing\r\n")).collect();
    loop {
        say(block.as_bytes());
    }
}
