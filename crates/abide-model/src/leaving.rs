//! What becomes of live sessions when the operator leaves them.

use crate::activity::Doing;
use crate::choice::choices;
use crate::decide::Decided;

choices! {
    /// What happens to one session when the operator leaves.
    Parting, "way of leaving a session" {
        Detach = "detach": "it keeps running",
        Close = "close": "it is ended, and comes back with its instance",
    }
}

impl Parting {
    pub fn other(self) -> Self {
        match self {
            Self::Detach => Self::Close,
            Self::Close => Self::Detach,
        }
    }
}

choices! {
    /// What comes back of a session that was closed.
    Returns, "way of coming back" {
        Conversation = "conversation": "its agent resumes the conversation",
        Scrollback = "scrollback": "it is an idle shell; only its scrollback comes back",
        Anew = "anew": "it is started again, and its state is lost",
    }
}

/// What to do with a session that does `doing`, unless the operator says otherwise.
pub fn part(doing: Doing, returns: Returns) -> Decided<Parting> {
    match (doing, returns) {
        (Doing::Working, _) => {
            Decided::new(Parting::Detach, "ending it during a turn may damage its conversation")
        }
        (Doing::NeedsInput, _) => Decided::new(
            Parting::Detach,
            "it is waiting for an answer, and ending it would lose the question",
        ),
        (Doing::Starting, _) => Decided::new(Parting::Detach, "it is only just starting"),
        (Doing::Unknown, _) => Decided::new(Parting::Detach, "its state is unknown, so it may be working"),
        (Doing::Idle | Doing::Failed, Returns::Conversation) => {
            Decided::new(Parting::Close, "it is between turns and can be resumed")
        }
        (Doing::Idle | Doing::Failed, Returns::Scrollback) => {
            Decided::new(Parting::Close, "its shell runs nothing")
        }
        (Doing::Idle | Doing::Failed, Returns::Anew) => {
            Decided::new(Parting::Detach, "it could not be resumed")
        }
        (Doing::Exited, _) => Decided::new(Parting::Close, "its process has ended"),
    }
}

/// What to do with sessions of which each is named with its instance. An instance is closed as a whole or not at all, so one
/// session that is to go on keeps those beside it.
pub fn part_all(sessions: &[(&str, Doing, Returns)]) -> Vec<Parting> {
    let stays =
        |(_, doing, returns): &(&str, Doing, Returns)| part(*doing, *returns).decision == Parting::Detach;
    let kept: Vec<&str> = sessions.iter().filter(|session| stays(session)).map(|(id, ..)| *id).collect();
    let parting = |id| if kept.contains(id) { Parting::Detach } else { Parting::Close };
    sessions.iter().map(|(id, ..)| parting(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Choice;

    #[test]
    fn only_what_is_idle_and_loses_nothing_is_closed_unasked() {
        for (doing, _) in Doing::ALL {
            for (returns, _) in Returns::ALL {
                let closes = match doing {
                    Doing::Idle | Doing::Failed => *returns != Returns::Anew,
                    Doing::Exited => true,
                    Doing::Starting | Doing::Working | Doing::NeedsInput | Doing::Unknown => false,
                };
                let expected = if closes { Parting::Close } else { Parting::Detach };
                assert_eq!(part(*doing, *returns).decision, expected, "{doing} {returns}");
            }
        }
    }

    #[test]
    fn one_session_that_goes_on_keeps_those_of_its_instance_and_no_others() {
        let sessions = [
            ("one", Doing::Idle, Returns::Conversation),
            ("two", Doing::Idle, Returns::Conversation),
            ("one", Doing::Working, Returns::Conversation),
            ("two", Doing::Idle, Returns::Scrollback),
        ];
        let (stays, goes) = (Parting::Detach, Parting::Close);
        assert_eq!(part_all(&sessions), [stays, goes, stays, goes]);
    }
}
