//! Where the supervisor of an instance on the host goes, so that it outlives the login that started it, and whether one
//! that runs already does.
//!
//! The rule that shapes this: a systemd user unit without linger is worse than none. The user manager stops shortly
//! after the last logout and takes its units with it, while a plain daemon of the same login may well live on.

mod running;
#[cfg(test)]
mod tests;

pub use running::{Exposure, Protection, exposure, protection};

use crate::choice::UnitMode;
use crate::decide::Decided;

/// What is known about a process and the systemd around it. Gathered elsewhere; the decisions look at nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementFacts {
    /// Whether systemd runs this machine.
    pub systemd: bool,
    /// Why the operator's user manager makes no units; `None` as far as it does.
    pub manager_fault: Option<ManagerFault>,
    pub linger: Linger,
    /// Why linger cannot be turned on without an administrator, where that is known.
    pub linger_refused: Option<String>,
    /// What the process is part of.
    pub home: Home,
    /// The operator's name, as `loginctl enable-linger` takes it.
    pub user: String,
}

/// Whether the operator's user manager outlives their last logout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linger {
    On,
    Off,
}

/// Whether the operator lets abide turn linger on for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LingerConsent {
    Given,
    #[default]
    NotGiven,
}

impl From<bool> for LingerConsent {
    /// As the setting `linger` says it.
    fn from(set: bool) -> Self {
        if set { Self::Given } else { Self::NotGiven }
    }
}

/// Whether the policy of the machine lets the operator turn linger on for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LingerPolicy {
    Allows,
    Refuses,
    /// It does not answer.
    Unknown,
}

/// What the end of a login or of a service does to the processes that it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndRule {
    Kills,
    Keeps,
    Unknown,
}

/// Why no unit can be had of the user manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManagerFault {
    /// Its bus is not there.
    Absent(String),
    /// It answered, and does not do it.
    Fails(String),
    /// It does not answer in time.
    Silent(String),
    /// The program that asks it is missing.
    NoTool(String),
}

impl ManagerFault {
    pub fn why(&self) -> &str {
        match self {
            Self::Absent(why) | Self::Fails(why) | Self::Silent(why) | Self::NoTool(why) => why,
        }
    }

    /// The same as a reason why there is no unit.
    pub fn reason(&self) -> String {
        match self {
            Self::Absent(why) => format!("the user bus does not answer: {why}"),
            Self::Fails(why) | Self::Silent(why) | Self::NoTool(why) => {
                format!("the user manager does not create a unit: {why}")
            }
        }
    }

    /// What may cure it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Absent(_) => "log in again, or install dbus-user-session",
            Self::Fails(_) | Self::Silent(_) => {
                "`systemctl --user daemon-reexec` may help; see `journalctl --user`"
            }
            Self::NoTool(_) => "put systemd's `busctl` on PATH",
        }
    }
}

/// What a process is part of, and so what it ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    Login {
        at_end: EndRule,
    },
    /// A unit of a user manager that is no service: a desktop's terminal, a scope.
    Manager(ManagerEnd),
    /// A service, of a user manager or of the system.
    Service {
        name: String,
        at_end: EndRule,
        /// The end of the user manager that it is of; `None` for a service of the system.
        manager: Option<ManagerEnd>,
    },
    /// None of these: a container, a machine without systemd.
    Elsewhere,
}

/// When a user manager ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagerEnd {
    /// With the machine: linger is on for its user.
    Shutdown,
    /// Shortly after its user's last logout.
    LastLogout,
    /// After a logout, but not while a tmux server of the operator keeps its login from closing.
    TmuxServer,
}

/// logind's rule about what a login leaves behind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KillRules {
    /// `KillUserProcesses`.
    pub enabled: bool,
    /// `KillExcludeUsers`.
    pub except: Vec<String>,
    /// `KillOnlyUsers`.
    pub only: Vec<String>,
}

impl KillRules {
    /// What becomes of the processes that a login of `owner` leaves behind, regardless of their owner.
    pub fn apply_to(&self, owner: &str) -> EndRule {
        let names = |list: &[String]| list.iter().any(|name| name == owner);
        match self.enabled && !names(&self.except) && (self.only.is_empty() || names(&self.only)) {
            true => EndRule::Kills,
            false => EndRule::Keeps,
        }
    }
}

/// Where the supervisor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Into a user unit of its own.
    Unit,
    /// Turn linger on first, and decide again.
    EnableLinger,
    /// Nowhere: it stays a plain daemon.
    Plain(Fate),
}

/// What the next logout does to a plain daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Survives,
    Lost,
    /// The daemon ends before any logout: with the service that started it.
    EndsWithService,
    Unknown,
}

/// Decides where a supervisor goes.
pub fn decide(mode: UnitMode, facts: &PlacementFacts, consent: LingerConsent) -> Decided<Placement> {
    let plain = Placement::Plain(fate(facts));
    match mode {
        UnitMode::Off => return Decided::new(plain, "the configuration says so"),
        UnitMode::Auto | UnitMode::Scope | UnitMode::Service => {}
    }
    if !facts.systemd {
        return Decided::new(plain, "this machine does not use systemd");
    }
    match (facts.linger, &facts.manager_fault, &facts.linger_refused) {
        (Linger::On, None, _) => {
            Decided::new(Placement::Unit, "linger is on, so the user manager outlives the logout")
        }
        (Linger::On, Some(fault), _) => Decided::new(plain, fault.reason()),
        (Linger::Off, _, Some(refusal)) if consent == LingerConsent::Given => {
            Decided::new(plain, format!("linger is off and could not be turned on: {refusal}"))
        }
        (Linger::Off, _, _) if consent == LingerConsent::Given => {
            Decided::new(Placement::EnableLinger, "linger is off, and may be turned on")
        }
        (Linger::Off, _, _) => {
            Decided::new(plain, "linger is off, and a user unit would end with the last logout")
        }
    }
}

/// What the next logout does to a daemon that stays where the process is.
pub fn fate(facts: &PlacementFacts) -> Fate {
    let with_manager = |end: ManagerEnd| match end {
        ManagerEnd::Shutdown | ManagerEnd::TmuxServer => Fate::Survives,
        ManagerEnd::LastLogout => Fate::Lost,
    };
    match &facts.home {
        _ if !facts.systemd => Fate::Survives,
        Home::Elsewhere => Fate::Survives,
        Home::Manager(end) => with_manager(*end),
        Home::Service { at_end: EndRule::Keeps, manager, .. } => manager.map_or(Fate::Survives, with_manager),
        Home::Service { .. } => Fate::EndsWithService,
        Home::Login { at_end: EndRule::Kills } => Fate::Lost,
        Home::Login { at_end: EndRule::Keeps } => Fate::Survives,
        Home::Login { at_end: EndRule::Unknown } => Fate::Unknown,
    }
}

/// Whether no logout and no service ends a daemon that stays where the process is, whatever is configured.
fn is_out_of_reach(facts: &PlacementFacts) -> bool {
    match &facts.home {
        Home::Elsewhere | Home::Manager(ManagerEnd::Shutdown) => true,
        Home::Service { at_end: EndRule::Keeps, manager, .. } => {
            matches!(manager, None | Some(ManagerEnd::Shutdown))
        }
        Home::Manager(_) | Home::Service { .. } | Home::Login { .. } => !facts.systemd,
    }
}

/// What ends a daemon that stays where the process is, about `subject`; `None` where nothing does before the shutdown.
pub fn prospect(facts: &PlacementFacts, subject: &str) -> Option<String> {
    if is_out_of_reach(facts) {
        return None;
    }
    let text = match (fate(facts), &facts.home) {
        (Fate::EndsWithService, Home::Service { name, at_end, .. }) => match at_end {
            EndRule::Kills | EndRule::Keeps => {
                format!("{subject} ends with {name}, from which it was started")
            }
            EndRule::Unknown => format!("{subject} may end with {name}, from which it was started"),
        },
        (Fate::Survives, Home::Manager(ManagerEnd::TmuxServer)) => {
            format!("{subject} survives your logout only while your tmux server runs")
        }
        (Fate::Survives, _) => format!("{subject} survives your logout only while logind allows it"),
        (Fate::Lost, _) => format!("{subject} will NOT survive your logout"),
        (Fate::Unknown | Fate::EndsWithService, _) => {
            format!("it is unknown whether {subject} survives your logout")
        }
    };
    Some(text)
}

/// What the operator should know about a supervisor that stayed a plain daemon because of `why`; `None` where nothing
/// ends it.
pub fn warning(facts: &PlacementFacts, why: &str) -> Option<String> {
    prospect(facts, "this session").map(|prospect| format!("{prospect}: {why}; {}", remedy(facts)))
}

/// What makes sessions survive a logout where no unit can be had.
pub fn remedy(facts: &PlacementFacts) -> String {
    let user = &facts.user;
    match (&facts.manager_fault, &facts.linger_refused) {
        (_, Some(_)) if facts.linger == Linger::Off => {
            format!("an administrator can turn linger on with `sudo loginctl enable-linger {user}`")
        }
        _ if facts.linger == Linger::Off => {
            format!("turn linger on with `abide doctor --fix`, or with `sudo loginctl enable-linger {user}`")
        }
        (Some(fault), _) => fault.remedy().to_owned(),
        (None, _) => "see `journalctl --user`".to_owned(),
    }
}
