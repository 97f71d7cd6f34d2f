use serde_json::json;

use super::{ids, names};
use crate::machine::Agent;

/// It asks before it uses a key that it does not know the end of.
const KEY: &str = "test-key-00000000000000000000";

pub static AGENT: Agent = Agent {
    name: "claude",
    ready: "? for shortcuts",
    asks: "Do you want to proceed?",
    anew: "/clear",
    stops: &["Escape"],
    configure: |sandbox, api| {
        let work = sandbox.work().canonicalize().unwrap();
        let settings = json!({
            "hasCompletedOnboarding": true,
            "lastOnboardingVersion": "99.0.0",
            "theme": "dark",
            "customApiKeyResponses": { "approved": [&KEY[KEY.len() - 20..]], "rejected": [] },
            "projects": {
                work.to_str().unwrap(): { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true },
            },
        });
        sandbox.write("home/.claude.json", settings.to_string());
        let ask = json!({ "permissions": { "disableAutoMode": "disable" } });
        sandbox.write("home/.claude/settings.json", ask.to_string());
        sandbox.set("ANTHROPIC_API_KEY", KEY);
        sandbox.set("ANTHROPIC_BASE_URL", api);
        sandbox.set("CLAUDE_CODE_MAX_RETRIES", "0");
        for switch in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING",
            "DISABLE_TELEMETRY",
        ] {
            sandbox.set(switch, "1");
        }
    },
    conversations: |sandbox| ids(names(&sandbox.path("home/.claude/projects"), 2)),
};
