use super::{ids, names};
use crate::machine::Agent;

pub static AGENT: Agent = Agent {
    name: "codex",
    ready: "? for shortcuts",
    asks: "Would you like to run the following command?",
    anew: "/new",
    stops: &["Escape"],
    configure: |sandbox, api| {
        let work = sandbox.work().canonicalize().unwrap();
        let config = format!(
            r#"model = "test-model"
model_provider = "test"
check_for_update_on_startup = false
approval_policy = "on-request"

[model_providers.test]
name = "Test"
base_url = "{api}/v1"
env_key = "TEST_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[features]
plugins = false
apps = false

[analytics]
enabled = false

[feedback]
enabled = false

[projects."{work}"]
trust_level = "trusted"
"#,
            work = work.display()
        );
        sandbox.write("home/.codex/config.toml", config);
        sandbox.set("TEST_API_KEY", "test");
    },
    conversations: |sandbox| ids(names(&sandbox.path("home/.codex/sessions"), 4)),
};
