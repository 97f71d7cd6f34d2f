//! Why a unit can not be read.

use abide_model::InstanceId;
use abide_model::instance::MANIFEST_VERSION;
use rustix::fs::FileType;

/// What is wrong with a unit, precisely enough to repair it by hand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The unit is a link to somewhere else.
    #[error("it is a symbolic link")]
    Link,
    /// The unit is a file or a device.
    #[error("it is not a directory")]
    NotADirectory,
    /// Something in the directory of units that is not called like one.
    #[error("its name is not an instance id")]
    NotAnId,
    /// The unit has no manifest.
    #[error("it holds no instance.json")]
    Missing,
    /// A file of the unit is something other than a file.
    #[error("its {file} is {kind}")]
    WrongKind {
        /// Which file.
        file: &'static str,
        /// What it is instead.
        kind: &'static str,
    },
    /// The manifest is empty.
    #[error("instance.json is empty")]
    Empty,
    /// The manifest is larger than any that abide writes.
    #[error("instance.json is larger than 4 MiB")]
    TooLarge,
    /// The manifest ends in the middle.
    #[error("instance.json is torn: it ends in the middle, at line {line}, column {column}")]
    Torn {
        /// Where it ends.
        line: usize,
        /// Where it ends.
        column: usize,
    },
    /// The manifest is not JSON.
    #[error("instance.json is not JSON: {0}")]
    NotJson(String),
    /// A field holds what it can not hold.
    #[error("field `{field}` of instance.json: {problem}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The document as a whole is not a manifest.
    #[error("instance.json is not a manifest: {0}")]
    Shape(String),
    /// A newer abide wrote the manifest.
    #[error(
        "written by a newer abide (manifest version {0}; this one knows {MANIFEST_VERSION}): upgrade abide"
    )]
    Newer(u64),
    /// The manifest belongs to another unit.
    #[error("instance.json says that it is {0}, which is not what the directory is called")]
    WrongId(InstanceId),
    /// The system does not let us read it.
    #[error("{file} can not be read: {problem}")]
    Unreadable {
        /// Which file.
        file: &'static str,
        /// What the system says.
        problem: String,
    },
}

impl Damage {
    /// The damage there is if `file` of a unit is of kind `found`, or `None` if that is as it should be.
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
        Some(Self::WrongKind { file, kind })
    }
}
