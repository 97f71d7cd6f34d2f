//! Gemini's contents.

use serde_json::{Value, json};

use super::Turn;
use super::dialect::{Answer, Dialect, Tool, list, text_of};
use super::http::HttpRequest;

pub(super) struct Contents;

fn part(answer: &Answer) -> Value {
    match &answer.call {
        None => json!({ "text": answer.text }),
        Some(call) => json!({ "functionCall": { "name": call.name, "args": call.arguments } }),
    }
}

fn response(part: &Value, finish_reason: Option<&str>) -> Value {
    let content = json!({ "role": "model", "parts": [part] });
    json!({
        "candidates": [{ "index": 0, "content": content, "finishReason": finish_reason }],
        "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15 },
        "modelVersion": "test-model",
    })
}

impl Dialect for Contents {
    fn turns(&self, body: &Value) -> Vec<Turn> {
        let contents = list(&body["contents"]).iter();
        let turns = contents.flat_map(|content| {
            let model = content["role"] == "model";
            list(&content["parts"]).iter().map(move |part| match part {
                part if part["functionCall"].is_object() => {
                    Turn::Call(part["functionCall"]["args"].to_string())
                }
                part if part["functionResponse"].is_object() => {
                    Turn::Result(part["functionResponse"]["response"].to_string())
                }
                part if model => Turn::Model(text_of(&part["text"])),
                part => Turn::User(text_of(&part["text"])),
            })
        });
        turns.collect()
    }

    fn tools(&self, body: &Value) -> Vec<Tool> {
        let groups = list(&body["tools"]).iter();
        let functions = groups.flat_map(|group| list(&group["functionDeclarations"]));
        let parameters = |function: &Value| match &function["parametersJsonSchema"] {
            Value::Null => function["parameters"].clone(),
            schema => schema.clone(),
        };
        functions
            .map(|function| Tool { name: text_of(&function["name"]), parameters: parameters(function) })
            .collect()
    }

    fn schema<'a>(&self, body: &'a Value) -> Option<&'a Value> {
        let config = &body["generationConfig"];
        let schemas = [&config["responseJsonSchema"], &config["responseSchema"]];
        schemas.into_iter().find(|schema| schema.is_object())
    }

    fn streams(&self, request: &HttpRequest) -> bool {
        request.path.contains(":streamGenerateContent")
    }

    fn whole(&self, answer: &Answer) -> Value {
        response(&part(answer), Some("STOP"))
    }

    fn beginning(&self, answer: &Answer) -> Vec<Value> {
        vec![response(&part(answer), None)]
    }

    fn ending(&self, _answer: &Answer) -> Vec<Value> {
        vec![response(&json!({ "text": "" }), Some("STOP"))]
    }
}
