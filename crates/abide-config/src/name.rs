//! The names of workspaces, roles and agents.
//!
//! A name becomes a file name and part of a container's name, so its rule is checked where the name enters and
//! never again: a [`Name`] may be joined to a path.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use crate::text::printable;

/// The longest name, in bytes: what a DNS label can hold.
const LONGEST: usize = 63;

/// What a name may look like, in the words used by every message about one.
pub(crate) const ALLOWED: &str =
    "up to 63 of a-z 0-9 . _ -, beginning with a letter or digit, without `..`, such as web-api";

/// The name of a workspace, a role or an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Why a word cannot be a [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{found}\" cannot be a name; allowed: {ALLOWED}")]
pub struct BadName {
    /// The word that was found, with control characters escaped.
    pub found: String,
}

impl Name {
    /// The role, built in, of a scope that names none.
    pub fn default_role() -> Self {
        Self("default".to_owned())
    }

    /// Whether it is the role, built in, whose image is what the project's `.devcontainer` describes.
    pub fn is_devcontainer_role(&self) -> bool {
        self.0 == "devcontainer"
    }

    /// The name as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(word: &str) -> Result<Self, BadName> {
        let starts_well = word.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let spelled_well =
            word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
        if starts_well && spelled_well && word.len() <= LONGEST && !word.contains("..") {
            Ok(Self(word.to_owned()))
        } else {
            Err(BadName { found: printable(word) })
        }
    }
}

abide_model::serde_as_text!(Name);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_leave_its_directory_is_refused() {
        for word in
            ["", ".", "..", "a..b", "../x", "a/b", "/a", ".hidden", "-x", "Web", "a b", "a\n", "a\0", "é"]
        {
            assert!(word.parse::<Name>().is_err(), "{word:?}");
        }
        assert!("a".repeat(64).parse::<Name>().is_err());
    }

    #[test]
    fn an_ordinary_name_is_accepted() {
        for word in ["a", "0", "web-api", "web.api_2", "rust-1.95"] {
            assert_eq!(word.parse::<Name>().unwrap().as_str(), word);
        }
        assert!("a".repeat(63).parse::<Name>().is_ok());
    }
}
