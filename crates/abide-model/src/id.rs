//! Identifiers: what an instance, a session and a process are called.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Crockford's alphabet in lower case, because ids become DNS labels and file names.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The identity of an instance: 40 random bits as 8 characters of Crockford base32.
///
/// An id is the identity; names are for people. Two directories with the same basename never meet in an id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId([u8; InstanceId::LEN]);

impl InstanceId {
    /// Characters in an id.
    pub const LEN: usize = 8;

    /// The id made of the low 40 bits of `bits`. Uniqueness is the store's to check.
    pub fn from_bits(bits: u64) -> Self {
        let mut text = [0; Self::LEN];
        for (i, byte) in text.iter_mut().enumerate() {
            *byte = ALPHABET[(bits >> (5 * (Self::LEN - 1 - i)) & 31) as usize];
        }
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// What the operator sees: `ab-<id>`.
    pub fn display_name(&self) -> String {
        format!("ab-{self}")
    }
}

/// A word that is not an instance id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an instance id (8 characters of 0-9 a-z without i, l, o, u); `abide ls` shows the ids")]
pub struct InvalidId(pub String);

impl FromStr for InstanceId {
    type Err = InvalidId;

    /// Reads an id as people type it: any case, with or without `ab-`, `o` for 0, `i` or `l` for 1.
    fn from_str(word: &str) -> Result<Self, InvalidId> {
        let invalid = || InvalidId(word.chars().take(80).collect());
        let bare = word.strip_prefix("ab-").or_else(|| word.strip_prefix("AB-")).unwrap_or(word);
        let bytes: [u8; Self::LEN] = bare.as_bytes().try_into().map_err(|_| invalid())?;
        let mut text = [0; Self::LEN];
        for (slot, byte) in text.iter_mut().zip(bytes) {
            *slot = canonical(byte).ok_or_else(invalid)?;
        }
        Ok(Self(text))
    }
}

const fn canonical(byte: u8) -> Option<u8> {
    match byte.to_ascii_lowercase() {
        b'o' => Some(b'0'),
        b'i' | b'l' => Some(b'1'),
        b'u' => None,
        other @ (b'0'..=b'9' | b'a'..=b'z') => Some(other),
        _ => None,
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for InstanceId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for InstanceId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::text::parsed(deserializer, |word| {
            let id: Self = word.parse()?;
            // On disk only the canonical spelling counts: a second spelling of one id would be a second identity.
            if id.as_str() == word { Ok(id) } else { Err(InvalidId(word.to_owned())) }
        })
    }
}

/// A session's number within its instance, spelled `s1`, `s2`, … and never used twice there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// A word that is not a session id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a session id (s1, s2, …); `abide ls` shows the sessions")]
pub struct InvalidSessionId(pub String);

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(word: &str) -> Result<Self, InvalidSessionId> {
        let invalid = || InvalidSessionId(word.chars().take(80).collect());
        let digits = word.strip_prefix('s').ok_or_else(invalid)?;
        if digits.starts_with(['0', '+']) {
            return Err(invalid());
        }
        digits.parse().map(Self).map_err(|_| invalid())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("s{}", self.0))
    }
}

crate::text::serde_as_text!(SessionId);

/// The number of a process. 0 is the number of a process that has none here, such as one outside this container.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pid(pub u32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Pid {
    type Err = std::num::ParseIntError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        word.parse().map(Self)
    }
}

/// A process, distinguishable from a later one with the same number.
///
/// A pid alone is reused; with its start time it is unique within a boot, and the boot id makes it unique for good.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: Pid,
    /// When it started, in clock ticks since boot.
    pub start: u64,
    /// The boot it belongs to.
    pub boot: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_read_as_people_type_them_and_shown_in_one_spelling() {
        for typed in ["k7p9m2xq", "K7P9M2XQ", "ab-k7p9m2xq", "AB-K7P9M2XQ"] {
            assert_eq!(typed.parse::<InstanceId>().unwrap().as_str(), "k7p9m2xq");
        }
        assert_eq!("oil0oil0".parse::<InstanceId>().unwrap().as_str(), "01100110");
    }

    #[test]
    fn other_words_are_refused() {
        for typed in
            ["", "k7p9m2x", "k7p9m2xqq", "k7p9m2xu", "k7p9m2x/", "../../..", "ab-ab-k7", "k7p9m2x\n", "ééééé"]
        {
            assert!(typed.parse::<InstanceId>().is_err(), "{typed:?}");
        }
    }

    #[test]
    fn a_manifest_may_only_hold_the_canonical_spelling() {
        assert!(serde_json::from_str::<InstanceId>("\"k7p9m2xq\"").is_ok());
        assert!(serde_json::from_str::<InstanceId>("\"K7P9M2XQ\"").is_err());
        assert!(serde_json::from_str::<InstanceId>("\"ab-k7p9m2xq\"").is_err());
    }

    #[test]
    fn a_process_number_is_a_bare_number_in_json() {
        assert_eq!(serde_json::to_string(&Pid(42)).unwrap(), "42");
        assert_eq!(serde_json::from_str::<Pid>("42").unwrap(), Pid(42));
    }

    #[test]
    fn session_ids_have_one_spelling() {
        assert_eq!("s12".parse::<SessionId>().unwrap(), SessionId(12));
        for typed in ["", "s", "12", "s01", "s0", "s+1", "s-1", "s1 ", "S1", "s99999999999"] {
            assert!(typed.parse::<SessionId>().is_err(), "{typed:?}");
        }
    }

    proptest! {
        #[test]
        fn every_40_bit_value_has_its_own_id_and_reads_back(a in 0u64..1 << 40, b in 0u64..1 << 40) {
            let (ia, ib) = (InstanceId::from_bits(a), InstanceId::from_bits(b));
            prop_assert_eq!(ia == ib, a == b);
            prop_assert_eq!(ia.as_str().parse::<InstanceId>().unwrap(), ia);
            prop_assert_eq!(serde_json::from_str::<InstanceId>(&serde_json::to_string(&ia).unwrap()).unwrap(), ia);
        }

        #[test]
        fn no_text_makes_the_parser_panic(word in ".*") {
            let _ = word.parse::<InstanceId>();
            let _ = word.parse::<SessionId>();
        }
    }
}
