//! The frames that a client is sent, fed to a second terminal, must leave there what was composed: whatever the
//! programs write, at any size, with splits, overlays and the past in view.

use abide_model::StatusBar;
use abide_term::{Color, Cursor, Modes, Options, Term};
use abide_wire::session::{SessionId, TerminalSize};
use proptest::prelude::*;

use crate::screen::bar::Bar;
use crate::screen::compose::{DrawnVersions, PaneSource, Scene, SceneShape, tab_area};
use crate::screen::display::{Depth, Display, TerminalCharset};
use crate::screen::glyph::{Glyph, LinkPolicy, Strings, Text};
use crate::screen::layout::{Direction, Layout};
use crate::screen::modes::{KeyProtocols, Outer};
use crate::screen::paint::Painter;
use crate::screen::placement::TabPlacement;
use crate::screen::scroll::Scroll;

const DIRECT: Display = Display {
    depth: Depth::Direct,
    charset: TerminalCharset::Unicode,
    extensions: true,
    strings: true,
    no_color: false,
};

/// A client with its terminal, in front of a tab of up to three sessions.
struct Bench {
    layout: Layout,
    terms: Vec<(SessionId, Term)>,
    client: TerminalSize,
    bar: StatusBar,
    tab: TerminalSize,
    pan: (u16, u16),
    scroll: bool,
    overlay: Vec<String>,
    held: bool,
    strings: Strings,
    painter: Painter,
    seen: DrawnVersions,
    outer: Term,
}

fn term(size: TerminalSize) -> Term {
    Term::new(
        abide_term::Size { cols: size.cols, rows: size.rows },
        Options { scrollback: 50, ..Options::default() },
    )
}

impl Bench {
    fn new(client: TerminalSize, tab: TerminalSize, sessions: usize, bar: StatusBar) -> Self {
        let ids: Vec<SessionId> = (1..).map(SessionId).take(sessions).collect();
        let mut layout = Layout::default();
        layout.add(&ids[0]);
        for (n, id) in ids.iter().enumerate().skip(1) {
            let direction = if n % 2 == 1 { Direction::Columns } else { Direction::Rows };
            layout.split(&ids[n - 1], direction, id);
        }
        let placement = TabPlacement::of(&layout.tabs()[0], tab);
        let sized = |id: &SessionId| {
            placement.panes.iter().find(|pane| pane.session == *id).map(|pane| pane.rect.size())
        };
        let terms = ids.iter().map(|id| (*id, term(sized(id).unwrap_or(tab)))).collect();
        Self {
            layout,
            terms,
            client,
            bar,
            tab,
            pan: (0, 0),
            scroll: false,
            overlay: Vec::new(),
            held: false,
            strings: Strings::new(LinkPolicy::Harmless),
            painter: Painter::new(client, DIRECT),
            seen: DrawnVersions::default(),
            outer: term(client),
        }
    }

    fn feed(&mut self, session: usize, bytes: &[u8]) {
        let index = session % self.terms.len();
        self.terms[index].1.feed(bytes);
    }

    fn resize_client(&mut self, size: TerminalSize) {
        self.client = size;
        self.outer.resize(abide_term::Size { cols: size.cols, rows: size.rows });
        self.painter.forget(size);
    }

    fn scene(&self) -> Scene<'_> {
        let placement = TabPlacement::of(&self.layout.tabs()[0], self.tab);
        let of = |id: &SessionId| &self.terms.iter().find(|(known, _)| known == id).unwrap().1;
        let scroll = self.scroll.then(|| {
            let mut scroll = Scroll::at_end(placement.focused, of(&placement.focused));
            scroll.by(of(&placement.focused), -7);
            scroll.search(of(&placement.focused), "a");
            scroll
        });
        let sources = placement
            .panes
            .iter()
            .map(|pane| PaneSource { term: of(&pane.session), held: self.held })
            .collect();
        let shape = SceneShape {
            size: self.client,
            bar: self.bar,
            placement,
            pan: self.pan,
            scroll,
            overlay: self.overlay.clone(),
            covered: false,
        };
        let tabs = Bar::Tabs { instance: "ab-漢".into(), tabs: Vec::new(), right: "right".into() };
        Scene { shape, sources, bar: tabs, chrome: DIRECT.chrome() }
    }

    /// Draws a frame and lets the outer terminal show it.
    fn draw(&mut self) -> Vec<u8> {
        let mut painter = std::mem::replace(&mut self.painter, Painter::new(self.client, DIRECT));
        let mut seen = std::mem::take(&mut self.seen);
        let mut strings = std::mem::replace(&mut self.strings, Strings::new(LinkPolicy::Harmless));
        self.scene().draw(&mut painter, &mut seen, &mut strings);
        let frame = painter.finish(None, &Outer::default()).unwrap_or_default().to_vec();
        (self.painter, self.seen, self.strings) = (painter, seen, strings);
        self.outer.feed(&frame);
        frame
    }

    /// What should be on the outer terminal, row by row.
    fn expected(&mut self) -> Vec<Vec<Glyph>> {
        let mut strings = std::mem::replace(&mut self.strings, Strings::new(LinkPolicy::Harmless));
        let scene = self.scene();
        let rows = (0..self.client.rows).map(|y| {
            let mut row = vec![Glyph::BLANK; usize::from(self.client.cols)];
            scene.compose(y, &mut row, None, &mut strings);
            row
        });
        let rows = rows.collect();
        self.strings = strings;
        rows
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let expected = self.expected();
        for (y, row) in expected.iter().enumerate() {
            let cells = self.outer.row(u16::try_from(y).unwrap());
            for (x, (wanted, cell)) in row.iter().zip(cells).enumerate() {
                let shown = Glyph::of(&self.outer, cell, &mut self.strings);
                prop_assert_eq!(&shown, wanted, "column {} of row {}", x, y);
            }
        }
        Ok(())
    }
}

fn size(cols: std::ops::Range<u16>, rows: std::ops::Range<u16>) -> impl Strategy<Value = TerminalSize> {
    (cols, rows).prop_map(|(cols, rows)| TerminalSize { cols, rows })
}

/// Something that a program might write.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let number = || 0u16..40;
    prop_oneof![
        "[a-zA-Z ]{1,30}".prop_map(String::into_bytes),
        "[漢字あ😀é👍ñ│─█ a]{1,12}".prop_map(String::into_bytes),
        prop::sample::select(vec![
            "e\u{301}", "👨\u{200d}👩\u{200d}👧", "🇩🇪", "🇫🇷", "👍🏽", "☺\u{fe0f}", "🇩", "🏽", "\u{200d}", "각",
            "क्षि",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::sample::select(vec![
            "\r\n", "\r", "\x1b[K", "\x1b[1K", "\x1b[2J", "\x1b[J", "\x1b[L", "\x1b[M", "\x1b[P", "\x1b[@",
            "\x1b[3X", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?5h", "\x1b[?5l", "\x1b[S", "\x1b[T",
            "\x1b[5;10r", "\x1b[r", "\x1bM", "\x1b7", "\x1b8", "\x1b[4h", "\x1b[4l", "\x1bc", "\t",
            "\x1b(0lqqk\x1b(B", "\x1b[1\"q", "\x1b[0\"q", "\x1b]8;;https://a.b/c\x1b\\",
            "\x1b]8;;javascript:x\x1b\\", "\x1b]8;;\x1b\\", "\x1b[20b", "\x1b]4;1;#123456\x07",
            "\x1b]10;#ffffff;#102030\x07", "\x1b]104\x07", "\x1b]110\x07", "\x1b]111\x07",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        (number(), number()).prop_map(|(y, x)| format!("\x1b[{y};{x}H").into_bytes()),
        prop::sample::select(vec![
            "0", "1", "2", "3", "4", "5", "7", "8", "9", "21", "22", "24", "27", "53", "31", "42", "97",
            "104", "39", "49", "4:3", "4:5", "58:2::1:2:3", "58:5:9", "59", "38;5;200", "48;2;1;2;3",
            "1;3;4;38;2;9;9;9",
        ])
        .prop_map(|sgr| format!("\x1b[{sgr}m").into_bytes()),
        prop::collection::vec(any::<u8>(), 1..12),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Output(usize, Vec<u8>),
    Draw,
    Client(TerminalSize),
    Scroll(bool),
    Overlay(bool),
    Pan(u16, u16),
    Focus,
    Held(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0usize..3, output()).prop_map(|(session, bytes)| Step::Output(session, bytes)),
        4 => Just(Step::Draw),
        1 => size(2..60, 1..20).prop_map(Step::Client),
        1 => any::<bool>().prop_map(Step::Scroll),
        1 => any::<bool>().prop_map(Step::Overlay),
        1 => (0u16..10, 0u16..5).prop_map(|(x, y)| Step::Pan(x, y)),
        1 => Just(Step::Focus),
        1 => any::<bool>().prop_map(Step::Held),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_outer_terminal_shows_what_was_composed(
        client in size(2..60, 1..20), follow in any::<bool>(), other in size(2..60, 1..20), sessions in 1usize..4,
        bar in prop::sample::select(vec![StatusBar::Bottom, StatusBar::Top, StatusBar::Off]),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let tab = if follow { tab_area(client, bar) } else { other };
        let mut bench = Bench::new(client, tab, sessions, bar);
        for step in steps {
            match step {
                Step::Output(session, bytes) => bench.feed(session, &bytes),
                Step::Draw if bench.held => _ = bench.draw(),
                Step::Draw => {
                    bench.draw();
                    bench.check()?;
                }
                Step::Client(size) => bench.resize_client(size),
                Step::Scroll(on) => bench.scroll = on,
                Step::Overlay(on) => bench.overlay = if on { vec!["one 漢 line".into(), "two".into()] } else { Vec::new() },
                Step::Pan(x, y) => bench.pan = (x, y),
                Step::Focus => {
                    let tab = bench.layout.tabs()[0].id;
                    bench.layout.tab_mut(tab).unwrap().focus_next();
                }
                Step::Held(on) => bench.held = on,
            }
        }
        bench.held = false;
        bench.draw();
        bench.check()?;
        let again = bench.draw();
        prop_assert!(again.is_empty(), "a frame without a change: {}", again.escape_ascii());
    }
}

#[test]
fn recorded_programs_come_through_unchanged() {
    let streams: [&[u8]; 3] = [
        include_bytes!("../../tests/mux/streams/vim.raw"),
        include_bytes!("../../tests/mux/streams/less.raw"),
        include_bytes!("../../tests/mux/streams/nano.raw"),
    ];
    let sizes = [(80, 24), (80, 23), (60, 20), (100, 40)].map(|(cols, rows)| TerminalSize { cols, rows });
    for (client, sessions) in sizes.into_iter().zip([1, 1, 2, 3]) {
        let tab = TerminalSize { cols: 80, rows: 23 };
        let mut bench = Bench::new(client, tab, sessions, StatusBar::Bottom);
        let pieces = streams.map(|stream| stream.chunks(61).collect::<Vec<_>>());
        for at in 0..pieces.iter().map(Vec::len).max().unwrap() {
            for (session, pieces) in pieces.iter().enumerate() {
                if let Some(piece) = pieces.get(at) {
                    bench.feed(session, piece);
                }
            }
            bench.draw();
            bench.check().unwrap();
        }
    }
}

#[test]
fn a_held_pane_stays_as_it_was_while_its_neighbour_goes_on() {
    let size = TerminalSize { cols: 21, rows: 4 };
    let mut bench = Bench::new(size, size, 1, StatusBar::Off);
    bench.feed(0, b"before");
    bench.draw();
    bench.held = true;
    bench.feed(0, b"\x1b[2Jhalf an update");
    bench.draw();
    assert_eq!(bench.outer.text(), "before");
    bench.held = false;
    bench.draw();
    bench.check().unwrap();
}

#[test]
fn one_typed_character_costs_a_few_bytes_and_not_a_screen() {
    let size = TerminalSize { cols: 200, rows: 50 };
    let mut bench = Bench::new(size, tab_area(size, StatusBar::Bottom), 1, StatusBar::Bottom);
    for _ in 0..60 {
        bench.feed(0, b"\x1b[31msome text of a busy screen\x1b[m\r\n");
    }
    bench.draw();
    bench.feed(0, b"x");
    let frame = bench.draw();
    assert!(frame.len() < 60, "{}", frame.escape_ascii());
    bench.check().unwrap();
}

#[test]
fn colours_that_a_program_changes_are_shown_in_its_own_pane_until_it_gives_them_back() {
    let size = TerminalSize { cols: 9, rows: 1 };
    let mut bench = Bench::new(size, size, 2, StatusBar::Off);
    for session in 0..2 {
        bench.feed(session, b"\x1b[31;44mr");
    }
    let looks = |bench: &mut Bench| {
        bench.draw();
        bench.check().unwrap();
        [0, 1, 5].map(|x| bench.outer.row(0)[x].style()).map(|look| (look.fg, look.bg))
    };
    let (red, blue, plain) = (Color::Indexed(1), Color::Indexed(4), (Color::Default, Color::Default));
    assert_eq!(looks(&mut bench), [(red, blue), plain, (red, blue)]);
    bench.feed(0, b"\x1b]4;1;#112233\x07\x1b]10;#445566\x07\x1b]11;#778899\x07");
    let own = (Color::Rgb(0x44, 0x55, 0x66), Color::Rgb(0x77, 0x88, 0x99));
    assert_eq!(looks(&mut bench), [(Color::Rgb(0x11, 0x22, 0x33), blue), own, (red, blue)]);
    bench.feed(0, b"\x1b]104\x07\x1b]110\x07\x1b]111\x07");
    assert_eq!(looks(&mut bench), [(red, blue), plain, (red, blue)]);
}

#[test]
fn the_outer_terminal_is_in_the_modes_of_the_session() {
    let mut outer = term(TerminalSize { cols: 10, rows: 3 });
    let mut session = term(TerminalSize { cols: 10, rows: 3 });
    let mut last: Option<Outer> = None;
    for output in [
        &b""[..],
        b"\x1b[?1h\x1b=\x1b[?2004h",
        b"\x1b[?1002h\x1b[?1006h",
        b"\x1b[>5u\x1b[5 q\x1b[?1004h",
        b"\x1b[?1003h",
        b"\x1b[?1049h",
        b"\x1b]2;a title\x07",
        b"\x1b[?1049l\x1b[?1003l\x1b[<u\x1b[?1l\x1b>",
        b"\x1bc",
    ] {
        session.feed(output);
        let wanted = Outer::of(
            &session.modes(),
            &session.cursor(),
            session.title(),
            KeyProtocols { kitty: true, modify_other_keys: false },
        );
        let mut bytes = Vec::new();
        wanted.write_changes(last.as_ref(), &mut bytes);
        outer.feed(&bytes);
        let (inner, shown): (Modes, Modes) = (session.modes(), outer.modes());
        assert_eq!(shown.app_cursor_keys, inner.app_cursor_keys);
        assert_eq!(shown.app_keypad, inner.app_keypad);
        assert_eq!(shown.bracketed_paste, inner.bracketed_paste);
        assert_eq!(shown.focus_events, inner.focus_events);
        assert_eq!(shown.mouse, inner.mouse);
        assert_eq!(shown.kitty_keyboard, inner.kitty_keyboard);
        let look = |cursor: Cursor| (cursor.shape, cursor.blinking);
        assert_eq!(look(outer.cursor()), look(session.cursor()));
        assert_eq!(outer.title(), session.title());
        last = Some(wanted);
    }
}

#[test]
fn a_wide_character_that_does_not_fit_is_left_out_and_not_cut() {
    let tab = TerminalSize { cols: 10, rows: 2 };
    let mut bench = Bench::new(TerminalSize { cols: 5, rows: 2 }, tab, 1, StatusBar::Off);
    bench.feed(0, "漢漢漢漢漢".as_bytes());
    for pan in 0..5 {
        bench.pan = (pan, 0);
        bench.draw();
        bench.check().unwrap();
    }
    assert!(bench.expected()[0].iter().filter(|glyph| glyph.text == Text::Tail).count() <= 2);
}
