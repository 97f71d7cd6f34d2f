//! The wire, as an honest peer, a newer one and a hostile one use it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use abide_model::Doing;
use abide_model::activity::Background;
use abide_model::watching::HookReport;
use abide_wire::link::{Link, ToKeeper, ToMux};
use abide_wire::mux_options::LiveSettings;
use abide_wire::protocol::{
    ActivityReport, Attach, Bye, ByeReason, Call, CallError, Colors, Configure, Connection, Done, Event,
    EventKind, EventMessage, Focus, Format, FrameDecoder, FrameKind, GetEvidence, GetStatus, HEADER_LEN,
    Hello, Input, Kill, MAX_CLIENT_FRAME, MAX_FRAME, Rename, ReplyTo, Request, RequestRefusal, RequestVerb,
    Resize, ResizeTo, Send, SessionStatus, Shutdown, Signal, Snapshot, Spawn, Subscribe, SubscribeReply,
    Until, Upgrade, Wait, encode, encode_json, error_code,
};
use abide_wire::session::{ProcessExit, SessionId, SpawnSpec, TerminalSize};
use proptest::prelude::*;

const SOON: Duration = Duration::from_secs(20);

fn session() -> SessionId {
    SessionId(1)
}

fn spec() -> SpawnSpec {
    SpawnSpec {
        id: session(),
        name: "the agent".into(),
        argv: vec!["claude".into(), "--resume".into()],
        env: vec![("KEY".into(), "value".into())],
        cwd: "/work".into(),
        size: TerminalSize { cols: 200, rows: 50 },
        umask: Some(0o22),
        meta: serde_json::json!({"agent": "claude"}),
    }
}

/// A request as it is sent, and as it is to be received.
fn sample<C: Call + Clone>(call: C, verb: fn(C) -> RequestVerb) -> (serde_json::Value, RequestVerb) {
    let mut sent = serde_json::to_value(&call).unwrap();
    (sent["id"], sent["verb"]) = ((1_u64 << 60).into(), C::VERB.into());
    (sent, verb(call))
}

/// One request of every verb, and more where a verb has several forms.
fn every_verb() -> Vec<(serde_json::Value, RequestVerb)> {
    let wait = |until| sample(Wait { session: session(), until, timeout_ms: Some(5) }, RequestVerb::Wait);
    let input = vec![Input::Text("hi".into()), Input::Key("enter".into()), Input::Bytes(vec![0, 255])];
    let snapshot = |session, format| {
        sample(
            Snapshot { session, format, scrollback: true, last: Some(9), from: Some(3), max: Some(4) },
            RequestVerb::Snapshot,
        )
    };
    let report = HookReport {
        session: session(),
        generation: 3,
        event: "Stop".into(),
        kind: None,
        text: Some("done".into()),
        conversation: Some("c".into()),
        transcript: Some("/t.jsonl".into()),
    };
    vec![
        sample(GetStatus {}, RequestVerb::GetStatus),
        snapshot(None, Format::Text),
        snapshot(Some(session()), Format::Cells),
        sample(Spawn { spec: Box::new(spec()), focus: true }, RequestVerb::Spawn),
        sample(Kill { session: session() }, RequestVerb::Kill),
        sample(Signal { session: session(), signal: 2 }, RequestVerb::Signal),
        sample(ResizeTo { session: session(), size: TerminalSize::default() }, RequestVerb::ResizeTo),
        sample(Send { session: session(), input }, RequestVerb::Send),
        wait(Until::Idle { quiet_ms: 100, background: Background::Counts }),
        wait(Until::Exit),
        wait(Until::NeedsInput),
        wait(Until::Text { pattern: "$ ".into() }),
        sample(
            Subscribe { kinds: vec![EventKind::Exited], session: Some(session()) },
            RequestVerb::Subscribe,
        ),
        sample(Rename { session: session(), name: "x".into() }, RequestVerb::Rename),
        sample(Focus { session: session() }, RequestVerb::Focus),
        sample(Shutdown { reason: "done".into() }, RequestVerb::Shutdown),
        sample(Configure { settings: LiveSettings::default() }, RequestVerb::Configure),
        sample(Upgrade { exe: "/usr/bin/abide".into() }, RequestVerb::Upgrade),
        sample(report, RequestVerb::HookReport),
        sample(GetEvidence { session: session() }, RequestVerb::GetEvidence),
    ]
}

fn every_event() -> Vec<Event> {
    let status = SessionStatus {
        id: session(),
        name: "n".into(),
        program: "p".into(),
        pid: abide_model::Pid(7),
        size: TerminalSize::default(),
        title: "t".into(),
        exit: Some(ProcessExit::Signal(9)),
        activity: Some(ActivityReport {
            state: Doing::NeedsInput,
            for_ms: 3,
            because: "it said so".into(),
            question: Some("may I?".into()),
            is_waiting_shell: true,
        }),
        quiet_ms: 4,
        journaled: true,
        meta: serde_json::json!([1]),
    };
    let activity = ActivityReport {
        state: Doing::Working,
        for_ms: 0,
        because: String::new(),
        question: None,
        is_waiting_shell: false,
    };
    vec![
        Event::Started { status: Box::new(status) },
        Event::Exited { session: session(), exit: ProcessExit::Code(3) },
        Event::Activity { session: session(), activity },
        Event::Title { session: session(), title: "t".into() },
        Event::Notification { session: session(), text: "n".into() },
        Event::Bell { session: session() },
        Event::Resized { session: session(), size: TerminalSize::default() },
        Event::Clients { attached: 2 },
        Event::Lost { count: 9 },
    ]
}

/// The same object with a field that this version does not know.
fn from_the_future(message: &impl serde::Serialize) -> Vec<u8> {
    let mut value = serde_json::to_value(message).unwrap();
    value["invented_later"] = serde_json::json!({"deep": [1, null, "x"]});
    serde_json::to_vec(&value).unwrap()
}

#[test]
fn every_request_comes_back_as_it_was_sent_and_newer_fields_are_ignored() {
    let mut seen = std::collections::BTreeSet::new();
    for (json, verb) in every_verb() {
        let request = Request { id: 1 << 60, verb };
        seen.insert(json["verb"].as_str().unwrap().to_owned());
        assert_eq!(Request::parse(json.to_string().as_bytes()).unwrap(), request);
        assert_eq!(Request::parse(&from_the_future(&json)).unwrap(), request);
    }
    let known = RequestVerb::WORDS.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(seen, known, "a verb has no sample here");
}

#[test]
fn every_event_comes_back_as_it_was_sent_and_a_newer_one_is_survived() {
    for event in every_event() {
        let message = EventMessage { subscription: 5, event };
        assert_eq!(serde_json::from_slice::<EventMessage>(&from_the_future(&message)).unwrap(), message);
        let kind = serde_json::to_value(message.event.kind()).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap()["event"], kind);
    }
    let newer = br#"{"subscription": 5, "event": "levitated", "height": 3}"#;
    assert_eq!(serde_json::from_slice::<EventMessage>(newer).unwrap().event, Event::Unknown);
    let kinds: Vec<EventKind> = serde_json::from_str(r#"["exited", "levitated"]"#).unwrap();
    assert_eq!(kinds, [EventKind::Exited, EventKind::Unknown]);
}

#[test]
fn attach_and_bye_come_back_as_they_were_sent() {
    let colors = Some(Colors { fg: [0, 1, 2], bg: [253, 254, 255] });
    let attach = Attach { cols: 80, rows: 24, session: Some(session()), colors, ..Attach::default() };
    assert_eq!(serde_json::from_slice::<Attach>(&from_the_future(&attach)).unwrap(), attach);
    let bye =
        Bye { reason: ByeReason::SessionEnded, message: "bye".into(), exit: Some(ProcessExit::Code(0)) };
    assert_eq!(serde_json::from_slice::<Bye>(&from_the_future(&bye)).unwrap(), bye);
    let newer: Bye = serde_json::from_str(r#"{"reason": "eclipse"}"#).unwrap();
    assert_eq!(newer.reason, ByeReason::Other);
}

#[test]
fn what_cannot_be_understood_gets_a_reply_that_says_why() {
    let code = |payload: &[u8]| {
        let err = Request::parse(payload).unwrap_err();
        (err.id, err.refusal.code)
    };
    assert_eq!(code(br#"{"id": 7, "verb": "levitate"}"#), (7, error_code::UNKNOWN_VERB.into()));
    assert_eq!(code(br#"{"id": 7, "verb": "kill"}"#), (7, error_code::BAD_REQUEST.into()));
    assert_eq!(code(br#"{"id": 7, "verb": "kill", "session": "../x"}"#), (7, error_code::BAD_REQUEST.into()));
    assert_eq!(code(br#"{"id": 7}"#), (7, error_code::BAD_REQUEST.into()));
    assert_eq!(code(b"\xff\x00"), (0, error_code::BAD_REQUEST.into()));
    assert_eq!(code(b""), (0, error_code::BAD_REQUEST.into()));
}

#[test]
fn a_length_over_the_limit_is_refused_before_anything_is_kept_for_it() {
    let mut decoder = FrameDecoder::new(MAX_CLIENT_FRAME);
    let mut header = u32::try_from(MAX_CLIENT_FRAME + 1).unwrap().to_le_bytes().to_vec();
    header.push(FrameKind::Input as u8);
    decoder.push(&header);
    assert_eq!(decoder.next().unwrap_err().length, MAX_CLIENT_FRAME + 1);
    let mut out = b"before".to_vec();
    assert!(encode(FrameKind::Output, &vec![0; MAX_FRAME + 1], &mut out).is_err());
    assert!(encode_json(FrameKind::Reply, &"x".repeat(MAX_FRAME), &mut out).is_err());
    assert_eq!(out, b"before");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_come_out_as_they_went_in_however_the_stream_is_cut(
        frames in proptest::collection::vec((1..=9u8, proptest::collection::vec(any::<u8>(), 0..300)), 0..20),
        cuts in proptest::collection::vec(1..100usize, 1..50),
    ) {
        let mut stream = Vec::new();
        for (kind, payload) in &frames {
            encode(FrameKind::from_byte(*kind).unwrap(), payload, &mut stream).unwrap();
        }
        let mut decoder = FrameDecoder::new(MAX_CLIENT_FRAME);
        let (mut rest, mut cuts, mut decoded) = (stream.as_slice(), cuts.iter().cycle(), Vec::new());
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            decoder.push(now);
            while let Some(frame) = decoder.next().unwrap() {
                decoded.push((frame.raw_kind, frame.payload.to_vec()));
            }
            rest = later;
        }
        prop_assert_eq!(decoded, frames);
        prop_assert_eq!(decoder.buffered(), 0);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_never_cost_more_than_they_are(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..20),
        limit in 0..2000usize,
    ) {
        let mut decoder = FrameDecoder::new(limit);
        'stream: for chunk in &chunks {
            decoder.push(chunk);
            loop {
                match decoder.next() {
                    Ok(Some(frame)) => {
                        prop_assert!(frame.payload.len() <= limit);
                        let _ = (frame.kind(), Request::parse(frame.payload), Resize::from_bytes(frame.payload));
                    }
                    Ok(None) => break,
                    Err(_) => break 'stream,
                }
            }
            prop_assert!(decoder.buffered() <= HEADER_LEN + limit);
        }
    }

    #[test]
    fn arbitrary_json_like_requests_never_panic(text in r#"\{("(id|verb|session|until|spec)":("?[a-z0-9./]{0,8}"?|\[\]|\{\}|null),?){0,6}\}"#) {
        let _ = Request::parse(text.as_bytes());
    }

    #[test]
    fn sizes_come_back_as_they_were_sent(cols: u16, rows: u16, more: Vec<u8>) {
        let resize = Resize { cols, rows };
        let mut bytes = resize.to_bytes().to_vec();
        bytes.extend(more);
        prop_assert_eq!(Resize::from_bytes(&bytes), Some(resize));
        prop_assert_eq!(Resize::from_bytes(&bytes[..3]), None);
    }

    #[test]
    fn arbitrary_packets_on_the_link_are_errors_and_not_the_end_of_the_receiver(packet in proptest::collection::vec(any::<u8>(), 1..500)) {
        let (hostile, link) = Link::pair().unwrap();
        rustix::net::send(hostile.as_fd(), &packet, rustix::net::SendFlags::empty()).unwrap();
        prop_assert!(link.recv::<ToKeeper>().is_err());
        hostile.send(&ToMux::Retire, &[]).unwrap();
        prop_assert_eq!(link.recv::<ToMux>().unwrap().unwrap().0, ToMux::Retire);
    }
}

/// Answers like a mux would; `script` sees each frame and gives the bytes to send back.
fn serve(
    mut script: impl FnMut(Option<FrameKind>, &[u8]) -> Vec<u8> + std::marker::Send + 'static,
) -> UnixStream {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut decoder = FrameDecoder::new(MAX_FRAME);
        let mut chunk = [0; 4096];
        while let Ok(n) = theirs.read(&mut chunk) {
            if n == 0 {
                return;
            }
            decoder.push(&chunk[..n]);
            while let Some(frame) = decoder.next().unwrap() {
                let answer = script(frame.kind(), frame.payload);
                if theirs.write_all(&answer).is_err() {
                    return;
                }
            }
        }
    });
    ours
}

fn frame(kind: FrameKind, message: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_json(kind, message, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_call_gets_its_own_reply_and_events_on_the_way_are_kept() {
    let stream = serve(|kind, payload| match kind {
        Some(FrameKind::Hello) => frame(FrameKind::Hello, &Hello::ours()),
        _ => {
            let request = Request::parse(payload).unwrap();
            let event = EventMessage { subscription: 1, event: Event::Bell { session: session() } };
            let stale = frame(FrameKind::Reply, &ReplyTo::new(request.id + 1000, Ok("of another type")));
            let reply = match request.verb {
                RequestVerb::Subscribe(_) => {
                    frame(FrameKind::Reply, &ReplyTo::new(request.id, Ok(SubscribeReply { subscription: 1 })))
                }
                _ => frame(
                    FrameKind::Reply,
                    &ReplyTo::<Done>::new(request.id, Err(RequestRefusal::new("no", "not today"))),
                ),
            };
            // A frame of a kind that does not exist yet must not disturb either.
            let newer = vec![1, 0, 0, 0, 200, b'?'];
            [frame(FrameKind::Event, &event), stale, newer, reply].concat()
        }
    });
    let mut connection = Connection::over(stream, SOON).unwrap();
    assert_eq!(connection.call(&Subscribe::default(), SOON).unwrap(), SubscribeReply { subscription: 1 });
    assert_eq!(connection.next_event(SOON).unwrap().event, Event::Bell { session: session() });
    let refused = connection.call(&Kill { session: session() }, SOON).unwrap_err();
    assert!(matches!(refused, CallError::Refused(RequestRefusal { code, .. }) if code == "no"));
}

#[test]
fn a_mux_that_does_not_answer_is_given_up_on() {
    let stream = serve(|kind, _| {
        if kind == Some(FrameKind::Hello) { frame(FrameKind::Hello, &Hello::ours()) } else { Vec::new() }
    });
    let mut connection = Connection::over(stream, SOON).unwrap();
    let err = connection.call(&GetStatus {}, Duration::from_millis(30)).unwrap_err();
    assert!(matches!(err, CallError::TimedOut(_)), "{err}");
    let (silent, _other) = UnixStream::pair().unwrap();
    assert!(matches!(Connection::over(silent, Duration::from_millis(30)), Err(CallError::TimedOut(_))));
}

#[test]
fn a_peer_of_no_common_version_is_refused_with_both_sides_named() {
    let stream = serve(|_, _| frame(FrameKind::Hello, &Hello { protocol: vec![77], ..Hello::ours() }));
    let err = Connection::over(stream, SOON).unwrap_err();
    assert!(matches!(&err, CallError::Version(_)), "{err}");
    assert!(err.to_string().contains("77"), "{err}");
}

#[test]
fn a_mux_that_says_good_bye_is_quoted_and_one_that_dies_is_noticed() {
    let bye =
        Bye { reason: ByeReason::Restarting, message: "the screen is being rebuilt".into(), exit: None };
    let stream = serve(move |_, _| frame(FrameKind::Bye, &bye));
    let err = Connection::over(stream, SOON).unwrap_err();
    assert!(err.to_string().contains("the screen is being rebuilt"), "{err}");
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(theirs);
    assert!(matches!(Connection::over(ours, SOON), Err(CallError::Closed(_))));
}

#[test]
fn a_missing_listener_is_distinguished_from_every_other_failure() {
    let dir = tempfile::tempdir().unwrap();
    let instance_dir = abide_wire::instance_dir::InstanceDir::new(dir.path());
    assert!(matches!(Connection::connect(&instance_dir, SOON), Err(CallError::NotRunning)));
    std::fs::create_dir(instance_dir.run_dir()).unwrap();
    assert!(matches!(Connection::connect(&instance_dir, SOON), Err(CallError::NotRunning)));
    drop(abide_wire::socket::bind(&instance_dir.run_dir()).unwrap());
    assert!(matches!(Connection::connect(&instance_dir, SOON), Err(CallError::NotRunning)));
}
