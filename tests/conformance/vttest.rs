//! The screens of vttest: whatever tmux makes of them, abide must too, or do better.

use crate::allowed;
use crate::machine::Machine;
use crate::pair::{Pair, SIZE};

/// Goes through a menu of vttest, screen by screen, until it comes back to the choice.
fn walk(menu: &str) {
    let machine = Machine::new();
    let pair = Pair::start(&machine, "vttest", SIZE, &["vttest"]);
    pair.shows("Choose test type:");
    let mut typed = format!("{menu}<Enter>");
    for screen in 1..40 {
        let seen = match allowed::screen("vttest", menu, screen) {
            Some(shown) => pair.diverges(&typed, shown),
            None => pair.step(&typed, ""),
        };
        if seen.text().contains("Choose test type:") {
            return;
        }
        typed = "<Enter>".to_owned();
    }
    panic!("menu {menu} does not end");
}

#[test]
fn cursor_movements_look_the_same() {
    walk("1");
}

#[test]
fn screen_features_look_the_same() {
    walk("2");
}

#[test]
fn insertion_and_deletion_look_the_same() {
    walk("8");
}
