//! The labels by which abide knows its own things on an engine, and the names that people see.

use std::collections::BTreeMap;

use abide_model::name::{Belonging, engine_name};
use abide_model::{Instance, InstanceId};

use crate::owner::Owner;
use crate::place::ResourceLifetime;

const OWNER: &str = "abide.owner";
const HOME: &str = "abide.home";
const INSTANCE: &str = "abide.instance";
const GENERATION: &str = "abide.generation";
const VERSION: &str = "abide.version";
/// What of an instance it is: see [`part`].
const PART: &str = "abide.part";

/// The hash of what an image was built from.
pub(super) const RECIPE: &str = "abide.recipe";
/// The directory of an image that a new home begins as.
pub(super) const SEED: &str = "abide.seed";

/// The labels of something, as the engine gives them.
pub(super) type Labels = BTreeMap<String, String>;

/// `--filter` flags for everything of `owner`, or what is for one instance.
pub(super) fn filters(owner: &Owner, instance: Option<InstanceId>) -> Vec<String> {
    let mut labels = vec![(OWNER, owner.id.clone()), (HOME, home(owner))];
    labels.extend(instance.map(|id| (INSTANCE, id.to_string())));
    labels
        .into_iter()
        .flat_map(|(name, value)| ["--filter".to_owned(), format!("label={name}={value}")])
        .collect()
}

/// Whether labels are those of something of `owner`. Podman takes several filters of images for alternatives.
pub(super) fn are_of(owner: &Owner, labels: &Labels) -> bool {
    labels.get(OWNER) == Some(&owner.id) && labels.get(HOME) == Some(&home(owner))
}

/// `--label` flags for what belongs to no instance.
pub(super) fn of_owner(owner: &Owner) -> Vec<String> {
    flags(pairs_of_owner(owner))
}

/// The labels of what belongs to no instance.
pub(super) fn pairs_of_owner(owner: &Owner) -> Vec<(&'static str, String)> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    vec![(OWNER, owner.id.clone()), (HOME, home(owner)), (VERSION, version)]
}

/// `--label` flags for `what` of `instance`.
pub(super) fn of_instance(owner: &Owner, instance: &Instance, what: Belonging) -> Vec<String> {
    let mut flags_of_it = of_owner(owner);
    flags_of_it.extend(flags([
        (INSTANCE, instance.id.to_string()),
        (GENERATION, instance.generation.to_string()),
        (PART, part(what).to_owned()),
    ]));
    flags_of_it
}

fn flags(labels: impl IntoIterator<Item = (&'static str, String)>) -> Vec<String> {
    let flag = |(name, value)| ["--label".to_owned(), format!("{name}={value}")];
    labels.into_iter().flat_map(flag).collect()
}

fn home(owner: &Owner) -> String {
    owner.home.to_string_lossy().into_owned()
}

const fn part(what: Belonging) -> &'static str {
    match what {
        Belonging::Container => "container",
        Belonging::Dind => "sidecar",
        Belonging::Network => "network",
        Belonging::Proxy => "proxy",
        Belonging::Outgoing => "outgoing",
        Belonging::Certs => "certificates",
        Belonging::DindData => "sidecar-data",
    }
}

/// The instance that labels name.
pub(super) fn instance(labels: &Labels) -> Option<InstanceId> {
    labels.get(INSTANCE)?.parse().ok()
}

/// Whether labels are those of `what` of an instance.
pub(super) fn is(labels: &Labels, what: Belonging) -> bool {
    labels.get(PART).is_some_and(|found| found == part(what))
}

/// How long what has these labels is needed.
pub(super) fn lifetime(labels: &Labels) -> ResourceLifetime {
    let of_a_run = [Belonging::Dind, Belonging::Network, Belonging::Proxy, Belonging::Outgoing];
    match of_a_run.into_iter().any(|what| is(labels, what)) {
        true => ResourceLifetime::Run,
        false => ResourceLifetime::Instance,
    }
}

/// What people see of `what` of `instance`.
pub(super) fn name(instance: &Instance, what: Belonging) -> String {
    engine_name(instance.id, &instance.scope.short_name(), &instance.role, what)
}
