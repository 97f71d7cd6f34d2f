//! `abide workspace`

use std::path::{Component, Path};

use abide_config::{ConfigError, Name, Workspace, WorkspaceEdit};
use abide_model::{Isolation, Place, Policy};
use serde::Serialize;
use serde_json::json;

use crate::context::Context;
use crate::error::{CommandError, VerbResult};
use crate::print::{Table, TableTone};

pub const EXAMPLES: &str = "\
Examples:
  abide workspace create shop                              this directory, as `shop`
  abide workspace create shop ~/shop --agent codex --policy keep
  abide workspace edit shop --mount ~/lib --isolation worktree
  abide workspace edit shop --set env.MODE=fast --unset agent
  abide workspace show shop
  abide workspace remove shop                              deletes its file, not the directory";

#[derive(Debug, clap::Subcommand)]
pub enum WorkspaceVerb {
    /// List workspaces
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a workspace's file
    Show {
        /// Its name
        name: Name,
    },
    /// Create a workspace
    Create {
        /// Its name
        name: Name,
        /// Its directory; default: this one
        dir: Option<String>,
        #[command(flatten)]
        changes: Changes,
    },
    /// Change a workspace; comments and order in its file are preserved
    Edit {
        /// Its name
        name: Name,
        #[command(flatten)]
        changes: Changes,
    },
    /// Remove a workspace's file; its directory and instances stay
    Remove {
        /// Its name
        name: Name,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
pub struct Changes {
    /// What happens when an instance's last session ends: ask, keep or clean
    #[arg(long, value_name = "POLICY", value_parser = super::choice::<Policy>(), hide_possible_values = true)]
    policy: Option<Policy>,
    /// The agent to start
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The role to use
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Where instances run: host; docker can be configured, but not started yet
    #[arg(long, value_name = "PLACE", value_parser = super::choice::<Place>(), hide_possible_values = true)]
    place: Option<Place>,
    /// Give instances this directory; see --isolation
    #[arg(long, value_name = "DIR")]
    mount: Vec<String>,
    /// How instances get the directories of --mount: shared, worktree or clone
    #[arg(long, value_name = "MODE", requires = "mount", default_value_t, value_parser = super::choice::<Isolation>(), hide_possible_values = true)]
    isolation: Isolation,
    /// Remove the mount with this target
    #[arg(long, value_name = "TARGET")]
    unmount: Vec<String>,
    /// Change any setting of the file
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Remove a setting from the file
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
}

impl Changes {
    fn edits(self) -> VerbResult<Vec<WorkspaceEdit>> {
        let named = [
            ("policy", self.policy.map(|p| p.to_string())),
            ("agent", self.agent),
            ("role", self.role),
            ("place", self.place.map(|p| p.to_string())),
        ];
        let mut edits: Vec<WorkspaceEdit> = Vec::new();
        edits.extend(self.unset.into_iter().map(|key| WorkspaceEdit::Unset { key }));
        edits.extend(
            named
                .into_iter()
                .filter_map(|(key, value)| Some(WorkspaceEdit::Set { key: key.into(), value: value? })),
        );
        for pair in self.set {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(CommandError::usage(format!("--set {pair}: expected KEY=VALUE")));
            };
            edits.push(WorkspaceEdit::Set { key: key.to_owned(), value: value.to_owned() });
        }
        for target in self.unmount {
            edits.push(WorkspaceEdit::RemoveMount { target: absolute(target)? });
        }
        for source in self.mount {
            edits.push(WorkspaceEdit::AddMount { source: absolute(source)?, isolation: self.isolation });
        }
        Ok(edits)
    }
}

/// `path` as a file may hold it: a relative one means nothing once it is written down.
fn absolute(path: String) -> VerbResult<String> {
    if path.starts_with('/') || path.starts_with("~/") {
        return Ok(path);
    }
    super::here()?;
    let goes_up = Path::new(&path).components().any(|part| part == Component::ParentDir);
    // What is above a directory that is reached by a link, only the system can say.
    let full = if goes_up { std::fs::canonicalize(&path) } else { std::path::absolute(&path) };
    let full = full.map_err(|error| {
        CommandError::failed(format!("{path}: {error}"))
            .hint("use an absolute path, or one that starts with ~/")
    })?;
    full.into_os_string().into_string().map_err(|_| CommandError::usage(format!("`{path}` is not text")))
}

/// A workspace in `list --json`.
#[derive(Serialize)]
struct WorkspaceRow {
    name: String,
    dir: Option<String>,
    role: Option<String>,
    agent: Option<String>,
    place: Option<Place>,
    policy: Option<Policy>,
    mounts: Option<usize>,
    error: Option<String>,
}

impl WorkspaceRow {
    fn new(name: String, workspace: Result<Workspace, ConfigError>) -> Self {
        let (found, error) = match workspace {
            Ok(found) => (Some(found), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let found = found.as_ref();
        Self {
            name,
            dir: found.map(|w| w.dir.display().to_string()),
            role: found.and_then(|w| w.role.as_ref().map(ToString::to_string)),
            agent: found.and_then(|w| w.agent.as_ref().map(ToString::to_string)),
            place: found.and_then(|w| w.place),
            policy: found.and_then(|w| w.policy),
            mounts: found.map(|w| w.mounts.len()),
            error,
        }
    }
}

pub fn run(verb: WorkspaceVerb, context: &mut Context) -> VerbResult {
    match verb {
        WorkspaceVerb::List { json } => list(json, context),
        WorkspaceVerb::Show { name } => {
            context.config.workspace(&name)?;
            let text = std::fs::read_to_string(context.config.workspace_file(&name))?;
            context.printer.text(&text)
        }
        WorkspaceVerb::Create { name, dir, changes } => {
            let dir = absolute(dir.unwrap_or_else(|| ".".to_owned()))?;
            let made = context.config.create_workspace(&name, &dir, &changes.edits()?)?;
            tracing::info!(%name, "workspace made");
            tell_what_is_not_there(&made, context);
            context.printer.line(format!("{name} is {}", made.dir.display()))
        }
        WorkspaceVerb::Edit { name, changes } => {
            let edits = changes.edits()?;
            if edits.is_empty() {
                return Err(
                    CommandError::usage("nothing to change").hint("see `abide workspace edit --help`")
                );
            }
            let changed = context.config.edit_workspace(&name, &edits)?;
            tracing::info!(%name, "workspace changed");
            tell_what_is_not_there(&changed, context);
            Ok(())
        }
        WorkspaceVerb::Remove { name, yes } => {
            // A question about something that is not there would be answered in vain.
            let file = context.config.workspace_file(&name);
            if file.exists() && !yes && !context.confirm(&format!("Remove the workspace {name}?"), "--yes")? {
                return context.printer.line("Nothing was removed.");
            }
            context.config.remove_workspace(&name)?;
            tracing::info!(%name, "workspace removed");
            Ok(())
        }
    }
}

fn tell_what_is_not_there(workspace: &Workspace, context: &Context) {
    let mounts = workspace.mounts.iter().map(|mount| &mount.source);
    for missing in std::iter::once(&workspace.dir).chain(mounts).filter(|dir| !dir.is_dir()) {
        context.warn(&format!("there is no directory {}; create it before you use it", missing.display()));
    }
}

fn list(json: bool, context: &Context) -> VerbResult {
    let all = context.config.workspaces()?;
    let rows: Vec<WorkspaceRow> =
        all.into_iter().map(|(name, workspace)| WorkspaceRow::new(name, workspace)).collect();
    if json {
        return context.printer.json(&json!({ "version": 1, "workspaces": rows }));
    }
    if rows.is_empty() {
        return context
            .printer
            .line("No workspaces. `abide workspace create NAME` creates one for this directory.");
    }
    let mut table = Table::new(&["NAME", "AGENT", "POLICY", "DIRECTORY"]);
    for row in &rows {
        let policy = row.policy.map(|p| p.to_string()).unwrap_or_default();
        let (last, tone) = match (&row.error, &row.dir) {
            (Some(error), _) => (error.as_str(), TableTone::Bad),
            (None, dir) => (dir.as_deref().unwrap_or(""), TableTone::Plain),
        };
        table.row([
            (row.name.as_str(), TableTone::Strong),
            (row.agent.as_deref().unwrap_or(""), TableTone::Plain),
            (policy.as_str(), TableTone::Plain),
            (last, tone),
        ]);
    }
    context.printer.table(&table)
}
