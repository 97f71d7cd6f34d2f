//! The small closed sets an operator chooses from, each spelled in one place.
//!
//! Config, manifests, flags and screens all use these spellings; `choices!` keeps a variant, its spelling and its
//! one-line meaning together so that help texts and error messages can be made from them.

use crate::activity::Doing;

/// Why a word was not accepted as one of a [`Choice`]'s spellings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a {kind}; allowed: {}", allowed.join(", "))]
pub struct UnknownChoice {
    /// What was being named, e.g. `policy`.
    pub kind: &'static str,
    /// The word that was found.
    pub found: String,
    /// Every spelling that would have been accepted.
    pub allowed: &'static [&'static str],
}

/// A closed set of named options.
pub trait Choice: Copy + Sized + 'static {
    /// What the set is called in messages.
    const KIND: &'static str;
    /// Every spelling, in the order they should be offered.
    const SPELLINGS: &'static [&'static str];
    /// Every option with its one-line meaning.
    const ALL: &'static [(Self, &'static str)];
    /// The spelling used in files and flags.
    fn as_str(self) -> &'static str;
    /// Its one-line meaning.
    fn meaning(self) -> &'static str
    where
        Self: PartialEq,
    {
        Self::ALL.iter().find(|(option, _)| *option == self).map_or("", |(_, meaning)| meaning)
    }
}

macro_rules! choices {
    ($(#[$meta:meta])* $name:ident, $kind:literal { $($(#[$vmeta:meta])* $variant:ident = $word:literal : $doc:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $(#[doc = $doc] $(#[$vmeta])* #[serde(rename = $word)] $variant),+
        }

        impl $crate::choice::Choice for $name {
            const KIND: &'static str = $kind;
            const SPELLINGS: &'static [&'static str] = &[$($word),+];
            const ALL: &'static [(Self, &'static str)] = &[$((Self::$variant, $doc)),+];
            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::choice::UnknownChoice;
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::choice::UnknownChoice {
                        kind: <Self as $crate::choice::Choice>::KIND,
                        found: word.to_owned(),
                        allowed: <Self as $crate::choice::Choice>::SPELLINGS,
                    }),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad($crate::choice::Choice::as_str(*self))
            }
        }
    };
}
pub(crate) use choices;

choices! {
    /// What happens to an instance when its last session ends.
    #[derive(Default)]
    Policy, "policy" {
        #[default]
        Ask = "ask": "ask if anything would be at risk, else clean up",
        Keep = "keep": "always keep the instance for a later resume",
        Clean = "clean": "always clean up without asking",
    }
}

choices! {
    /// How a directory is given to an instance.
    #[derive(Default)]
    Isolation, "isolation mode" {
        #[default]
        Shared = "shared": "the host's own directory",
        Worktree = "worktree": "a git worktree of it, on its own branch",
        Clone = "clone": "a local git clone of it",
    }
}

choices! {
    /// Where an instance lives.
    #[derive(Default)]
    Place, "place" {
        #[default]
        Host = "host": "on this machine, as your user",
        Docker = "docker": "in its own container",
    }
}

choices! {
    /// What holds the sessions of an instance on the host.
    #[derive(Default)]
    Substrate, "substrate" {
        #[default]
        Capsule = "capsule": "abide's own supervisor",
        Tmux = "tmux": "a separate tmux server",
    }
}

choices! {
    /// How the supervisor of an instance is placed under the systemd user manager.
    #[derive(Default)]
    UnitMode, "unit mode" {
        #[default]
        Auto = "auto": "a user unit where sessions need one to survive a logout",
        Off = "off": "never a unit",
        Scope = "scope": "a transient scope",
        Service = "service": "the same as scope",
    }
}

choices! {
    /// When sessions keep the machine from going to sleep.
    #[derive(Default)]
    KeepAwake, "choice of when to keep awake" {
        #[default]
        Working = "working": "while a session works",
        Running = "running": "while a session runs, even if it is idle",
        Off = "off": "never",
    }
}

impl KeepAwake {
    /// Whether sessions that do this are a reason not to let the machine go to sleep.
    pub fn wants(self, doing: impl IntoIterator<Item = Doing>) -> bool {
        let is_reason = |doing: Doing| match self {
            Self::Working => doing == Doing::Working,
            Self::Running => doing != Doing::Exited,
            Self::Off => false,
        };
        doing.into_iter().any(is_reason)
    }
}

choices! {
    /// Whether the operator's terminal shows any colour.
    #[derive(Default)]
    TrueColor, "choice of true colours" {
        #[default]
        Auto = "auto": "if the terminal or its environment reports support",
        On = "on": "yes, even if no support is reported, as over ssh",
        Off = "off": "no, use the nearest colour that the terminal has",
    }
}

choices! {
    /// Where the status bar is drawn.
    #[derive(Default)]
    StatusBar, "status bar position" {
        #[default]
        Bottom = "bottom": "on the last line",
        Top = "top": "on the first line",
        Off = "off": "not at all",
    }
}

choices! {
    /// Whether a program in a session may do something to the operator's terminal.
    #[derive(Default)]
    Permission, "permission" {
        #[default]
        Deny = "deny": "ignore the request",
        Allow = "allow": "pass it on",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_kept_awake_for_what_was_chosen() {
        use Doing::{Exited, Idle, NeedsInput, Unknown, Working};
        let resting = [Idle, NeedsInput, Unknown];
        assert!(KeepAwake::Working.wants([Idle, Working]));
        assert!(!KeepAwake::Working.wants(resting) && !KeepAwake::Working.wants([Exited]));
        assert!(KeepAwake::Running.wants(resting) && !KeepAwake::Running.wants([Exited]));
        assert!(!KeepAwake::Off.wants([Working]) && !KeepAwake::Running.wants([]));
    }
}
