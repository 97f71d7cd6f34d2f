//! The real agents, pinned in `package.json`, against a model that the test plays: what abide promises holds for them, not
//! only for stubs. They are where `ABIDE_TEST_AGENTS` says; `./scripts/test` installs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

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
            fn what_is_sent_to_an_idle_agent_arrives_once() {
                scenarios::deliver(&agents::$agent::AGENT);
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

            #[test]
            fn a_turn_that_is_interrupted_is_over() {
                scenarios::interrupt(&agents::$agent::AGENT);
            }

            #[test]
            fn a_question_that_is_refused_is_no_question_any_more() {
                scenarios::refuse(&agents::$agent::AGENT);
            }
        }
    )* };
}

every_agent!(claude, codex, copilot, gemini, kimi, opencode, qwen);

#[test]
fn a_turn_cut_by_a_crash_runs_again_where_the_agent_can_and_that_is_asked_for() {
    scenarios::continue_turn(&agents::claude::AGENT);
}

macro_rules! agents_that {
    ($scenario:ident, $what:ident: $($agent:ident),*) => {
        mod $what { $(
            #[test]
            fn $agent() {
                crate::scenarios::$scenario(&crate::agents::$agent::AGENT);
            }
        )* }
    };
}

agents_that!(out_of_quota, without_quota_nothing_works: claude, codex);
agents_that!(tries_again, what_tries_again_works_until_it_is_stopped: copilot, gemini, kimi, opencode, qwen);
agents_that!(leave, the_operator_leaves_and_comes_back: claude, codex);
agents_that!(fork, a_fork_goes_its_own_way: claude, codex, opencode);
agents_that!(another_conversation, the_next_conversation_is_followed: claude, codex, copilot, gemini, kimi, opencode, qwen);

#[test]
fn a_conversation_whose_database_is_gone_is_given_back() {
    scenarios::loses(&agents::opencode::AGENT, |machine, _| {
        for name in ["opencode.db", "opencode.db-wal", "opencode.db-shm"] {
            let _ = std::fs::remove_file(machine.host.path("home/.local/share/opencode").join(name));
        }
    });
}

#[test]
fn a_conversation_that_is_gone_from_its_database_is_given_back() {
    scenarios::loses(&agents::opencode::AGENT, |machine, conversation| {
        let mut opencode = machine.host.command("opencode");
        assert!(opencode.args(["session", "delete", conversation]).output().unwrap().status.success());
    });
}
