//! The questions abide asks, each a function from what is known to a page, and back to a typed answer.
//!
//! Functions that end in `_page` only make the page; the others ask, and enter the terminal once.

mod come_back;
mod confirm;
mod evidence;
mod exit;
mod leaving;
mod missing_directory;
mod preserved;

use abide_model::{Instance, InstanceId, LaunchScope};

use crate::line::{Line, Tone, table};
use crate::page::PageChoice;

pub use come_back::{ComeBack, ComeBackCandidate, LaunchSubject, StartNew, come_back, come_back_page};
pub use confirm::{Confirm, Confirmation, confirm, confirm_page};
pub use evidence::{evidence_items, summary};
pub use exit::{WorkShown, at_risk_page, exit_page, session_ended};
pub use leaving::{
    LeavingDecision, LeavingStep, Live, close_all_page, leaving, leaving_page, one_by_one_page, plan,
};
pub use missing_directory::{MissingDirectoryAnswer, missing_directory, missing_directory_page};
pub use preserved::{
    AskedBy, HostRepo, Preserved, PreservedTree, preserved, preserved_notes, preserved_page,
};

/// Whom a question is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub id: InstanceId,
    /// What the operator calls it.
    pub name: Option<String>,
    /// The role it was launched with.
    pub role: String,
    /// What runs in it.
    pub agents: Vec<String>,
    /// What it was launched from.
    pub scope: LaunchScope,
}

impl From<&Instance> for Subject {
    fn from(instance: &Instance) -> Self {
        let mut agents = Vec::new();
        for agent in instance.sessions.iter().filter_map(|session| session.agent.as_ref()) {
            if !agents.contains(agent) {
                agents.push(agent.clone());
            }
        }
        Self {
            id: instance.id,
            name: instance.name.clone(),
            role: instance.role.clone(),
            agents,
            scope: instance.scope.clone(),
        }
    }
}

impl Subject {
    fn line(&self) -> Line {
        let mut line = Line::toned(Tone::Strong, self.name.clone().unwrap_or_else(|| self.id.display_name()));
        if self.name.is_some() {
            line = line.and(Tone::Dim, format!(" {}", self.id.display_name()));
        }
        let launched = launched_as(&self.role, &self.agents.join(", "));
        line.and(Tone::Dim, format!(" · {launched} · ")).and_elastic(Tone::Dim, scope(&self.scope))
    }
}

/// `role (agents)`, or the role alone where no agent is known.
fn launched_as(role: &str, agents: &str) -> String {
    if agents.is_empty() { role.to_owned() } else { format!("{role} ({agents})") }
}

fn scope(scope: &LaunchScope) -> String {
    match &scope.workspace {
        Some(name) => format!("workspace {name}"),
        None => scope.dir.display().to_string(),
    }
}

/// `3 files`, `1 file`.
fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Choices with a word on what each of them does.
fn explained<A>(rows: Vec<(&str, &str, A)>) -> Vec<PageChoice<A>> {
    let cells = rows.iter().map(|(label, what, _)| [Line::from(*label), Line::toned(Tone::Dim, what)]);
    let lines = table(&cells.collect::<Vec<_>>(), [20, 0]);
    lines.into_iter().zip(rows).map(|(line, (.., answer))| PageChoice::new(line, answer)).collect()
}
