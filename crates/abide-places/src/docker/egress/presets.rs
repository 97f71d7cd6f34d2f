//! Lists of hosts that are known by one word: what agents and package registries need.

/// The word, and the hosts that it stands for. No word has a dot, and so none is the name of a public host.
const PRESETS: &[(&str, &[&str])] = &[
    (
        "claude",
        &[
            "api.anthropic.com", "claude.ai", "platform.claude.com", "console.anthropic.com",
            "statsig.anthropic.com",
        ],
    ),
    ("codex", &["api.openai.com", "auth.openai.com", "chatgpt.com"]),
    (
        "gemini",
        &[
            "generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com",
            "accounts.google.com", "www.googleapis.com",
        ],
    ),
    ("opencode", &["opencode.ai", "api.opencode.ai", "models.dev"]),
    ("kimi", &["api.kimi.com", "auth.kimi.com", "api.moonshot.ai", "api.moonshot.cn"]),
    ("qwen", &["chat.qwen.ai", "portal.qwen.ai", "dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"]),
    ("copilot", &["github.com", "api.github.com", "*.githubcopilot.com"]),
    ("amp", &["ampcode.com", "*.ampcode.com"]),
    ("npm", &["registry.npmjs.org"]),
    ("pypi", &["pypi.org", "files.pythonhosted.org"]),
    ("crates", &["crates.io", "index.crates.io", "static.crates.io"]),
    ("debian", &["deb.debian.org", "security.debian.org"]),
    ("github", &["github.com", "api.github.com", "codeload.github.com", "*.githubusercontent.com"]),
];

/// The hosts that `word` stands for, if it is a preset.
pub fn hosts(word: &str) -> Option<&'static [&'static str]> {
    PRESETS.iter().find(|(name, _)| *name == word).map(|(_, hosts)| *hosts)
}

/// `listed` with the hosts of each preset in its place.
pub fn expanded(listed: &[String]) -> Vec<String> {
    let one = |word: &String| match hosts(word) {
        Some(hosts) => hosts.iter().map(|&host| host.to_owned()).collect(),
        None => vec![word.clone()],
    };
    listed.iter().flat_map(one).collect()
}

#[cfg(test)]
mod tests {
    use abide_model::program::AGENTS;

    use super::*;
    use crate::docker::egress::rules::Host;

    #[test]
    fn every_agent_has_a_preset_and_every_preset_has_hosts() {
        assert!(AGENTS.iter().all(|agent| hosts(agent).is_some()));
        for (name, hosts) in PRESETS {
            assert!(!name.contains('.') && !hosts.is_empty());
            for host in *hosts {
                let name = host.strip_prefix("*.").unwrap_or(host);
                assert!(matches!(name.parse(), Ok(Host::Name(same)) if same == name), "{host}");
            }
        }
    }

    #[test]
    fn a_preset_is_replaced_by_its_hosts_and_others_stay_as_they_are() {
        let listed = ["npm", "example.org", "pypi"].map(str::to_owned);
        assert_eq!(
            expanded(&listed),
            ["registry.npmjs.org", "example.org", "pypi.org", "files.pythonhosted.org"]
        );
    }
}
