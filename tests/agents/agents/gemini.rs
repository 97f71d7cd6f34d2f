use serde_json::{Value, json};

use crate::machine::Agent;

pub static AGENT: Agent = Agent {
    name: "gemini",
    ready: "Type your message",
    asks: "Allow execution of",
    anew: "/clear",
    stops: &["Escape"],
    configure: |sandbox, api| {
        let settings = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" } },
            "general": { "enableAutoUpdate": false, "disableAutoUpdate": true },
            "privacy": { "usageStatisticsEnabled": false },
            "telemetry": { "enabled": false },
        });
        sandbox.write("home/.gemini/settings.json", settings.to_string());
        sandbox.set("GEMINI_API_KEY", "test");
        sandbox.set("GEMINI_CLI_TRUST_WORKSPACE", "true");
        sandbox.set("GOOGLE_GEMINI_BASE_URL", api);
    },
    // A resumed conversation has two files, and their names hold a part of the id only.
    conversations: |sandbox| {
        let tmp = sandbox.path("home/.gemini/tmp");
        let projects = std::fs::read_dir(&tmp).into_iter().flatten().flatten();
        let chats = projects.filter_map(|project| std::fs::read_dir(project.path().join("chats")).ok());
        let mut ids: Vec<String> = chats
            .flat_map(|chats| chats.flatten())
            .filter_map(|chat| {
                let text = std::fs::read_to_string(chat.path()).ok()?;
                let first: Value = serde_json::from_str(text.lines().next()?).ok()?;
                first["sessionId"].as_str().map(str::to_owned)
            })
            .collect();
        ids.sort();
        ids.dedup();
        ids
    },
};
