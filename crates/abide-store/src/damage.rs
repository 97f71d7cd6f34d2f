//! Why an instance directory cannot be read.

use std::borrow::Cow;

use rustix::fs::FileType;

/// What is wrong with an instance directory, in words that are precise enough to repair it by hand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damage(Cow<'static, str>);

impl Damage {
    pub(crate) const LINK: Self = Self(Cow::Borrowed("it is a symbolic link"));
    pub(crate) const NOT_A_DIRECTORY: Self = Self(Cow::Borrowed("it is not a directory"));
    pub(crate) const NOT_AN_ID: Self = Self(Cow::Borrowed("its name is not an instance id"));
    pub(crate) const MISSING: Self = Self(Cow::Borrowed("it holds no instance.json"));

    pub(crate) fn new(problem: impl Into<Cow<'static, str>>) -> Self {
        Self(problem.into())
    }

    /// The system does not let us read `file`.
    pub(crate) fn unreadable(file: &str, errno: rustix::io::Errno) -> Self {
        Self::new(format!("{file} cannot be read: {}", std::io::Error::from(errno)))
    }

    /// The damage there is if `file` of an instance directory is of kind `found`, or `None` if that is as it should be.
    pub(crate) fn unless_regular(file: &'static str, found: FileType) -> Option<Self> {
        let kind = match found {
            FileType::RegularFile => return None,
            FileType::Directory => "a directory",
            FileType::Symlink => "a symbolic link",
            FileType::Fifo => "a named pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Unknown => "of an unknown kind",
        };
        Some(Self::new(format!("its {file} is {kind}")))
    }
}
