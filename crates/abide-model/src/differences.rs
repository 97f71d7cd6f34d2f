//! What the configuration says today that it did not say at a launch. A resume shows it and applies none of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::choice::{Isolation, Place, Substrate};
use crate::instance::Extra;
use crate::recipe::EnvRef;

/// What the configuration, without the flags of a launch, says about an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured {
    pub role: String,
    pub place: Place,
    /// What holds the sessions.
    pub substrate: Substrate,
    /// How the launch directory is given.
    pub isolation: Isolation,
    /// The command line of the first session.
    pub command: Vec<String>,
    /// The command that is run once the directories are made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One setting that has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What it is about: `role`, `command`, `env TOKEN`, ….
    pub what: String,
    /// What a resume uses.
    pub then: String,
    /// What a new instance would use.
    pub now: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} (now {})", self.what, self.then, self.now)
    }
}

/// What has changed from `then` to `now`, in the configuration and in the references of the environment.
pub fn differences(
    then: (&Configured, &BTreeMap<String, EnvRef>),
    now: (&Configured, &BTreeMap<String, EnvRef>),
) -> Vec<Difference> {
    let ((then, env_then), (now, env_now)) = (then, now);
    let words = |argv: &[String]| if argv.is_empty() { "none".to_owned() } else { argv.join(" ") };
    let settings = [
        ("role", then.role.clone(), now.role.clone()),
        ("place", then.place.to_string(), now.place.to_string()),
        ("substrate", then.substrate.to_string(), now.substrate.to_string()),
        ("isolation", then.isolation.to_string(), now.isolation.to_string()),
        ("command", words(&then.command), words(&now.command)),
        ("setup", words(&then.setup), words(&now.setup)),
    ];
    let settings = settings.into_iter().map(|(what, then, now)| (what.to_owned(), then, now));
    let names: std::collections::BTreeSet<&String> = env_then.keys().chain(env_now.keys()).collect();
    let variables = names.into_iter().map(|name| {
        let (then, now) = reference(env_then.get(name), env_now.get(name));
        (format!("env {name}"), then, now)
    });
    let all = settings.chain(variables).filter(|(_, then, now)| then != now);
    all.map(|(what, then, now)| Difference { what, then, now }).collect()
}

/// A reference before and after, in words. A plain value may be private, so it is not shown.
fn reference(then: Option<&EnvRef>, now: Option<&EnvRef>) -> (String, String) {
    let shown = |reference: Option<&EnvRef>| match reference {
        None => "not set".to_owned(),
        Some(EnvRef::Plain(_)) => "a plain value".to_owned(),
        Some(reference) => reference.to_string(),
    };
    match (then, now) {
        (Some(EnvRef::Plain(then)), Some(EnvRef::Plain(now))) if then != now => {
            ("a plain value".to_owned(), "another plain value".to_owned())
        }
        _ => (shown(then), shown(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(command: &[&str]) -> Configured {
        Configured {
            role: "default".into(),
            place: Place::Host,
            substrate: Substrate::Capsule,
            isolation: Isolation::Shared,
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            setup: Vec::new(),
            extra: Extra::new(),
        }
    }

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, EnvRef> {
        pairs.iter().map(|(name, reference)| ((*name).to_owned(), reference.parse().unwrap())).collect()
    }

    #[test]
    fn every_changed_setting_is_named_and_no_plain_value_is_shown() {
        let then = configured(&["claude", "--model", "a"]);
        let mut now = configured(&["claude", "--model", "b"]);
        now.isolation = Isolation::Worktree;
        let env_then = env(&[("TOKEN", "env:A"), ("OLD", "hunter2"), ("SAME", "x"), ("PLAIN", "hunter2")]);
        let env_now = env(&[("TOKEN", "env:B"), ("NEW", "hunter3"), ("SAME", "x"), ("PLAIN", "hunter3")]);
        let found = differences((&then, &env_then), (&now, &env_now));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "isolation: shared (now worktree)",
                "command: claude --model a (now claude --model b)",
                "env NEW: not set (now a plain value)",
                "env OLD: a plain value (now not set)",
                "env PLAIN: a plain value (now another plain value)",
                "env TOKEN: env:A (now env:B)",
            ]
        );
    }

    #[test]
    fn an_unchanged_configuration_has_no_differences() {
        let (one, env) = (configured(&["claude"]), env(&[("TOKEN", "env:A")]));
        assert!(differences((&one, &env), (&one, &env)).is_empty());
    }
}
