//! The same page as numbered text: for a terminal that cannot draw, and for operators who prefer it.

use std::io::{self, Write};

use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::signals::TerminalSignals;
use rustix::io::Errno;

use crate::page::Page;

/// More than this of a list scrolls away unread.
const LONGEST_LIST: usize = 200;
/// Longer than any answer.
const LONGEST_LINE: usize = 4096;

/// Where answers come from.
pub trait Lines {
    /// What was typed up to Enter; `None` at the end of the input.
    fn next_line(&mut self) -> Option<String>;
}

/// Prints `page` and waits for an answer.
pub fn ask<A: Clone + PartialEq>(
    page: &Page<A>,
    lines: &mut dyn Lines,
    out: &mut dyn Write,
) -> io::Result<A> {
    out.write_all(text(page).as_bytes())?;
    let enter = match &page.enter {
        Some((_, hint)) if page.choices.is_empty() => format!("Enter = {hint}"),
        Some((_, hint)) => format!("a number changes it, Enter = {hint}"),
        None => format!("Enter = {}", page.marked + 1),
    };
    loop {
        write!(out, "Your choice [{enter}]: ")?;
        out.flush()?;
        let Some(line) = lines.next_line() else {
            writeln!(out)?;
            return Ok(page.without_answer());
        };
        if let Some(answer) = answer(page, line.trim()) {
            return Ok(answer);
        }
        writeln!(out, "Not a valid choice. Type one of the numbers, or press Enter.")?;
    }
}

fn answer<A: Clone>(page: &Page<A>, typed: &str) -> Option<A> {
    if typed.is_empty() {
        let marked = page.choices.get(page.marked).map(|choice| &choice.answer);
        return page.enter.as_ref().map(|(answer, _)| answer).or(marked).cloned();
    }
    let mut chars = typed.chars();
    let letter = chars.next().filter(|_| chars.as_str().is_empty());
    let by_letter = page.choices.iter().find(|choice| letter.is_some() && choice.key == letter);
    let by_number = || match typed.parse::<usize>().ok()? {
        0 => Some(&page.esc.0),
        number => page.choices.get(number - 1).map(|choice| &choice.answer),
    };
    by_letter.map(|choice| &choice.answer).or_else(by_number).cloned()
}

fn text<A: PartialEq>(page: &Page<A>) -> String {
    let mut text = format!("\nabide · {}\n", page.title);
    let mut section = |lines: Vec<String>| {
        if !lines.is_empty() {
            text.push('\n');
        }
        for line in lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    };
    section(page.about.iter().map(|line| line.text()).collect());
    let items = page.list.iter().take(LONGEST_LIST);
    let mut list: Vec<_> =
        items.map(|item| format!("  {}{}", "  ".repeat(item.level), item.line.text())).collect();
    if page.list.len() > LONGEST_LIST {
        list.push(format!("  … and {} more", page.list.len() - LONGEST_LIST));
    }
    section(list);
    section(page.notes.iter().map(|line| line.text()).collect());
    let mut choices = Vec::new();
    for (at, choice) in page.choices.iter().enumerate() {
        choices.push(format!("{:>3}) {}", at + 1, choice.line.text()));
        choices.extend(choice.detail.iter().map(|line| format!("       {}", line.text())));
    }
    if page.choices.iter().all(|choice| choice.answer != page.esc.0) {
        choices.push(format!("  0) {}", page.esc.1));
    }
    section(choices);
    text
}

/// Standard input, until it ends or a signal comes.
pub(crate) struct Stdin {
    signals: TerminalSignals,
}

impl Stdin {
    pub fn take() -> io::Result<Self> {
        Ok(Self { signals: TerminalSignals::take()? })
    }

    /// Waits until there is something to read. False if it is time to give up.
    fn is_ready(&self) -> bool {
        loop {
            let stdin = io::stdin();
            let mut fds = [PollFd::new(&self.signals.fd, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
            if poll::wait(&mut fds, None).is_err() {
                return false;
            }
            let ready = !fds[1].revents().is_empty();
            while let Ok(Some(signal)) = self.signals.fd.next() {
                match signal {
                    libc::SIGWINCH | libc::SIGCONT => {}
                    libc::SIGTSTP => abide_sys::terminal::stop(),
                    _ => return false,
                }
            }
            if ready {
                return true;
            }
        }
    }
}

impl Lines for Stdin {
    fn next_line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        // Byte by byte: what comes after the line may be the answer to another question.
        let mut byte = [0];
        while line.len() < LONGEST_LINE && self.is_ready() {
            match rustix::io::read(io::stdin(), &mut byte) {
                Ok(1) if byte[0] == b'\n' => return Some(String::from_utf8_lossy(&line).into_owned()),
                Ok(1) => line.push(byte[0]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Ok(_) | Err(_) => return None,
            }
        }
        None
    }
}
