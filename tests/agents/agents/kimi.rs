use serde_json::json;

use super::names;
use crate::machine::Agent;

pub static AGENT: Agent = Agent {
    name: "kimi",
    ready: "context:",
    asks: "Run this command?",
    anew: "/new",
    stops: &["Escape"],
    configure: |sandbox, api| {
        let work = sandbox.work().canonicalize().unwrap();
        let config = format!(
            r#"default_model = "test"

[providers.test]
type = "openai"
base_url = "{api}/v1"
api_key = "test"

[models.test]
provider = "test"
model = "test-model"
max_context_size = 200000
"#
        );
        sandbox.write("home/.kimi-code/config.toml", config);
        let hash =
            sandbox.command("sh").arg("-c").arg("printf %s \"$0\" | sha256sum").arg(&work).output().unwrap();
        let hash = String::from_utf8(hash.stdout).unwrap();
        sandbox.write(
            format!("home/.kimi-code/workspace-trust/wd_work_{}", &hash[..12]),
            json!({ "root": work, "trustedAt": 1 }).to_string(),
        );
    },
    // Beside the conversations it keeps an index of them.
    conversations: |sandbox| {
        let names = names(&sandbox.path("home/.kimi-code/sessions"), 2).into_iter();
        names.filter(|name| name.starts_with("session_") && !name.contains('.')).collect()
    },
};
