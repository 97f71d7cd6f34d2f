//! Every screen at three sizes and in plain text, compared with the snapshots in `screens/`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "shared/demo.rs"]
#[allow(dead_code)]
mod demo;

use std::path::Path;

use abide_model::leaving::Parting;
use abide_term::input::key_stream::KeyStream;
use abide_term::input::keys::Key;
use abide_tui::draw::draw;
use abide_tui::page::Page;
use abide_tui::press::press;
use abide_tui::screens::{self, AskedBy, HostRepo, StartNew};
use abide_tui::{line, plain};
use proptest::prelude::*;

const SIZES: [(usize, usize); 3] = [(80, 24), (120, 40), (60, 20)];

struct NoInput;

impl plain::Lines for NoInput {
    fn next_line(&mut self) -> Option<String> {
        None
    }
}

#[track_caller]
fn compare(name: &str, seen: &str) {
    insta::with_settings!({snapshot_path => "screens", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, seen);
    });
}

/// Compares `page`, after `typed`, at every size; and its plain text, if nothing is typed.
#[track_caller]
fn seen<A: Clone + PartialEq>(name: &str, page: &Page<A>, typed: &str) {
    for size in SIZES {
        let mut view = page.view();
        for key in KeyStream::default().feed(typed.as_bytes()) {
            assert!(press(page, &mut view, key, size).is_none(), "{key:?} answers");
        }
        compare(&format!("{name}-{}x{}", size.0, size.1), &draw(page, &view, size).text());
    }
    if typed.is_empty() {
        let mut text = Vec::new();
        plain::ask(page, &mut NoInput, &mut text).unwrap();
        compare(&format!("{name}-plain"), &String::from_utf8(text).unwrap());
    }
}

#[test]
fn what_is_at_risk_is_shown_file_by_file_and_branch_by_branch() {
    let page = screens::at_risk_page(&demo::subject(), &demo::mounts());
    seen("at-risk", &page, "");
    seen("at-risk-end", &page, "\x1b[F");
    seen("at-risk-filtered", &page, "/md");
}

#[test]
fn ending_a_session_offers_to_return_to_keep_and_to_clean_up() {
    seen("exit", &screens::exit_page(&demo::subject(), &demo::mounts(), 14), "");
}

#[test]
fn coming_back_offers_a_new_start_and_every_candidate() {
    let (scope, new) = (demo::scope(), StartNew::Offered);
    let launch = demo::launch(&scope);
    seen("come-back", &screens::come_back_page(launch, new, &demo::candidates(3)), "");
    let many = screens::come_back_page(launch, new, &demo::candidates(40));
    seen("come-back-many", &many, "\x1b[6~jj");
    seen("come-back-which", &screens::come_back_page(launch, StartNew::NotOffered, &demo::candidates(3)), "");
}

#[test]
fn a_preserved_tree_is_shown_before_it_is_used_and_not_offered_where_it_diverged() {
    let page = |number, host| screens::preserved_page(&demo::tree(number, host), AskedBy::Load);
    seen("preserved", &page(4, HostRepo::Unchanged), "");
    seen("diverged", &page(4, demo::diverged()), "");
    let unknown = HostRepo::Unknown(vec!["git did not answer within 5 s".into()]);
    let moved = HostRepo::Moved(vec!["main has 4 new commits".into()]);
    let of_docs = |host| {
        let mut tree = demo::tree(3, host);
        tree.mounts.drain(..2);
        screens::preserved_page(&tree, AskedBy::Load)
    };
    seen("host-moved", &of_docs(moved), "");
    seen("host-unknown", &of_docs(unknown), "");
}

#[test]
fn a_resume_shows_the_tree_and_what_has_changed_in_the_configuration() {
    let mut tree = demo::tree(1, HostRepo::Unchanged);
    tree.differences = demo::differences();
    seen("resume", &screens::preserved_page(&tree, AskedBy::Resume), "");
    let diverged = screens::preserved_page(&demo::tree(1, demo::diverged()), AskedBy::Resume);
    seen("resume-diverged", &diverged, "");
}

#[test]
fn a_directory_that_is_not_there_is_offered_where_it_was_found_and_asked_for_elsewhere() {
    let what =
        "ab-k7p9m2xq cannot be resumed, because /work/shop does not exist: it was moved to /work/store";
    let advice = "`abide resume k7p9m2xq --dir DIR` resumes it in its new place";
    let page = |found: Option<&Path>| screens::missing_directory_page(&demo::subject(), what, advice, found);
    seen("directory-moved", &page(Some(Path::new("/work/store"))), "");
    seen("directory-missing", &page(None), "");
}

#[test]
fn leaving_says_what_becomes_of_each_session() {
    let sessions = demo::sessions();
    seen("leaving", &screens::leaving_page(&sessions), "");
    seen("leaving-close-all", &screens::close_all_page(&sessions), "");
    let (stays, goes) = (Parting::Detach, Parting::Close);
    let plan = [goes, goes, goes, goes, stays, stays];
    seen("leaving-one-by-one", &screens::one_by_one_page(&sessions, &plan, 2), "");
}

#[test]
fn a_confirmation_lists_what_goes() {
    seen("confirm", &screens::confirm_page(&demo::question()), "");
}

fn key() -> impl Strategy<Value = Key> {
    use Key::{Backspace, Char, Ctrl, Down, End, Enter, Escape, Home, Other, PageDown, PageUp, Up};
    let named = [
        Enter,
        Escape,
        Backspace,
        Up,
        Down,
        PageUp,
        PageDown,
        Home,
        End,
        Ctrl('c'),
        Other,
        Char('/'),
        Char(' '),
        Char('日'),
    ];
    prop_oneof![proptest::sample::select(named.to_vec()).boxed(), any::<char>().prop_map(Char).boxed()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_size_and_no_key_breaks_a_screen(
        cols in 0usize..140, rows in 0usize..50, keys in prop::collection::vec(key(), 0..12), many in 0u64..30,
    ) {
        let size = (cols, rows);
        fn all<A: Clone>(page: &Page<A>, keys: &[Key], (cols, rows): (usize, usize)) {
            let mut view = page.view();
            for key in keys {
                let _ = press(page, &mut view, *key, (cols, rows));
                let text = draw(page, &view, (cols, rows)).text();
                assert!(text.lines().all(|row| line::width(row) <= cols), "{text}");
                assert!(text.lines().count() <= rows);
            }
        }
        all(&screens::at_risk_page(&demo::subject(), &demo::mounts()), &keys, size);
        let scope = demo::scope();
        let page = screens::come_back_page(demo::launch(&scope), StartNew::Offered, &demo::candidates(many));
        all(&page, &keys, size);
        all(&screens::preserved_page(&demo::tree(4, demo::diverged()), AskedBy::Load), &keys, size);
        all(&screens::leaving_page(&demo::sessions()), &keys, size);
    }
}
