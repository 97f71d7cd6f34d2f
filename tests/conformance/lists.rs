//! Pagers, file managers and process lists.

use crate::editors::source;
use crate::machine::Machine;
use crate::pair::{Pair, SIZE};

#[test]
fn less_looks_the_same() {
    let machine = Machine::new();
    let mut text = source();
    text += "bold: b\x08bo\x08ol\x08ld\x08d under: _\x08u_\x08n \x1b[1;35mmagenta\x1b[0m control: \x01\x02\n";
    machine.file("page.txt", text);
    let pair = Pair::start(&machine, "less", SIZE, &["less", "-R", "-N", "page.txt"]);
    pair.shows("function_20");
    pair.step(" ", "function_50");
    pair.step("/needle 7<Enter>", "needle 70");
    pair.step("G", "control:");
    pair.step("<Up><Up>kkk", "function_50");
    pair.resize((60, 20), "function_5");
    pair.resize(SIZE, "function_5");
    pair.step("g", "A file to edit");
    pair.step("-S", "Chop long lines");
    pair.step("<Enter>", "stdio");
    pair.step("<Right>", "needle 0");
    pair.step("h", "SUMMARY OF LESS COMMANDS");
    pair.step("qq", "[ended 0]");
}

#[test]
fn mc_looks_the_same() {
    let machine = Machine::new();
    machine.file("demo.c", source());
    for name in ["alpha.txt", "beta.tar.gz", "日本.md", "sub/inner.py"] {
        machine.file(name, "text\n");
    }
    let ini = "[Midnight-Commander]\nconfirm_exit=false\nuse_internal_edit=true\n\
               [Layout]\nmessage_visible=false\nfree_space=false\nxterm_title=false\n";
    machine.dotfile(".config/mc/ini", ini);
    let pair = Pair::start(&machine, "mc", SIZE, &["mc", "--nosubshell"]);
    pair.shows("alpha.txt");
    pair.step("<Down><Down><Tab>", "alpha.txt");
    pair.step("<F9>", "Left");
    pair.step("<Enter>", "File listing");
    pair.step("<F10>", "alpha.txt");
    pair.step("<Down><Down><F3>", "text");
    pair.step("<F10>", "alpha.txt");
    pair.resize((80, 24), "alpha.txt");
    pair.resize(SIZE, "alpha.txt");
    pair.step("<F7>", "Create a new Directory");
    pair.step("<F10>", "alpha.txt");
    pair.step("<F10>", "[ended 0]");
}

#[test]
fn htop_looks_the_same() {
    let machine = Machine::new();
    // No meters and no column that changes.
    let rc = "htop_version=3.2.2\nconfig_reader_min_version=3\nfields=0 1\nheader_layout=one_100\n\
              column_meters_0=Blank\ncolumn_meter_modes_0=2\nhide_userland_threads=1\nshow_program_path=0\n\
              screen:Main=PID Command\n.sort_key=PID\n";
    machine.dotfile(".config/htop/htoprc", rc);
    let pid = std::process::id().to_string();
    let pair = Pair::start(&machine, "htop", SIZE, &["htop", "-p", &pid]);
    pair.shows("F10Quit");
    pair.step("<F1>", "select sort column");
    pair.step(" ", "F10Quit");
    pair.step("<F2>", "Display options");
    pair.step("<Down><Down><Right>", "Available meters");
    pair.resize((81, 24), "Categories");
    pair.resize(SIZE, "Available meters");
    pair.step("<Escape>", "F10Quit");
    pair.step("<F6>", "Sort by");
    pair.step("<Escape>", "F10Quit");
    pair.step("q", "[ended 0]");
}
