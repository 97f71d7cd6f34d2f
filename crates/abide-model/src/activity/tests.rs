use super::*;

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(600);

/// Who, what, and for how long.
type Word = (Source, Says, Duration);

fn says(source: Source, says: Says, age: Duration) -> ActivityEvidence {
    ActivityEvidence { source, says, age, detail: format!("{source} says {says}"), question: None }
}

/// What is believed, and whose word it is.
fn decided(evidence: &[Word], quiet: Duration, before: Doing) -> (Doing, Option<Source>) {
    let evidence: Vec<ActivityEvidence> =
        evidence.iter().rev().map(|(s, w, age)| says(*s, *w, *age)).collect();
    let activity = decide(&evidence, quiet, before);
    (activity.doing, activity.source)
}

use Doing::{Idle, NeedsInput, Unknown, Working};
use Source::{Hook, Processes, Program, Registry, Screen, Title, Transcript};

#[test]
fn background_processes_are_distinguished_from_work() {
    for (doing, says, only_background) in [
        (Working, &[Says::Idle, Says::Background][..], true),
        (Working, &[Says::Background, Says::Busy], false),
        (Working, &[Says::Working], false),
        (Idle, &[Says::Idle, Says::Background], false),
    ] {
        assert_eq!(is_only_background(doing, says.iter().copied()), only_background, "{doing:?} {says:?}");
    }
}

#[test]
fn the_strongest_source_that_speaks_is_believed() {
    let table: &[(&[Word], Doing, Option<Source>)] = &[
        (&[], Unknown, None),
        (&[(Program, Says::Idle, LONG), (Screen, Says::Working, LONG)], Idle, Some(Program)),
        (&[(Program, Says::Idle, LONG), (Screen, Says::NeedsInput, LONG)], Idle, Some(Program)),
        (&[(Program, Says::NeedsInput, LONG), (Registry, Says::Idle, SECOND)], NeedsInput, Some(Program)),
        (&[(Registry, Says::Working, SECOND), (Hook, Says::Idle, LONG)], Working, Some(Registry)),
        (&[(Registry, Says::Idle, SECOND), (Screen, Says::Background, LONG)], Idle, Some(Registry)),
        (&[(Hook, Says::Working, SECOND), (Screen, Says::Idle, LONG)], Working, Some(Hook)),
        (&[(Transcript, Says::Working, SECOND), (Screen, Says::Idle, LONG)], Working, Some(Transcript)),
        (&[(Title, Says::Working, LONG), (Screen, Says::Idle, LONG)], Working, Some(Title)),
        (&[(Screen, Says::Idle, LONG), (Processes, Says::Working, SECOND)], Idle, Some(Screen)),
        (&[(Processes, Says::Working, SECOND)], Working, Some(Processes)),
    ];
    for (evidence, doing, source) in table {
        assert_eq!(decided(evidence, SECOND, Unknown), (*doing, *source), "{evidence:?}");
    }
}

#[test]
fn a_pending_permission_is_seen_though_the_transcript_cannot_tell_it_from_a_running_tool() {
    let busy = (Transcript, Says::Busy, SECOND);
    assert_eq!(decided(&[busy], SECOND, Working), (Working, Some(Transcript)));
    assert_eq!(
        decided(&[busy, (Screen, Says::NeedsInput, SECOND)], SECOND, Working),
        (NeedsInput, Some(Screen))
    );
    assert_eq!(decided(&[busy, (Screen, Says::Idle, SECOND)], SECOND, Working), (Working, Some(Transcript)));
    let (working, asks) = ((Title, Says::Working, SECOND), (Screen, Says::NeedsInput, LONG));
    assert_eq!(decided(&[working, asks], SECOND, Working), (NeedsInput, Some(Screen)));
    let both = [(Title, Says::NeedsInput, SECOND), asks];
    assert_eq!(decided(&both, SECOND, Working), (NeedsInput, Some(Title)), "they agree");
}

#[test]
fn what_hooks_never_tell_is_seen_by_what_changed_after_them() {
    let working = (Hook, Says::Working, 9 * SECOND);
    let asked = (Hook, Says::NeedsInput, 9 * SECOND);
    for (hook, later, expected) in [
        (working, (Transcript, Says::Idle, 2 * SECOND), Idle),
        (working, (Screen, Says::Idle, 2 * SECOND), Idle),
        (asked, (Screen, Says::Working, SECOND), Working),
        (asked, (Screen, Says::Idle, 2 * SECOND), Idle),
        (asked, (Screen, Says::Idle, 20 * SECOND), NeedsInput),
        (asked, (Transcript, Says::Busy, SECOND), NeedsInput),
        (working, (Processes, Says::Idle, SECOND), Working),
        ((Transcript, Says::Working, 9 * SECOND), (Screen, Says::Idle, 2 * SECOND), Idle),
    ] {
        assert_eq!(decided(&[hook, later], SECOND, Working).0, expected, "{hook:?} {later:?}");
    }
}

#[test]
fn what_was_still_being_written_when_a_hook_was_called_does_not_take_it_back() {
    let over = says(Hook, Says::Idle, SECOND);
    let flushed = says(Transcript, Says::Working, SECOND / 2);
    let activity = decide(&[over, flushed.clone()], SECOND, Working);
    assert_eq!((activity.doing, activity.again), (Idle, Some(SETTLE - SECOND)));
    assert_eq!(decide(&[says(Hook, Says::Idle, SETTLE), flushed], SECOND, Idle).doing, Working);
}

#[test]
fn a_failed_turn_of_which_the_transcript_holds_the_prompt_only_is_over() {
    let failed =
        [(Hook, Says::Idle, 9 * SECOND), (Transcript, Says::Working, 8 * SECOND), (Screen, Says::Idle, LONG)];
    assert_eq!(decided(&failed, SECOND, Working), (Idle, Some(Hook)));
    assert_eq!(
        decided(&failed[..2], SECOND, Working),
        (Working, Some(Transcript)),
        "nobody sees that it is over"
    );
}

#[test]
fn a_turn_that_is_over_is_not_idle_while_something_runs_in_the_background() {
    let shell = (Screen, Says::Background, LONG);
    for source in [Hook, Transcript, Title] {
        assert_eq!(decided(&[(source, Says::Idle, SECOND), shell], SECOND, Working), (Working, Some(Screen)));
    }
    let done = (Program, Says::Idle, SECOND);
    assert_eq!(decided(&[done, shell], SECOND, Working), (Idle, Some(Program)), "it is only seen");
    let known = (Registry, Says::Background, LONG);
    assert_eq!(decided(&[done, known], SECOND, Working), (Working, Some(Registry)));
    let prompt = (Screen, Says::Idle, LONG);
    assert_eq!(decided(&[known, prompt], LONG, Working).0, Working, "a shell in the background says nothing");
}

#[test]
fn work_that_nothing_confirms_for_long_is_checked_against_a_second_source() {
    for source in [Program, Registry, Hook, Transcript] {
        for (second, expected) in
            [(Says::Idle, Idle), (Says::NeedsInput, NeedsInput), (Says::Working, Working)]
        {
            let evidence = [(source, Says::Working, STALE), (Screen, second, LONG)];
            assert_eq!(decided(&evidence, STALE, Working).0, expected, "{source} {second}");
        }
        let alone = [(source, Says::Working, LONG)];
        assert_eq!(decided(&alone, LONG, Working), (Working, Some(source)), "nobody says otherwise");
        let begun = [(source, Says::Working, SECOND), (Screen, Says::Idle, LONG)];
        assert_eq!(decided(&begun, LONG, Idle).0, Working, "it has only just begun");
        let silent_tool = [(source, Says::Working, LONG), (Processes, Says::Idle, LONG)];
        assert_eq!(decided(&silent_tool, LONG, Working), (Working, Some(source)), "silence proves nothing");
    }
}

#[test]
fn a_screen_never_overrules_a_fresh_word_of_the_program() {
    for word in [Says::Working, Says::Idle, Says::NeedsInput] {
        for seen in [Says::Working, Says::Background, Says::Idle, Says::NeedsInput] {
            for age in [Duration::ZERO, SECOND, LONG] {
                let evidence = [(Program, word, SECOND), (Title, seen, age), (Screen, seen, age)];
                assert_eq!(
                    decided(&evidence, SECOND, Unknown),
                    (word.doing(), Some(Program)),
                    "{evidence:?}"
                );
            }
        }
    }
}

#[test]
fn a_glimpse_of_an_idle_screen_does_not_end_the_work() {
    let blink = [says(Screen, Says::Idle, Duration::from_millis(200))];
    let activity = decide(&blink, SECOND, Working);
    assert_eq!((activity.doing, activity.again), (Working, Some(SETTLE - blink[0].age)));
    assert_eq!(decide(&blink, SECOND, Unknown).doing, Idle, "there was no work to end");
    assert_eq!(decide(&[says(Screen, Says::Idle, SETTLE)], SECOND, Working).doing, Idle);
    assert_eq!(decide(&[says(Screen, Says::NeedsInput, Duration::ZERO)], SECOND, Working).doing, NeedsInput);
    assert_eq!(decide(&[says(Hook, Says::Idle, Duration::ZERO)], SECOND, Working).doing, Idle);
}

#[test]
fn it_is_asked_again_when_the_answer_can_change_by_itself_and_only_then() {
    let doubt = [says(Program, Says::Working, 20 * SECOND), says(Screen, Says::Idle, LONG)];
    assert_eq!(decide(&doubt, 10 * SECOND, Working).again, Some(STALE - 10 * SECOND));
    assert_eq!(decide(&doubt[..1], 10 * SECOND, Working).again, None);
    assert_eq!(decide(&doubt[1..], 10 * SECOND, Working).again, None);
}

#[test]
fn the_question_comes_with_the_need_for_an_answer_and_not_otherwise() {
    let mut asked = says(Screen, Says::NeedsInput, SECOND);
    asked.question = Some("Do you want to proceed?".to_owned());
    assert_eq!(
        decide(&[asked.clone()], SECOND, Working).question.as_deref(),
        Some("Do you want to proceed?")
    );
    let known = [says(Registry, Says::NeedsInput, SECOND), asked.clone()];
    let both = decide(&known, SECOND, Working);
    assert_eq!(
        (both.source, both.question),
        (Some(Registry), asked.question.clone()),
        "one knows that, one knows what"
    );
    asked.says = Says::Working;
    assert_eq!(decide(&[asked], SECOND, Working).question, None);
}

#[test]
fn the_reason_names_both_sides_of_a_disagreement() {
    let evidence = [says(Hook, Says::Working, LONG), says(Screen, Says::Idle, 2 * SECOND)];
    let because = decide(&evidence, SECOND, Idle).because;
    assert!(because.contains("screen says idle") && because.contains("hook says working"), "{because}");
}

#[test]
fn an_agent_takes_input_when_it_has_come_to_rest() {
    let ms = Duration::from_millis;
    let startup = |rest, known: Option<u64>, is_raw, has_written| Startup {
        rest: ms(rest),
        age: ms(5000),
        known_for: known.map(ms),
        is_raw,
        has_written,
    };
    for (startup, expected) in [
        (startup(0, Some(100), true, true), false),
        (startup(500, Some(100), true, true), true),
        (startup(500, Some(100), false, true), false),
        (startup(500, None, true, true), false),
        (startup(1000, None, true, true), true),
        (startup(1000, None, false, true), true),
        (startup(1000, None, true, false), false),
        (startup(4000, None, false, false), true),
        (startup(0, Some(10_000), true, true), true),
        (startup(0, Some(10_000), false, true), false),
        (Startup { age: ms(60_000), ..startup(0, None, false, false) }, true),
    ] {
        assert_eq!(takes_input(&startup), expected, "{startup:?}");
    }
}

#[test]
fn an_error_that_ended_a_turn_is_not_idleness() {
    let registry = says(Registry, Says::Idle, SECOND);
    let transcript = says(Transcript, Says::Failed, SECOND);
    assert_eq!(decide(&[registry, transcript], Duration::ZERO, Working).doing, Doing::Failed);
    let program = says(Program, Says::Failed, SECOND);
    let registry = says(Registry, Says::Idle, SECOND);
    assert_eq!(decide(&[program, registry], Duration::ZERO, Working).doing, Doing::Failed);
}
