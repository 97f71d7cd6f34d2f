//! What agents say when they cannot go on.

/// Why an agent that ended could not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fatal {
    /// It does not know the conversation that it should resume.
    #[error("the agent does not know this conversation; `abide explain` shows where it was expected")]
    NoConversation,
    /// The conversation is open elsewhere, or the id that was to be new is not.
    #[error("the conversation is in use; end the other process that has it open")]
    AlreadyInUse,
    /// There is no login, or the key is refused.
    #[error("the agent is not logged in; run it once by hand and log in")]
    Auth,
    /// It does not understand its arguments: most likely another version than the one they were meant for.
    #[error("the agent refused its arguments; run it by hand with them, or update it")]
    Arguments,
}

impl Fatal {
    /// The one that the configuration calls `name`.
    pub(crate) fn called(name: &str) -> Option<Self> {
        match name {
            "no_conversation" => Some(Self::NoConversation),
            "in_use" => Some(Self::AlreadyInUse),
            "auth" => Some(Self::Auth),
            "arguments" => Some(Self::Arguments),
            _ => None,
        }
    }
}

/// Stands for anything in what an agent says.
const ANYTHING: char = '…';

/// Finds what `screen` says among `known`.
pub(crate) fn find(known: &[(&str, Fatal)], screen: &str) -> Option<Fatal> {
    let screen = squeezed(screen);
    let said = |(words, _): &&(&str, Fatal)| {
        let mut parts = words.split(ANYTHING).map(squeezed);
        let after = |rest: &str, part: &str| rest.find(part).map(|at| rest[at + part.len()..].to_owned());
        parts.try_fold(screen.clone(), |rest, part| after(&rest, &part)).is_some()
    };
    known.iter().find(said).map(|(_, fatal)| *fatal)
}

/// A terminal breaks lines where it must, so white space says nothing.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[(&str, Fatal)] = &[("Session … not found", Fatal::NoConversation)];

    #[test]
    fn a_message_is_recognised_however_the_terminal_broke_it() {
        for screen in ["Session session_1 not found", "$ x\nerror: Sess\nion session_1 not fo\n  und\n"] {
            assert_eq!(find(KNOWN, screen), Some(Fatal::NoConversation), "{screen:?}");
        }
    }

    #[test]
    fn parts_of_a_message_in_another_order_are_not_the_message() {
        assert_eq!(find(KNOWN, "xyz: not found. Session ended"), None);
        assert_eq!(find(KNOWN, ""), None);
    }
}
