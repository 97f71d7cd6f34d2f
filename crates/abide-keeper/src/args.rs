//! The command line of a keeper, which says what it serves.

use std::ffi::OsString;
use std::os::fd::RawFd;

use abide_wire::capsule_part::CapsulePart;
use abide_wire::os_text::OsText;
use serde::{Deserialize, Serialize};

/// The program of the keeper itself, whatever has become of the file that it was started from. As the first word of
/// [`Config::mux`] and [`Config::on_exit`] it keeps a mux and a finaliser of another version from being started, and lets
/// them be started when the file is gone.
pub const OWN_IMAGE: &str = "/proc/self/exe";

/// What a keeper serves, and how. Everything here is visible in the process list: no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    #[serde(alias = "unit")]
    pub instance_dir: OsText,
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
    /// How long a keeper that no launcher watches waits for its first session, in milliseconds; for ever where unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_session_ms: Option<u64>,
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
    pub fn new(instance_dir: impl Into<OsText>, generation: u64, mux: Vec<OsText>) -> Self {
        Self {
            instance_dir: instance_dir.into(),
            generation,
            mux,
            on_exit: Vec::new(),
            grace_ms: default_grace(),
            mux_pause_ms: default_mux_pause(),
            first_session_ms: None,
            options: serde_json::Value::Null,
        }
    }

    /// Has a mux and a finaliser that are abide be started from the keeper's own image. Earlier versions named a file.
    pub(super) fn use_own_image(&mut self) {
        for argv in [&mut self.mux, &mut self.on_exit] {
            let words: Vec<&[u8]> = argv.iter().map(OsText::as_bytes).collect();
            if CapsulePart::is_any(&words) {
                argv[0] = OWN_IMAGE.into();
            }
        }
    }
}

/// How the keeper begins.
#[derive(Debug, Clone, PartialEq)]
pub enum KeeperArgs {
    /// As a service (PID 1 of a container, a systemd unit): sessions are asked for over the socket.
    Serve(Config),
    /// By [`Launching`](crate::Launching): standard input is a link over which the first session is asked for.
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
        let (name, value) = match self {
            Self::Serve(config) => ("--config", serde_json::json!(config).to_string()),
            Self::Launched(config) => ("--launched", serde_json::json!(config).to_string()),
            Self::Resume(fd) => ("--resume-fd", fd.to_string()),
        };
        vec![name.into(), value.into()]
    }

    /// Reads the arguments after `capsule keeper`.
    pub fn parse(argv: impl IntoIterator<Item = OsString>) -> Result<Self, ArgsError> {
        let argv: Vec<_> = argv.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let [name, value] = &argv[..] else { return Err(ArgsError("one option and its value".to_owned())) };
        let config = || serde_json::from_str(value).map_err(|err| ArgsError(format!("{name}: {err}")));
        match name.as_str() {
            "--config" => config().map(Self::Serve),
            "--config-file" => {
                let read = std::fs::read(value).and_then(|text| Ok(serde_json::from_slice(&text)?));
                read.map(Self::Serve).map_err(|err| ArgsError(format!("{value}: {err}")))
            }
            "--launched" => config().map(Self::Launched),
            "--resume-fd" => {
                value.parse().map(Self::Resume).map_err(|err| ArgsError(format!("{name}: {err}")))
            }
            _ => Err(ArgsError(format!("unknown option {name}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_command_line_is_read_back_as_it_was_written() {
        let mut config = Config::new("/home/a b/.abide/x", 7, vec!["/bin/abide".into(), "--mux".into()]);
        config.on_exit = vec!["--launched".into(), "".into(), std::ffi::OsStr::from_bytes(b"\xff").into()];
        config.options = serde_json::json!({"scrollback": 10});
        for args in [KeeperArgs::Serve(config.clone()), KeeperArgs::Launched(config), KeeperArgs::Resume(9)] {
            assert_eq!(KeeperArgs::parse(args.to_argv()), Ok(args));
        }
    }

    #[test]
    fn what_is_abide_is_started_from_the_keepers_own_image_and_nothing_else_is() {
        let mut config = Config::new("/u", 7, vec!["/old/abide".into(), "capsule".into(), "mux".into()]);
        config.on_exit = vec!["/bin/sh".into(), "-c".into(), "true".into()];
        config.use_own_image();
        assert_eq!(
            (config.mux[0].as_os_str(), config.on_exit[0].as_os_str()),
            (OWN_IMAGE.as_ref(), "/bin/sh".as_ref())
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let parse = |words: &[&str]| KeeperArgs::parse(words.iter().map(Into::into)).unwrap_err().to_string();
        assert!(parse(&["--config", r#"{"instance_dir": "/u", "generation": 1}"#]).contains("`mux`"));
        assert!(parse(&["--resume-fd", "x"]).contains("--resume-fd"));
        assert!(parse(&["--what", "x"]).contains("--what"));
        assert!(parse(&["--config"]).contains("its value"));
    }
}
