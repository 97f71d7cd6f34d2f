//! Which running processes are in which conversations, inside abide or not.
//!
//! Most agents let two processes write one transcript, of which only one branch is ever resumed. So a conversation that a
//! process is in is not to be given to another one.

use std::path::Path;

use abide_sys::process::{self, Stat};

use crate::agent::Agent;
use crate::argv::is_plain_id;
use abide_model::Pid;
use abide_model::conversation::Typed;

/// A process that is in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The agent's id of the conversation.
    pub id: String,
    pub pid: Pid,
    pub known_by: KnownBy,
}

/// How it is known that a process is in a conversation, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnownBy {
    /// The agent publishes it.
    Registry,
    /// The process has its transcript or its lock open.
    OpenFile,
    /// The process was started with its id, and may have begun another one since.
    CommandLine,
}

/// The processes that are in conversations of `agent`, which keeps them in `config_dir`.
pub fn of(agent: &dyn Agent, config_dir: &Path) -> Vec<Holder> {
    let published = agent.published(config_dir);
    let mut holders: Vec<Holder> = published
        .iter()
        .map(|(id, pid)| Holder { id: id.clone(), pid: *pid, known_by: KnownBy::Registry })
        .collect();
    let program = agent.program().as_bytes();
    let own = process::own_pid();
    for stat in Stat::all().filter(|stat| !stat.is_dead() && stat.pid != own) {
        let argv = process::command_line(stat.pid);
        let runs_it = argv.iter().any(|word| contains(word, program));
        if !runs_it || published.iter().any(|(_, pid)| *pid == stat.pid) {
            continue;
        }
        let holder = |id: String, known_by| Holder { id, pid: stat.pid, known_by };
        let open = agent.open_in(config_dir, stat.pid);
        match open.is_empty() {
            true => holders.extend(named_in(agent, &argv).map(|id| holder(id, KnownBy::CommandLine))),
            false => holders.extend(open.into_iter().map(|id| holder(id, KnownBy::OpenFile))),
        }
    }
    holders
}

fn contains(word: &[u8], name: &[u8]) -> bool {
    !name.is_empty() && word.windows(name.len()).any(|part| part == name)
}

/// The conversation that a command line of the agent's names. One that only speaks of the agent, such as an editor's,
/// has no word that is its program.
fn named_in(agent: &dyn Agent, argv: &[Vec<u8>]) -> Option<String> {
    let argv: Vec<String> = argv.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let is_program = |word: &String| word.rsplit('/').next() == Some(agent.program());
    // An interpreter or two may come before it.
    let at = argv.iter().take(4).position(is_program)?;
    match agent.typed(&argv[at..]) {
        Typed::Conversation(Some(id)) => Some(id).filter(|id| is_plain_id(id)),
        _ => None,
    }
}
