//! Shows the screens with made-up data: `cargo run --example screens -- leaving [rich|plain|none]`.
#![allow(clippy::print_stdout, missing_docs)]

#[path = "../tests/shared/demo.rs"]
#[allow(dead_code)]
mod demo;

use abide_tui::{Ask, Surface};

fn main() {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let ask = match words.next().as_deref() {
        Some("rich") => Ask::on(Surface::Rich, true),
        Some("plain") => Ask::on(Surface::Plain, false),
        Some("none") => Ask::on(Surface::None, false),
        _ => Ask::here(),
    };
    println!("{}", demo::show(&name, &ask));
}
