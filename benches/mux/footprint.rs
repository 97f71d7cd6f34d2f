//! What a multiplexer costs while nothing happens: memory, CPU, wake-ups.

use std::time::Duration;

use crate::Result;
use crate::corpus::mark;
use crate::figures::Samples;
use crate::metrics::Series;
use crate::options::Scale;
use crate::processes;
use crate::sandbox::Sandbox;
use crate::session::{LIMIT, Session};
use crate::terminal::Terminal;

/// How long everybody has to come to rest before that is looked at.
const SETTLING: Duration = Duration::from_secs(2);

/// What is left to everybody else on the machine, whatever a multiplexer takes.
const RESERVE: u64 = 2_000_000_000;

/// With one session that has printed nothing; and per session, with many that have printed more than is kept.
pub fn memory(sandbox: &Sandbox<'_>, scale: &Scale) -> Result<Samples> {
    if !sandbox.mux.detaches() {
        return Ok(Samples::new());
    }
    Session::start(sandbox, 0)?;
    std::thread::sleep(SETTLING);
    let mut samples = vec![(Series::MemoryEmpty, megabytes_used(sandbox)?)];
    for number in 1..=scale.sessions {
        fill(sandbox, number, scale)?;
        if processes::memory_left()? < RESERVE {
            let used = megabytes_used(sandbox)?;
            return Err(format!(
                "{number} sessions took {used:.0} MB, and more do not fit into this machine"
            )
            .into());
        }
    }
    let each = megabytes_used(sandbox)? / scale.sessions as f64;
    samples.push((Series::MemoryFull, each));
    Ok(samples)
}

/// A session of the terminal's width with a full scrollback and nobody attached.
fn fill(sandbox: &Sandbox<'_>, number: usize, scale: &Scale) -> Result<()> {
    let mut session = Session::start(sandbox, number)?;
    let mut terminal = session.attach()?;
    let (upper, lower) = (session.new_mark(), session.new_mark());
    session.tell(&format!("fill {} {upper} {lower}", scale.lines))?;
    terminal.wait_for(&mark(lower), LIMIT)?;
    Ok(())
}

fn megabytes_used(sandbox: &Sandbox<'_>) -> Result<f64> {
    let mut bytes = 0;
    for process in sandbox.processes()? {
        bytes += processes::memory(process.pid)?;
    }
    Ok(bytes as f64 / 1e6)
}

/// Many attached sessions in which nothing happens. Clients count like servers: the operator pays for both.
pub fn idle(sandbox: &Sandbox<'_>, scale: &Scale) -> Result<Samples> {
    if !sandbox.mux.detaches() {
        return Ok(Samples::new());
    }
    let mut terminals = Vec::new();
    for number in 0..scale.sessions {
        terminals.push(Session::start(sandbox, number)?.attach()?);
    }
    std::thread::sleep(SETTLING);
    drain(&mut terminals)?;
    let before = activity(sandbox)?;
    std::thread::sleep(scale.idle);
    let after = activity(sandbox)?;
    let seconds = scale.idle.as_secs_f64();
    let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64() / seconds * 100.0;
    let wakeups = after.wakeups.saturating_sub(before.wakeups) as f64 / seconds;
    Ok(vec![(Series::IdleCpu, cpu), (Series::IdleWakeups, wakeups)])
}

fn drain(terminals: &mut [Terminal]) -> Result<()> {
    terminals.iter_mut().try_for_each(|terminal| terminal.drain_for(Duration::from_millis(1)))
}

fn activity(sandbox: &Sandbox<'_>) -> Result<processes::Activity> {
    let mut total = processes::Activity::default();
    for process in sandbox.processes()? {
        let one = processes::activity(process.pid)?;
        total.cpu += one.cpu;
        total.wakeups += one.wakeups;
    }
    Ok(total)
}
