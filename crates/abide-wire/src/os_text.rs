//! Operating-system strings in JSON.
//!
//! Arguments, environment values and paths are bytes, not text. JSON has no bytes, and refusing a path because it
//! is not UTF-8 would refuse some home directories; so such a value is written as a string where it is one,
//! and as an array of numbers where it is not.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An [`OsString`] that survives JSON whatever bytes it holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OsText(OsString);

impl OsText {
    /// The value as the system calls take it.
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }

    /// The value as a path.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl AsRef<OsStr> for OsText {
    fn as_ref(&self) -> &OsStr {
        &self.0
    }
}

impl<T: Into<OsString>> From<T> for OsText {
    fn from(value: T) -> Self {
        Self(value.into())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Wire<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes(Vec<u8>),
}

impl Serialize for OsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => Wire::Text(text.into()),
            None => Wire::Bytes(self.0.as_bytes().to_vec()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Wire::deserialize(deserializer)? {
            Wire::Text(text) => text.into_owned().into(),
            Wire::Bytes(bytes) => OsString::from_vec(bytes),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_readable_and_other_bytes_survive() {
        let plain = OsText::from("héllo");
        assert_eq!(serde_json::to_string(&plain).unwrap(), "\"héllo\"");
        let odd = OsText::from(OsString::from_vec(vec![b'/', 0xff, 0xfe]));
        let json = serde_json::to_string(&odd).unwrap();
        assert_eq!(json, "[47,255,254]");
        assert_eq!(serde_json::from_str::<OsText>(&json).unwrap(), odd);
    }
}
