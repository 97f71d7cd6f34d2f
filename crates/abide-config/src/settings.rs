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
    AgentName, Count, EngineContext, EnvName, Flag, JournalSize, Named, OneOf, Prefix, Reference, Size,
};
use crate::schema::{Map, Optional, Section, record};
use crate::value::{ByteSize, JournalLimit};
use crate::workspace::Workspace;

record! {
    /// What `config.toml` says, with the default of everything that it does not mention.
    Settings {
        /// Default role.
        role: Name as Named = Name::default_role(),
        /// Agent to start; unset, the first one found on PATH.
        agent: Option<Name> as Optional<Named>,
        /// Where instances run.
        place: Place as OneOf<Place> = Place::Host,
        /// Command that makes and runs containers.
        engine: EngineKind as OneOf<EngineKind> = EngineKind::Docker,
        /// Context of docker, or connection of podman; unset, the current one.
        context: Option<String> as Optional<EngineContext>,
        /// What happens to an instance when its last session ends.
        policy: Policy as OneOf<Policy> = Policy::Ask,
        /// How many instances of one directory are kept for a later resume; 0 is no limit. A workspace has its own limit.
        keep_max: u32 as Count<10_000> = 0,
        /// What runs the sessions of an instance on the host.
        substrate: Substrate as OneOf<Substrate> = Substrate::Capsule,
        /// How instances on the host are placed under the systemd user manager.
        unit: UnitMode as OneOf<UnitMode> = UnitMode::Auto,
        /// Whether abide may turn on linger if instances need it to survive your logout.
        linger: bool as Flag = false,
        /// When sessions keep the machine awake.
        keep_awake: KeepAwake as OneOf<KeepAwake> = KeepAwake::Working,
        /// How much of each session's output is kept on disk for recovery.
        journal: JournalLimit as JournalSize = JournalLimit::Newest(ByteSize::mib(8)),
        /// Lines of scrollback kept for each session.
        scrollback: u32 as Count<1_000_000> = 10_000,
        /// Key that starts every key command while attached.
        prefix: PrefixKey as Prefix = PrefixKey::DEFAULT,
        /// Where the status bar is drawn.
        status_bar: StatusBar as OneOf<StatusBar> = StatusBar::Bottom,
        /// Removed instances.
        trash: Trash as Section<Trash>,
        /// Your terminal, and what programs in a session may do to it.
        terminal: Terminal as Section<Terminal>,
        /// Containers.
        container: Container as Section<Container>,
        /// Environment variable of every session, and where its value comes from.
        env: BTreeMap<String, EnvRef> as Map<EnvName, Reference>,
        /// How an agent is run.
        agents: BTreeMap<Name, Agent> as Map<AgentName, Section<Agent>>,
    }
}

record! {
    /// How long removed instances can be restored.
    Trash {
        /// Days for which a removed instance can be restored.
        keep_days: u32 as Count<36_500> = 14,
        /// Size of the trash above which the oldest entries without work are deleted early.
        max_size: ByteSize as Size = ByteSize::mib(5 * 1024),
    }
}

record! {
    /// Your terminal, and what programs in a session may do to it.
    Terminal {
        /// Whether it supports 24-bit colour.
        truecolor: TrueColor as OneOf<TrueColor> = TrueColor::Auto,
        /// Writing to the clipboard (OSC 52).
        clipboard: Permission as OneOf<Permission> = Permission::Deny,
        /// Links to anything but http, https, file and mailto (OSC 8).
        links: Permission as OneOf<Permission> = Permission::Deny,
        /// Notifications (OSC 9, 99, 777), progress (OSC 9;4, 133) and titles.
        notifications: Permission as OneOf<Permission> = Permission::Allow,
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
