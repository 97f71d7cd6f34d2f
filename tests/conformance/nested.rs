//! tmux itself as the program, and as a second opinion on what `capture-pane` does not tell.

use abide_testkit::eventually;

use crate::abide::Abide;
use crate::editors::source;
use crate::machine::Machine;
use crate::pair::{Pair, SIZE, keys};

const SETTINGS: &str = r#"set -g default-terminal xterm-256color
set -ga terminal-features 'xterm*:RGB'
set -s escape-time 0
set -g assume-paste-time 0
set -g status-right ''
set -g default-command "PS1='in> ' sh"
"#;
const VIMRC: &str = "\
set nocompatible noswapfile viminfo= background=dark number cursorline laststatus=2
syntax on
hi CursorLine cterm=NONE ctermbg=17
hi Normal ctermbg=234
";

#[test]
fn a_nested_tmux_looks_the_same() {
    let machine = Machine::new();
    machine.file("demo.c", source());
    machine.dotfile(".vimrc", VIMRC);
    machine.dotfile(".tmux.conf", SETTINGS);
    let pair = Pair::start(&machine, "tmux", SIZE, &["tmux", "new-session", "-n", "demo", "vim demo.c"]);
    pair.shows("function_20");
    pair.step("<C-b>%", "in>");
    pair.step("<C-b>\"", "in>");
    pair.step("printf '\\033[1;33;44mcolours\\033[0m\\n'<Enter>", "│colours");
    pair.step("<C-b>[<Up><Up>", "[0/");
    pair.resize((80, 24), "function_4");
    pair.resize(SIZE, "function_11");
    pair.step("q<C-b>z", "colours");
    pair.step("<C-b>d", "[ended 0]");
}

/// The same program alone and inside a tmux: what tmux draws, backgrounds at the ends of rows included, must be what
/// the program drew. This tmux paints backgrounds with spaces: if it erased as the program does, both could be wrong.
#[test]
fn a_program_inside_tmux_looks_as_it_does_alone() {
    let machine = Machine::new();
    machine.file("demo.c", source());
    machine.dotfile(".vimrc", VIMRC);
    machine.dotfile(
        ".tmux.conf",
        &(SETTINGS.to_owned() + "set -g status off\nset -ga terminal-overrides ',*:bce@'\n"),
    );
    let alone = Abide::start(&machine, SIZE, &["vim", "demo.c"]);
    let inside = Abide::start(&machine, SIZE, &["tmux", "new-session", "vim demo.c"]);
    machine.open_gate();
    for (typed, expected) in [
        ("", "function_20"),
        ("/needle 40<Enter>", "needle 40"),
        ("<C-e><C-e><C-e>ohello 日本<Escape>", "hello 日本"),
        (":vsplit<Enter>", "demo.c [+]"),
    ] {
        alone.type_keys(&keys(typed));
        inside.type_keys(&keys(typed));
        eventually(&format!("the same screens after {typed:?}"), || {
            let (mut alone, inside) = (alone.screen(), inside.screen());
            // Which screen tmux uses is its own affair.
            alone.alternate = inside.alternate;
            let ready = alone.text().contains(expected) && inside.text().contains(expected);
            let plain = |row: &[crate::screen::Cell]| row.iter().all(|cell| cell.look.bg == "default");
            let coloured = !alone.rows.iter().all(|row| plain(row));
            (ready && coloured && alone.differences(&inside).is_empty()).then_some(())
        });
    }
}
