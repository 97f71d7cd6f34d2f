//! What becomes of live sessions when the operator leaves them.

use crate::activity::Doing;
use crate::choice::choices;
use crate::decide::Decided;

choices! {
    /// What happens to one session when the operator leaves.
    Parting, "way of leaving a session" {
        Detach = "detach": "it keeps running",
        Close = "close": "it is ended, and its agent resumes the conversation next time",
    }
}

impl Parting {
    /// The other way.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Detach => Self::Close,
            Self::Close => Self::Detach,
        }
    }
}

/// What to do with a session that does `doing`, unless the operator says otherwise. `resumes` tells whether its agent
/// can take the conversation up again: closing what can not be resumed would lose it.
pub fn part(doing: Doing, resumes: bool) -> Decided<Parting> {
    match doing {
        Doing::Working => {
            Decided::new(Parting::Detach, "ending it in the middle of a turn may damage its conversation")
        }
        Doing::NeedsInput => {
            Decided::new(Parting::Detach, "it waits for an answer, which ending it would lose")
        }
        Doing::Unknown => Decided::new(Parting::Detach, "what it does is not known, so it may be working"),
        Doing::Idle if resumes => Decided::new(Parting::Close, "it is between turns and can be resumed"),
        Doing::Idle => Decided::new(Parting::Detach, "it could not be resumed"),
        Doing::Exited => Decided::new(Parting::Close, "its process has ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Choice;

    #[test]
    fn only_what_is_between_turns_and_resumable_is_closed_unasked() {
        for (doing, _) in Doing::ALL {
            for resumes in [true, false] {
                let closes = match doing {
                    Doing::Idle => resumes,
                    Doing::Exited => true,
                    Doing::Working | Doing::NeedsInput | Doing::Unknown => false,
                };
                let expected = if closes { Parting::Close } else { Parting::Detach };
                assert_eq!(part(*doing, resumes).decision, expected, "{doing} resumes={resumes}");
            }
        }
    }
}
