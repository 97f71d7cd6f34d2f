//! How a keeper is told what to serve: its command line.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;

use serde::{Deserialize, Serialize};

use crate::text::OsText;

/// What a keeper serves, and how. Everything here is visible in the process list: no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The unit directory.
    pub unit: OsText,
    /// Which run of the instance this is; the exit record carries it.
    pub generation: u64,
    /// The mux's command line. The mux finds its link on standard input.
    pub mux: Vec<OsText>,
    /// Run when the capsule has stopped, detached; nothing where empty.
    #[serde(default)]
    pub on_exit: Vec<OsText>,
    /// How long sessions may take to end before they are killed, in milliseconds.
    #[serde(default = "default_grace")]
    pub grace_ms: u64,
    /// The longest pause before a mux that keeps dying is started again, in milliseconds.
    #[serde(default = "default_mux_pause")]
    pub mux_pause_ms: u64,
    /// Handed to the mux as it is.
    #[serde(default)]
    pub options: serde_json::Value,
}

fn default_grace() -> u64 {
    5000
}

fn default_mux_pause() -> u64 {
    2000
}

impl Config {
    /// A configuration with the usual times, no hook and no options.
    pub fn new(unit: impl Into<OsText>, generation: u64, mux: Vec<OsText>) -> Self {
        Self {
            unit: unit.into(),
            generation,
            mux,
            on_exit: Vec::new(),
            grace_ms: default_grace(),
            mux_pause_ms: default_mux_pause(),
            options: serde_json::Value::Null,
        }
    }
}

/// How the keeper begins.
#[derive(Debug, Clone, PartialEq)]
pub enum KeeperArgs {
    /// As a service (PID 1 of a container, a systemd unit): sessions are asked for over the socket.
    Serve(Config),
    /// By [`Launching`](super::Launching): standard input is a link over which the first session is asked for.
    Launched(Config),
    /// In the place of an older keeper, whose state is in this descriptor.
    Resume(RawFd),
}

/// Why a keeper's command line was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("capsule keeper: {0}")]
pub struct ArgsError(String);

impl KeeperArgs {
    /// The arguments after `capsule keeper` that [`KeeperArgs::parse`] reads back.
    pub fn to_argv(&self) -> Vec<OsString> {
        let (config, launched) = match self {
            Self::Serve(config) => (config, false),
            Self::Launched(config) => (config, true),
            Self::Resume(fd) => return vec!["--resume-fd".into(), fd.to_string().into()],
        };
        let mut argv: Vec<OsString> = Vec::new();
        let mut put = |name: &str, value: &OsStr| argv.extend([name.into(), value.to_owned()]);
        put("--unit", config.unit.as_os_str());
        put("--generation", OsStr::new(&config.generation.to_string()));
        put("--grace-ms", OsStr::new(&config.grace_ms.to_string()));
        put("--mux-pause-ms", OsStr::new(&config.mux_pause_ms.to_string()));
        if !config.options.is_null() {
            put("--options", OsStr::new(&config.options.to_string()));
        }
        config.mux.iter().for_each(|word| put("--mux", word.as_os_str()));
        config.on_exit.iter().for_each(|word| put("--on-exit", word.as_os_str()));
        if launched {
            argv.push("--launched".into());
        }
        argv
    }

    /// Reads the arguments after `capsule keeper`.
    pub fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Self, ArgsError> {
        let mut config = Config::new("", 0, Vec::new());
        let mut launched = false;
        let mut argv = argv.into_iter();
        while let Some(name) = argv.next() {
            let name = name.to_string_lossy().into_owned();
            if name == "--launched" {
                launched = true;
                continue;
            }
            let value = argv.next().ok_or_else(|| ArgsError(format!("{name} needs a value")))?;
            match name.as_str() {
                "--resume-fd" => return Ok(Self::Resume(number(&name, &value)?)),
                "--unit" => config.unit = value.into(),
                "--generation" => config.generation = number(&name, &value)?,
                "--grace-ms" => config.grace_ms = number(&name, &value)?,
                "--mux-pause-ms" => config.mux_pause_ms = number(&name, &value)?,
                "--options" => config.options = json(&value)?,
                "--mux" => config.mux.push(value.into()),
                "--on-exit" => config.on_exit.push(value.into()),
                _ => return Err(ArgsError(format!("unknown option {name}"))),
            }
        }
        if !config.unit.as_path().is_absolute() {
            return Err(ArgsError("--unit needs an absolute path".to_owned()));
        }
        if config.mux.is_empty() {
            return Err(ArgsError("--mux is missing".to_owned()));
        }
        Ok(if launched { Self::Launched(config) } else { Self::Serve(config) })
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &OsStr) -> Result<T, ArgsError> {
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| ArgsError(format!("{name} needs a number, not `{}`", value.display())))
}

fn json(value: &OsStr) -> Result<serde_json::Value, ArgsError> {
    let text = value.to_str().unwrap_or_default();
    serde_json::from_str(text).map_err(|err| ArgsError(format!("--options is not JSON: {err}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_back_as_it_was_written() {
        let mut config = Config::new("/home/a b/.abide/x", 7, vec!["/bin/abide".into(), "--mux".into()]);
        config.on_exit = vec!["--launched".into(), "".into()];
        config.options = serde_json::json!({"scrollback": 10});
        for args in [KeeperArgs::Serve(config.clone()), KeeperArgs::Launched(config), KeeperArgs::Resume(9)] {
            assert_eq!(KeeperArgs::parse(args.to_argv()), Ok(args));
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        let parse = |words: &[&str]| KeeperArgs::parse(words.iter().map(Into::into)).unwrap_err().to_string();
        assert!(parse(&["--unit", "relative", "--mux", "m"]).contains("absolute"));
        assert!(parse(&["--unit", "/u"]).contains("--mux"));
        assert!(parse(&["--generation", "x"]).contains("--generation"));
        assert!(parse(&["--what", "x"]).contains("--what"));
        assert!(parse(&["--unit"]).contains("needs a value"));
    }
}
