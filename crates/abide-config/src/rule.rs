//! What single values may be: one rule for each type of setting.
//!
//! A rule says how its value is written, what is allowed in words, and what is wrong with a value. Rules never
//! look at the file system: a file must mean the same wherever it is read.

mod agent;

use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use abide_model::container::is_image_name;
use abide_model::program::AGENTS;
use abide_model::recipe::is_env_name;
use abide_model::{Choice, EnvRef, PrefixKey};
use toml_edit::Value;

use crate::name::{self, Name};
use crate::value::{ByteSize, JournalLimit};

pub(crate) use agent::{ARGV, ID_ARGS, ID_ARGV, SHOWN, TRANSCRIPT_PATTERN};

/// How values of one type are written and explained.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    /// What a value is called: "not a `noun`".
    pub(crate) noun: &'static str,
    pub(crate) written: Written,
    /// What is allowed, in words, where the rest does not say it.
    allowed: &'static str,
    /// Every allowed word, where there are few.
    pub(crate) words: &'static [&'static str],
    /// Whether a value may be a secret and must not be repeated in messages.
    pub(crate) secret: bool,
}

/// The TOML type of a value, and what else it has to be. What is wrong without a problem is "not a `noun`".
#[derive(Clone, Copy)]
pub(crate) enum Written {
    /// Text on one line: gives it in full, with the home directory of the operator in place of `~`.
    Text(fn(&str, &Path) -> Result<String, Wrong>),
    /// A whole number from 0 to this.
    Integer(u32),
    Boolean,
    /// A list: the rule of each element, and what is wrong with all of them together.
    List(&'static Rule, fn(&[&str]) -> Option<&'static str>),
}

/// What is wrong with a value, as far as its rule does not say it already.
#[derive(Default)]
pub(crate) struct Wrong {
    pub(crate) problem: String,
    pub(crate) allowed: Option<String>,
    pub(crate) nearest: Option<String>,
}

impl Wrong {
    pub(crate) fn because(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), ..Self::default() }
    }
}

impl Rule {
    const fn new(noun: &'static str, allowed: &'static str, written: Written) -> Self {
        Self { noun, written, allowed, words: &[], secret: false }
    }

    const fn text(
        noun: &'static str,
        allowed: &'static str,
        read: fn(&str, &Path) -> Result<String, Wrong>,
    ) -> Self {
        Self::new(noun, allowed, Written::Text(read))
    }

    /// What is allowed, in words.
    pub(crate) fn allowed(&self) -> String {
        match self.written {
            _ if !self.allowed.is_empty() => self.allowed.to_owned(),
            Written::Integer(most) => format!("a whole number from 0 to {most}"),
            Written::List(each, _) => format!("a list, each {}", each.allowed()),
            _ => self.words.join(", "),
        }
    }

    /// `word` from a command line as the TOML value that a setting of this rule wants.
    ///
    /// A word of the wrong type becomes a string, so that the rule itself refuses it in its own words.
    pub(crate) fn value_of(&self, word: &str) -> Value {
        let typed = match self.written {
            Written::Text(_) => None,
            Written::Integer(_) => word.parse::<i64>().ok().map(Value::from),
            Written::Boolean => word.parse::<bool>().ok().map(Value::from),
            Written::List(..) => word.parse::<Value>().ok().filter(Value::is_array),
        };
        typed.map(|value| value.decorated("", "")).unwrap_or_else(|| Value::from(word))
    }
}

/// The rule of keys that the operator chooses.
pub(crate) struct KeyRule {
    pub(crate) noun: &'static str,
    pub(crate) allowed: &'static str,
    /// How the key stands in patterns.
    pub(crate) placeholder: &'static str,
    pub(crate) fits: fn(&str) -> bool,
}

/// `value` as `config get` prints it and `config set` takes it.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.value().clone(),
        other => plain(other).to_string(),
    }
}

/// `value` as TOML writes it by default, whichever way the file does.
fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(text.value()),
        Value::Integer(number) => Value::from(*number.value()),
        Value::Array(array) => Value::Array(array.iter().map(plain).collect()),
        other => other.clone().decorated("", ""),
    }
}

/// `true` or `false`.
pub(crate) const FLAG: Rule = Rule { words: &["true", "false"], ..Rule::new("switch", "", Written::Boolean) };

/// A whole number from 0 to `most`.
pub(crate) const fn count(most: u32) -> Rule {
    Rule::new("number in range", "", Written::Integer(most))
}

/// One word of a closed set.
pub(crate) const fn one_of<C: Choice + FromStr>() -> Rule {
    Rule { words: C::SPELLINGS, ..Rule::text(C::KIND, "", parsed::<C>) }
}

/// A list of values of one type.
pub(crate) const fn list(each: &'static Rule) -> Rule {
    Rule::new("list", "", Written::List(each, |_| None))
}

/// Text that is a `T`.
fn parsed<T: FromStr>(text: &str, _: &Path) -> Result<String, Wrong> {
    checked(text, text.parse::<T>().is_ok())
}

fn checked(text: &str, fits: bool) -> Result<String, Wrong> {
    if fits { Ok(text.to_owned()) } else { Err(Wrong::default()) }
}

/// Whether `word` consists of letters, digits and `others`, and begins with a letter or digit.
fn is_word_of(word: &str, others: &[u8]) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || others.contains(&b))
}

/// A number of bytes.
pub(crate) const SIZE: Rule =
    Rule::text("size", "a whole number and one of B, KiB, MiB, GiB, TiB, such as 8MiB", parsed::<ByteSize>);

/// The size of the journal, or `off`.
pub(crate) const JOURNAL_SIZE: Rule =
    Rule::text("journal size", "a size from 64KiB to 1GiB such as 8MiB, or off", parsed::<JournalLimit>);

/// The prefix key.
pub(crate) const PREFIX: Rule = Rule::text("prefix key", PrefixKey::ALLOWED, parsed::<PrefixKey>);

/// The name of a role or an agent.
pub(crate) const NAME: Rule = Rule::text("name", name::ALLOWED, parsed::<Name>);

/// Where the value of a variable comes from.
pub(crate) const REFERENCE: Rule = Rule {
    secret: true,
    ..Rule::text(
        "reference",
        "op://vault/item/field, env:NAME, file:/path, cmd:program args, or a plain value",
        parsed::<EnvRef>,
    )
};

/// Any text on one line.
pub(crate) const TEXT: Rule = Rule::text("line of text", "text in quotes", |text, _| Ok(text.to_owned()));

/// The name of a container image.
pub(crate) const IMAGE_NAME: Rule = Rule::text(
    "name of an image",
    "letters, digits and . _ - / : @, beginning with a letter or digit, such as debian:13",
    |image, _| checked(image, is_image_name(image)),
);

/// A context of docker, or a connection of podman.
pub(crate) const ENGINE_CONTEXT: Rule = Rule::text(
    "name of a context",
    "letters, digits and . _ - +, beginning with a letter or digit",
    |name, _| checked(name, is_word_of(name, b"._-+")),
);

/// A flag of the engine. A word of its own would be taken for the image.
pub(crate) const ENGINE_FLAG: Rule =
    Rule::text("flag", "a long flag, its value after an equals sign, such as --gpus=all", |flag, _| {
        checked(flag, flag.starts_with("--") && flag.len() > 2)
    });

/// A host that sessions may reach.
pub(crate) const HOST_NAME: Rule = Rule::text(
    "name of a host",
    "a name such as example.org, *.example.org for all below it, an address, or a preset such as npm",
    |host, _| {
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_label =
            |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        checked(host, name.split('.').all(is_label) || host.parse::<IpAddr>().is_ok())
    },
);

/// A git repository. Git takes others for a command (`ext::`) or an option, and a password would be written to a manifest.
pub(crate) const GIT_URL: Rule = Rule::text(
    "URL of a git repository",
    "https://, ssh://, git:// or file://, without a password, such as https://example.org/roles.git",
    |url, _| {
        let is_of = |scheme: &&str| {
            let authority = url.strip_prefix(scheme).and_then(|rest| rest.split('/').next());
            authority
                .is_some_and(|authority| !authority.split('@').rev().skip(1).any(|user| user.contains(':')))
        };
        checked(url, ["https://", "ssh://", "git://", "file://"].iter().any(is_of))
    },
);

/// A commit, spelled out: a branch or a tag could become another one.
pub(crate) const COMMIT: Rule =
    Rule::text("commit", "the 40 or 64 hexadecimal digits of a commit", |id, _| {
        let digits = id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        checked(id, matches!(id.len(), 40 | 64) && digits)
    });

/// A file in the directory of a role.
pub(crate) const FILE_BELOW: Rule = Rule::text(
    "path below the role",
    "a path below the role, without `..`, such as Dockerfile",
    |path, _| {
        let below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        checked(path, !path.is_empty() && below)
    },
);

/// The name of an agent that abide knows.
pub(crate) const KNOWN_AGENT: Rule = Rule {
    words: AGENTS,
    ..Rule::text("agent that abide knows", "", |name, _| checked(name, AGENTS.contains(&name)))
};

/// The name of an environment variable, as a value.
pub(crate) const VARIABLE: Rule =
    Rule::text(ENV_NAME.noun, ENV_NAME.allowed, |name, _| checked(name, is_env_name(name)));

/// A pattern of files below a mount's source.
pub(crate) const GLOB: Rule =
    Rule::text("pattern", "a pattern below the source, without `..`, such as .env*", |pattern, _| {
        let mut parts = Path::new(pattern).components();
        let below = parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        checked(pattern, !pattern.is_empty() && below)
    });

/// A path of the host, absolute or below `~`, never the whole of it.
pub(crate) const HOST_PATH: Rule =
    Rule::text("path", "an absolute path or one that begins with ~/, without `..`, not /", host_path);

fn host_path(written: &str, home: &Path) -> Result<String, Wrong> {
    plain_absolute(&match written.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(written),
    })
}

/// A path inside an instance.
pub(crate) const INNER_PATH: Rule =
    Rule::text("path", "an absolute path without `..`, not /", |path, _| plain_absolute(Path::new(path)));

/// `path` without `.` and doubled slashes, if it is absolute, stays where it says and is not the root.
fn plain_absolute(path: &Path) -> Result<String, Wrong> {
    let plain: PathBuf = path.components().collect();
    match plain.to_str() {
        _ if !path.is_absolute() => Err(Wrong::because("not an absolute path")),
        _ if path.components().any(|part| part == Component::ParentDir) => {
            Err(Wrong::because("has `..` in it"))
        }
        _ if plain.parent().is_none() => Err(Wrong::because("would expose the whole file system")),
        None => Err(Wrong::because("is below a home directory whose name is not UTF-8")),
        Some(plain) => Ok(plain.to_owned()),
    }
}

/// Keys that name an environment variable.
pub(crate) const ENV_NAME: KeyRule = KeyRule {
    noun: "variable name",
    allowed: "letters, digits and _, not beginning with a digit",
    placeholder: "<NAME>",
    fits: is_env_name,
};

/// Keys that name an agent.
pub(crate) const AGENT_NAME: KeyRule = KeyRule {
    noun: "agent name",
    allowed: name::ALLOWED,
    placeholder: "<name>",
    fits: |key| key.parse::<Name>().is_ok(),
};
