//! Names that engines and DNS accept.

use crate::id::InstanceId;

/// The longest DNS label, which is what a container or network name has to fit.
const LABEL: usize = 63;

/// What is added to an instance's base name for the things that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belonging {
    /// The instance's own container.
    Container,
    /// The engine inside, when the role asks for one.
    Dind,
    /// The network the two share.
    Network,
    /// The container that is the only way out of that network, where there is a list of hosts.
    Proxy,
    /// The network with a way out that this container is in as well.
    Outgoing,
    /// The volume with the inner engine's certificates.
    Certs,
    /// The volume with the inner engine's images.
    DindData,
}

impl Belonging {
    pub const ALL: [Self; 7] = [
        Self::Container,
        Self::Dind,
        Self::Network,
        Self::Proxy,
        Self::Outgoing,
        Self::Certs,
        Self::DindData,
    ];

    const fn suffix(self) -> &'static str {
        match self {
            Self::Container => "",
            Self::Dind => "-dind",
            Self::Network => "-net",
            Self::Proxy => "-proxy",
            Self::Outgoing => "-out",
            Self::Certs => "-certs",
            Self::DindData => "-dind-data",
        }
    }
}

/// `ab-<id>-<scope>-<role>` plus the suffix of `what`: DNS-safe and at most 63 bytes whatever scope and role are called.
///
/// The id has a fixed width and comes first, so no cut can make two instances share a name or make one name the
/// beginning of another's base. The base is cut for the *longest* suffix, so that all names of an instance share it.
pub fn engine_name(id: InstanceId, scope: &str, role: &str, what: Belonging) -> String {
    let room = LABEL - Belonging::DindData.suffix().len();
    let mut name = id.display_name();
    for part in [slug(scope), slug(role)] {
        if !part.is_empty() {
            name.push('-');
            name.push_str(&part);
        }
    }
    name.truncate(room);
    name.truncate(name.trim_end_matches('-').len());
    name.push_str(what.suffix());
    name
}

/// `text` reduced to `[a-z0-9-]`, with no dash at either end and none doubled.
fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
        if out.len() >= LABEL {
            break;
        }
    }
    out.truncate(out.trim_end_matches('-').len());
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id() -> InstanceId {
        "k7p9m2xq".parse().unwrap()
    }

    #[test]
    fn a_name_says_whose_it_is() {
        assert_eq!(
            engine_name(id(), "jackin", "the architect", Belonging::Container),
            "ab-k7p9m2xq-jackin-the-architect"
        );
        assert_eq!(engine_name(id(), "Ünï/Code", "", Belonging::Network), "ab-k7p9m2xq-n-code-net");
        assert_eq!(engine_name(id(), "///", "…", Belonging::Dind), "ab-k7p9m2xq-dind");
    }

    proptest! {
        #[test]
        fn every_name_is_a_dns_label_and_no_two_collide(
            a in 0u64..1 << 40, b in 0u64..1 << 40, scope in ".{0,90}", role in ".{0,90}", other in ".{0,90}",
        ) {
            let mut seen = std::collections::HashSet::new();
            for what in Belonging::ALL {
                let name = engine_name(InstanceId::from_bits(a), &scope, &role, what);
                prop_assert!(name.len() <= 63, "{}", name);
                prop_assert!(name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-'));
                prop_assert!(!name.starts_with('-') && !name.ends_with('-'));
                prop_assert!(seen.insert(name));
                if a != b {
                    prop_assert!(seen.insert(engine_name(InstanceId::from_bits(b), &other, &role, what)));
                }
            }
        }
    }
}
