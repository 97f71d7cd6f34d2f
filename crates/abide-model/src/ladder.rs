//! The ladder that brings an instance back: what is reused before anything is made again.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::decide::Decided;

/// What a place has of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceSight {
    Running,
    /// All its processes are frozen.
    Paused,
    /// It is there, and nothing runs in it.
    Stopped(ContainerExit),
    /// It is not there.
    Gone {
        image: ImagePresence,
    },
    /// The place did not answer: nothing may be changed.
    Unknown(String),
}

/// How process 1 of a container ended, as its engine says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContainerExit {
    /// `None` where it never ran.
    pub code: Option<i32>,
    pub by_memory: MemoryKill,
}

/// Whether the kernel ended something in a container for want of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemoryKill {
    #[default]
    No,
    Yes,
}

/// Whether the engine still has the image that a container was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagePresence {
    Present,
    Missing,
}

/// What bringing an instance back begins with. Each tier reuses less than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// It runs.
    Reconnect,
    /// Its container is started again.
    Start,
    /// Its container is made again from the same image.
    Recreate,
    /// Its image is built again from the same inputs.
    Rebuild,
}

impl Tier {
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Reconnect => "reconnect",
            Self::Start => "start the container",
            Self::Recreate => "make the container again",
            Self::Rebuild => "build the image again",
        };
        write!(f, "tier {}: {text}", self.number())
    }
}

/// Decides how an instance comes back, or gives why that cannot be decided.
pub fn tier(seen: &PlaceSight) -> Result<Decided<Tier>, String> {
    match seen {
        PlaceSight::Running => Ok(Decided::new(Tier::Reconnect, "its container runs")),
        PlaceSight::Paused => Ok(Decided::new(Tier::Reconnect, "its container is paused")),
        PlaceSight::Stopped(exit) if exit.by_memory == MemoryKill::Yes => {
            Ok(Decided::new(Tier::Start, "its container ran out of memory and is still there"))
        }
        PlaceSight::Stopped(_) => Ok(Decided::new(Tier::Start, "its container is stopped")),
        PlaceSight::Gone { image: ImagePresence::Present } => {
            Ok(Decided::new(Tier::Recreate, "its container is gone, its image is there"))
        }
        PlaceSight::Gone { image: ImagePresence::Missing } => {
            Ok(Decided::new(Tier::Rebuild, "its container and its image are gone"))
        }
        PlaceSight::Unknown(why) => Err(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sight_has_its_tier_and_silence_has_none() {
        let exit = |code, by_memory| PlaceSight::Stopped(ContainerExit { code, by_memory });
        for (seen, expected) in [
            (PlaceSight::Running, Some(Tier::Reconnect)),
            (PlaceSight::Paused, Some(Tier::Reconnect)),
            (exit(None, MemoryKill::No), Some(Tier::Start)),
            (exit(Some(0), MemoryKill::No), Some(Tier::Start)),
            (exit(Some(137), MemoryKill::No), Some(Tier::Start)),
            (exit(Some(137), MemoryKill::Yes), Some(Tier::Start)),
            (PlaceSight::Gone { image: ImagePresence::Present }, Some(Tier::Recreate)),
            (PlaceSight::Gone { image: ImagePresence::Missing }, Some(Tier::Rebuild)),
            (PlaceSight::Unknown("no answer".into()), None),
        ] {
            assert_eq!(tier(&seen).ok().map(|decided| decided.decision), expected, "{seen:?}");
        }
    }
}
