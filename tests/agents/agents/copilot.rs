use serde_json::json;

use super::names;
use crate::machine::Agent;

pub static AGENT: Agent = Agent {
    name: "copilot",
    ready: "/ commands",
    asks: "Do you want to run this command?",
    anew: "/clear",
    stops: &["Escape", "Escape"],
    configure: |sandbox, api| {
        let work = sandbox.work().canonicalize().unwrap();
        let config = json!({ "trusted_folders": [work], "trustedFolders": [work] });
        sandbox.write("home/.copilot/config.json", config.to_string());
        let base = format!("{api}/v1");
        for (name, value) in [
            ("COPILOT_AUTO_UPDATE", "false"),
            ("COPILOT_MODEL", "test-model"),
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_PROVIDER_API_KEY", "test"),
            ("COPILOT_PROVIDER_BASE_URL", &base),
            ("COPILOT_PROVIDER_TYPE", "openai"),
        ] {
            sandbox.set(name, value);
        }
    },
    conversations: |sandbox| {
        let names = names(&sandbox.path("home/.copilot/session-state"), 1).into_iter();
        names.filter(|name| !name.starts_with('.')).collect()
    },
};
