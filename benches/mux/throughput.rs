//! How fast output gets through, with and without somebody watching.

use std::time::Duration;

use crate::Result;
use crate::clock::Moment;
use crate::corpus::{Stream, mark};
use crate::figures::Samples;
use crate::metrics::Series;
use crate::options::Scale;
use crate::rows::Screen;
use crate::sandbox::Sandbox;
use crate::session::{Session, detach};

const LIMIT: Duration = Duration::from_secs(180);

/// With the terminal attached: until it has drawn what came after the stream.
pub fn attached(sandbox: &Sandbox<'_>, scale: &Scale) -> Result<Samples> {
    let mut samples = Samples::new();
    for (number, (stream, series)) in
        [(Stream::Ascii, Series::AttachedAscii), (Stream::Tui, Series::AttachedTui)].into_iter().enumerate()
    {
        let mut session = Session::start(sandbox, number)?;
        let mut terminal = session.attach()?;
        let end = session.new_mark();
        let start = Moment::now();
        session.tell(&format!("stream {} {} mark {end}", stream.name(), scale.stream_bytes))?;
        let elapsed = terminal.wait_for(&mark(end), LIMIT)?.since(start);
        let written = *session.wait("streamed", LIMIT)?.first().ok_or("no byte count")?;
        samples.push((series, megabytes_per_second(written, elapsed)));
    }
    Ok(samples)
}

/// With nobody attached any more: as the program inside sees it.
pub fn detached(sandbox: &Sandbox<'_>, scale: &Scale) -> Result<Samples> {
    let mut samples = Samples::new();
    if !sandbox.mux.detaches() {
        return Ok(samples);
    }
    let ending = if sandbox.mux.row.screen == Screen::Answering { "ask" } else { "plain" };
    for (number, (stream, series)) in
        [(Stream::Ascii, Series::DetachedAscii), (Stream::Tui, Series::DetachedTui)].into_iter().enumerate()
    {
        let mut session = Session::start(sandbox, number)?;
        // Attached once, for the size: some have no other way to learn it.
        detach(session.attach()?);
        session.tell(&format!("stream {} {} {ending}", stream.name(), scale.stream_bytes))?;
        let &[written, nanos] = session.wait("streamed", LIMIT)?.as_slice() else {
            return Err("no byte count and time".into());
        };
        samples.push((series, megabytes_per_second(written, Duration::from_nanos(nanos))));
    }
    Ok(samples)
}

fn megabytes_per_second(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 / 1e6 / elapsed.as_secs_f64()
}
