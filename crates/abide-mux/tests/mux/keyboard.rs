//! Keys, mouse and paste: what goes to the session, and what each command does.

use abide_term::Term;
use abide_wire::session::TerminalSize;

use crate::support::{Capsule, id, part, wait_for};
use crate::terminal::Terminal;
use crate::tests;

tests![
    the_prefix_twice_sends_it_once_and_torn_apart_it_still_works,
    an_unknown_key_after_the_prefix_is_ignored_with_a_word,
    new_shells_get_tabs_which_are_reached_by_next_previous_and_number,
    a_new_shell_has_the_environment_and_the_directory_of_the_session_and_leaves_no_journal,
    splits_share_the_screen_take_the_focus_in_turn_and_are_drawn_with_a_line,
    zoom_gives_one_pane_everything_and_back,
    a_split_without_room_is_refused,
    killing_asks_first,
    renaming_shows_at_once_and_can_be_called_off,
    help_is_shown_over_the_screen_and_any_key_closes_it,
    scroll_mode_moves_through_the_past_and_back,
    scroll_mode_searches_backwards_and_forwards,
    the_wheel_moves_through_the_past_where_the_session_does_not_want_it,
    the_mouse_reaches_a_session_that_wants_it_in_its_own_coordinates,
    a_click_gives_a_pane_the_focus,
    a_paste_is_passed_with_its_marks_and_the_prefix_in_it_means_nothing,
    a_paste_is_text_where_a_line_is_asked_for_and_nothing_where_a_key_is,
    a_paste_that_began_in_scroll_mode_does_not_end_in_a_session,
    scroll_mode_ends_when_another_session_gets_the_focus,
    an_empty_search_repeats_the_last_one,
    a_session_hears_when_it_loses_the_focus_and_when_it_gets_it_back,
    keys_in_the_kitty_encoding_pass_and_the_prefix_is_found_in_it,
    an_escape_alone_is_passed_and_sequences_stay_whole,
    a_program_that_wants_reports_of_its_size_gets_one_at_once,
    a_new_pane_has_its_size_from_the_start,
    keys_of_ours_that_come_before_a_new_pane_are_meant_for_it,
    a_key_of_ours_that_comes_in_pieces_is_not_typed_into_the_program,
    modified_keys_are_asked_for_or_translated_as_the_terminal_can_and_a_query_is_answered_truthfully,
    the_help_has_pages_where_the_screen_is_small,
];

fn attach(capsule: &Capsule) -> Terminal {
    let mut terminal = Terminal::attach(capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    terminal
}

/// What the session says that it has heard, however it was cut.
fn heard(terminal: &Terminal) -> String {
    let screen = terminal.screen();
    screen.lines().filter_map(|line| line.strip_prefix('<')?.strip_suffix('>')).collect()
}

fn the_prefix_twice_sends_it_once_and_torn_apart_it_still_works() {
    let capsule = Capsule::running(&["raw", ""]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("listening");
    terminal.type_keys("a\x02\x02b");
    terminal.wait_text("b>");
    assert_eq!(heard(&terminal), "a\\x02b");
    terminal.type_keys("\x02");
    terminal.wait_text("C-b …");
    terminal.type_keys("?");
    terminal.wait_text("keys after C-b");
    terminal.type_keys("q");
    terminal.wait_gone("keys after C-b");
}

fn an_unknown_key_after_the_prefix_is_ignored_with_a_word() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02Q");
    terminal.wait_text("Q is not a command; C-b ? lists them");
    terminal.type_keys("fine\r");
    terminal.wait_text("you said fine");
}

fn new_shells_get_tabs_which_are_reached_by_next_previous_and_number() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("first\r");
    terminal.wait_text("you said first");
    terminal.type_keys("\x02c");
    terminal.wait_gone("you said first");
    terminal.wait_text("ready$");
    terminal.type_keys("second\r");
    terminal.wait_text("you said second");
    for (keys, shows) in [
        ("\x02p", "you said first"),
        ("\x02n", "you said second"),
        ("\x02n", "you said first"),
        ("\x021", "you said second"),
        ("\x020", "you said first"),
        ("\x027", "there is no tab 7"),
    ] {
        terminal.type_keys(keys);
        terminal.wait_text(shows);
    }
    // Output in the other tab is marked until somebody looks, and a question all the more.
    let bar_has =
        |mark: char| move |term: &Term| term.text().lines().last().is_some_and(|bar| bar.contains(mark));
    capsule.send_line("s1", "unseen");
    terminal.wait_until("the mark", bar_has('+'));
    capsule.send_line("s1", "say \\e]7501;state=blocked\\aasked");
    terminal.wait_until("the alert", bar_has('!'));
    terminal.type_keys("\x021");
    terminal.wait_text("asked");
    terminal.wait_until("no mark", |term| !bar_has('+')(term) && !bar_has('!')(term));
}

fn a_new_shell_has_the_environment_and_the_directory_of_the_session_and_leaves_no_journal() {
    let mut capsule = Capsule::new();
    let mut spec = part("main", &["shell"]);
    spec.env.push(("SECRET".into(), "hunter2".into()));
    spec.cwd = "/usr".into();
    capsule.launch(spec);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02c");
    wait_for("the shell", || (capsule.status().sessions.len() == 2).then_some(()));
    terminal.type_keys("env SECRET\r");
    terminal.wait_text("SECRET=hunter2");
    terminal.type_keys("cwd\r");
    terminal.wait_text("cwd=/usr");
    let ring = capsule.instance_dir.journal_dir().join("s1.ring");
    assert!(ring.exists());
    terminal.type_keys("exit 0\r");
    terminal.wait_text("ended (exit code 0)");
    wait_for("the journal's end", || (!ring.exists()).then_some(()));
    let left: Vec<_> = std::fs::read_dir(capsule.instance_dir.journal_dir()).unwrap().flatten().collect();
    let main = format!("{}.", id("main"));
    assert!(left.iter().all(|entry| entry.file_name().to_string_lossy().starts_with(&main)), "{left:?}");
}

fn splits_share_the_screen_take_the_focus_in_turn_and_are_drawn_with_a_line() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02%");
    terminal.wait_text("│");
    terminal.wait_until("two prompts", |term| term.text().matches("ready$").count() == 2);
    terminal.type_keys("size\r");
    terminal.wait_text("size=39x23");
    terminal.type_keys("\x02\"");
    terminal.wait_text("├");
    terminal.wait_until("three prompts", |term| term.text().matches("ready$").count() >= 3);
    terminal.type_keys("size\r");
    terminal.wait_text("size=39x11");
    // The left one by arrow, the next one in turn, and up again.
    terminal.type_keys("\x02\x1b[D");
    terminal.type_keys("left\r");
    terminal.wait_text("you said left");
    assert!(column_of(&terminal, "you said left") < 40);
    terminal.type_keys("\x02o");
    terminal.type_keys("next\r");
    terminal.wait_text("you said next");
    assert!(column_of(&terminal, "you said next") >= 40);
    terminal.type_keys("\x02\x1bOB");
    terminal.type_keys("down\r");
    terminal.wait_text("you said down");
    assert!(row_of(&terminal, "you said down") > 11);
    terminal.type_keys("exit 0\r");
    terminal.wait_gone("├");
    let sizes: Vec<TerminalSize> = capsule.status().sessions.iter().map(|session| session.size).collect();
    assert_eq!(sizes, [TerminalSize { cols: 40, rows: 23 }, TerminalSize { cols: 39, rows: 23 }]);
}

fn column_of(terminal: &Terminal, text: &str) -> usize {
    let screen = terminal.screen();
    let line = screen.lines().find(|line| line.contains(text)).unwrap();
    line[..line.find(text).unwrap()].chars().count()
}

fn row_of(terminal: &Terminal, text: &str) -> usize {
    terminal.screen().lines().position(|line| line.contains(text)).unwrap()
}

fn zoom_gives_one_pane_everything_and_back() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02%");
    terminal.wait_until("two prompts", |term| term.text().matches("ready$").count() == 2);
    terminal.type_keys("\x02z");
    terminal.wait_gone("│");
    terminal.type_keys("size\r");
    terminal.wait_text("size=80x23");
    terminal.type_keys("\x02z");
    terminal.wait_text("│");
    terminal.type_keys("size\r");
    terminal.wait_text("size=39x23");
}

fn a_split_without_room_is_refused() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 60, 3, &[]);
    terminal.wait_text("ready$");
    terminal.type_keys("\x02\"");
    terminal.wait_text("no room for another pane");
    assert_eq!(capsule.status().sessions.len(), 1);
}

fn killing_asks_first() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02c");
    wait_for("the shell", || (capsule.status().sessions.len() == 2).then_some(()));
    terminal.type_keys("\x02x");
    terminal.wait_text("kill mux");
    terminal.type_keys("n");
    terminal.wait_text("not killed");
    assert_eq!(capsule.status().sessions.len(), 2);
    terminal.type_keys("\x02x");
    terminal.wait_text("kill mux");
    terminal.type_keys("y");
    wait_for("its end", || (capsule.status().sessions.len() == 1).then_some(()));
    terminal.wait_text("ended (signal 15)");
}

fn renaming_shows_at_once_and_can_be_called_off() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02,");
    terminal.wait_text("name: main");
    terminal.type_keys("\x15wörk\x7fK\r");
    terminal.wait_text("0:wörK");
    terminal.type_keys("\x02,other\x1b");
    terminal.wait_text("0:wörK");
    assert_eq!(capsule.status().sessions[0].name, "wörK");
}

fn help_is_shown_over_the_screen_and_any_key_closes_it() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02?");
    terminal.wait_text("detach, everything keeps running");
    terminal.wait_text("ready$");
    terminal.type_keys("x");
    terminal.wait_gone("detach, everything");
    terminal.type_keys("typed\r");
    terminal.wait_text("you said typed");
}

fn scroll_mode_moves_through_the_past_and_back() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("lines 200\r");
    terminal.wait_text("line 200");
    terminal.type_keys("\x02[");
    terminal.wait_text("lines back");
    terminal.type_keys("g");
    terminal.wait_text("ready$ lines 200");
    terminal.type_keys("j");
    terminal.wait_gone("ready$ lines 200");
    terminal.type_keys("k\x1b[6~\x1b[6~");
    terminal.wait_text("line 60");
    terminal.type_keys("\x1b[5~");
    terminal.wait_text("line 40");
    // What is written meanwhile does not move the view.
    capsule.send_line("main", "meanwhile");
    capsule.wait_text("main", "you said meanwhile");
    assert!(terminal.screen().contains("line 40"));
    terminal.type_keys("G");
    terminal.wait_text("you said meanwhile");
    terminal.type_keys("q");
    terminal.wait_gone("lines back");
    terminal.type_keys("back\r");
    terminal.wait_text("you said back");
}

fn scroll_mode_searches_backwards_and_forwards() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("lines 200\r");
    terminal.wait_text("line 200");
    terminal.type_keys("\x02[/LINE 5");
    terminal.wait_text("/LINE 5");
    terminal.type_keys("\r");
    terminal.wait_text("`LINE 5` is not in the scrollback");
    terminal.type_keys("/line 5\r");
    terminal.wait_until("the nearest match", |term| term.text().starts_with("line 59\n"));
    terminal.type_keys("n");
    terminal.wait_until("the one before", |term| term.text().starts_with("line 58\n"));
    terminal.type_keys("N");
    terminal.wait_until("the one after", |term| term.text().starts_with("line 59\n"));
    let inverse = terminal.term.row(0)[0].attrs().contains(abide_term::Attrs::INVERSE);
    assert!(inverse, "the match is not marked");
    terminal.type_keys("\x1b");
    terminal.wait_text("line 200");
}

fn the_wheel_moves_through_the_past_where_the_session_does_not_want_it() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("lines 100\r");
    terminal.wait_text("line 100");
    terminal.type_keys("\x1b[<64;5;5M");
    terminal.wait_text("3/79 lines back");
    terminal.type_keys("\x1b[<64;5;5M\x1b[<65;5;5M");
    terminal.wait_text("3/79 lines back");
    terminal.type_keys("\x1b[<65;5;5M");
    terminal.wait_gone("lines back");
    terminal.type_keys("typed\r");
    terminal.wait_text("you said typed");
}

fn the_mouse_reaches_a_session_that_wants_it_in_its_own_coordinates() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    let raw = part("raw", &["raw", "\\e[?1000h"]);
    capsule.call(&abide_wire::protocol::Spawn { spec: Box::new(raw), focus: true });
    terminal.wait_text("listening");
    terminal.wait_until("the mouse", |term| term.modes().mouse == abide_term::MouseMode::Normal);
    terminal.type_keys("\x1b[<0;5;7M\x1b[<0;5;7m\x1b[<64;5;7M.");
    terminal.wait_text(".>");
    assert_eq!(heard(&terminal), "\\x1b[M %\\'\\x1b[M#%\\'\\x1b[M`%\\'.");
}

fn a_click_gives_a_pane_the_focus() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02%");
    terminal.wait_until("two prompts", |term| term.text().matches("ready$").count() == 2);
    terminal.type_keys("\x1b[<0;3;3M\x1b[<0;3;3m");
    terminal.type_keys("clicked\r");
    terminal.wait_text("you said clicked");
    assert!(column_of(&terminal, "you said clicked") < 40);
}

fn a_paste_is_passed_with_its_marks_and_the_prefix_in_it_means_nothing() {
    let capsule = Capsule::running(&["raw", "\\e[?2004h"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("listening");
    terminal.wait_until("the mode", |term| term.modes().bracketed_paste);
    terminal.type_keys("\x1b[200~a\x02d\x1b[20");
    terminal.type_keys("1~z");
    terminal.wait_text("z>");
    assert_eq!(heard(&terminal), "\\x1b[200~a\\x02d\\x1b[201~z");
}

fn a_paste_is_text_where_a_line_is_asked_for_and_nothing_where_a_key_is() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02x");
    terminal.wait_text("kill main?");
    terminal.wait_until("the marks", |term| term.modes().bracketed_paste);
    terminal.type_keys("\x1b[200~yesterday\r\x1b[201~n");
    terminal.wait_text("not killed");
    terminal.type_keys("\x02?");
    terminal.wait_text("keys after C-b");
    terminal.type_keys("\x1b[200~first\rsecond\r\x1b[201~q");
    terminal.wait_gone("keys after C-b");
    terminal.type_keys("\x02,");
    terminal.wait_text("name: main");
    terminal.type_keys("\x15\x1b[200~feature\rthird\r\x1b[201~\r");
    terminal.wait_text("0:featurethird");
    terminal.wait_until("no marks", |term| !term.modes().bracketed_paste);
    terminal.type_keys("fine\r");
    terminal.wait_text("you said fine");
    assert_eq!(terminal.screen().matches("you said").count(), 1, "{}", terminal.screen());
}

fn a_paste_that_began_in_scroll_mode_does_not_end_in_a_session() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02%");
    terminal.wait_until("two prompts", |term| term.text().matches("ready$").count() == 2);
    let mut other = attach(&capsule);
    terminal.type_keys("\x02[");
    terminal.wait_text("lines back");
    terminal.wait_until("the marks", |term| term.modes().bracketed_paste);
    terminal.type_keys("\x1b[200~one\r");
    other.type_keys("\x02o");
    terminal.wait_gone("lines back");
    terminal.type_keys("two\r\x1b[201~three\r");
    terminal.wait_text("you said three");
    assert!(!terminal.screen().contains("you said two"), "{}", terminal.screen());
}

fn scroll_mode_ends_when_another_session_gets_the_focus() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02[");
    terminal.wait_text("lines back");
    terminal.type_keys("\x02%hello\r");
    terminal.wait_text("you said hello");
    assert!(column_of(&terminal, "you said hello") >= 40);
    terminal.type_keys("\x02[kkk");
    terminal.wait_text("lines back");
    terminal.type_keys("\x02oleft\r");
    terminal.wait_text("you said left");
    terminal.wait_gone("lines back");
    assert!(column_of(&terminal, "you said left") < 40);
}

fn an_empty_search_repeats_the_last_one() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("lines 200\r");
    terminal.wait_text("line 200");
    terminal.type_keys("\x02[/line 5\r");
    terminal.wait_until("the nearest match", |term| term.text().starts_with("line 59\n"));
    terminal.type_keys("/\r");
    terminal.wait_until("the one before", |term| term.text().starts_with("line 58\n"));
}

fn a_session_hears_when_it_loses_the_focus_and_when_it_gets_it_back() {
    let capsule = Capsule::running(&["raw", "\\e[?1004h"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("listening");
    terminal.wait_until("the mode", |term| term.modes().focus_events);
    let hears = |report: &str| {
        wait_for(report, || {
            let lines = capsule.snapshot("main", false).lines;
            lines
                .iter()
                .rev()
                .find(|line| !line.is_empty())?
                .ends_with(&format!("\\x1b[{report}>"))
                .then_some(())
        });
    };
    terminal.type_keys("\x02c");
    terminal.wait_text("ready$");
    hears("O");
    terminal.type_keys("\x020");
    hears("I");
    terminal.type_keys("\x02[");
    terminal.wait_text("lines back");
    terminal.type_keys("\x1b[O");
    hears("O");
    terminal.type_keys("\x1b[I");
    hears("I");
    terminal.type_keys("q\x02%");
    hears("O");
    terminal.type_keys("\x02o");
    hears("I");
    terminal.type_keys("\x02d");
    terminal.end();
    hears("O");
}

fn keys_in_the_kitty_encoding_pass_and_the_prefix_is_found_in_it() {
    let capsule = Capsule::running(&["raw", "\\e[>1u"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("listening");
    terminal.wait_until("the flags", |term| term.modes().kitty_keyboard == 1);
    terminal.type_keys("\x1b[13;2u");
    terminal.wait_text("<\\x1b[13;2u>");
    terminal.type_keys("\x1b[98;5u\x1b[98;5u");
    terminal.wait_text("<\\x1b[98;5u>");
    terminal.type_keys("\x1b[98;");
    terminal.type_keys("5ud");
    assert!(terminal.end().starts_with("detached"));
    terminal.assert_restored();
}

fn an_escape_alone_is_passed_and_sequences_stay_whole() {
    let capsule = Capsule::running(&["raw", ""]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("listening");
    terminal.type_keys("\x1b");
    terminal.wait_text("<\\x1b>");
    terminal.type_keys("\x1b[1;5A");
    terminal.wait_text("<\\x1b[1;5A>");
    terminal.type_keys("\x1bx");
    terminal.wait_text("<\\x1bx>");
    terminal.type_keys("é");
    terminal.wait_text("<\\xc3\\xa9>");
}

fn a_program_that_wants_reports_of_its_size_gets_one_at_once() {
    let capsule = Capsule::running(&["raw", "\\e[?2048h"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("listening");
    terminal.resize(100, 30);
    terminal.wait_text("[48;29;100;");
}

fn a_new_pane_has_its_size_from_the_start() {
    let mut capsule = Capsule::new();
    let sizes = capsule.file("sizes");
    let mut first = part("main", &["shell"]);
    let script = format!("stty size >> {}; exec sleep 1000", sizes.display());
    first.meta = serde_json::json!({ "shell": ["sh", "-c", script] });
    capsule.launch(first);
    let mut terminal = attach(&capsule);
    let said = |count: usize| {
        wait_for("the size", || {
            let text = std::fs::read_to_string(&sizes).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            (lines.len() == count).then_some(lines)
        })
    };
    terminal.type_keys("\x02%");
    assert_eq!(said(1), ["23 39"]);
    terminal.type_keys("\x02\"");
    assert_eq!(said(2)[1], "11 39");
    terminal.type_keys("\x02c");
    assert_eq!(said(3)[2], "23 80");
}

fn keys_of_ours_that_come_before_a_new_pane_are_meant_for_it() {
    let mut capsule = Capsule::new();
    let sizes = capsule.file("sizes");
    let mut first = part("main", &["shell"]);
    let script = format!("stty size >> {}; exec sleep 1000", sizes.display());
    first.meta = serde_json::json!({ "shell": ["sh", "-c", script] });
    capsule.launch(first);
    let mut terminal = attach(&capsule);
    terminal.type_keys("\x02%\x02\"");
    let made = wait_for("both panes", || {
        let text = std::fs::read_to_string(&sizes).unwrap_or_default();
        (text.lines().count() == 2).then_some(text)
    });
    // The right half was split, not the left, which is 40 wide. A slow shell in it looks when it has been split already.
    assert!(["23 39\n11 39\n", "11 39\n11 39\n", "11 39\n23 39\n"].contains(&made.as_str()), "{made}");
}

fn a_key_of_ours_that_comes_in_pieces_is_not_typed_into_the_program() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = attach(&capsule);
    terminal.type_keys("lines 200\r");
    terminal.wait_text("line 200");
    terminal.type_keys("\x02[");
    terminal.wait_text("lines back");
    for piece in ["\x1b", "[", "5", "~"] {
        terminal.type_keys(piece);
        // Longer than a lone Escape outside of our modes is waited for: this is what a slow line does.
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    terminal.wait_text("22/");
}

fn modified_keys_are_asked_for_or_translated_as_the_terminal_can_and_a_query_is_answered_truthfully() {
    let capsule = Capsule::running(&["raw", "\\e[>4;2m"]);
    // The model that plays the terminal knows the kitty protocol.
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("listening");
    terminal.wait_until("the newer protocol", |term| term.modes().kitty_keyboard == 1);
    terminal.type_keys("\x1b[13;2u");
    terminal.wait_text("[27;2;13~");
}

fn the_help_has_pages_where_the_screen_is_small() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 60, 12, &[]);
    terminal.wait_text("ready$");
    terminal.type_keys("\x02?");
    terminal.wait_text("keys after C-b (1/2, any key)");
    terminal.type_keys("n");
    terminal.wait_text("send the prefix key itself");
    terminal.type_keys("n");
    terminal.wait_gone("send the prefix key itself");
}
