//! The parts of abide that it starts itself, as `abide capsule PART`.

/// The word before the part.
const CAPSULE: &str = "capsule";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapsulePart {
    Keeper,
    Mux,
    /// Deals with what an instance leaves when it ends.
    Finish,
    /// Runs a session in a pane of tmux.
    Enter,
    /// Passes on what an agent's hook says.
    Report,
    /// Passes a request to a mux as it is.
    Call,
    /// Becomes a command that standard input describes, inside a container.
    Run,
    /// Is the only way out of the network of a container.
    Proxy,
    /// Says whether this build can take over from a running keeper.
    Probe,
}

impl CapsulePart {
    const ALL: [Self; 9] = [
        Self::Keeper,
        Self::Mux,
        Self::Finish,
        Self::Enter,
        Self::Report,
        Self::Call,
        Self::Run,
        Self::Proxy,
        Self::Probe,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Keeper => "keeper",
            Self::Mux => "mux",
            Self::Finish => "finish",
            Self::Enter => "enter",
            Self::Report => "report",
            Self::Call => "call",
            Self::Run => "run",
            Self::Proxy => "proxy",
            Self::Probe => "probe",
        }
    }

    /// What follows the program on the command line.
    pub const fn words(self) -> [&'static str; 2] {
        [CAPSULE, self.word()]
    }

    /// The part that a process with this command line is; `None` for everything else.
    pub fn of<W: AsRef<[u8]>>(command_line: &[W]) -> Option<Self> {
        let [_, capsule, part, ..] = command_line else { return None };
        let is_it = |one: &Self| one.word().as_bytes() == part.as_ref();
        Self::ALL.into_iter().find(|one| capsule.as_ref() == CAPSULE.as_bytes() && is_it(one))
    }

    /// Whether a command line begins as that of a part does, known to this version or not.
    pub fn is_any(command_line: &[impl AsRef<[u8]>]) -> bool {
        command_line.get(1).is_some_and(|word| word.as_ref() == CAPSULE.as_bytes())
    }
}
