//! `workspaces/<name>.toml`: a directory with a name, and what holds for it alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use abide_model::container::EngineKind;
use abide_model::{EnvRef, Isolation, Place, Policy};

use crate::agent::Agent;
use crate::container::WorkspaceContainer;
use crate::file_kind::{FileKind, Migration, additions};
use crate::name::Name;
use crate::path;
use crate::reader::ConfigReader;
use crate::rule::{
    AGENT_NAME, ARGV, ENGINE_CONTEXT, ENV_NAME, FLAG, GLOB, HOST_PATH, INNER_PATH, NAME, REFERENCE, count,
    list, one_of,
};
use crate::schema::SettingShape::{Leaf, Map, Section, Tables};
use crate::schema::record;

record! {
    /// What a workspace's file says; what is unset is as in `config.toml`.
    Workspace {
        /// Directory of the workspace.
        dir: PathBuf [Leaf(HOST_PATH)],
        /// Role, instead of the one in config.toml.
        role: Option<Name> [Leaf(NAME)] default,
        /// Agent, instead of the one in config.toml.
        agent: Option<Name> [Leaf(NAME)] default,
        /// Where instances run, instead of the setting in config.toml.
        place: Option<Place> [Leaf(one_of::<Place>())] default,
        /// Command that makes and runs containers, instead of the one in config.toml.
        engine: Option<EngineKind> [Leaf(one_of::<EngineKind>())] default,
        /// Context of docker, or connection of podman, instead of the one in config.toml.
        context: Option<String> [Leaf(ENGINE_CONTEXT)] default,
        /// What happens to an instance when its last session ends, instead of the setting in config.toml.
        policy: Option<Policy> [Leaf(one_of::<Policy>())] default,
        /// How many instances are kept for a later resume; 0 is no limit.
        keep_max: u32 [Leaf(count(10_000))] = "0",
        /// Command that runs in an instance after its directories are created.
        setup: Option<Vec<String>> [Leaf(ARGV)] default,
        /// Directories of an instance.
        mounts: Vec<Mount> [Tables(Mount::FIELDS)] default,
        /// Containers.
        container: WorkspaceContainer [Section(WorkspaceContainer::FIELDS)],
        /// Environment variable of every session, and where its value comes from.
        env: BTreeMap<String, EnvRef> [Map(&ENV_NAME, &Leaf(REFERENCE))] default,
        /// How an agent is run here.
        agents: BTreeMap<Name, Agent> [Map(&AGENT_NAME, &Section(Agent::FIELDS))] default,
    }
}

record! {
    /// A directory given to an instance.
    Mount {
        /// Directory on the host.
        source: PathBuf [Leaf(HOST_PATH)],
        /// Where the instance sees it; unset, at the same path.
        target: Option<PathBuf> [Leaf(INNER_PATH)] default,
        /// How the instance gets it.
        isolation: Isolation [Leaf(one_of::<Isolation>())] = "shared",
        /// Files that git ignores but the work needs, copied into a worktree or clone.
        copy: Vec<String> [Leaf(list(&GLOB))] default,
        /// Whether the instance may only read it.
        read_only: bool [Leaf(FLAG)] = "false",
    }
}

impl Mount {
    /// Where the instance sees the directory.
    pub fn target_path(&self) -> &Path {
        self.target.as_deref().unwrap_or(&self.source)
    }
}

impl FileKind for Workspace {
    const TITLE: &'static str = "workspaces/<name>.toml";
    const MIGRATIONS: &'static [Migration] = &[additions];

    fn check(&self, at: &mut ConfigReader<'_>) {
        self.agents.iter().for_each(|(name, agent)| agent.check(name, at));
        self.check_mounts(at);
    }
}

impl Workspace {
    /// One mount must not hide another, nor what another holds.
    fn check_mounts(&self, at: &mut ConfigReader<'_>) {
        let mut mounts: Vec<(&Path, usize)> =
            self.mounts.iter().enumerate().map(|(index, mount)| (mount.target_path(), index)).collect();
        // Paths sort by component, so whatever is below a target follows it directly.
        mounts.sort();
        let mut outer: Option<(&Path, usize)> = None;
        for (target, index) in mounts {
            match outer {
                Some((above, other)) if target.starts_with(above) => {
                    let (relation, shown) =
                        if target == above { ("the same as", target) } else { ("inside", above) };
                    let problem = format!(
                        "its target is {relation} {}, the target of mounts[{other}]",
                        crate::text::printable(&shown.display().to_string())
                    );
                    let place = path::Path(vec![
                        path::PathStep::Key("mounts".to_owned()),
                        path::PathStep::Index(index),
                    ]);
                    at.disagreement(place, problem, "targets that do not overlap");
                }
                _ => outer = Some((target, index)),
            }
        }
    }
}
