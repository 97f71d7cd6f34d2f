use proptest::prelude::*;

use super::FirstMessage::{LeftOut, Said};
use super::*;

const NEW: &str = "new";
const OLD: &str = "old";
const STARTED: i64 = 100;

/// A session of an agent that takes ids, which ran before and of whose conversation nothing is known.
fn restarted() -> Beginning<'static> {
    Beginning {
        started_before: true,
        created: Timestamp(STARTED),
        cwd: Path::new("/proj"),
        typed: &Typed::Nothing,
        bound: None,
        minted: Some(NEW),
        can_resume: true,
        described: true,
        wrapped: false,
        candidates: &[],
        claimed: &[],
        rivals: false,
        first_turn: FirstTurn::At(Timestamp(STARTED)),
        shown: &[],
    }
}

/// Anew, without saying the first message once more.
fn fresh() -> Begin {
    Begin::Fresh { minted: Some(NEW.to_owned()), first_message: LeftOut }
}

fn resume(id: &str) -> Begin {
    Begin::Resume { id: id.to_owned() }
}

fn candidate(id: &str, cwd: &str, modified: i64) -> TranscriptCandidate {
    let path = format!("/transcripts/{id}.jsonl").into();
    TranscriptCandidate {
        id: id.to_owned(),
        path,
        cwd: cwd.into(),
        modified: Timestamp(modified),
        begun: Some(Timestamp(modified)),
        size: 1,
        title: None,
    }
}

fn decided(facts: &Beginning<'_>) -> (Begin, BeginReason) {
    let Decided { decision, reason } = begin(facts);
    (decision, reason)
}

#[track_caller]
fn expect(facts: &Beginning<'_>, decision: Begin, reason: BeginReason) {
    assert_eq!(decided(facts), (decision, reason));
}

#[test]
fn a_first_start_is_fresh_whatever_lies_on_disk() {
    let candidates = [candidate("a", "/proj", 200)];
    let first = Beginning { started_before: false, candidates: &candidates, ..restarted() };
    let anew = |minted: Option<&str>| Begin::Fresh { minted: minted.map(str::to_owned), first_message: Said };
    expect(&first, anew(Some(NEW)), BeginReason::Fresh);
    expect(&Beginning { minted: None, ..first }, anew(None), BeginReason::Fresh);
}

#[test]
fn a_bound_conversation_is_gone_on_with_by_what_is_known_of_its_transcript() {
    let found = Located::Found("/t.jsonl".into());
    let unknown = Located::Unknown("a database".to_owned());
    let missing = Located::Missing;
    let again = |first_message| Begin::Restart { id: OLD.to_owned(), first_message };
    let none = Begin::Fresh { minted: None, first_message: LeftOut };
    for (located, seen, minted, can_resume, decision, reason) in [
        (&found, true, Some(NEW), true, resume(OLD), BeginReason::DataPresent),
        (&found, false, None, true, resume(OLD), BeginReason::DataPresent),
        (&unknown, false, Some(NEW), true, resume(OLD), BeginReason::Unverified),
        (&unknown, false, None, true, resume(OLD), BeginReason::Unverified),
        (&missing, false, Some(NEW), true, again(Said), BeginReason::NoTranscriptYet),
        (&missing, true, Some(NEW), true, again(LeftOut), BeginReason::TranscriptGone),
        (&missing, false, None, true, none.clone(), BeginReason::NoTranscriptYet),
        (&missing, true, None, true, none.clone(), BeginReason::TranscriptGone),
        (&found, true, None, false, none.clone(), BeginReason::CannotResume),
        (&unknown, false, None, false, none, BeginReason::CannotResume),
    ] {
        let bound = Some(BoundConversation { id: OLD, located, seen, held: false, out_of_reach: false });
        expect(&Beginning { bound, minted, can_resume, ..restarted() }, decision, reason);
    }
}

#[test]
fn a_session_without_an_id_takes_the_one_transcript_that_can_be_its_own() {
    let candidates = [
        candidate("foreign", "/other", 500),
        candidate("claimed", "/proj", 400),
        candidate("own", "/proj", 300),
        candidate("before", "/proj", STARTED - 1),
    ];
    let facts = Beginning { candidates: &candidates, claimed: &["claimed"], ..restarted() };
    expect(&facts, resume("own"), BeginReason::Discovered);
    let all = ["claimed", "own"];
    expect(&Beginning { claimed: &all, ..facts }, fresh(), BeginReason::NoTranscriptYet);
    expect(&Beginning { can_resume: false, ..facts }, fresh(), BeginReason::CannotResume);
}

#[test]
fn several_transcripts_are_ambiguous_unless_a_wrapper_explains_them_and_then_the_newer_wins() {
    let candidates =
        [candidate("a", "/proj", 200), candidate("b", "/proj", 300), candidate("foreign", "/other", 900)];
    let facts = Beginning { candidates: &candidates, ..restarted() };
    expect(&facts, fresh(), BeginReason::Ambiguous);
    let wrapped = Beginning { wrapped: true, ..facts };
    expect(&wrapped, resume("b"), BeginReason::Discovered);
    expect(&Beginning { claimed: &["b"], ..wrapped }, resume("a"), BeginReason::Discovered);
    let same = [candidate("a", "/proj", 200), candidate("b", "/proj", 200)];
    expect(&Beginning { candidates: &same, ..wrapped }, fresh(), BeginReason::Ambiguous);
}

#[test]
fn an_id_that_a_wrapper_did_not_pass_on_gives_way_to_what_was_written() {
    let candidates = [candidate("a", "/proj", 200), candidate("b", "/proj", 300)];
    let bound = Some(BoundConversation {
        id: OLD,
        located: &Located::Missing,
        seen: false,
        held: false,
        out_of_reach: false,
    });
    let facts = Beginning { bound, candidates: &candidates, ..restarted() };
    let again = Begin::Restart { id: OLD.to_owned(), first_message: Said };
    expect(&facts, again.clone(), BeginReason::NoTranscriptYet);
    let wrapped = Beginning { wrapped: true, ..facts };
    expect(&wrapped, resume("b"), BeginReason::Discovered);
    expect(&Beginning { claimed: &["a", "b"], ..wrapped }, again, BeginReason::NoTranscriptYet);
}

#[test]
fn one_transcript_that_two_sessions_could_have_written_is_taken_by_neither() {
    let candidates = [candidate("own", "/proj", 300)];
    let facts = Beginning { candidates: &candidates, rivals: true, ..restarted() };
    expect(&facts, fresh(), BeginReason::Ambiguous);
    expect(&Beginning { wrapped: true, ..facts }, fresh(), BeginReason::Ambiguous);
}

#[test]
fn a_conversation_that_another_session_is_in_is_left_to_it() {
    for located in [Located::Found("/t".into()), Located::Unknown(String::new()), Located::Missing] {
        let bound = Some(BoundConversation {
            id: OLD,
            located: &located,
            seen: true,
            held: true,
            out_of_reach: false,
        });
        expect(&Beginning { bound, ..restarted() }, fresh(), BeginReason::Held);
    }
}

#[test]
fn what_was_asked_for_and_never_spoken_to_is_asked_for_again() {
    let typed = Typed::Conversation(Some(OLD.to_owned()));
    let located = Located::Missing;
    let as_typed = Begin::AsTyped { id: Some(OLD.to_owned()) };
    for (seen, decision, reason) in [
        (false, as_typed, BeginReason::AsTyped),
        (true, Begin::Restart { id: OLD.to_owned(), first_message: LeftOut }, BeginReason::TranscriptGone),
    ] {
        let bound =
            Some(BoundConversation { id: OLD, located: &located, seen, held: false, out_of_reach: false });
        expect(&Beginning { bound, typed: &typed, ..restarted() }, decision, reason);
    }
}

#[test]
fn a_running_session_is_followed_to_where_it_was_seen_by_the_best_source() {
    let seen = |id: &str, origin| Sighting { id: id.into(), origin, transcript: None, held_by: None };
    let held = |id: &str, origin| Sighting { held_by: Some("ab-x/s1".into()), ..seen(id, origin) };
    use Origin::{Discovered, Hook, OpenFile};
    for (bound, sightings, expected, reason) in [
        (None, vec![], Follow::Stay, "nothing was seen"),
        (Some("a"), vec![seen("a", Hook), seen("b", OpenFile)], Follow::Stay, "it is where it was"),
        (Some("a"), vec![seen("b", Hook)], Follow::Bind(seen("b", Hook)), "the agent reported it"),
        (None, vec![seen("b", OpenFile)], Follow::Bind(seen("b", OpenFile)), "the agent has it open"),
        (Some("a"), vec![seen("b", Discovered)], Follow::Stay, "nothing was seen"),
        (None, vec![seen("b", Discovered)], Follow::Bind(seen("b", Discovered)), "jsonl_discovery"),
        (
            None,
            vec![seen("b", Discovered), seen("c", Discovered)],
            Follow::Refuse(seen("b", Discovered)),
            "ambiguous",
        ),
        (
            Some("a"),
            vec![held("b", Hook)],
            Follow::Astray(held("b", Hook), AstrayReason::Held),
            "ab-x/s1 is in it",
        ),
        (
            None,
            vec![held("b", OpenFile), seen("c", Discovered)],
            Follow::Astray(held("b", OpenFile), AstrayReason::Held),
            "ab-x/s1 is in it",
        ),
    ] {
        let Decided { decision, reason: said } = follow(bound, Arrival::Settled, sightings);
        assert_eq!((decision, &*said), (expected, reason));
    }
}

#[test]
fn a_resume_that_came_up_elsewhere_stays_bound_to_what_it_was_to_resume() {
    let seen = |id: &str, held_by: Option<&str>| Sighting {
        id: id.to_owned(),
        origin: Origin::Hook,
        transcript: None,
        held_by: held_by.map(str::to_owned),
    };
    let decided = |bound, seen| follow(bound, Arrival::Awaited, vec![seen]).decision;
    let elsewhere = Follow::Astray(seen("b", None), AstrayReason::CameUpElsewhere);
    assert_eq!(decided(Some("a"), seen("b", None)), elsewhere);
    assert_eq!(decided(Some("a"), seen("a", None)), Follow::Stay);
    let held = Follow::Astray(seen("b", Some("ab-x/s1")), AstrayReason::Held);
    assert_eq!(decided(Some("a"), seen("b", Some("ab-x/s1"))), held, "two in one is the greater danger");
    assert_eq!(decided(None, seen("b", None)), Follow::Bind(seen("b", None)), "nothing was to be resumed");
}

#[test]
fn what_the_operator_typed_counts_until_something_better_is_known() {
    let named = Typed::Conversation(Some("typed".to_owned()));
    let latest = Typed::Conversation(None);
    let as_typed = |id: Option<&str>| Begin::AsTyped { id: id.map(str::to_owned) };
    for started_before in [false, true] {
        let facts = Beginning { started_before, ..restarted() };
        expect(&Beginning { typed: &named, ..facts }, as_typed(Some("typed")), BeginReason::AsTyped);
        expect(&Beginning { typed: &latest, ..facts }, as_typed(None), BeginReason::AsTyped);
    }
    let candidates = [candidate("own", "/proj", 200)];
    let later = Beginning { typed: &latest, candidates: &candidates, ..restarted() };
    expect(&later, resume("own"), BeginReason::Discovered);
    let located = Located::Found("/t".into());
    let bound =
        Some(BoundConversation { id: OLD, located: &located, seen: true, held: false, out_of_reach: false });
    expect(&Beginning { bound, ..later }, resume(OLD), BeginReason::DataPresent);
}

#[test]
fn a_command_that_is_no_conversation_runs_as_it_is() {
    let located = Located::Found("/t".into());
    let bound =
        Some(BoundConversation { id: OLD, located: &located, seen: true, held: false, out_of_reach: false });
    for bound in [None, bound] {
        let facts = Beginning { typed: &Typed::Command, bound, ..restarted() };
        expect(&facts, Begin::AsTyped { id: None }, BeginReason::NoConversation);
    }
}

#[test]
fn what_is_bound_says_how_it_became_known() {
    assert_eq!(fresh().binding(), Some((NEW, Origin::Minted)));
    assert_eq!(Begin::Fresh { minted: None, first_message: Said }.binding(), None);
    assert_eq!(resume("x").binding(), Some(("x", Origin::Discovered)));
    assert_eq!(Begin::AsTyped { id: Some("x".into()) }.binding(), Some(("x", Origin::Adopted)));
}

proptest! {
    #[test]
    fn a_conversation_of_another_session_is_never_taken(
        ids in proptest::collection::vec(("[a-f]", 0i64..200, any::<bool>()), 0..8),
        claimed in proptest::collection::vec("[a-f]", 0..4),
        wrapped: bool,
    ) {
        let place = |own: bool| if own { "/proj" } else { "/other" };
        let candidates: Vec<_> = ids.iter().map(|(id, at, own)| candidate(id, place(*own), *at)).collect();
        let claimed: Vec<&str> = claimed.iter().map(String::as_str).collect();
        let facts = Beginning { candidates: &candidates, claimed: &claimed, wrapped, ..restarted() };
        if let Begin::Resume { id } = begin(&facts).decision {
            prop_assert!(!claimed.contains(&id.as_str()));
            let own = |c: &&TranscriptCandidate| c.id == id && c.cwd == Path::new("/proj") && c.modified.0 >= STARTED;
            prop_assert!(candidates.iter().any(|c| own(&c)));
        }
    }
}

#[test]
fn a_transcript_that_was_begun_before_the_first_turn_does_not_belong_to_this_session() {
    let early = candidate("foreign", "/proj", 150);
    let own = candidate("own", "/proj", 900);
    let both = [early.clone(), own];
    let at = |turn| Beginning { first_turn: turn, candidates: &both, ..restarted() };
    expect(&at(FirstTurn::NotYet), fresh(), BeginReason::NoTranscriptYet);
    expect(&at(FirstTurn::Unknown), fresh(), BeginReason::NoTranscriptYet);
    expect(&at(FirstTurn::At(Timestamp(800))), resume("own"), BeginReason::Discovered);
    expect(&at(FirstTurn::At(Timestamp(120))), fresh(), BeginReason::Ambiguous);
}

#[test]
fn the_words_on_its_screen_say_which_transcript_is_a_sessions_own_also_beside_a_rival() {
    let both = [candidate("mine", "/proj", 300), candidate("rivals", "/proj", 400)];
    let shown = ["mine".to_owned()];
    let facts = Beginning { candidates: &both, rivals: true, ..restarted() };
    expect(&facts, fresh(), BeginReason::Ambiguous);
    expect(&Beginning { shown: &shown, ..facts }, resume("mine"), BeginReason::Discovered);
    expect(
        &Beginning { shown: &shown, first_turn: FirstTurn::Unknown, ..facts },
        resume("mine"),
        BeginReason::Discovered,
    );
    let all = ["mine".to_owned(), "rivals".to_owned()];
    expect(&Beginning { shown: &all, ..facts }, fresh(), BeginReason::Ambiguous);
}
