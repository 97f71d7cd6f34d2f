//! Other programs, run with a bound.
//!
//! A hung tmux server, docker engine or systemd manager must never freeze us, so there is no way here to run a command
//! without saying how long it may take. Commands are argument vectors; no shell is involved.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{PidfdFlags, Signal, pidfd_open};

use crate::poll::{self, PollFd, PollFlags};
use crate::process::{child_pid, send_signal_to_group};
use crate::signals;

/// More output than this is an error: a program gone wild must not fill our memory, and a part must not be taken for all.
const OUTPUT_LIMIT: usize = 16 << 20;

/// Why a command gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{program}: not found on PATH")]
    NotFound { program: String },
    /// It could not be started or waited for.
    #[error("{program}: {source}")]
    Io { program: String, source: io::Error },
    /// It did not finish in time, and was killed together with its children.
    #[error("{program}: no answer within {}", human(*.limit))]
    TimedOut {
        program: String,
        /// How long it had.
        limit: Duration,
    },
    /// It ended with a failure.
    #[error("{program}: {}{}", describe(*.status), telling_line(.stderr))]
    Failed { program: String, status: ExitStatus, stderr: String },
}

fn human(limit: Duration) -> String {
    if limit.subsec_millis() == 0 {
        format!("{} s", limit.as_secs())
    } else {
        format!("{} ms", limit.as_millis())
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

fn telling_line(stderr: &str) -> String {
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    // git says what it is about to do before it says why it cannot.
    let reason = lines.clone().find(|line| line.starts_with("fatal:") || line.starts_with("error:"));
    match reason.or_else(|| lines.next()) {
        Some(line) => format!(": {line}"),
        None => String::new(),
    }
}

/// What a command printed.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    /// Its standard error, with bytes that are not UTF-8 replaced.
    pub stderr: String,
}

impl CommandOutput {
    /// Standard output as text, without the trailing line break.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }
}

/// Runs `command` to its end and returns what it printed, whatever its exit status.
pub fn output(command: &mut Command, limit: Duration) -> Result<CommandOutput, RunError> {
    output_fed(command, Stdio::null(), limit)
}

/// Like [`output`], with `input` as standard input: a file rather than a pipe, which a command could leave unread.
pub fn output_fed(command: &mut Command, input: Stdio, limit: Duration) -> Result<CommandOutput, RunError> {
    complete(command, input, limit, None)
}

/// Runs `command` to its end and hands each line that it prints to `heard` as it comes, whichever stream it is on. Nothing of it
/// is kept, so that it may print any amount.
pub fn watched(
    command: &mut Command,
    limit: Duration,
    heard: &mut dyn FnMut(&str),
) -> Result<ExitStatus, RunError> {
    let output = complete(command, Stdio::null(), limit, Some(&mut *heard))?;
    let rests = [String::from_utf8_lossy(&output.stdout), output.stderr.into()];
    rests.iter().filter(|rest| !rest.is_empty()).for_each(|rest| heard(rest));
    Ok(output.status)
}

/// What takes each line of a command instead of its output.
type LineSink<'a> = Option<&'a mut dyn FnMut(&str)>;

fn complete(
    command: &mut Command,
    input: Stdio,
    limit: Duration,
    heard: LineSink<'_>,
) -> Result<CommandOutput, RunError> {
    let program = name_of(command);
    let failed = |source: io::Error| RunError::Io { program: program.clone(), source };
    // A group of its own, so that a time-out also ends what the command started.
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    // A git that outlived us would go on making what the next command takes for abandoned and removes.
    signals::end_with_us(command);
    let mut child = command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => RunError::NotFound { program: program.clone() },
        _ => failed(source),
    })?;
    let collected = collect(&mut child, Instant::now() + limit, heard);
    if !matches!(collected, Ok(Some(_))) {
        kill_group(&child);
    }
    let status = child.wait().map_err(failed)?;
    match collected.map_err(failed)? {
        Some((stdout, stderr)) => {
            Ok(CommandOutput { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() })
        }
        None => Err(RunError::TimedOut { program, limit }),
    }
}

/// Like [`output`], but a failure of the command is an error too.
pub fn succeed(command: &mut Command, limit: Duration) -> Result<CommandOutput, RunError> {
    let output = output(command, limit)?;
    if output.status.success() {
        return Ok(output);
    }
    let program = name_of(command);
    Err(RunError::Failed { program, status: output.status, stderr: output.stderr })
}

/// The command `program` with `args`.
pub fn command<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// What the program is called in messages.
fn name_of(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

fn kill_group(child: &Child) {
    let _ = send_signal_to_group(child_pid(child), Signal::KILL);
}

/// Reads both streams until the command has ended; `None` if that takes past `deadline`.
///
/// The end of the *process* counts, not the end of the streams: a daemon that the command left behind may hold those
/// open for ever.
fn collect(
    child: &mut Child,
    deadline: Instant,
    mut heard: LineSink<'_>,
) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let ended = pidfd_open(rustix::process::Pid::from_child(child), PidfdFlags::empty())?;
    let mut streams = (Stream::new(child.stdout.take()), Stream::new(child.stderr.take()));
    for fd in [streams.0.fd(), streams.1.fd()].into_iter().flatten() {
        rustix::io::ioctl_fionbio(fd, true)?;
    }
    loop {
        let mut fds = vec![PollFd::new(&ended, PollFlags::IN)];
        fds.extend(
            [streams.0.fd(), streams.1.fd()]
                .into_iter()
                .flatten()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        poll::wait(&mut fds, Some(deadline))?;
        let over = !fds[0].revents().is_empty();
        drop(fds);
        streams.0.drain(&mut heard)?;
        streams.1.drain(&mut heard)?;
        if over {
            return Ok(Some((streams.0.bytes, streams.1.bytes)));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
    }
}

/// One of a command's output streams, and what came out of it so far.
struct Stream<R> {
    reader: Option<R>,
    bytes: Vec<u8>,
}

impl<R: Read + AsFd> Stream<R> {
    fn new(reader: Option<R>) -> Self {
        Self { reader, bytes: Vec::new() }
    }

    fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.reader.as_ref().map(AsFd::as_fd)
    }

    fn drain(&mut self, heard: &mut LineSink<'_>) -> io::Result<()> {
        let mut buffer = [0; 8192];
        while let Some(reader) = &mut self.reader {
            match reader.read(&mut buffer) {
                Ok(0) => self.reader = None,
                Ok(n) if self.bytes.len() + n <= OUTPUT_LIMIT => {
                    self.bytes.extend_from_slice(&buffer[..n]);
                    self.hand_over_lines(heard);
                }
                Ok(_) => {
                    let text = format!("it printed more than {} MiB", OUTPUT_LIMIT >> 20);
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Hands over every line that is complete.
    fn hand_over_lines(&mut self, heard: &mut LineSink<'_>) {
        let Some(heard) = heard else { return };
        let Some(last) = self.bytes.iter().rposition(|byte| *byte == b'\n') else { return };
        let lines: Vec<u8> = self.bytes.drain(..=last).collect();
        String::from_utf8_lossy(&lines).lines().for_each(heard);
    }
}

#[cfg(test)]
mod tests {

    use abide_model::Liveness;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn both_streams_and_the_status_come_back() {
        let out = output(&mut command("sh", ["-c", "echo out; echo err >&2; exit 3"]), LONG).unwrap();
        assert_eq!((out.text().as_str(), out.stderr.as_str(), out.status.code()), ("out", "err\n", Some(3)));
    }

    #[test]
    fn much_output_on_both_streams_does_not_block() {
        let out = output(
            &mut command("sh", ["-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"]),
            LONG,
        )
        .unwrap();
        assert_eq!((out.stdout.len(), out.stderr.len()), (300_000, 300_000));
    }

    #[test]
    fn too_much_output_is_an_error_and_not_a_part_of_it() {
        for stream in ["", " >&2"] {
            // The last piece would fit by itself.
            let script = format!("(head -c 16777200 /dev/zero; printf '%0100d' 0; printf x){stream}");
            let error = output(&mut command("sh", ["-c", &script]), LONG).unwrap_err();
            assert_eq!(error.to_string(), "sh: it printed more than 16 MiB");
        }
    }

    #[test]
    fn lines_are_heard_as_they_come_and_may_be_any_amount() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("heard");
        // It goes on only after its first line was heard.
        let script = "echo first; while ! [ -e \"$0\" ]; do sleep 0.05; done; \
                      head -c 17000000 /dev/zero | tr '\\0' '\\n'; echo last >&2; printf rest; exit 3";
        let (mut heard, mut count) = (Vec::new(), 0);
        let mut hear = |line: &str| {
            count += 1;
            if !line.is_empty() {
                std::fs::write(&file, "").unwrap();
                heard.push(line.to_owned());
            }
        };
        let mut cmd = command("sh", ["-c", script, file.to_str().unwrap()]);
        let status = watched(&mut cmd, LONG, &mut hear).unwrap();
        assert_eq!((status.code(), count), (Some(3), 17_000_003));
        heard.sort();
        assert_eq!(heard, ["first", "last", "rest"]);
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let mark = format!("{}", std::process::id());
        let script = format!("exec -a x{mark} sleep 1000 & sleep 1000");
        let error = output(&mut command("bash", ["-c", &script]), Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error, RunError::TimedOut { .. }), "{error}");
        assert_eq!(error.to_string(), "bash: no answer within 300 ms");
        let left = Command::new("pgrep").args(["-f", &format!("^x{mark} ")]).output().unwrap();
        assert!(left.stdout.is_empty(), "a child outlived the time-out");
    }

    #[test]
    fn a_daemon_left_behind_does_not_keep_us_waiting() {
        let mut cmd = command("bash", ["-c", "sleep 60 & echo $!"]);
        let out = output(&mut cmd, Duration::from_secs(20)).unwrap();
        assert!(out.status.success());
        crate::process::send_signal(out.text().parse().unwrap(), Signal::KILL).unwrap();
    }

    /// Not a test of its own: where the test below starts it, it is the process that is killed while it waits for a command.
    #[test]
    fn waits_for_a_command() {
        if std::env::var_os("PID_FILE").is_none() {
            return;
        }
        let _ = output(&mut command("sh", ["-c", "echo $$ > \"$PID_FILE\"; exec sleep 1000"]), LONG);
    }

    #[test]
    fn a_command_does_not_outlive_a_killed_caller() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let mut caller = Command::new(std::env::current_exe().unwrap());
        caller.args(["--exact", "run::tests::waits_for_a_command"]).env("PID_FILE", &file);
        let mut caller = caller.stdout(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + LONG;
        let pid: abide_model::Pid = loop {
            let written = std::fs::read_to_string(&file).unwrap_or_default();
            match written.trim().parse() {
                Ok(pid) if written.ends_with('\n') => break pid,
                _ => assert!(Instant::now() < deadline, "the command does not start"),
            }
        };
        let child = crate::process::identity(pid).unwrap();
        caller.kill().unwrap();
        caller.wait().unwrap();
        while crate::process::alive(&child) != Liveness::Dead {
            assert!(Instant::now() < deadline, "the command outlived its caller");
        }
    }

    #[test]
    fn errors_name_the_program_and_what_it_said() {
        let missing = output(&mut command("abide-no-such-program", [""; 0]), LONG).unwrap_err();
        assert_eq!(missing.to_string(), "abide-no-such-program: not found on PATH");
        let failed =
            succeed(&mut command("sh", ["-c", "echo; echo 'no way' >&2; exit 7"]), LONG).unwrap_err();
        assert_eq!(failed.to_string(), "sh: exit status 7: no way");
        let script = "echo on it >&2; echo fatal: cannot >&2; echo hint >&2; exit 1";
        let failed = succeed(&mut command("sh", ["-c", script]), LONG).unwrap_err();
        assert_eq!(failed.to_string(), "sh: exit status 1: fatal: cannot");
    }
}
