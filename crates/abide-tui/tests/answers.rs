//! What keys and typed lines answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "shared/demo.rs"]
#[allow(dead_code)]
mod demo;

use std::fmt::Debug;

use abide_model::decide::ExitChoice;
use abide_model::leaving::Parting;
use abide_term::input::key_stream::KeyStream;
use abide_tui::page::Page;
use abide_tui::press::press;
use abide_tui::screens::{
    self, AskedBy, ComeBack, Confirmation, HostRepo, LeavingDecision, LeavingStep, Preserved, StartNew,
    WorkShown,
};
use abide_tui::{Ask, Surface, plain};

const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const END: &str = "\x1b[F";
const CTRL_C: &str = "\x03";
/// Escape, and nothing after it.
const ESC: &str = "\x1b";

/// What `typed` answers on a screen of the usual size; `None` while the question is still open.
fn typed<A: Clone>(page: &Page<A>, typed: &str) -> Option<A> {
    let (mut stream, mut view) = (KeyStream::default(), page.view());
    let mut keys = stream.feed(typed.as_bytes());
    keys.extend(stream.flush());
    keys.into_iter().find_map(|key| press(page, &mut view, key, (80, 24)))
}

#[track_caller]
fn answers<A: Clone + PartialEq + Debug, const N: usize>(page: &Page<A>, table: [(&str, Option<A>); N]) {
    for (keys, expected) in table {
        assert_eq!(typed(page, keys), expected, "{keys:?}");
    }
}

#[test]
fn work_at_risk_is_acknowledged_or_one_goes_back_to_the_agent() {
    let page = screens::at_risk_page(&demo::subject(), &demo::mounts());
    answers(
        &page,
        [
            ("\r", Some(WorkShown::GoOn)),
            (ESC, Some(WorkShown::Return)),
            (CTRL_C, Some(WorkShown::Keep)),
            ("jk \x1b[6~\x1b[5~3yq", None),
            ("/notes\r", None),
            ("/notes\r\r", Some(WorkShown::GoOn)),
            ("/notes\x1b", None),
            ("/notes\x1b\x1b\x1b", Some(WorkShown::Return)),
        ],
    );
}

#[test]
fn the_end_of_a_session_defaults_to_what_loses_nothing() {
    let page = screens::exit_page(&demo::subject(), &demo::mounts(), 14);
    answers(
        &page,
        [
            ("\r", Some(ExitChoice::Return)),
            ("j\r", Some(ExitChoice::Keep)),
            (&format!("{DOWN}{DOWN}\r"), Some(ExitChoice::Discard)),
            (&format!("{END}{DOWN}\r"), Some(ExitChoice::Discard)),
            (&format!("{END}{UP}\r"), Some(ExitChoice::Keep)),
            ("3", None),
            ("3\r", Some(ExitChoice::Discard)),
            ("9\r", Some(ExitChoice::Return)),
            (ESC, Some(ExitChoice::Return)),
            (&format!("3{CTRL_C}"), Some(ExitChoice::Keep)),
        ],
    );
}

#[test]
fn coming_back_defaults_to_starting_new_and_a_filter_marks_what_it_finds() {
    let (scope, new) = (demo::scope(), StartNew::Offered);
    let launch = demo::launch(&scope);
    let many = screens::come_back_page(launch, new, &demo::candidates(40));
    answers(
        &many,
        [
            ("\r", Some(ComeBack::New)),
            ("2\r", Some(ComeBack::Resume(0))),
            (&format!("{END}\r"), Some(ComeBack::Resume(39))),
            ("\x1b[6~\r", Some(ComeBack::Resume(9))),
            ("/nightly\r\r", Some(ComeBack::Resume(2))),
            ("/NIGHTLY\r1\r", Some(ComeBack::New)),
            ("/no such thing\r\r", Some(ComeBack::New)),
            ("/nightly\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f2\r", Some(ComeBack::Resume(0))),
            (ESC, Some(ComeBack::Cancel)),
            (CTRL_C, Some(ComeBack::Cancel)),
        ],
    );
    let few = screens::come_back_page(launch, new, &demo::candidates(3));
    answers(&few, [("/\r", Some(ComeBack::New)), ("4\r", Some(ComeBack::Resume(2)))]);
    let which = screens::come_back_page(launch, StartNew::NotOffered, &demo::candidates(3));
    answers(&which, [("\r", Some(ComeBack::Resume(0))), (ESC, Some(ComeBack::Cancel))]);
    assert_eq!(screens::come_back(&Ask::on(Surface::None, false), launch, new, &[]), ComeBack::New);
}

#[test]
fn a_tree_that_diverged_cannot_be_resumed_by_any_key() {
    let page = |host, asked_by| screens::preserved_page(&demo::tree(4, host), asked_by);
    answers(
        &page(HostRepo::Unchanged, AskedBy::Load),
        [
            ("\r", Some(Preserved::Resume)),
            ("2\r", Some(Preserved::New)),
            (ESC, Some(Preserved::Back)),
            (CTRL_C, Some(Preserved::Cancel)),
        ],
    );
    answers(
        &page(HostRepo::Unchanged, AskedBy::Resume),
        [("\r", Some(Preserved::Resume)), ("2\r", Some(Preserved::Cancel)), (ESC, Some(Preserved::Cancel))],
    );
    let alone = page(demo::diverged(), AskedBy::Resume);
    assert!(alone.choices.iter().all(|choice| choice.answer == Preserved::Cancel));
    let diverged = page(demo::diverged(), AskedBy::Load);
    answers(
        &diverged,
        [("\r", Some(Preserved::Back)), ("2\r", Some(Preserved::New)), ("3\r", Some(Preserved::Back))],
    );
    assert!(diverged.choices.iter().all(|choice| choice.answer != Preserved::Resume));
}

#[test]
fn leaving_has_a_letter_for_each_way_and_closing_all_asks_again() {
    let sessions = demo::sessions();
    answers(
        &screens::leaving_page(&sessions),
        [
            ("\r", Some(LeavingStep::Apply)),
            ("a", Some(LeavingStep::Apply)),
            ("c", Some(LeavingStep::CloseAll)),
            ("l", Some(LeavingStep::LeaveAll)),
            ("s", Some(LeavingStep::OneByOne)),
            (ESC, Some(LeavingStep::Back)),
            (CTRL_C, Some(LeavingStep::LeaveAll)),
        ],
    );
    let sure = screens::close_all_page(&sessions);
    answers(
        &sure,
        [
            ("\r", Some(LeavingStep::Back)),
            ("y", Some(LeavingStep::CloseAll)),
            (CTRL_C, Some(LeavingStep::LeaveAll)),
        ],
    );
    let plan = [Parting::Detach; 6];
    let select = screens::one_by_one_page(&sessions, &plan, 0);
    answers(
        &select,
        [
            (" ", Some(LeavingStep::Toggle(0))),
            ("3 ", Some(LeavingStep::Toggle(2))),
            ("j\r", Some(LeavingStep::Apply)),
        ],
    );
}

#[test]
fn without_a_terminal_nothing_is_lost() {
    let nobody = Ask::on(Surface::None, false);
    assert!(!nobody.can_ask());
    assert_eq!(
        screens::session_ended(&nobody, &demo::subject(), &demo::mounts(), 14),
        ExitChoice::Unanswered
    );
    assert_eq!(screens::session_ended(&nobody, &demo::subject(), &[], 14), ExitChoice::Unanswered);
    let (scope, candidates) = (demo::scope(), demo::candidates(1));
    let come_back = screens::come_back(&nobody, demo::launch(&scope), StartNew::Offered, &candidates);
    assert_eq!(come_back, ComeBack::Cancel);
    let tree = demo::tree(4, HostRepo::Unchanged);
    assert_eq!(screens::preserved(&nobody, &tree, AskedBy::Load), Preserved::Cancel);
    assert_eq!(
        screens::leaving(&nobody, &demo::sessions()),
        LeavingDecision::Leave(vec![Parting::Detach; 6])
    );
    assert_eq!(screens::leaving(&nobody, &[]), LeavingDecision::Leave(vec![]));
    assert_eq!(screens::confirm(&nobody, &demo::question()), Confirmation::Unanswered);
}

struct Typed(Vec<&'static str>);

impl plain::Lines for Typed {
    fn next_line(&mut self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.remove(0).to_owned())
    }
}

/// What lines answer in plain text, and how often they were refused.
fn in_plain<A: Clone + PartialEq>(page: &Page<A>, lines: &[&'static str]) -> (A, usize) {
    let mut out = Vec::new();
    let answer = plain::ask(page, &mut Typed(lines.to_vec()), &mut out).unwrap();
    (answer, String::from_utf8(out).unwrap().matches("Not a valid choice").count())
}

#[test]
fn plain_text_is_answered_by_number_letter_or_enter() {
    let exit = screens::exit_page(&demo::subject(), &demo::mounts(), 14);
    assert_eq!(in_plain(&exit, &[""]), (ExitChoice::Return, 0));
    assert_eq!(in_plain(&exit, &[" 3 "]), (ExitChoice::Discard, 0));
    assert_eq!(in_plain(&exit, &["0"]), (ExitChoice::Return, 0));
    assert_eq!(in_plain(&exit, &["4", "-1", "three", "99999999999999999999", "2"]), (ExitChoice::Keep, 4));
    let leaving = screens::leaving_page(&demo::sessions());
    assert_eq!(in_plain(&leaving, &["c"]), (LeavingStep::CloseAll, 0));
    assert_eq!(in_plain(&leaving, &["3"]), (LeavingStep::LeaveAll, 0));
    let at_risk = screens::at_risk_page(&demo::subject(), &demo::mounts());
    assert_eq!(in_plain(&at_risk, &["1", ""]), (WorkShown::GoOn, 1));
    assert_eq!(in_plain(&at_risk, &["0"]), (WorkShown::Return, 0));
}

#[test]
fn the_end_of_the_input_is_the_harmless_answer() {
    let exit = screens::exit_page(&demo::subject(), &demo::mounts(), 14);
    assert_eq!(in_plain(&exit, &[]), (ExitChoice::Unanswered, 0));
    assert_eq!(in_plain(&exit, &["7"]), (ExitChoice::Unanswered, 1));
    assert_eq!(in_plain(&screens::leaving_page(&demo::sessions()), &[]), (LeavingStep::LeaveAll, 0));
}
