//! Editors.

use crate::machine::Machine;
use crate::pair::{Pair, SIZE};

/// A source file with everything that a syntax highlighter colours, and some wide text.
pub fn source() -> String {
    let mut text = String::from("/* A file to edit: 日本語, naïve, ✓ */\n#include <stdio.h>\n\n");
    for n in 0..80 {
        text += &format!(
            "int function_{n}(const char *name) {{ return printf(\"%s\\t{n}\", name); }} // needle {n}\n"
        );
    }
    text
}

#[test]
fn vim_looks_the_same() {
    let machine = Machine::new();
    machine.file("demo.c", source());
    machine.dotfile(
        ".vimrc",
        "set nocompatible noswapfile viminfo= background=dark ruler number hlsearch showcmd\nsyntax on\n\
         set cursorline laststatus=2 belloff=all\n",
    );
    let pair = Pair::start(&machine, "vim", SIZE, &["vim", "demo.c"]);
    pair.shows("function_20");
    pair.step("/needle 40<Enter>", "needle 40");
    pair.step("<C-f>", "function_60");
    pair.step("ggO", "-- INSERT --");
    pair.step("inserted 漢字 text\ttab<Escape>", "inserted 漢字");
    pair.step("jwvjj", "-- VISUAL --");
    pair.step("<Escape>:split<Enter>", "demo.c [+]");
    pair.step(":vsplit<Enter>", "demo.c [+]");
    pair.resize((81, 24), "demo.c [+]");
    pair.resize(SIZE, "demo.c [+]");
    pair.step(":only<Enter>:set nowrap<Enter>G", "function_79");
    pair.step("<Up><Up><C-y><C-y><C-y>dd", "function_77");
    pair.step(":help scroll<Enter>", "'scroll' 'scr'");
    pair.step(":qa!<Enter>", "[ended 0]");
}

#[test]
fn nano_looks_the_same() {
    let machine = Machine::new();
    machine.dotfile("demo.c", source());
    machine.dotfile(".nanorc", "include /usr/share/nano/c.nanorc\nset linenumbers\n");
    let pair = Pair::start(&machine, "nano", SIZE, &["sh", "-c", "cd; nano --rcfile=.nanorc demo.c"]);
    pair.shows("function_10");
    pair.step("<NPage><NPage>", "function_60");
    pair.step("<C-w>needle 7", "Search");
    pair.step("<Enter>", "needle 70");
    pair.step("typed 日本 <Enter>", "typed");
    pair.resize((70, 20), "function_6");
    pair.resize(SIZE, "function_6");
    pair.step("<C-g>", "Main nano help text");
    pair.step("<C-x>", "typed");
    pair.step("<C-x>", "Save modified buffer");
    pair.step("n", "[ended 0]");
}
