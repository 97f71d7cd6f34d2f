//! OpenAI's responses.

use serde_json::{Value, json};

use super::Turn;
use super::dialect::{Answer, Dialect, Tool, list, text_of};

pub(super) struct Responses;

fn item(answer: &Answer) -> Value {
    match &answer.call {
        None => json!({
            "type": "message", "id": format!("msg_{}", answer.id), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": answer.text, "annotations": [] }],
        }),
        Some(call) => json!({
            "type": "function_call", "id": format!("fc_{}", answer.id), "call_id": format!("call_{}", answer.id),
            "name": call.name, "arguments": call.arguments.to_string(), "status": "completed",
        }),
    }
}

fn response(answer: &Answer, status: &str, output: &Value) -> Value {
    json!({
        "id": format!("resp_{}", answer.id), "object": "response", "created_at": 1, "model": "test-model",
        "status": status, "output": output,
        "usage": {
            "input_tokens": 10, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 15,
        },
    })
}

impl Dialect for Responses {
    fn turns(&self, body: &Value) -> Vec<Turn> {
        let items = list(&body["input"]).iter();
        let turns = items.filter_map(|item| {
            let text = text_of(&item["content"]);
            match (item["type"].as_str().unwrap_or("message"), item["role"].as_str()) {
                ("message", Some("assistant")) => Some(Turn::Model(text)),
                ("message", Some("user")) => Some(Turn::User(text)),
                ("function_call", _) => Some(Turn::Call(text_of(&item["arguments"]))),
                ("function_call_output", _) => Some(Turn::Result(text_of(&item["output"]))),
                _ => None,
            }
        });
        turns.collect()
    }

    fn tools(&self, body: &Value) -> Vec<Tool> {
        let tools = list(&body["tools"]).iter().filter(|tool| tool["type"] == "function");
        tools
            .map(|tool| Tool { name: text_of(&tool["name"]), parameters: tool["parameters"].clone() })
            .collect()
    }

    fn schema<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        Some(&body["text"]["format"]["schema"]).filter(|schema| schema.is_object())
    }

    fn whole(&self, answer: &Answer) -> Value {
        response(answer, "completed", &json!([item(answer)]))
    }

    fn beginning(&self, answer: &Answer) -> Vec<Value> {
        let mut begun = item(answer);
        begun["status"] = "in_progress".into();
        let mut events = vec![
            json!({ "type": "response.created", "response": response(answer, "in_progress", &json!([])) }),
        ];
        if answer.call.is_some() {
            begun["arguments"] = "".into();
        } else {
            begun["content"] = json!([]);
        }
        events.push(json!({ "type": "response.output_item.added", "output_index": 0, "item": begun }));
        if answer.call.is_none() {
            let place = json!({ "item_id": begun["id"], "output_index": 0, "content_index": 0 });
            let mut part = place.clone();
            part["type"] = "response.content_part.added".into();
            part["part"] = json!({ "type": "output_text", "text": "", "annotations": [] });
            let mut delta = place;
            delta["type"] = "response.output_text.delta".into();
            delta["delta"] = answer.text.clone().into();
            events.extend([part, delta]);
        }
        events
    }

    fn ending(&self, answer: &Answer) -> Vec<Value> {
        vec![
            json!({ "type": "response.output_item.done", "output_index": 0, "item": item(answer) }),
            json!({ "type": "response.completed", "response": self.whole(answer) }),
        ]
    }
}
