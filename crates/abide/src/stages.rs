//! The stages of a start in a container, as the operator sees them: one line that changes on a terminal, else a line each.

use std::io::{self, IsTerminal, Write};

use abide_model::sanitised;
use abide_places::place::StageEvent;

/// The longest piece of a build's output that is shown beside its stage.
const SAID: usize = 60;

/// Shows `event` on standard error. What cannot be written there is not worth failing for.
pub fn show(event: &StageEvent) {
    let mut stderr = io::stderr();
    let _ = match (event, stderr.is_terminal()) {
        (StageEvent::Begun(stage), true) => write!(stderr, "\r\x1b[Kabide: {stage} …"),
        (StageEvent::Said(stage, line), true) => {
            let line: String = sanitised(line).chars().take(SAID).collect();
            write!(stderr, "\r\x1b[Kabide: {stage}: {line}")
        }
        (StageEvent::Done(..), true) => write!(stderr, "\r\x1b[K"),
        (StageEvent::Begun(stage), false) => writeln!(stderr, "abide: {stage}"),
        (StageEvent::Said(..) | StageEvent::Done(..), false) => Ok(()),
    };
    let _ = stderr.flush();
}
