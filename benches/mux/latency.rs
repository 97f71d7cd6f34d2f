//! How long a person waits: for a key, for `^C`, for the screen, for a new session.

use std::time::Duration;

use crate::Result;
use crate::clock::{Moment, micros, millis};
use crate::corpus::{Random, mark};
use crate::figures::Samples;
use crate::inner::KEY;
use crate::metrics::Series;
use crate::options::Scale;
use crate::processes::ignores_interrupt;
use crate::sandbox::Sandbox;
use crate::session::{LIMIT, Session, detach};
use crate::terminal::Terminal;

const INTERRUPT: u8 = 3;
/// How long a flood runs before it is interrupted: all buffers on the way are full by then.
const FLOOD: Duration = Duration::from_millis(300);

/// Keys typed one by one; then again while a second session prints without end and nobody looks at it.
pub fn echo(sandbox: &Sandbox<'_>, scale: &Scale) -> Result<Samples> {
    let mut session = Session::start(sandbox, 0)?;
    let mut terminal = session.attach()?;
    let mut samples = type_keys(&mut session, &mut terminal, scale.keys, Series::EchoIdle)?;
    if sandbox.mux.detaches() {
        start_flood(&mut Session::start(sandbox, 1)?)?;
        let mut session = Session::start(sandbox, 2)?;
        let mut terminal = session.attach()?;
        samples.extend(type_keys(&mut session, &mut terminal, scale.keys, Series::EchoFlooded)?);
    }
    Ok(samples)
}

/// Keys typed while a program in a tab beside prints without end.
pub fn echo_beside_tab(sandbox: &Sandbox<'_>, scale: &Scale) -> Result<Samples> {
    let Some(tabs) = sandbox.mux.row.tabs else { return Ok(Samples::new()) };
    let mut session = Session::start(sandbox, 0)?;
    let mut terminal = session.attach()?;
    start_flood(&mut session.open_beside(&mut terminal, tabs)?)?;
    type_keys(&mut session, &mut terminal, scale.keys, Series::EchoBesideTab)
}

fn start_flood(session: &mut Session<'_>) -> Result<()> {
    let end = session.new_mark();
    session.tell(&format!("flood {end}"))?;
    std::thread::sleep(FLOOD);
    Ok(())
}

fn type_keys(
    session: &mut Session<'_>,
    terminal: &mut Terminal,
    keys: u32,
    series: Series,
) -> Result<Samples> {
    let first = session.new_marks(keys);
    session.tell(&format!("echo {first}"))?;
    session.wait("echoing", LIMIT)?;
    let mut samples = Samples::new();
    let mut pauses = Random(7);
    for key in first..first + keys {
        // As far apart as quick typing, and never in step with anybody's timer.
        terminal.drain_for(Duration::from_micros(5_000 + pauses.below(10_000) as u64))?;
        let start = Moment::now();
        terminal.write(&[KEY])?;
        let echoed = terminal.wait_for(&mark(key), LIMIT)?;
        samples.push((series, micros(echoed.since(start))));
    }
    Ok(samples)
}

/// `^C` while the terminal is busy drawing a flood. A new session each time.
pub fn interrupt(sandbox: &Sandbox<'_>, scale: &Scale) -> Result<Samples> {
    if ignores_interrupt()? {
        return Err("was started with ^C ignored, as background jobs are; run it in the foreground".into());
    }
    let mut samples = Samples::new();
    for number in 0..scale.per_round(scale.floods) {
        let mut session = Session::start(sandbox, number)?;
        let mut terminal = session.attach()?;
        let end = session.new_mark();
        session.tell(&format!("flood {end}"))?;
        terminal.drain_for(FLOOD)?;
        let start = Moment::now();
        terminal.write(&[INTERRUPT])?;
        let seen = terminal.wait_for(&mark(end), LIMIT)?;
        samples.push((Series::Interrupt, millis(seen.since(start))));
    }
    Ok(samples)
}

/// A new terminal on a session with a full scrollback, until the whole screen is there.
pub fn attach(sandbox: &Sandbox<'_>, scale: &Scale) -> Result<Samples> {
    let mut samples = Samples::new();
    if !sandbox.mux.repaints() {
        return Ok(samples);
    }
    let mut session = Session::start(sandbox, 0)?;
    let mut terminal = session.attach()?;
    let (upper, lower) = (session.new_mark(), session.new_mark());
    session.tell(&format!("fill {} {upper} {lower}", scale.lines))?;
    terminal.wait_for(&mark(lower), LIMIT)?;
    detach(terminal);
    for _ in 0..scale.per_round(scale.attaches) {
        let start = Moment::now();
        let mut terminal = session.open_terminal()?;
        let painted = terminal.wait_for_all(&[&mark(upper), &mark(lower)], LIMIT)?;
        samples.push((Series::Attach, millis(painted.since(start))));
        detach(terminal);
    }
    Ok(samples)
}

/// New sessions: the first one, for which a server may have to start, and some more.
pub fn create(sandbox: &Sandbox<'_>, scale: &Scale) -> Result<Samples> {
    let mut samples = Samples::new();
    for number in 0..=scale.creates {
        let mut session = Session::start(sandbox, number)?;
        if !sandbox.mux.detaches() {
            session.attach()?;
        }
        let series = if number == 0 { Series::CreateFirst } else { Series::CreateNext };
        samples.push((series, millis(session.time_to_start()?)));
    }
    Ok(samples)
}
