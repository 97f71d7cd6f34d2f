//! The user service that brings interrupted instances back when the machine starts.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_sys::atomic;
use abide_sys::run::{self, RunError};

/// What the service is called.
pub const NAME: &str = "abide-resume.service";

/// How long systemd may take to read a unit again or to enable one; a manager that hangs must not hang us.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why the service could not be put in place or taken away.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The file can not be written or removed.
    #[error("{}: {source}; nothing was changed", path.display())]
    File {
        /// The unit's file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A path that a unit file can not hold.
    #[error("{} can not stand in a unit file; put abide into a directory with an ordinary name", .0.display())]
    OddPath(PathBuf),
    /// The user manager did not do it.
    #[error("the systemd user manager refused: {0}; is there one? `abide doctor` says")]
    Manager(#[from] RunError),
}

/// Where the unit's file is, for an operator whose configuration is in `config_home`.
pub fn file(config_home: &Path) -> PathBuf {
    config_home.join("systemd/user").join(NAME)
}

/// The text of the unit: `exe` brings back what was interrupted, once, when the user manager starts.
fn unit_text(exe: &str) -> String {
    format!(
        "# Made by `abide service install`; `abide service remove` takes it away.\n\
         [Unit]\n\
         Description=Bring back interrupted abide instances\n\
         After=default.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart=\"{exe}\" resume --all\n\
         # The instances are to stay when this has done its work.\n\
         KillMode=process\n\
         RemainAfterExit=yes\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    )
}

/// Puts the service in place and enables it.
pub fn install(config_home: &Path, exe: &Path) -> Result<PathBuf, BootError> {
    let odd = |c: char| c.is_control() || matches!(c, '"' | '\\' | '%' | '$');
    let text =
        exe.to_str().filter(|exe| !exe.contains(odd)).ok_or_else(|| BootError::OddPath(exe.to_owned()))?;
    let path = file(config_home);
    write(&path, unit_text(text).as_bytes())
        .map_err(|source| BootError::File { path: path.clone(), source })?;
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", NAME])?;
    Ok(path)
}

/// Takes the service away; whether it was there.
pub fn remove(config_home: &Path) -> Result<bool, BootError> {
    let path = file(config_home);
    if !path.exists() {
        return Ok(false);
    }
    systemctl(&["disable", NAME])?;
    std::fs::remove_file(&path).map_err(|source| BootError::File { path: path.clone(), source })?;
    systemctl(&["daemon-reload"])?;
    Ok(true)
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let (dir, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(dir)?;
    atomic::write(std::fs::File::open(dir)?, name, text, 0o644)
}

fn systemctl(args: &[&str]) -> Result<(), RunError> {
    run::succeed(&mut run::command("systemctl", ["--user", "--quiet"].iter().chain(args)), PATIENCE).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_resumes_everything_with_the_program_that_installed_it() {
        let text = unit_text("/home/ada/my bin/abide");
        assert!(text.contains("ExecStart=\"/home/ada/my bin/abide\" resume --all\n"), "{text}");
        assert!(text.contains("WantedBy=default.target"), "{text}");
    }

    #[test]
    fn a_path_that_would_change_the_unit_is_refused_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        for odd in ["/a\nExecStart=/bin/evil", "/a\"b", "/50%", "/$HOME/abide"] {
            assert!(matches!(install(dir.path(), Path::new(odd)), Err(BootError::OddPath(_))), "{odd:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn taking_away_what_is_not_there_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!remove(dir.path()).unwrap());
    }
}
