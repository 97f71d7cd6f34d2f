//! The values behind references: found anew at every start, handed on once, never written or shown.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use abide_model::EnvRef;
use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::run;
use rustix::fs::OFlags;

/// How long a password manager may take; it may have to ask the operator.
const PATIENCE: Duration = Duration::from_secs(60);

/// A secret file is not larger than this.
const FILE_LIMIT: u64 = 1 << 20;

/// A value that can be used but not printed: it has no `Display`, no `Serialize`, and a `Debug` that shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(OsString);

impl Secret {
    /// Gives the value out, to be handed to the process that needs it.
    pub fn reveal(self) -> OsString {
        self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Why a value could not be had. Names the reference, never a value.
#[derive(Debug, thiserror::Error)]
#[error("cannot get the value of {name} ({reference}): {why}; nothing was started")]
pub struct SecretError {
    name: String,
    reference: String,
    why: String,
}

/// The value that `reference` stands for, to be called `name`.
pub fn resolve(
    name: &str,
    reference: &EnvRef,
    home: &Path,
    env: impl Fn(&str) -> Option<OsString>,
) -> Result<Secret, SecretError> {
    let value = match reference {
        EnvRef::Plain(text) => Ok(text.into()),
        EnvRef::Env(variable) => env(variable).ok_or_else(|| format!("{variable} is not set")),
        EnvRef::File(path) => read(&expand(path, home), PATIENCE).map_err(|e| e.to_string()),
        EnvRef::Command(argv) => print(argv),
        EnvRef::OnePassword(item) => {
            print(&["op".to_owned(), "read".to_owned(), "--no-newline".to_owned(), item.clone()])
        }
    };
    // What a plain value is may itself be private, so an error shows only what kind of reference it was.
    let shown =
        if matches!(reference, EnvRef::Plain(_)) { "plain".to_owned() } else { reference.to_string() };
    value.map(Secret).map_err(|why| SecretError { name: name.to_owned(), reference: shown, why })
}

fn expand(path: &Path, home: &Path) -> PathBuf {
    path.strip_prefix("~").map_or_else(|_| path.to_owned(), |rest| home.join(rest))
}

/// What the file holds. A pipe is read until its writer closes it, and not for longer than `limit`.
fn read(path: &Path, limit: Duration) -> std::io::Result<OsString> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(FILE_LIMIT).read_to_end(&mut bytes)?;
        return Ok(trimmed(bytes));
    }
    let deadline = Instant::now() + limit;
    let mut piece = [0; 4096];
    while bytes.len() < usize::try_from(FILE_LIMIT).unwrap_or(usize::MAX) {
        if poll::wait(&mut [PollFd::new(&file, PollFlags::IN)], Some(deadline))? == 0 {
            return Err(std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                "nothing was written to it in time",
            ));
        }
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(trimmed(bytes))
}

/// What the command prints. Its complaints are passed on; what it printed never is.
fn print(argv: &[String]) -> Result<OsString, String> {
    let (program, args) = argv.split_first().ok_or("no command")?;
    let output = run::succeed(&mut run::command(program, args), PATIENCE).map_err(|e| e.to_string())?;
    Ok(trimmed(output.stdout))
}

/// Files and commands end their one line with a line break that is not part of the value.
fn trimmed(mut bytes: Vec<u8>) -> OsString {
    while matches!(bytes.last(), Some(b'\n' | b'\r')) {
        bytes.pop();
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(reference: &str, home: &Path) -> Result<OsString, String> {
        let env = |name: &str| (name == "OUTER").then(|| "from outside".into());
        resolve("NAME", &reference.parse().unwrap(), home, env).map(Secret::reveal).map_err(|e| e.to_string())
    }

    #[test]
    fn each_kind_of_reference_is_resolved() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("token"), "s3cret\n").unwrap();
        assert_eq!(value("plain text", home.path()).unwrap(), "plain text");
        assert_eq!(value("env:OUTER", home.path()).unwrap(), "from outside");
        assert_eq!(value("file:~/token", home.path()).unwrap(), "s3cret");
        assert_eq!(value("cmd:echo s3cret", home.path()).unwrap(), "s3cret");
    }

    #[test]
    fn what_cannot_be_had_is_an_error_that_names_the_reference_only() {
        let home = tempfile::tempdir().unwrap();
        for reference in ["env:INNER", "file:/no/such/file", "cmd:false", "cmd:abide-no-such-program"] {
            let error = value(reference, home.path()).unwrap_err();
            assert!(error.contains("NAME") && error.contains(reference), "{error}");
        }
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_one_that_nothing_writes_to_is_given_up() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::thread::scope(|scope| {
            scope.spawn(|| std::fs::write(&pipe, "s3cret\n").unwrap());
            assert_eq!(value("file:~/pipe", home.path()).unwrap(), "s3cret");
        });
        let error = read(&pipe, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_secret_does_not_show_itself() {
        assert_eq!(format!("{:?}", Secret("hunter2".into())), "Secret(…)");
    }
}
