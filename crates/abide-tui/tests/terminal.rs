//! The dialogs on a real terminal: what is drawn, what is answered, and how the terminal is left.
//!
//! A dialog takes the signals of a process with one thread, so this binary is also the program that runs in the
//! terminal: called as `show <screen> <surface>`, it asks and prints the answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

#[path = "shared/demo.rs"]
#[allow(dead_code)]
mod demo;

use std::panic::catch_unwind;
use std::process::{Command, Stdio};

use abide_model::leaving::Parting;
use abide_testkit::{Sandbox, Terminal, eventually, harness};
use abide_tui::{Ask, Surface};

const TESTS: &[harness::Test] = &[
    ("keys_lead_to_an_answer_and_the_terminal_is_given_back", keys_lead_to_an_answer),
    ("a_screen_follows_the_size_of_its_terminal", a_screen_follows_its_terminal),
    ("a_signal_is_the_harmless_answer", a_signal_is_the_harmless_answer),
    ("a_closed_terminal_is_the_harmless_answer", a_closed_terminal_is_the_harmless_answer),
    ("a_panic_gives_the_terminal_back_before_it_is_reported", a_panic_gives_the_terminal_back),
    ("a_stopped_dialog_comes_back", a_stopped_dialog_comes_back),
    ("what_was_typed_before_the_question_is_no_answer", what_was_typed_before_is_no_answer),
    ("plain_text_asks_the_same_and_heeds_signals", plain_text_asks_the_same),
    ("a_terminal_that_cannot_draw_is_asked_in_plain_text", a_small_terminal_is_asked_in_plain_text),
    ("a_dialog_that_cannot_be_drawn_becomes_plain_text", a_failed_dialog_becomes_plain_text),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<_> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["show", name, surface] => show(name, surface),
        _ => harness::run(TESTS),
    }
}

/// The program in the terminal.
fn show(name: &str, surface: &str) {
    let ask = match surface {
        "rich" => Ask::on(Surface::Rich, true),
        "plain" => Ask::on(Surface::Plain, false),
        _ => Ask::here(),
    };
    if name == "panic" {
        std::thread::spawn(|| {
            eventually("the end of this test", || std::path::Path::new("now").exists().then_some(()));
            let result = catch_unwind(|| panic!("something is wrong"));
            std::process::exit(if result.is_err() { 101 } else { 0 });
        });
    }
    let answer = demo::show(if name == "panic" { "leaving" } else { name }, &ask);
    match surface {
        "file" => {
            std::fs::write("answer.new", answer).unwrap();
            std::fs::rename("answer.new", "answer").unwrap();
        }
        _ => println!("answer: {answer}"),
    }
}

fn sandbox() -> Sandbox {
    Sandbox::new(std::env::current_exe().unwrap())
}

/// A terminal in which a shell says hello, and asks.
fn open<'a>(sandbox: &'a Sandbox, size: (u16, u16), name: &str, surface: &str) -> Terminal<'a> {
    let program = sandbox.program().to_str().unwrap();
    // The shell says afterwards whether the terminal echoes and cooks, as it did before.
    let script = format!(
        "echo hello; \"$0\" show {name} {surface}; echo code $?; stty -a | tr ' ;' '\\n\\n' | grep -xE -e '-?(echo|icanon|isig)'; echo over"
    );
    Terminal::open(sandbox, size, &["sh", "-c", &script, program])
}

#[track_caller]
fn assert_given_back(terminal: &Terminal<'_>, answer: &str) {
    let screen = terminal.wait_for("\nover");
    assert!(screen.contains(answer), "{screen}");
    let modes: Vec<_> = screen.lines().filter(|line| ["echo", "icanon", "isig"].contains(line)).collect();
    assert_eq!(modes.len(), 3, "{screen}");
    assert!(screen.starts_with("hello\n"), "the screen from before is not there:\n{screen}");
    assert!(!screen.contains('╭'), "{screen}");
}

fn signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// The dialog's own process, below the shell that runs in the terminal.
fn dialog(terminal: &Terminal<'_>) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", terminal.pid());
    eventually("the dialog", || {
        std::fs::read_to_string(&children).ok()?.split_whitespace().next()?.parse().ok()
    })
}

fn keys_lead_to_an_answer() {
    let sandbox = sandbox();
    let terminal = open(&sandbox, (80, 24), "ended", "here");
    let screen = terminal.wait_for("session ended");
    assert!(screen.contains("?? 文書/設計メモ.md"), "{screen}");
    terminal.keys(&["/"]);
    terminal.wait_for("Filter: ▏");
    terminal.text("2026_17");
    terminal.wait_for("Filter: 2026_17▏");
    terminal.keys(&["Enter", "Enter"]);
    terminal.wait_for("how to end this session");
    terminal.keys(&["Down"]);
    terminal.wait_for("▸ 2");
    terminal.keys(&["Enter"]);
    assert_given_back(&terminal, "answer: Keep");
}

fn a_screen_follows_its_terminal() {
    let sandbox = sandbox();
    let terminal = open(&sandbox, (80, 24), "leaving", "here");
    terminal.wait_for("▸ a");
    terminal.resize(120, 40);
    eventually("the box in the middle of a wider screen", || {
        terminal.screen().lines().any(|row| row.find('╭') == Some(22)).then_some(())
    });
    terminal.resize(40, 12);
    terminal.wait_for("working 12m…");
    terminal.keys(&["Escape"]);
    assert_given_back(&terminal, "answer: Stay");
}

fn a_signal_is_the_harmless_answer() {
    for (name, answer) in [
        ("leaving", "answer: Leave([Detach, Detach, Detach, Detach, Detach, Detach])"),
        ("ended", "answer: Unanswered"),
    ] {
        let sandbox = sandbox();
        let terminal = open(&sandbox, (100, 30), name, "here");
        terminal.wait_for("╭─ abide");
        signal(dialog(&terminal), "-TERM");
        assert_given_back(&terminal, answer);
    }
}

fn a_closed_terminal_is_the_harmless_answer() {
    let sandbox = sandbox();
    let program = sandbox.program().to_str().unwrap();
    // The answer goes to a file: the terminal will be gone. The shell must live long enough for that.
    let script = "trap '' HUP; \"$0\" show leaving file";
    let terminal = Terminal::open(&sandbox, (80, 24), &["sh", "-c", script, program]);
    terminal.wait_for("▸ a");
    terminal.close();
    let answer = eventually("the answer", || std::fs::read_to_string(sandbox.work().join("answer")).ok());
    assert_eq!(answer, "Leave([Detach, Detach, Detach, Detach, Detach, Detach])");
}

fn a_panic_gives_the_terminal_back() {
    let sandbox = sandbox();
    let terminal = open(&sandbox, (80, 24), "panic", "here");
    terminal.wait_for("▸ a");
    sandbox.write("work/now", "");
    terminal.wait_for("code 101");
    assert_given_back(&terminal, "something is wrong");
}

fn a_stopped_dialog_comes_back() {
    let sandbox = sandbox();
    let terminal = open(&sandbox, (80, 24), "confirm", "here");
    terminal.wait_for("▸ n");
    let pid = dialog(&terminal);
    signal(pid, "-TSTP");
    eventually("the screen from before", || (!terminal.screen().contains('╭')).then_some(()));
    signal(pid, "-CONT");
    terminal.wait_for("▸ n");
    terminal.keys(&["y"]);
    assert_given_back(&terminal, "answer: Yes");
}

fn what_was_typed_before_is_no_answer() {
    let sandbox = sandbox();
    let program = sandbox.program().to_str().unwrap();
    let script = "until [ -e go ]; do sleep 0.05; done; \"$0\" show confirm here";
    let terminal = Terminal::open(&sandbox, (80, 24), &["sh", "-c", script, program]);
    terminal.text("yyy");
    terminal.wait_for("yyy");
    sandbox.write("work/go", "");
    terminal.wait_for("▸ n");
    terminal.keys(&["Enter"]);
    terminal.wait_for("answer: No");
}

fn plain_text_asks_the_same() {
    let sandbox = sandbox();
    let terminal = open(&sandbox, (80, 40), "leaving", "plain");
    terminal.wait_for("Your choice [Enter = 1]:");
    terminal.keys(&["9", "Enter"]);
    terminal.wait_for("Not a valid choice.");
    terminal.keys(&["s", "Enter"]);
    terminal.wait_for("a number changes it, Enter = apply");
    terminal.keys(&["2", "Enter"]);
    terminal.wait_for("codex   idle 5m          → close");
    terminal.keys(&["Enter"]);
    let (stays, goes) = (Parting::Detach, Parting::Close);
    // Whichever of an instance's sessions is changed, those beside it are too.
    terminal.wait_for(&format!("answer: Leave({:?})", [goes, goes, stays, stays, goes, goes]));

    for end in ["C-c", "C-d"] {
        let terminal = open(&sandbox, (80, 40), "ended", "plain");
        terminal.wait_for("Your choice [Enter = go on]:");
        terminal.keys(&[end]);
        terminal.wait_for("answer: Unanswered");
    }
}

fn a_small_terminal_is_asked_in_plain_text() {
    let sandbox = sandbox();
    let terminal = open(&sandbox, (79, 40), "confirm", "here");
    terminal.wait_for("Your choice [Enter = 1]:");
    terminal.keys(&["2", "Enter"]);
    terminal.wait_for("answer: Yes");
}

fn a_failed_dialog_becomes_plain_text() {
    let sandbox = sandbox();
    let mut command = sandbox.command(sandbox.program());
    let out = command.args(["show", "ended", "rich"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "answer: Unanswered\n");
    assert!(String::from_utf8_lossy(&out.stderr).contains("Your choice [Enter = go on]:"), "{out:?}");
}
