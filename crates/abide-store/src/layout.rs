//! Where everything is: the one place that spells a path under the store's home.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use abide_model::{InstanceId, Timestamp};

pub(crate) const INSTANCES: &str = "instances";
pub(crate) const TRASH: &str = "trash";
pub(crate) const STAGING: &str = "staging";
pub(crate) const LOG: &str = "log";
pub(crate) const OUTCOMES: &str = "outcomes.jsonl";

pub(crate) const MANIFEST: &str = "instance.json";
pub(crate) const LOCK: &str = "lock";
pub(crate) const RUN: &str = "run";
pub(crate) const STATE: &str = "state";
pub(crate) const JOURNAL: &str = "journal";

/// How much room a trashed instance directory takes. Nothing in the trash changes, so it is counted once.
pub(crate) const TRASH_SIZE: &str = "trash-size";

/// Says that a removed instance directory held nothing that exists nowhere else.
pub(crate) const NO_WORK: &str = "no-work";

/// What a trashed instance directory is called while it is being deleted, so that half of one never looks restorable.
pub(crate) const PURGING: &str = ".purging-";

/// The paths of a store. Asking for one touches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePaths {
    home: PathBuf,
}

impl StorePaths {
    /// The layout of the store at `home`.
    pub fn new(home: PathBuf) -> Self {
        Self { home }
    }

    /// The store's own directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Where the instance directories are.
    pub fn instances(&self) -> PathBuf {
        self.home.join(INSTANCES)
    }

    /// Where removed instance directories are.
    pub fn trash(&self) -> PathBuf {
        self.home.join(TRASH)
    }

    /// Where files and instance directories are made before they are moved into place.
    pub fn staging(&self) -> PathBuf {
        self.home.join(STAGING)
    }

    /// Where answers are kept that can be had again.
    pub fn cache(&self) -> PathBuf {
        self.home.join("cache")
    }

    pub fn log_dir(&self) -> PathBuf {
        self.home.join(LOG)
    }

    pub fn log_file(&self) -> PathBuf {
        self.log_dir().join("abide.log")
    }

    /// How instances ended, one JSON object per line.
    pub fn outcomes_file(&self) -> PathBuf {
        self.log_dir().join(OUTCOMES)
    }

    /// One instance directory. What a capsule puts there is spelled by the capsule.
    pub fn instance_dir(&self, id: InstanceId) -> PathBuf {
        self.instances().join(id.as_str())
    }

    /// One instance directory in the trash.
    pub fn trashed(&self, name: &TrashName) -> PathBuf {
        self.trash().join(name.to_string())
    }
}

/// What an instance directory is called in the trash: `<id>-<when>`, for example `k7p9m2xq-20261115T060000123Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrashName {
    /// When it was removed.
    pub when: Timestamp,
    /// Whose instance directory it is.
    pub id: InstanceId,
}

/// A word that is not the name of something in the trash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name in the trash like k7p9m2xq-20261115T060000123Z; `abide trash list` shows them")]
pub struct InvalidTrashName(pub String);

/// The last moment whose spelling has a year of four digits, which is all that a name has room for.
const LAST_MOMENT: Timestamp = Timestamp(253_402_300_799_999);

impl TrashName {
    pub(crate) fn new(id: InstanceId, when: Timestamp) -> Self {
        Self { id, when: when.clamp(Timestamp(0), LAST_MOMENT) }
    }
}

impl fmt::Display for TrashName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = self.when.to_string().replace(['-', ':', '.'], "");
        f.pad(&format!("{}-{when}", self.id))
    }
}

impl FromStr for TrashName {
    type Err = InvalidTrashName;

    fn from_str(word: &str) -> Result<Self, InvalidTrashName> {
        let parse = || -> Option<Self> {
            let (id, when) = word.split_once('-')?;
            if when.len() != 19 || !when.is_ascii() {
                return None;
            }
            let part = |from: usize, to: usize| &when[from..to];
            let spelled = format!(
                "{}-{}-{}:{}:{}.{}",
                part(0, 4),
                part(4, 6),
                part(6, 11),
                part(11, 13),
                part(13, 15),
                part(15, 19)
            );
            Some(Self { id: id.parse().ok()?, when: spelled.parse().ok()? })
        };
        // Only the canonical spelling: a second one would be a second name for the same thing.
        parse()
            .filter(|name| name.to_string() == word)
            .ok_or_else(|| InvalidTrashName(word.chars().take(80).collect()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_in_the_trash_says_whose_and_when() {
        let name = TrashName::new("k7p9m2xq".parse().unwrap(), Timestamp(1_794_722_400_123));
        assert_eq!(name.to_string(), "k7p9m2xq-20261115T060000123Z");
        assert_eq!(name.to_string().parse::<TrashName>().unwrap(), name);
    }

    #[test]
    fn other_words_are_not_names_in_the_trash() {
        for word in [
            "", "k7p9m2xq", "k7p9m2xq-", "K7P9M2XQ-20261115T060000123Z", "k7p9m2xq-20261315T060000123Z",
            "k7p9m2xq-20261115T060000123z", "../k7p9m2xq-20261115T060000123Z",
            ".purging-k7p9m2xq-20261115T060000123Z",
        ] {
            assert!(word.parse::<TrashName>().is_err(), "{word}");
        }
    }

    proptest! {
        #[test]
        fn every_moment_makes_a_name_that_reads_back(bits in 0u64..1 << 40, when in any::<i64>()) {
            let name = TrashName::new(InstanceId::from_bits(bits), Timestamp(when));
            prop_assert_eq!(name.to_string().parse::<TrashName>().unwrap(), name);
        }

        #[test]
        fn no_word_makes_the_parser_panic(word in ".*") {
            let _ = word.parse::<TrashName>();
        }
    }
}
