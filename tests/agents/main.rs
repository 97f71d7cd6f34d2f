//! The real agents, pinned in `package.json`, against a model that the test plays: what abide promises holds for them, not
//! only for stubs. They are where `ABIDE_TEST_AGENTS` says; `./scripts/test` installs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]

mod agents;
#[path = "../host/common.rs"]
#[allow(dead_code, reason = "the tests of the host need more of it")]
mod common;
mod machine;
mod scenarios;

macro_rules! every_agent {
    ($($agent:ident),*) => { $(
        mod $agent {
            use crate::{agents, scenarios};

            #[test]
            fn a_stopped_conversation_goes_on_where_it_was() {
                scenarios::stop(&agents::$agent::AGENT);
            }

            #[test]
            fn a_turn_cut_by_a_crash_loses_nothing_said_before() {
                scenarios::crash_mid_turn(&agents::$agent::AGENT);
            }

            #[test]
            fn an_agent_killed_in_a_tool_loses_nothing_said_before() {
                scenarios::kill_mid_tool(&agents::$agent::AGENT);
            }

            #[test]
            fn what_it_is_doing_is_seen_as_it_happens() {
                scenarios::activity(&agents::$agent::AGENT);
            }
        }
    )* };
}

every_agent!(claude, codex, copilot, gemini, kimi, opencode, qwen);

#[test]
fn a_turn_cut_by_a_crash_runs_again_where_the_agent_can_and_that_is_asked_for() {
    scenarios::continue_turn(&agents::claude::AGENT);
}
