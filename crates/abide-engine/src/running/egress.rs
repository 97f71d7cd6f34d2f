//! What an instance with a list of hosts may reach, and what was refused to it.

use abide_model::container::Network;
use abide_model::{Instance, InstanceId, Timestamp};
use abide_places::connect;
use abide_places::docker::egress::denials::{self, Denial};
use abide_places::docker::egress::proxy::ProxyFiles;
use abide_places::docker::egress::{rules, write_rules};
use abide_store::Store;
use serde::Serialize;

use crate::error::EngineError;

/// How many refused requests are looked at.
const LAST: usize = 1000;

/// What was refused, however often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedHost {
    pub host: String,
    pub port: u16,
    pub why: String,
    pub times: usize,
    pub last: Timestamp,
}

/// The hosts that were last refused to an instance, the newest first.
pub fn refused(store: &Store, id: InstanceId) -> Vec<RefusedHost> {
    let files = ProxyFiles::below(&connect::instance_dir(store, id).egress_dir());
    counted(denials::last(&files.log, LAST))
}

fn counted(denials: Vec<Denial>) -> Vec<RefusedHost> {
    let mut counted: Vec<RefusedHost> = Vec::new();
    for denial in denials.into_iter().rev() {
        let same = |one: &&mut RefusedHost| (&one.host, one.port) == (&denial.host, denial.port);
        match counted.iter_mut().find(same) {
            Some(known) => known.times += 1,
            None => {
                let Denial { at: last, host, port, why } = denial;
                counted.push(RefusedHost { host, port, why, times: 1, last });
            }
        }
    }
    counted
}

/// Adds `hosts` to what an instance may reach. A running one may do so at once.
pub fn allow(store: &Store, id: InstanceId, hosts: &[String]) -> Result<Instance, EngineError> {
    if let Some(wrong) = hosts.iter().find(|host| !rules::is_listable(host)) {
        return Err(EngineError::Other(format!(
            "`{wrong}` is not a host; give a name such as example.org, *.example.org for all below it, or an address"
        )));
    }
    let dir = connect::instance_dir(store, id);
    store.update(id, |now| {
        let name = id.display_name();
        let Some(recipe) = &mut now.recipe.container else {
            return Err(EngineError::Other(format!("{name} is not in a container; it may reach everything")));
        };
        match recipe.network {
            Network::Allow => {}
            network => {
                return Err(EngineError::Other(format!(
                    "the network of {name} is `{network}`, and only `allow` has a list; \
                     set `container.network` before you load it"
                )));
            }
        }
        for host in hosts {
            if !recipe.allowed_hosts.contains(host) {
                recipe.allowed_hosts.push(host.clone());
            }
        }
        // With the instance locked: the list of the last change is the one that counts.
        write_rules(dir.path(), recipe)?;
        Ok(now.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_often_is_named_once_and_the_newest_comes_first() {
        let denial = |at, host: &str, port| Denial {
            at: Timestamp(at),
            host: host.to_owned(),
            port,
            why: "it is not on the list".to_owned(),
        };
        let all = vec![denial(1, "a", 443), denial(2, "b", 443), denial(3, "a", 443), denial(4, "a", 80)];
        let counted: Vec<_> =
            counted(all).into_iter().map(|one| (one.host, one.port, one.times, one.last.0)).collect();
        let expected = [("a", 80, 1, 4), ("a", 443, 2, 3), ("b", 443, 1, 2)];
        assert_eq!(counted, expected.map(|(host, port, times, last)| (host.to_owned(), port, times, last)));
    }
}
