//! The program inside a session. It idles until it is told what to do: print a mark, stream, fill, echo, flood.

use std::io::{Read, Write, stdin, stdout};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcgetwinsize, tcsetattr, tcsetpgrp,
};

use crate::Result;
use crate::clock::Moment;
use crate::control::Line;
use crate::corpus::{MARK_LENGTH, Stream, full_lines, mark};

/// `--inner DIR NAME`: be the program of session NAME, commanded through DIR.
pub const RUN: &str = "--inner";
/// `--inner-flood DIR`: print without end. DIR says whose process this is.
pub const FLOOD: &str = "--inner-flood";
/// The key that is answered in echo mode. Replies that a terminal sends by itself do not contain it.
pub const KEY: u8 = b'k';

/// How far above the last line the upper mark of [`fill`] stands: high on the screen, whatever bars take rows from it.
const MARK_DISTANCE: usize = 40;
/// As much as `cat` writes at once.
const PIECE: usize = 128 * 1024;

/// Does what the benchmark says until it is killed.
pub fn run(dir: &Path, name: &str) -> Result<()> {
    let started = Moment::now();
    let line = Line::join(dir, name)?;
    line.report("started", &[started.nanos()])?;
    take_keys_one_by_one()?;
    loop {
        obey(&line.command()?, dir, &line)?;
    }
}

fn obey(command: &str, dir: &Path, line: &Line) -> Result<()> {
    match command.split(' ').collect::<Vec<_>>().as_slice() {
        ["say", number] => {
            say(number.parse()?)?;
            let size = tcgetwinsize(stdin())?;
            line.report("said", &[size.ws_col.into(), size.ws_row.into()])
        }
        ["stream", name, bytes, ending @ ..] => {
            let block = Stream::named(name).ok_or("no such stream")?.block();
            let start = Moment::now();
            let written = stream(&block, bytes.parse()?)?;
            match ending {
                ["mark", number] => say(number.parse()?)?,
                ["ask"] => await_status_report()?,
                _ => {}
            }
            let elapsed = Moment::now().since(start);
            line.report("streamed", &[written, u64::try_from(elapsed.as_nanos())?])
        }
        ["fill", lines, upper, lower] => {
            fill(lines.parse()?, upper.parse()?, lower.parse()?)?;
            line.report("filled", &[])
        }
        ["echo", first] => {
            line.report("echoing", &[])?;
            echo(first.parse()?)
        }
        ["flood", number] => flood(dir, number.parse()?),
        _ => Err(format!("`{command}` is no command").into()),
    }
}

/// As a full-screen program reads its keys. Output stays as `cat` has it, and `^C` stays a signal.
fn take_keys_one_by_one() -> Result<()> {
    let mut termios = tcgetattr(stdin())?;
    termios.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    // Not every multiplexer opens its terminals with these, and a read would not wait for a key.
    termios.special_codes[SpecialCodeIndex::VMIN] = 1;
    termios.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(stdin(), OptionalActions::Now, &termios)?;
    Ok(())
}

fn say(number: u32) -> Result<()> {
    print_now(format!("\x1b[0m\n{}\n", mark(number)).as_bytes())
}

fn print_now(text: &[u8]) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text)?;
    out.flush()?;
    Ok(())
}

/// Repeats `block` until at least `bytes` are written; gives how many there were.
fn stream(block: &[u8], bytes: u64) -> Result<u64> {
    let mut written = 0;
    while written < bytes {
        // Past the buffer of the standard library, which would cut the writes at its line ends.
        for piece in block.chunks(PIECE) {
            write_raw(piece)?;
        }
        written += block.len() as u64;
    }
    Ok(written)
}

fn write_raw(mut text: &[u8]) -> Result<()> {
    while !text.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(rustix::stdio::stdout(), text))?;
        text = &text[written..];
    }
    Ok(())
}

/// Waits until the terminal has come as far as a question that is asked now.
///
/// Without it, a multiplexer that reads far ahead of its own terminal model would look faster than it is.
fn await_status_report() -> Result<()> {
    print_now(b"\x1b[5n")?;
    let mut seen = Vec::new();
    while !seen.ends_with(b"\x1b[0n") {
        let mut byte = [0];
        stdin().read_exact(&mut byte)?;
        seen.push(byte[0]);
    }
    Ok(())
}

/// Prints `lines` full lines, the last two screens of them with the marks that tell a complete repaint.
fn fill(lines: usize, upper: u32, lower: u32) -> Result<()> {
    let columns = usize::from(tcgetwinsize(stdin())?.ws_col);
    let mut text = String::new();
    for (number, line) in full_lines(lines, columns).iter().enumerate() {
        if number + MARK_DISTANCE == lines {
            text.push_str(&mark(upper));
            text.push_str(&line[MARK_LENGTH.min(line.len())..]);
        } else {
            text.push_str(line);
        }
        text.push('\n');
    }
    text.push_str(&mark(lower));
    write_raw(text.as_bytes())
}

/// Answers each key with the next mark, from a clean screen on and always on cells that were blank.
fn echo(first: u32) -> Result<()> {
    let columns = usize::from(tcgetwinsize(stdin())?.ws_col);
    let per_line = (columns / MARK_LENGTH).max(1);
    print_now(b"\x1b[H\x1b[2J")?;
    let mut answered = 0;
    for byte in stdin().lock().bytes() {
        if byte? != KEY {
            continue;
        }
        let end = if (answered + 1) % per_line == 0 { "\n" } else { "" };
        print_now(format!("{}{end}", mark(first + u32::try_from(answered)?)).as_bytes())?;
        answered += 1;
    }
    Ok(())
}

/// Runs the flood as a shell runs a command, as the foreground job, and says `number` when `^C` has ended it.
fn flood(dir: &Path, number: u32) -> Result<()> {
    let mut job = Command::new(std::env::current_exe()?).arg(FLOOD).arg(dir).process_group(0).spawn()?;
    tcsetpgrp(stdin(), Pid::from_child(&job))?;
    job.wait()?;
    say(number)
}

/// Prints text without end.
pub fn flood_forever() -> Result<()> {
    stream(&Stream::Ascii.block(), u64::MAX).map(drop)
}
