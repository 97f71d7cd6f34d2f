//! What single values may be: one rule for each type of setting.
//!
//! A rule says how its value is written, what is allowed in words, and how the text becomes a typed value. Rules never
//! look at the file system: a file must mean the same wherever it is read.

mod agent;

use std::marker::PhantomData;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use abide_model::program::AGENTS;
use abide_model::recipe::is_env_name;
use abide_model::{Choice, EnvRef, PrefixKey};
use toml_edit::Value;

use crate::name::{self, Name};
use crate::text::a;
use crate::value::{ByteSize, JournalLimit};

pub(crate) use agent::{Argv, IdArgs, IdArgv, Shown, TranscriptPattern};

/// How values of one type are written and explained.
pub(crate) struct Spelling {
    /// What a value is called: "not a `noun`".
    pub(crate) noun: &'static str,
    pub(crate) written: Written,
    /// What is allowed, in words.
    pub(crate) allowed: fn() -> String,
    /// Every allowed word, where there are few.
    pub(crate) words: &'static [&'static str],
    /// Whether a value may be a secret and must not be repeated in messages.
    pub(crate) secret: bool,
}

/// The TOML type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Text,
    Integer,
    Boolean,
    List,
}

impl Spelling {
    const fn text(noun: &'static str, allowed: fn() -> String) -> Self {
        Self { noun, written: Written::Text, allowed, words: &[], secret: false }
    }

    const fn list(noun: &'static str, allowed: fn() -> String) -> Self {
        Self { noun, written: Written::List, allowed, words: &[], secret: false }
    }
}

/// What is wrong with a value.
#[derive(Default)]
pub(crate) struct Wrong {
    /// The element of the list that is wrong, rather than the whole value.
    pub(crate) index: Option<usize>,
    pub(crate) problem: String,
    /// What is allowed, where the rule's own words do not fit.
    pub(crate) allowed: Option<String>,
    pub(crate) nearest: Option<String>,
}

impl Wrong {
    fn because(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), ..Self::default() }
    }

    fn not_a(noun: &str) -> Self {
        Self::because(format!("not {}", a(noun)))
    }
}

/// The rule of one type of value.
pub(crate) trait Leaf {
    type Value;
    const SPELLING: Spelling;

    fn parse(value: &Value, home: &Path) -> Result<Self::Value, Vec<Wrong>>;
}

/// The rule of keys that the operator chooses.
pub(crate) trait KeyRule {
    type Key: Ord;
    const NOUN: &'static str;
    const ALLOWED: &'static str;
    /// How the key stands in patterns.
    const PLACEHOLDER: &'static str;

    fn parse(key: &str) -> Option<Self::Key>;
}

/// `word` from a command line as the TOML value that a setting of this spelling wants.
///
/// A word of the wrong type becomes a string, so that the rule itself refuses it in its own words.
pub(crate) fn from_word(spelling: &Spelling, word: &str) -> Value {
    let typed = match spelling.written {
        Written::Text => None,
        Written::Integer => word.parse::<i64>().ok().map(Value::from),
        Written::Boolean => word.parse::<bool>().ok().map(Value::from),
        Written::List => word.parse::<Value>().ok().filter(Value::is_array),
    };
    typed.map(|value| value.decorated("", "")).unwrap_or_else(|| Value::from(word))
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

fn text<'v>(value: &'v Value, noun: &str) -> Result<&'v str, Vec<Wrong>> {
    let text = value.as_str().ok_or_else(|| vec![Wrong::not_a(noun)])?;
    if text.contains(char::is_control) {
        return Err(vec![Wrong {
            allowed: Some("text on one line, without control characters".to_owned()),
            ..Wrong::because("holds a line break or another control character")
        }]);
    }
    Ok(text)
}

fn word<T: FromStr>(value: &Value, noun: &str) -> Result<T, Vec<Wrong>> {
    text(value, noun)?.parse().map_err(|_| vec![Wrong::not_a(noun)])
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Leaf for Flag {
    type Value = bool;
    const SPELLING: Spelling = Spelling {
        noun: "switch",
        written: Written::Boolean,
        allowed: || "true, false".to_owned(),
        words: &["true", "false"],
        secret: false,
    };

    fn parse(value: &Value, _: &Path) -> Result<bool, Vec<Wrong>> {
        value.as_bool().ok_or_else(|| vec![Wrong::not_a(Self::SPELLING.noun)])
    }
}

/// A whole number from 0 to `MAX`.
pub(crate) struct Count<const MAX: u32>;

impl<const MAX: u32> Leaf for Count<MAX> {
    type Value = u32;
    const SPELLING: Spelling = Spelling {
        noun: "number in range",
        written: Written::Integer,
        allowed: || format!("a whole number from 0 to {MAX}"),
        words: &[],
        secret: false,
    };

    fn parse(value: &Value, _: &Path) -> Result<u32, Vec<Wrong>> {
        let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
        number.filter(|number| *number <= MAX).ok_or_else(|| vec![Wrong::not_a(Self::SPELLING.noun)])
    }
}

/// One word of a closed set.
pub(crate) struct OneOf<C>(PhantomData<C>);

impl<C: Choice + FromStr> Leaf for OneOf<C> {
    type Value = C;
    const SPELLING: Spelling = Spelling {
        noun: C::KIND,
        written: Written::Text,
        allowed: || C::SPELLINGS.join(", "),
        words: C::SPELLINGS,
        secret: false,
    };

    fn parse(value: &Value, _: &Path) -> Result<C, Vec<Wrong>> {
        word(value, C::KIND)
    }
}

/// Rules whose values know how to parse and print themselves.
macro_rules! spelled {
    ($($(#[$meta:meta])* $rule:ident: $value:ty, $noun:literal, $allowed:expr $(, $key:ident = $given:expr)?;)+) => { $(
        $(#[$meta])*
        pub(crate) struct $rule;

        impl Leaf for $rule {
            type Value = $value;
            const SPELLING: Spelling =
                Spelling { $($key: $given,)? ..Spelling::text($noun, || $allowed.to_string()) };

            fn parse(value: &Value, _: &Path) -> Result<$value, Vec<Wrong>> {
                word(value, $noun)
            }
        }
    )+ };
}

spelled! {
    /// A number of bytes.
    Size: ByteSize, "size", "a whole number and one of B, KiB, MiB, GiB, TiB, such as 8MiB";
    /// The size of the journal, or `off`.
    JournalSize: JournalLimit, "journal size",
        format!("a size from {} to {} such as 8MiB, or off", JournalLimit::SMALLEST, JournalLimit::LARGEST);
    /// The prefix key.
    Prefix: PrefixKey, "prefix key", PrefixKey::ALLOWED;
    /// The name of a role or an agent.
    Named: Name, "name", name::ALLOWED;
    /// Where the value of a variable comes from.
    Reference: EnvRef, "reference",
        "op://vault/item/field, env:NAME, file:/path, cmd:program args, or a plain value", secret = true;
}

/// Rules for text that has to pass a check.
macro_rules! checked {
    ($($(#[$meta:meta])* $rule:ident, $noun:literal, $allowed:expr, $check:expr $(, $key:ident = $given:expr)?;)+) => { $(
        $(#[$meta])*
        pub(crate) struct $rule;

        impl Leaf for $rule {
            type Value = String;
            const SPELLING: Spelling =
                Spelling { $($key: $given,)? ..Spelling::text($noun, || $allowed.to_owned()) };

            fn parse(value: &Value, _: &Path) -> Result<String, Vec<Wrong>> {
                let (text, check): (&str, fn(&str) -> bool) = (text(value, $noun)?, $check);
                if check(text) { Ok(text.to_owned()) } else { Err(vec![Wrong::not_a($noun)]) }
            }
        }
    )+ };
}

checked! {
    /// Any text on one line.
    Text, "line of text", "text in quotes", |_| true;
    /// The name of a container image. Engines get it as an argument, where a leading dash would make it an option.
    ImageName, "name of an image",
        "letters, digits and . _ - / : @, beginning with a letter or digit, such as debian:13",
        |image| {
            image.starts_with(|c: char| c.is_ascii_alphanumeric())
                && image.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/:@".contains(&b))
        };
    /// A context of docker, or a connection of podman.
    EngineContext, "name of a context", "letters, digits and . _ - +, beginning with a letter or digit", |name| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b))
    };
    /// A flag of the engine. A word of its own would be taken for the image.
    EngineFlag, "flag", "a long flag, its value after an equals sign, such as --gpus=all",
        |flag| flag.starts_with("--") && flag.len() > 2;
    /// A host that sessions may reach.
    HostName, "name of a host", "a name such as example.org, or *.example.org for all below it", |host| {
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        name.split('.').all(is_label)
    };
    /// A git repository. Git takes others for a command (`ext::`) or an option, and a password would be written to a manifest.
    GitUrl, "URL of a git repository",
        "https://, ssh://, git:// or file://, without a password, such as https://example.org/roles.git",
        |url| ["https://", "ssh://", "git://", "file://"].iter().any(|scheme| {
            let authority = url.strip_prefix(scheme).and_then(|rest| rest.split('/').next());
            authority.is_some_and(|authority| !authority.split('@').rev().skip(1).any(|user| user.contains(':')))
        });
    /// A commit, spelled out: a branch or a tag could become another one.
    Commit, "commit", "the 40 or 64 hexadecimal digits of a commit",
        |id| matches!(id.len(), 40 | 64) && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    /// A file in the directory of a role.
    FileBelow, "path below the role", "a path below the role, without `..`, such as Dockerfile", |path| {
        !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
    };
    /// The name of an agent that abide knows.
    KnownAgent, "agent that abide knows", AGENTS.join(", "), |name| AGENTS.contains(&name), words = AGENTS;
    /// The name of an environment variable, as a value.
    Variable, "variable name", EnvName::ALLOWED, is_env_name;
    /// A pattern of files below a mount's source.
    Glob, "pattern", "a pattern below the source, without `..`, such as .env*", |pattern| {
        let mut parts = Path::new(pattern).components();
        !pattern.is_empty() && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
}

/// A path of the host, absolute or below `~`, never the whole of it.
pub(crate) struct HostPath;

impl Leaf for HostPath {
    type Value = PathBuf;
    const SPELLING: Spelling = Spelling::text("path", || {
        "an absolute path or one that begins with ~/, without `..`, not /".to_owned()
    });

    fn parse(value: &Value, home: &Path) -> Result<PathBuf, Vec<Wrong>> {
        let written = text(value, Self::SPELLING.noun)?;
        let path = match written.strip_prefix('~') {
            Some("") => home.to_owned(),
            Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(written),
        };
        plain_absolute(&path).map_err(|wrong| vec![wrong])
    }
}

/// A path inside an instance.
pub(crate) struct InnerPath;

impl Leaf for InnerPath {
    type Value = PathBuf;
    const SPELLING: Spelling = Spelling::text("path", || "an absolute path without `..`, not /".to_owned());

    fn parse(value: &Value, _: &Path) -> Result<PathBuf, Vec<Wrong>> {
        let written = text(value, Self::SPELLING.noun)?;
        plain_absolute(Path::new(written)).map_err(|wrong| vec![wrong])
    }
}

/// `path` without `.` and doubled slashes, if it is absolute, stays where it says and is not the root.
fn plain_absolute(path: &Path) -> Result<PathBuf, Wrong> {
    if !path.is_absolute() {
        return Err(Wrong::because("not an absolute path"));
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(Wrong::because("has `..` in it"));
    }
    let plain: PathBuf = path.components().collect();
    if plain.parent().is_none() {
        return Err(Wrong::because("would expose the whole file system"));
    }
    Ok(plain)
}

/// A list of values of one type.
pub(crate) struct List<L>(PhantomData<L>);

impl<L: Leaf> Leaf for List<L> {
    type Value = Vec<L::Value>;
    const SPELLING: Spelling = Spelling {
        words: L::SPELLING.words,
        secret: L::SPELLING.secret,
        ..Spelling::list("list", || format!("a list, each {}", (L::SPELLING.allowed)()))
    };

    fn parse(value: &Value, home: &Path) -> Result<Self::Value, Vec<Wrong>> {
        let array = value.as_array().ok_or_else(|| vec![Wrong::not_a(Self::SPELLING.noun)])?;
        let mut values = Vec::new();
        let mut wrongs = Vec::new();
        for (index, element) in array.iter().enumerate() {
            match L::parse(element, home) {
                Ok(value) => values.push(value),
                Err(inner) => wrongs.extend(inner.into_iter().map(|wrong| Wrong {
                    index: Some(index),
                    allowed: wrong.allowed.or_else(|| Some((L::SPELLING.allowed)())),
                    ..wrong
                })),
            }
        }
        if wrongs.is_empty() { Ok(values) } else { Err(wrongs) }
    }
}

/// Keys that name an environment variable.
pub(crate) struct EnvName;

impl KeyRule for EnvName {
    type Key = String;
    const NOUN: &'static str = "variable name";
    const ALLOWED: &'static str = "letters, digits and _, not beginning with a digit";
    const PLACEHOLDER: &'static str = "<NAME>";

    fn parse(key: &str) -> Option<String> {
        is_env_name(key).then(|| key.to_owned())
    }
}

/// Keys that name an agent.
pub(crate) struct AgentName;

impl KeyRule for AgentName {
    type Key = Name;
    const NOUN: &'static str = "agent name";
    const ALLOWED: &'static str = name::ALLOWED;
    const PLACEHOLDER: &'static str = "<name>";

    fn parse(key: &str) -> Option<Name> {
        key.parse().ok()
    }
}
