//! The user service that brings interrupted instances back when the machine starts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use abide_model::vars;
use abide_sys::atomic::{self, Durability};
use abide_sys::run::{self, RunError};

use crate::host::Login;

/// What the service is called.
pub const NAME: &str = "abide-resume.service";

/// How long systemd may take to read a unit again or to enable one; a manager that hangs must not hang us.
const PATIENCE: Duration = Duration::from_secs(10);

/// What of the operator's environment the service needs to find the instances and their programs. No other variable is
/// written down: it may hold a secret.
const NEEDED: [&str; 4] = [vars::PATH, vars::SHELL, vars::ABIDE_HOME, vars::XDG_CONFIG_HOME];

/// Why the service could not be put in place or taken away.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The file cannot be written or removed.
    #[error("{}: {source}; nothing was changed", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A path that a unit file cannot hold.
    #[error("{} contains characters that a unit file cannot hold; move abide to a directory with a plain name", .0.display())]
    OddPath(PathBuf),
    /// A variable whose value a unit file cannot hold.
    #[error(
        "the value of {0} contains characters that a unit file cannot hold; install the service from a shell with a plain value"
    )]
    OddValue(&'static str),
    /// The user manager did not do it.
    #[error(
        "the systemd user manager refused: {0}; nothing was changed. `abide doctor` shows whether it runs"
    )]
    Manager(#[from] RunError),
}

/// Where the unit's file is, for an operator whose configuration is in `config_home`.
pub fn file(config_home: &Path) -> PathBuf {
    config_home.join("systemd/user").join(NAME)
}

/// The text of the unit: `exe` brings back what was interrupted, once, when the user manager starts.
fn unit_text(exe: &str, environment: &str) -> String {
    format!(
        "# Made by `abide service install`; `abide service remove` removes it.\n\
         [Unit]\n\
         Description=Bring back interrupted abide instances\n\
         After=default.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         {environment}\
         # A failure would end what came back; `abide doctor` reads the status instead.\n\
         ExecStart=-\"{exe}\" resume --all\n\
         # The instances keep running after this has finished; they stop with the user manager.\n\
         RemainAfterExit=yes\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    )
}

/// The lines that give the service what it needs of the environment `env`.
fn environment(env: &dyn Fn(&str) -> Option<OsString>) -> Result<String, BootError> {
    let line = |name: &'static str| {
        let value = env(name).filter(|value| !value.is_empty())?;
        let ordinary = value.to_str().filter(|value| !value.contains(char::is_control));
        let escaped =
            ordinary.map(|value| value.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"));
        let line = escaped.map(|value| format!("Environment=\"{name}={value}\"\n"));
        Some(line.ok_or(BootError::OddValue(name)))
    };
    NEEDED.into_iter().filter_map(line).collect()
}

/// Puts the service in place and enables it, with what it needs of the environment `env`.
pub fn install(
    config_home: &Path,
    exe: &Path,
    env: &dyn Fn(&str) -> Option<OsString>,
    login: &Login,
) -> Result<PathBuf, BootError> {
    let odd = |c: char| c.is_control() || matches!(c, '"' | '\\' | '%' | '$');
    let text =
        exe.to_str().filter(|exe| !exe.contains(odd)).ok_or_else(|| BootError::OddPath(exe.to_owned()))?;
    let text = unit_text(text, &environment(env)?);
    let path = file(config_home);
    let before = fs::read(&path).ok();
    write(&path, text.as_bytes()).map_err(|source| BootError::File { path: path.clone(), source })?;
    let enabled = systemctl(login, &["daemon-reload"]).and_then(|_| systemctl(login, &["enable", NAME]));
    enabled.inspect_err(|_| match before {
        Some(text) => drop(write(&path, &text)),
        None => drop(remove(config_home, login)),
    })?;
    Ok(path)
}

/// Takes the service away; whether it was there. A manager that is not there has nothing to forget, so none is needed.
pub fn remove(config_home: &Path, login: &Login) -> Result<bool, BootError> {
    let path = file(config_home);
    match fs::remove_file(&path) {
        Err(gone) if gone.kind() == io::ErrorKind::NotFound => return Ok(false),
        removed => removed.map_err(|source| BootError::File { path: path.clone(), source })?,
    }
    // What enabled it: a link, which from now on leads nowhere and starts nothing even if it stays.
    drop(fs::remove_file(path.with_file_name("default.target.wants").join(NAME)));
    drop(systemctl(login, &["daemon-reload"]));
    Ok(true)
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    atomic::write_path(path, text, 0o644, Durability::Synced)
}

fn systemctl(login: &Login, args: &[&str]) -> Result<String, RunError> {
    let mut command = run::command("systemctl", ["--user", "--quiet"].iter().chain(args));
    command.env(vars::XDG_RUNTIME_DIR, &login.runtime_dir);
    run::succeed(&mut command, PATIENCE).map(|output| output.text())
}

/// How the service stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceState {
    /// It is not installed.
    Absent,
    /// It is installed, and has not run since the user manager started.
    Waiting,
    /// It is installed, and its last run brought everything back.
    Succeeded,
    /// It is installed, and its last run ended with this status.
    Failed(i32),
    /// It is installed, but not enabled.
    Disabled,
    /// It is installed, and the user manager does not say more, for this reason.
    Unknown(String),
}

/// How the service of an operator whose configuration is in `config_home` stands.
pub fn state(config_home: &Path, login: &Login) -> ServiceState {
    if !file(config_home).exists() {
        return ServiceState::Absent;
    }
    let properties = ["show", "-p", "UnitFileState", "-p", "ExecMainStatus", "-p", "ExecMainExitTimestamp"];
    match systemctl(login, &[&properties[..], &[NAME]].concat()) {
        Ok(text) => parse_state(&text),
        Err(error) => ServiceState::Unknown(error.to_string()),
    }
}

fn parse_state(properties: &str) -> ServiceState {
    let value = |name: &str| {
        let mut pairs = properties.lines().filter_map(|line| line.split_once('='));
        pairs.find_map(|(key, value)| (key == name).then_some(value.trim())).unwrap_or_default()
    };
    match (value("UnitFileState"), value("ExecMainExitTimestamp"), value("ExecMainStatus").parse()) {
        (state, ..) if state != "enabled" => ServiceState::Disabled,
        (_, "", _) => ServiceState::Waiting,
        (_, _, Ok(0)) => ServiceState::Succeeded,
        (_, _, Ok(status)) => ServiceState::Failed(status),
        (_, _, Err(_)) => ServiceState::Unknown("systemctl reports no status".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_resumes_everything_with_the_program_that_installed_it() {
        let text = unit_text("/home/ada/my bin/abide", "Environment=\"PATH=/bin\"\n");
        assert!(text.contains("ExecStart=-\"/home/ada/my bin/abide\" resume --all\n"), "{text}");
        assert!(text.contains("\n[Service]\nType=oneshot\nEnvironment=\"PATH=/bin\"\n# "), "{text}");
        assert!(text.contains("WantedBy=default.target"), "{text}");
    }

    #[test]
    fn the_unit_is_given_where_programs_and_instances_are_and_nothing_else_of_the_environment() {
        let env = |name: &str| match name {
            "PATH" => Some(r#"/my bin:/50%:/a"b\c"#.into()),
            "ABIDE_HOME" => Some("/data/abide".into()),
            "SHELL" => Some("".into()),
            "XDG_CONFIG_HOME" => None,
            _ => Some("a secret".into()),
        };
        let lines =
            "Environment=\"PATH=/my bin:/50%%:/a\\\"b\\\\c\"\nEnvironment=\"ABIDE_HOME=/data/abide\"\n";
        assert_eq!(environment(&env).unwrap(), lines);
        let odd = |name: &str| (name == "SHELL").then(|| "/bin/sh\nExecStart=/bin/evil".into());
        assert!(matches!(environment(&odd), Err(BootError::OddValue("SHELL"))));
    }

    #[test]
    fn a_path_that_would_change_the_unit_is_refused_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        for odd in ["/a\nExecStart=/bin/evil", "/a\"b", "/50%", "/$HOME/abide"] {
            let installed = install(dir.path(), Path::new(odd), &|_| None, &Login::here());
            assert!(matches!(installed, Err(BootError::OddPath(_))), "{odd:?}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn taking_away_what_is_not_there_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!remove(dir.path(), &Login::here()).unwrap());
        assert_eq!(state(dir.path(), &Login::here()), ServiceState::Absent);
    }

    #[test]
    fn the_state_is_read_from_what_the_manager_says() {
        let said = |state: &str, ended: &str, status: &str| {
            parse_state(&format!(
                "ExecMainStatus={status}\nExecMainExitTimestamp={ended}\nUnitFileState={state}"
            ))
        };
        assert_eq!(said("enabled", "", "0"), ServiceState::Waiting);
        assert_eq!(said("enabled", "Mon 2026-11-16 02:00:00 UTC", "0"), ServiceState::Succeeded);
        assert_eq!(said("enabled", "Mon 2026-11-16 02:00:00 UTC", "1"), ServiceState::Failed(1));
        assert_eq!(said("disabled", "", "0"), ServiceState::Disabled);
        assert_eq!(said("", "", ""), ServiceState::Disabled);
        assert!(matches!(said("enabled", "Mon", "?"), ServiceState::Unknown(_)));
    }
}
