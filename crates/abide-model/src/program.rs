//! What a session runs.

use crate::decide::Decided;

/// The word that asks for a shell where an agent could stand.
pub const SHELL: &str = "shell";

/// The agents that abide knows by name, in the order in which one is looked for.
pub const AGENTS: &[&str] = &["claude", "codex", "gemini", "opencode", "kimi", "qwen", "copilot", "amp"];

/// What a session runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// An agent: one that abide knows, or one that the configuration describes.
    Agent(String),
    /// A command of the operator's own that ends in a known agent.
    Wrapper {
        command: String,
        agent: String,
    },
    Shell,
    Command(String),
}

impl Program {
    /// The default name of a session that runs it.
    pub fn name(&self) -> String {
        match self {
            Self::Agent(name) => name.clone(),
            Self::Shell => SHELL.to_owned(),
            Self::Command(word) | Self::Wrapper { command: word, .. } => {
                word.rsplit('/').next().unwrap_or(word).to_owned()
            }
        }
    }

    /// The agent that it runs, as the configuration calls it.
    pub fn agent(&self) -> Option<&str> {
        match self {
            Self::Agent(agent) | Self::Wrapper { agent, .. } => Some(agent),
            Self::Shell | Self::Command(_) => None,
        }
    }
}

/// What is known when something is to be started.
#[derive(Debug, Clone, Copy)]
pub struct ProgramFacts<'a> {
    /// What the operator typed.
    pub requested: Option<&'a str>,
    /// The agent that the operator says it runs.
    pub runs_as: Option<&'a str>,
    /// The default agent of the scope.
    pub configured: Option<&'a str>,
    /// Agents that the configuration describes.
    pub described: &'a [&'a str],
    /// Agents that abide knows and that are installed here, in order.
    pub installed: &'a [&'a str],
}

/// Decides what to run.
pub fn choose(wanted: &ProgramFacts<'_>) -> Decided<Program> {
    let named = |word: &str| match word {
        SHELL => Program::Shell,
        word if AGENTS.contains(&word) || wanted.described.contains(&word) => Program::Agent(word.to_owned()),
        word => Program::Command(word.to_owned()),
    };
    match (wanted.requested, wanted.configured, wanted.installed.first()) {
        (Some(word), _, _) => match wanted.runs_as {
            Some(agent) => Decided::new(
                Program::Wrapper { command: word.to_owned(), agent: agent.to_owned() },
                "the operator asked for it and named the agent that it runs",
            ),
            None => Decided::new(named(word), "the operator asked for it"),
        },
        (None, Some(word), _) => Decided::new(named(word), "it is the configured default"),
        (None, None, Some(first)) => Decided::new(named(first), "it is the first agent found on PATH"),
        (None, None, None) => Decided::new(Program::Shell, "no agent was found on PATH"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: ProgramFacts<'_> =
        ProgramFacts { requested: None, runs_as: None, configured: None, described: &[], installed: &[] };

    fn chosen(wanted: ProgramFacts<'_>) -> Program {
        choose(&wanted).decision
    }

    #[test]
    fn what_was_asked_for_comes_before_the_default_and_that_before_what_is_there() {
        let agent = |name: &str| Program::Agent(name.to_owned());
        let full = ProgramFacts {
            requested: Some("codex"),
            configured: Some("gemini"),
            installed: &["claude"],
            ..NOTHING
        };
        assert_eq!(chosen(full), agent("codex"));
        assert_eq!(chosen(ProgramFacts { requested: None, ..full }), agent("gemini"));
        assert_eq!(chosen(ProgramFacts { requested: None, configured: None, ..full }), agent("claude"));
        assert_eq!(chosen(NOTHING), Program::Shell);
    }

    #[test]
    fn any_command_can_be_run_and_a_described_one_is_an_agent() {
        let asked = |word| ProgramFacts { requested: Some(word), described: &["mine"], ..NOTHING };
        assert_eq!(chosen(asked("shell")), Program::Shell);
        assert_eq!(chosen(asked("mine")), Program::Agent("mine".into()));
        assert_eq!(chosen(asked("/usr/bin/htop")), Program::Command("/usr/bin/htop".into()));
        assert_eq!(chosen(asked("/usr/bin/htop")).name(), "htop");
        let wrapper = chosen(ProgramFacts { runs_as: Some("claude"), ..asked("./w.sh") });
        assert_eq!((wrapper.name().as_str(), wrapper.agent()), ("w.sh", Some("claude")));
    }
}
