//! Anthropic's messages.

use serde_json::{Value, json};

use super::Turn;
use super::dialect::{Answer, Dialect, Tool, list, text_of};

pub(super) struct Messages;

fn usage() -> Value {
    json!({ "input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 })
}

fn turn(role: &Value, part: &Value) -> Option<Turn> {
    match part["type"].as_str()? {
        "text" if role == "assistant" => Some(Turn::Model(text_of(&part["text"]))),
        "text" => Some(Turn::User(text_of(&part["text"]))),
        "tool_use" => Some(Turn::Call(part["input"].to_string())),
        "tool_result" => Some(Turn::Result(text_of(&part["content"]))),
        _ => None,
    }
}

fn content(answer: &Answer) -> Value {
    match &answer.call {
        None => json!({ "type": "text", "text": answer.text }),
        Some(call) => {
            json!({ "type": "tool_use", "id": format!("toolu_{}", answer.id), "name": call.name, "input": call.arguments })
        }
    }
}

fn stop_reason(answer: &Answer) -> &'static str {
    if answer.call.is_some() { "tool_use" } else { "end_turn" }
}

fn message(answer: &Answer, content: &Value, stop_reason: Value) -> Value {
    json!({
        "id": format!("msg_{}", answer.id), "type": "message", "role": "assistant", "model": "test-model",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null, "usage": usage(),
    })
}

impl Dialect for Messages {
    fn turns(&self, body: &Value) -> Vec<Turn> {
        let turns = list(&body["messages"]).iter().flat_map(|message| {
            let role = &message["role"];
            match &message["content"] {
                Value::String(text) => {
                    turn(role, &json!({ "type": "text", "text": text })).into_iter().collect()
                }
                parts => list(parts).iter().filter_map(|part| turn(role, part)).collect::<Vec<_>>(),
            }
        });
        turns.collect()
    }

    fn tools(&self, body: &Value) -> Vec<Tool> {
        let tools = list(&body["tools"]).iter();
        tools
            .map(|tool| Tool { name: text_of(&tool["name"]), parameters: tool["input_schema"].clone() })
            .collect()
    }

    fn schema<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        Some(&body["output_config"]["format"]["schema"]).filter(|schema| schema.is_object())
    }

    fn whole(&self, answer: &Answer) -> Value {
        message(answer, &json!([content(answer)]), stop_reason(answer).into())
    }

    fn beginning(&self, answer: &Answer) -> Vec<Value> {
        let (block, delta) = match &answer.call {
            None => {
                (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": answer.text }))
            }
            Some(call) => {
                let mut block = content(answer);
                block["input"] = json!({});
                (block, json!({ "type": "input_json_delta", "partial_json": call.arguments.to_string() }))
            }
        };
        vec![
            json!({ "type": "message_start", "message": message(answer, &json!([]), Value::Null) }),
            json!({ "type": "content_block_start", "index": 0, "content_block": block }),
            json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        ]
    }

    fn ending(&self, answer: &Answer) -> Vec<Value> {
        let delta = json!({ "stop_reason": stop_reason(answer), "stop_sequence": null });
        vec![
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": delta, "usage": usage() }),
            json!({ "type": "message_stop" }),
        ]
    }
}
