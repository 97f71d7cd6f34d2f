//! `roles/<name>/role.toml`: the recipe of an environment.

use abide_model::container::Network;

use crate::file_kind::{FileKind, Migration, additions};
use crate::name::Name;
use crate::path::Path;
use crate::reader::ConfigReader;
use crate::rule::{
    ARGV, COMMIT, FILE_BELOW, GIT_URL, HOST_NAME, IMAGE_NAME, NAME, TEXT, VARIABLE, list, one_of,
};
use crate::schema::SettingShape::Leaf;
use crate::schema::record;

record! {
    /// What a role's file says.
    Role {
        /// Image for containers of this role.
        image: Option<String> [Leaf(IMAGE_NAME)] default,
        /// Dockerfile that the image is built with, below the directory of the role or in `source`.
        dockerfile: Option<String> [Leaf(FILE_BELOW)] default,
        /// Git repository with the Dockerfile.
        source: Option<String> [Leaf(GIT_URL)] default,
        /// Commit of `source`.
        commit: Option<String> [Leaf(COMMIT)] default,
        /// Agents that the role supports; empty means any.
        agents: Vec<Name> [Leaf(list(&NAME))] default,
        /// Variables that the role needs; their values come from `env` of the workspace or of config.toml.
        env: Vec<String> [Leaf(list(&VARIABLE))] default,
        /// Command that runs in a new instance of this role, unless its workspace has its own.
        setup: Option<Vec<String>> [Leaf(ARGV)] default,
        /// What the sessions of a container can reach, unless its workspace says so.
        network: Option<Network> [Leaf(one_of::<Network>())] default,
        /// Hosts that can be reached with `network = "allow"`, beside those of the workspace and of config.toml.
        allow: Vec<String> [Leaf(list(&HOST_NAME))] default,
        /// What the role is for, in a line.
        description: Option<String> [Leaf(TEXT)] default,
    }
}

impl FileKind for Role {
    const TITLE: &'static str = "roles/<name>/role.toml";
    const MIGRATIONS: &'static [Migration] = &[additions];

    fn check(&self, at: &mut ConfigReader<'_>) {
        if self.source.is_some() != self.commit.is_some() {
            let key = if self.source.is_some() { "source" } else { "commit" };
            let problem = "a repository and its commit belong together".to_owned();
            at.disagreement(Path::from_iter([key]), problem, "both `source` and `commit`, or neither");
        }
    }
}

impl Role {
    /// A role that exists without a file: the environment as it is, any agent.
    pub fn built_in() -> Self {
        let (image, dockerfile, source, commit) = (None, None, None, None);
        let (agents, env, setup, network, allow) = (Vec::new(), Vec::new(), None, None, Vec::new());
        let description = Some("the environment as it is, any agent".to_owned());
        Self { image, dockerfile, source, commit, agents, env, setup, network, allow, description }
    }
}
