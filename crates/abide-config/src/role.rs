//! `roles/<name>/role.toml`: the recipe of an environment.

use crate::file_kind::FileKind;
use crate::name::Name;
use crate::rule::{Argv, ImageName, Named, Text, Variable};
use crate::schema::{Optional, Several, record};

record! {
    /// What a role's file says.
    Role {
        /// Image for containers of this role.
        image: Option<String> as Optional<ImageName>,
        /// Agents that the role supports; empty means any.
        agents: Vec<Name> as Several<Named>,
        /// Variables that the role needs; their values come from `env` of the workspace or of config.toml.
        env: Vec<String> as Several<Variable>,
        /// Command that runs in a new instance of this role, unless its workspace has its own.
        setup: Option<Vec<String>> as Optional<Argv>,
        /// What the role is for, in a line.
        description: Option<String> as Optional<Text>,
    }
}

impl FileKind for Role {
    const TITLE: &'static str = "roles/<name>/role.toml";
}

impl Role {
    /// The role that exists without a file: the operator's own environment, any agent.
    pub fn built_in() -> Self {
        let description = Some("the environment as it is, any agent".to_owned());
        Self { image: None, agents: Vec::new(), env: Vec::new(), setup: None, description }
    }
}
