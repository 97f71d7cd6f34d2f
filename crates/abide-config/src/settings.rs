//! `config.toml`: what holds for every scope unless its workspace says otherwise.

use std::collections::BTreeMap;

use abide_model::container::EngineKind;
use abide_model::{
    EnvRef, KeepAwake, Permission, Place, Policy, PrefixKey, StatusBar, Substrate, TrueColor, UnitMode,
};

use crate::agent::Agent;
use crate::container::Container;
use crate::file_kind::{FileKind, Migration, additions};
use crate::name::Name;
use crate::reader::ConfigReader;
use crate::rule::{
    AGENT_NAME, ENGINE_CONTEXT, ENV_NAME, FLAG, JOURNAL_SIZE, NAME, PREFIX, REFERENCE, SIZE, count, one_of,
};
use crate::schema::SettingShape::{Leaf, Map, Section};
use crate::schema::record;
use crate::value::{ByteSize, JournalLimit};
use crate::workspace::Workspace;

record! {
    /// What `config.toml` says, with the default of everything that it does not mention.
    Settings {
        /// Default role.
        role: Name [Leaf(NAME)] = "default",
        /// Agent to start; unset, the first one found on PATH.
        agent: Option<Name> [Leaf(NAME)] default,
        /// Where instances run.
        place: Place [Leaf(one_of::<Place>())] = "host",
        /// Command that makes and runs containers.
        engine: EngineKind [Leaf(one_of::<EngineKind>())] = "docker",
        /// Context of docker, or connection of podman; unset, the current one.
        context: Option<String> [Leaf(ENGINE_CONTEXT)] default,
        /// What happens to an instance when its last session ends.
        policy: Policy [Leaf(one_of::<Policy>())] = "ask",
        /// How many instances of one directory are kept for a later resume; 0 is no limit. A workspace has its own limit.
        keep_max: u32 [Leaf(count(10_000))] = "0",
        /// What runs the sessions of an instance on the host.
        substrate: Substrate [Leaf(one_of::<Substrate>())] = "capsule",
        /// How instances on the host are placed under the systemd user manager.
        unit: UnitMode [Leaf(one_of::<UnitMode>())] = "auto",
        /// Whether abide may turn on linger if instances need it to survive your logout.
        linger: bool [Leaf(FLAG)] = "false",
        /// When sessions keep the machine awake.
        keep_awake: KeepAwake [Leaf(one_of::<KeepAwake>())] = "working",
        /// How much of each session's output is kept on disk for recovery.
        journal: JournalLimit [Leaf(JOURNAL_SIZE)] = "8MiB",
        /// Lines of scrollback kept for each session.
        scrollback: u32 [Leaf(count(1_000_000))] = "10000",
        /// Key that starts every key command while attached.
        prefix: PrefixKey [Leaf(PREFIX)] = "C-b",
        /// Where the status bar is drawn.
        status_bar: StatusBar [Leaf(one_of::<StatusBar>())] = "bottom",
        /// Removed instances.
        trash: Trash [Section(Trash::FIELDS)],
        /// Your terminal, and what programs in a session may do to it.
        terminal: Terminal [Section(Terminal::FIELDS)],
        /// Containers.
        container: Container [Section(Container::FIELDS)],
        /// Environment variable of every session, and where its value comes from.
        env: BTreeMap<String, EnvRef> [Map(&ENV_NAME, &Leaf(REFERENCE))] default,
        /// How an agent is run.
        agents: BTreeMap<Name, Agent> [Map(&AGENT_NAME, &Section(Agent::FIELDS))] default,
    }
}

record! {
    /// How long removed instances can be restored.
    Trash {
        /// Days for which a removed instance can be restored.
        keep_days: u32 [Leaf(count(36_500))] = "14",
        /// Size of the trash above which the oldest entries without work are deleted early.
        max_size: ByteSize [Leaf(SIZE)] = "5GiB",
    }
}

record! {
    /// Your terminal, and what programs in a session may do to it.
    Terminal {
        /// Whether it supports 24-bit colour.
        truecolor: TrueColor [Leaf(one_of::<TrueColor>())] = "auto",
        /// Writing to the clipboard (OSC 52).
        clipboard: Permission [Leaf(one_of::<Permission>())] = "deny",
        /// Links to anything but http, https, file and mailto (OSC 8).
        links: Permission [Leaf(one_of::<Permission>())] = "deny",
        /// Notifications (OSC 9, 99, 777), progress (OSC 9;4, 133) and titles.
        notifications: Permission [Leaf(one_of::<Permission>())] = "allow",
    }
}

impl FileKind for Settings {
    const TITLE: &'static str = "config.toml";
    const MIGRATIONS: &'static [Migration] = &[additions];

    fn check(&self, at: &mut ConfigReader<'_>) {
        self.agents.iter().for_each(|(name, agent)| agent.check(name, at));
    }
}

impl Settings {
    /// The settings of a scope: these, with whatever `workspace` sets in their place.
    pub fn overridden_by(mut self, workspace: &Workspace) -> Self {
        self.role = workspace.role.clone().unwrap_or(self.role);
        self.agent = workspace.agent.clone().or(self.agent);
        self.place = workspace.place.unwrap_or(self.place);
        self.engine = workspace.engine.unwrap_or(self.engine);
        self.context = workspace.context.clone().or(self.context);
        self.policy = workspace.policy.unwrap_or(self.policy);
        self.container = self.container.overridden_by(&workspace.container);
        self.env.extend(workspace.env.clone());
        for (name, agent) in &workspace.agents {
            let merged = match self.agents.remove(name) {
                Some(below) => below.overridden_by(agent),
                None => agent.clone(),
            };
            self.agents.insert(name.clone(), merged);
        }
        self
    }
}
