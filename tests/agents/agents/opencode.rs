use serde_json::json;

use crate::machine::Agent;

pub static AGENT: Agent = Agent {
    name: "opencode",
    ready: "ctrl+p commands",
    asks: "Permission required",
    anew: "/new",
    stops: &["Escape", "Escape"],
    configure: |sandbox, api| {
        let config = json!({
            "autoupdate": false,
            "share": "disabled",
            "model": "test/test-model",
            "permission": { "bash": "ask" },
            "provider": {
                "test": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": { "baseURL": format!("{api}/v1"), "apiKey": "test" },
                    "models": { "test-model": { "name": "Test" } },
                },
            },
        });
        sandbox.write("home/.config/opencode/opencode.json", config.to_string());
        // Else it first fetches what plugins may need, and waits for that if there is a plugin.
        let fetched = json!({ "packages": { "": { "dependencies": { "@opencode-ai/plugin": "*" } } } });
        sandbox.write("home/.config/opencode/package-lock.json", fetched.to_string());
        sandbox.write("home/.config/opencode/node_modules/.keep", "");
        for switch in
            ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_MODELS_FETCH"]
        {
            sandbox.set(switch, "1");
        }
    },
    conversations: |sandbox| {
        let list =
            sandbox.command("opencode").args(["session", "list", "--format", "json"]).output().unwrap();
        let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap_or_default();
        let sessions = list.as_array().cloned().unwrap_or_default();
        sessions.iter().filter_map(|session| session["id"].as_str().map(str::to_owned)).collect()
    },
};
