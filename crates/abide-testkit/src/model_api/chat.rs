//! OpenAI's chat completions.

use serde_json::{Value, json};

use super::Turn;
use super::dialect::{Answer, Dialect, Tool, list, text_of};

pub(super) struct Completions;

fn usage() -> Value {
    json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 })
}

fn calls(answer: &Answer) -> Value {
    answer.call.as_ref().map_or(Value::Null, |call| {
        let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
        json!([{ "index": 0, "id": format!("call_{}", answer.id), "type": "function", "function": function }])
    })
}

fn finish_reason(answer: &Answer) -> &'static str {
    if answer.call.is_some() { "tool_calls" } else { "stop" }
}

fn chunk(answer: &Answer, choices: &Value, usage: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.id), "object": "chat.completion.chunk", "created": 1,
        "model": "test-model", "choices": choices, "usage": usage,
    })
}

fn delta(answer: &Answer, delta: &Value, finish_reason: Option<&str>) -> Value {
    chunk(answer, &json!([{ "index": 0, "delta": delta, "finish_reason": finish_reason }]), Value::Null)
}

impl Dialect for Completions {
    fn turns(&self, body: &Value) -> Vec<Turn> {
        let mut turns = Vec::new();
        for message in list(&body["messages"]) {
            let text = text_of(&message["content"]);
            match message["role"].as_str() {
                Some("user") => turns.push(Turn::User(text)),
                Some("tool") => turns.push(Turn::Result(text)),
                Some("assistant") => {
                    turns.extend((!text.is_empty()).then_some(Turn::Model(text)));
                    let calls = list(&message["tool_calls"]).iter();
                    turns.extend(calls.map(|call| Turn::Call(text_of(&call["function"]["arguments"]))));
                }
                _ => {}
            }
        }
        turns
    }

    fn tools(&self, body: &Value) -> Vec<Tool> {
        let functions = list(&body["tools"]).iter().map(|tool| &tool["function"]);
        functions
            .map(|function| Tool {
                name: text_of(&function["name"]),
                parameters: function["parameters"].clone(),
            })
            .collect()
    }

    fn schema<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        Some(&body["response_format"]["json_schema"]["schema"]).filter(|schema| schema.is_object())
    }

    fn whole(&self, answer: &Answer) -> Value {
        let message = json!({ "role": "assistant", "content": answer.text, "tool_calls": calls(answer) });
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish_reason(answer) });
        let mut whole = chunk(answer, &json!([choice]), usage());
        whole["object"] = "chat.completion".into();
        whole
    }

    fn beginning(&self, answer: &Answer) -> Vec<Value> {
        let said = match &answer.call {
            None => json!({ "content": answer.text }),
            Some(_) => json!({ "tool_calls": calls(answer) }),
        };
        vec![delta(answer, &json!({ "role": "assistant", "content": "" }), None), delta(answer, &said, None)]
    }

    fn ending(&self, answer: &Answer) -> Vec<Value> {
        vec![
            delta(answer, &json!({}), Some(finish_reason(answer))),
            chunk(answer, &json!([]), usage()),
            "[DONE]".into(),
        ]
    }
}
