use serde_json::json;

use super::{ids, names};
use crate::machine::Agent;

pub static AGENT: Agent = Agent {
    name: "qwen",
    ready: "Type your message",
    asks: "Allow execution of",
    anew: "/clear",
    stops: &["Escape"],
    configure: |sandbox, api| {
        let settings = json!({
            "security": { "auth": { "selectedType": "openai" } },
            "general": { "enableAutoUpdate": false, "disableAutoUpdate": true },
            "privacy": { "usageStatisticsEnabled": false },
            "telemetry": { "enabled": false },
            "ui": { "enableFollowupSuggestions": false },
            "tools": { "approvalMode": "default" },
        });
        sandbox.write("home/.qwen/settings.json", settings.to_string());
        sandbox.set("OPENAI_API_KEY", "test");
        sandbox.set("OPENAI_BASE_URL", format!("{api}/v1"));
        sandbox.set("OPENAI_MODEL", "test-model");
    },
    conversations: |sandbox| ids(names(&sandbox.path("home/.qwen/projects"), 3)),
};
