//! Line editing, and programs that write and end.
//!
//! One line at a time: what is typed while a command runs is echoed by the kernel, at whatever moment it comes.

use std::process::Command;

use crate::machine::Machine;
use crate::pair::{Pair, SIZE};

#[test]
fn bash_line_editing_looks_the_same() {
    let machine = Machine::new();
    machine.dotfile(".bashrc", "PS1='\\[\\e[1;32m\\]demo\\[\\e[0m\\]:\\W> '\nHISTFILE=\nunset MAILCHECK\n");
    let pair = Pair::start(&machine, "bash", SIZE, &["bash", "-i"]);
    pair.shows("demo:work>");
    pair.step("echo one two three 日本語<C-a><M-f><M-f>X", "oneX");
    pair.step("<C-e><Left><Left><BSpace>ü<Enter>", "\none");
    let long = "echo a line that is longer than the screen is wide, ".repeat(4);
    pair.step(&long, "wide, echo");
    pair.step("<C-a><Right>zzz<C-k>", "ezzz");
    pair.step("<C-u><Up><Up>", "demo:work> echo one");
    pair.step("<C-r>thr", "reverse-i-search");
    pair.step("<C-c>", "demo:work>");
    pair.step("<C-l>printf '%080d\\n' 7 8<Enter>", "08");
    pair.reflow((60, 20), "08");
    pair.step("<C-l>", "demo:work>");
    pair.step("tput smul; seq 50; tput sgr0<Enter>", "\n50");
    pair.resize((60, 30), "\n50");
    pair.resize((60, 12), "\n50");
    pair.step("clear<Enter>", "demo:work>");
    pair.step("exit 3<Enter>", "[ended 3]");
}

#[test]
fn the_python_prompt_looks_the_same() {
    let machine = Machine::new();
    let pair = Pair::start(&machine, "python", SIZE, &["python3", "-q", "-i"]);
    pair.shows(">>>");
    pair.step("words = ['日本', 'naïve', 'e\u{301}']<Enter>", ">>> words");
    pair.step("for word in words:<Enter>", "...");
    pair.step("    print(word * 30)<Enter>", "30)\n...");
    pair.step("<Enter>", "naïvenaïve");
    pair.step("1/0<Enter>", "ZeroDivisionError");
    pair.step("<Up><Up><Left><Left><BSpace>", "ZeroDivisionError");
    pair.reflow((50, 30), "ZeroDivisionError");
    pair.step("<C-l>", ">>>");
    pair.step("<C-a># <Enter>", "\n>>>");
    pair.step("exit(5)<Enter>", "[ended 5]");
}

#[test]
fn colours_of_ls_and_git_look_the_same() {
    let machine = Machine::new();
    for name in ["plain.txt", "archive.tar.gz", "picture.png", "sub/inner", "日本.md"] {
        machine.file(name, "text\n");
    }
    let git = |args: &[&str]| {
        let mut command = machine.sandbox.command("git");
        let who = ["-c", "user.name=Demo", "-c", "user.email=demo@example.org"];
        let done = configured(&mut command).args(who).args(args).status().unwrap();
        assert!(done.success());
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message=First"]);
    git(&["branch", "other"]);
    machine.file("plain.txt", "other text\nand \x1b[31mmore\x1b[m\t\r\n");
    git(&["commit", "--quiet", "--all", "--message=Second: 日本"]);
    let script = "ls --color=always -l --time-style=+ --no-group . sub; git -c color.ui=always log --graph --decorate --stat -p";
    let pair = Pair::start(&machine, "git", SIZE, &["sh", "-c", script]);
    pair.shows("Second");
    pair.step("<NPage>", "5 files changed");
    pair.step("q", "[ended 0]");
}

/// Nothing of the machine's own configuration, and the same hashes on every run.
fn configured(command: &mut Command) -> &mut Command {
    for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        command.env(name, "2024-01-02T03:04:05Z");
    }
    command.env("GIT_CONFIG_NOSYSTEM", "1").stdout(std::process::Stdio::null())
}
