//! The same streams given to tmux and to the model must show the same text and leave the cursor in the same place.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{term, wrap_is_due};

const COLS: u16 = 40;
const ROWS: u16 = 12;

/// A tmux server of our own, gone when dropped.
struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    fn start(dir: &Path, command: &str) -> Self {
        let tmux = Self { socket: dir.join("socket") };
        let (cols, rows) = (COLS.to_string(), ROWS.to_string());
        tmux.run(&["new-session", "-d", "-s", "t", "-x", &cols, "-y", &rows, command]);
        tmux
    }

    fn run(&self, args: &[&str]) -> String {
        let out = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(["-u", "-f", "/dev/null"])
            .args(args)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .expect("tmux runs");
        String::from_utf8(out.stdout).expect("tmux speaks UTF-8")
    }

    /// What the pane shows and where its cursor is, once `marker` has arrived as the title.
    fn screen(&self, marker: &str) -> (String, String) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.run(&["display-message", "-p", "-t", "=t:", "#{pane_title}"]).trim() != marker {
            assert!(Instant::now() < deadline, "tmux did not take in {marker} in time");
            std::thread::sleep(Duration::from_millis(5));
        }
        let text = self.run(&["capture-pane", "-p", "-t", "=t:"]);
        let cursor = self.run(&["display-message", "-p", "-t", "=t:", "#{cursor_y},#{cursor_x}"]);
        (text, cursor.trim().to_owned())
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// Streams that tmux and a VT420 agree on.
const STREAMS: &[&str] = &[
    "hello\r\nworld",
    "0123456789012345678901234567890123456789wrapped",
    "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng\r\nh\r\ni\r\nj\r\nk\r\nl\r\nm\r\nn",
    "\x1b[5;5Hx\x1b[2;3Hy\x1b[A\x1b[2Cz\x1b[3Dw",
    "abcdef\x1b[1;3H\x1b[2P|\x1b[1;1H\x1b[2@\x1b[1;9H\x1b[3X",
    "1\r\n2\r\n3\r\n4\r\n5\x1b[2;1H\x1b[L\x1b[4;1H\x1b[M",
    "\x1b[3;6r\x1b[3;1Ha\r\nb\r\nc\r\nd\r\ne\r\nf\x1b[3;1H\x1bM\x1bMtop",
    "\x1b[3;6r\x1b[10;1Hbelow\n\n\n\n\nend",
    "text\x1b[2;4H\x1b[1J\x1b[5;5Hmore\x1b[5;3H\x1b[K",
    "one\ttwo\tthree\x1b[Zx\x1b[2Zy",
    "┌───┐\r\n│ é │\r\n└───┘\x1b[2;3H\x1b[@\x1b[2;9H\x1b[1P",
    "漢字かな交じり文 and ASCII 漢\x1b[1;4Hx\x1b[1;8Hy",
    "e\u{301}a\u{308}o\u{302} naïve",
    "012345678901234567890123456789012345678漢",
    "\x1b7\x1b[5;5Habc\x1b8def",
    "main\x1b[?1049halt\x1b[?1049l still main",
    "a\x1b[5b\x1b[3;3H\x1b[4hinsert\x1b[3;3Hnew\x1b[4l",
    "\x1b[?7l0123456789012345678901234567890123456789XYZ\x1b[?7h",
    "\x1b[2S\x1b[5;1Hx\x1b[3Ty",
    "\x1b[?6h\x1b[4;8r\x1b[2;2Hin\x1b[99;1Hlast",
    "\x1b[10;30Hfar\r\n\x1b[3Eline\x1b[2Fup\x1b[5`col\x1b[7drow",
    "tab\x1b[3g\x1b[1;10H\x1bH\r\tstop",
    "\x1b[31;1mred\x1b[0m \x1b[4:3mcurly\x1b[m \x1b[38;2;1;2;3mrgb",
    "\x1bPq#0~~\x1b\\sixel gone\x1b_Gx\x1b\\ apc gone",
    "\x1b#8\x1b[3;3H\x1b[1K\x1b[6;6H\x1b[J",
    "bs\x08\x08x\r\x1b[3Cy\x0b\x0cz",
    "soft\u{ad}hyphen",
    "Hangul\u{3164}filler, half\u{ffa0}wide",
];

#[test]
fn streams_look_the_same_in_tmux() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let tmux = Tmux::start(dir.path(), &format!("stty raw -echo; exec cat {}", pipe.display()));
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    for (i, stream) in STREAMS.iter().enumerate() {
        let marker = format!("stream-{i}");
        write!(writer, "\x1bc\x1b[H\x1b[2J{stream}\x1b]2;{marker}\x1b\\").unwrap();
        writer.flush().unwrap();
        let (text, cursor) = tmux.screen(&marker);
        let mut term = term(COLS, ROWS);
        term.feed(stream.as_bytes());
        assert_eq!(term.text(), text.trim_end_matches('\n'), "{stream:?}");
        let at = term.cursor();
        let x = at.x + u16::from(wrap_is_due(&term));
        assert_eq!(format!("{},{x}", at.y), cursor, "{stream:?}");
    }
}
