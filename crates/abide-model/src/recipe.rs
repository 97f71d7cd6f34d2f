//! What is needed to start an instance again exactly as it was: captured at first launch, replayed ever after.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::choice::{Isolation, Place, Substrate};
use crate::container::ContainerRecipe;
use crate::differences::Configured;
use crate::instance::Extra;
use crate::words;

/// Where the value of an environment variable comes from. The value itself is resolved at every start and is never
/// stored: a manifest must not become a store of secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvRef {
    /// A 1Password item: `op://vault/item/field`.
    OnePassword(String),
    /// A variable of the operator's environment: `env:NAME`.
    Env(String),
    /// The contents of a file: `file:/path`.
    File(PathBuf),
    /// What a command prints: `cmd:pass show 'my token'`. Split by the rules of [`words`]; there is no shell.
    Command(Vec<String>),
    /// The text itself, for what is no secret.
    Plain(String),
}

/// A reference that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}; use op://vault/item/field, env:NAME, file:/absolute/path, cmd:program args, or a plain value")]
pub struct InvalidEnvRef(&'static str);

impl FromStr for EnvRef {
    type Err = InvalidEnvRef;

    fn from_str(text: &str) -> Result<Self, InvalidEnvRef> {
        if text.contains('\0') {
            return Err(InvalidEnvRef("a value cannot hold a NUL"));
        }
        if let Some(rest) = text.strip_prefix("op://") {
            let parts: Vec<_> = rest.split('/').collect();
            return match parts.len() >= 3 && parts.iter().all(|p| !p.is_empty()) {
                true => Ok(Self::OnePassword(text.to_owned())),
                false => Err(InvalidEnvRef("an op:// reference names a vault, an item and a field")),
            };
        }
        if let Some(name) = text.strip_prefix("env:") {
            return match is_env_name(name) {
                true => Ok(Self::Env(name.to_owned())),
                false => Err(InvalidEnvRef("env: needs the name of a variable")),
            };
        }
        if let Some(path) = text.strip_prefix("file:") {
            return match path.starts_with('/') || path.starts_with("~/") {
                true => Ok(Self::File(path.into())),
                false => Err(InvalidEnvRef("file: needs an absolute path")),
            };
        }
        if let Some(line) = text.strip_prefix("cmd:") {
            let argv = words::split(line).map_err(InvalidEnvRef)?;
            return match argv.is_empty() {
                true => Err(InvalidEnvRef("cmd: needs a program")),
                false => Ok(Self::Command(argv)),
            };
        }
        Ok(Self::Plain(text.to_owned()))
    }
}

/// Whether `name` can be the name of an environment variable.
pub fn is_env_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|c| c.is_ascii_alphabetic() || c == b'_')
        && bytes.all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

impl fmt::Display for EnvRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnePassword(text) | Self::Plain(text) => f.write_str(text),
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Command(argv) => write!(f, "cmd:{}", words::join(argv)),
        }
    }
}

crate::text::serde_as_text!(EnvRef);

/// A directory given to an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub source: PathBuf,
    /// Where the instance sees it.
    pub target: PathBuf,
    /// How it is given.
    pub isolation: Isolation,
    /// Whether the instance may only read it.
    #[serde(default)]
    pub read_only: bool,
    /// Files that git ignores but the work needs, carried over when the mount is materialised.
    #[serde(default)]
    pub copy: Vec<String>,
    /// What its tree is called in the instance directory, where one was materialised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// What the tree was to begin at; the source's HEAD where nothing was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The branch the tree was made on, or is to be made on; none where its HEAD was detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Everything a start needs, as it was at the first one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// Where the instance lives.
    pub place: Place,
    /// What holds its sessions.
    #[serde(default)]
    pub substrate: Substrate,
    /// The directory sessions start in.
    pub cwd: PathBuf,
    /// What its container is made from, where it lives in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerRecipe>,
    /// The directories it is given.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// The command that is run once its directories are made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// Variables and where their values come from.
    #[serde(default)]
    pub env: BTreeMap<String, EnvRef>,
    /// What the configuration alone said at the launch, so that a resume can show what has changed in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<Configured>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Recipe {
    /// An instance on the host in `cwd`, sharing nothing but the host itself.
    pub fn on_host(cwd: PathBuf) -> Self {
        Self { cwd, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_parsed_and_written_back() {
        for (text, expected) in [
            ("op://dev/api/token", EnvRef::OnePassword("op://dev/api/token".into())),
            ("env:GH_TOKEN", EnvRef::Env("GH_TOKEN".into())),
            ("file:/run/secret", EnvRef::File("/run/secret".into())),
            ("cmd:pass show x", EnvRef::Command(vec!["pass".into(), "show".into(), "x".into()])),
            ("cmd:sh -c 'echo x'", EnvRef::Command(vec!["sh".into(), "-c".into(), "echo x".into()])),
            ("production", EnvRef::Plain("production".into())),
            ("", EnvRef::Plain(String::new())),
        ] {
            assert_eq!(text.parse::<EnvRef>().unwrap(), expected);
            assert_eq!(expected.to_string(), text);
        }
    }

    #[test]
    fn references_that_cannot_be_meant_are_refused() {
        for text in [
            "op://", "op://vault", "op://a//c", "env:", "env:1X", "env:A B", "file:relative", "cmd:",
            "cmd:  ", "cmd:sh 'x", "a\0b",
        ] {
            assert!(text.parse::<EnvRef>().is_err(), "{text:?}");
        }
    }
}
