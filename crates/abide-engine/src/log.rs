//! The log: one structured line per event in `log/abide.log`, rotated, rate-limited, filtered by `ABIDE_LOG`.
//!
//! A log that can fill a disk or bring escape sequences to a terminal is a fault of its own, so lines are bounded,
//! sanitised and counted per place in the code. Failing to log never fails what was being logged.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use abide_model::sanitised;
use abide_sys::clock;
use rustix::fs::{FlockOperation, flock};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber, span};

/// A file is set aside when it has grown to this.
const ROTATE_AT: u64 = 4 << 20;
/// How many files that were set aside are kept.
const KEPT: u32 = 3;
/// The longest line; the rest is cut.
const LINE: usize = 4096;
/// How many lines one place in the code may write in [`WINDOW`]; a retry loop gone wrong says so once instead.
const BURST: u32 = 50;
const WINDOW: Duration = Duration::from_secs(10);

/// Which lines are written: a level for everything, and levels for targets that begin with a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    default: LevelFilter,
    targets: Vec<(String, LevelFilter)>,
}

impl Default for Filter {
    fn default() -> Self {
        Self { default: LevelFilter::INFO, targets: Vec::new() }
    }
}

impl Filter {
    /// Reads `warn`, `info,abide_store=debug` and the like. Parts that make no sense are left out: a slip in a debugging
    /// variable must not stop the work.
    pub fn parse(text: &str) -> Self {
        let mut filter = Self::default();
        for part in text.split(',') {
            let (target, level) =
                part.split_once('=').map_or((None, part), |(target, level)| (Some(target.trim()), level));
            match (target, level_named(level.trim())) {
                (Some(target), Some(level)) if !target.is_empty() => {
                    filter.targets.push((target.to_owned(), level))
                }
                (None, Some(level)) => filter.default = level,
                _ => {}
            }
        }
        filter
    }

    fn allows(&self, target: &str, level: Level) -> bool {
        let named = self.targets.iter().filter(|(prefix, _)| target.starts_with(prefix.as_str()));
        let limit = named.max_by_key(|(prefix, _)| prefix.len()).map_or(self.default, |(_, limit)| *limit);
        level <= limit
    }
}

/// The level called `word`. Not left to its own parser, to which nothing at all means `error`.
fn level_named(word: &str) -> Option<LevelFilter> {
    (!word.is_empty()).then(|| word.parse().ok())?
}

/// Sends everything that is traced in this process to `path`. Where that cannot be, there is no log.
pub fn install(path: &Path, filter: Filter, verb: &str) {
    let log = Log { filter, verb: verb.to_owned(), path: path.to_owned(), state: Mutex::default() };
    let _ = tracing::subscriber::set_global_default(log);
}

struct Log {
    filter: Filter,
    verb: String,
    path: PathBuf,
    state: Mutex<LogState>,
}

#[derive(Default)]
struct LogState {
    file: Option<File>,
    /// Per place in the code: when its window began and how many lines it wrote in it.
    counts: HashMap<(&'static str, u32), (Option<Instant>, u32)>,
}

impl LogState {
    /// Whether the place `at` may write now; `Some(n)` says that `n` of its lines were left out before.
    fn admit(&mut self, at: (&'static str, u32), now: Instant) -> Option<u32> {
        let (began, count) = self.counts.entry(at).or_default();
        let mut left_out = 0;
        if began.is_none_or(|began| now.duration_since(began) >= WINDOW) {
            left_out = count.saturating_sub(BURST);
            (*began, *count) = (Some(now), 0);
        }
        *count += 1;
        (*count <= BURST).then_some(left_out)
    }
}

impl Subscriber for Log {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Asked every time: an answer kept per place would be shared with other logs of the process.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.filter.allows(metadata.target(), *metadata.level())
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let at = (metadata.file().unwrap_or_default(), metadata.line().unwrap_or_default());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left_out) = state.admit(at, Instant::now()) else { return };
        let mut line = format!(
            "{} {:5} {} {}[{}]",
            clock::now(),
            metadata.level().as_str(),
            metadata.target(),
            self.verb,
            std::process::id()
        );
        event.record(&mut Fields(&mut line));
        if left_out > 0 {
            let _ = write!(line, " left_out={left_out}");
        }
        let mut line = sanitised(&line).into_owned();
        if line.len() > LINE {
            line.truncate(line.floor_char_boundary(LINE));
        }
        line.push('\n');
        self.write(&mut state, line.as_bytes());
    }

    // Spans are not used: a line carries all it has to say.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Log {
    fn write(&self, state: &mut LogState, line: &[u8]) {
        if state.file.is_none() {
            state.file = open(&self.path);
        }
        let Some(file) = &mut state.file else { return };
        // One write with O_APPEND: lines of several processes do not mix.
        let written = file.write_all(line);
        let size = file.metadata().map(|m| m.len()).unwrap_or(0);
        if written.is_err() || size >= ROTATE_AT {
            rotate(&self.path, file);
            state.file = None;
        }
    }
}

fn open(path: &Path) -> Option<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).ok()
}

/// Sets the full file aside, unless another process has done so already.
fn rotate(path: &Path, file: &File) {
    if flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    let still_there = std::fs::metadata(path).is_ok_and(|m| m.len() >= ROTATE_AT);
    if still_there {
        let numbered = |n: u32| path.with_extension(format!("log.{n}"));
        for n in (1..KEPT).rev() {
            let _ = std::fs::rename(numbered(n), numbered(n + 1));
        }
        let _ = std::fs::rename(path, numbered(1));
    }
}

/// Writes fields as ` key=value`, with the message first and bare.
struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let plain =
            !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '='));
        let _ = match field.name() {
            "message" => write!(self.0, " {value}"),
            name if plain => write!(self.0, " {name}={value}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_in(dir: &Path, filter: &str) -> Log {
        Log {
            filter: Filter::parse(filter),
            verb: "test".into(),
            path: dir.join("abide.log"),
            state: Mutex::default(),
        }
    }

    fn lines(dir: &Path) -> Vec<String> {
        std::fs::read_to_string(dir.join("abide.log"))
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_line_has_time_process_and_message_in_fields() {
        let dir = tempfile::tempdir().unwrap();
        tracing::subscriber::with_default(log_in(dir.path(), ""), || {
            tracing::info!(id = "k7p9m2xq", reason = "two words", n = 3, "resume: started");
        });
        let lines = lines(dir.path());
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains(" INFO  abide_engine::log::tests test["), "{}", lines[0]);
        assert!(lines[0].ends_with("] resume: started id=k7p9m2xq reason=\"two words\" n=3"), "{}", lines[0]);
    }

    #[test]
    fn the_filter_chooses_by_level_and_target() {
        let dir = tempfile::tempdir().unwrap();
        tracing::subscriber::with_default(log_in(dir.path(), "warn,special=debug,nonsense=,=,bogus"), || {
            tracing::info!("hidden");
            tracing::warn!("shown");
            tracing::debug!(target: "special::part", "shown too");
            tracing::trace!(target: "special::part", "hidden too");
        });
        let lines = lines(dir.path());
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with(" shown") && lines[1].ends_with(" shown too"));
    }

    #[test]
    fn hostile_text_stays_one_harmless_line() {
        let dir = tempfile::tempdir().unwrap();
        tracing::subscriber::with_default(log_in(dir.path(), ""), || {
            tracing::info!(title = "a\x1b]0;x\x07\nb", "{}", "long ".repeat(5000));
        });
        let lines = lines(dir.path());
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() <= LINE && !lines[0].contains('\x1b'));
    }

    #[test]
    fn a_loop_that_repeats_itself_is_cut_short_and_counted() {
        let mut state = LogState::default();
        let start = Instant::now();
        let written = (0..1000).filter(|_| state.admit(("loop.rs", 1), start).is_some()).count();
        assert_eq!(written, BURST as usize);
        assert_eq!(state.admit(("other.rs", 1), start), Some(0), "other places are not affected");
        assert_eq!(
            state.admit(("loop.rs", 1), start + WINDOW),
            Some(1000 - BURST),
            "and it says how many were left out"
        );
    }

    #[test]
    fn the_log_is_rotated_and_its_total_size_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let log = log_in(dir.path(), "");
        let line = vec![b'x'; 64 << 10];
        for _ in 0..(6 * ROTATE_AT / line.len() as u64) {
            log.write(&mut log.state.lock().unwrap(), &line);
        }
        let sizes: Vec<u64> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).collect();
        assert!(sizes.len() <= 1 + KEPT as usize && sizes.len() > 1, "{sizes:?}");
        assert!(sizes.iter().sum::<u64>() <= u64::from(KEPT + 1) * (ROTATE_AT + line.len() as u64));
    }

    #[test]
    fn a_log_that_cannot_be_written_stops_nothing() {
        let log = log_in(Path::new("/proc/no-such-directory"), "");
        tracing::subscriber::with_default(log, || tracing::error!("nobody hears this"));
    }
}
