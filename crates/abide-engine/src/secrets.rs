//! The values behind references: found anew at every start, handed on once, never written or shown.

use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_model::EnvRef;
use abide_sys::run;

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
#[error("the value of {name} ({reference}) can not be had: {why}; nothing was started")]
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
        EnvRef::File(path) => read(&expand(path, home)).map_err(|e| e.to_string()),
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

fn read(path: &Path) -> std::io::Result<OsString> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(FILE_LIMIT).read_to_end(&mut bytes)?;
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
    fn what_can_not_be_had_is_an_error_that_names_the_reference_only() {
        let home = tempfile::tempdir().unwrap();
        for reference in ["env:INNER", "file:/no/such/file", "cmd:false", "cmd:abide-no-such-program"] {
            let error = value(reference, home.path()).unwrap_err();
            assert!(error.contains("NAME") && error.contains(reference), "{error}");
        }
    }

    #[test]
    fn a_secret_does_not_show_itself() {
        assert_eq!(format!("{:?}", Secret("hunter2".into())), "Secret(…)");
    }
}
