//! What every interface spells in its own way: the conversation that is sent, the tools that are offered, and the answer.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};

use super::http::HttpRequest;
use super::{Turn, anthropic, chat, gemini, responses};

/// What the model says.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) call: Option<ToolCall>,
    /// Whether the end of the answer waits for the test.
    pub(super) held: bool,
    /// What the interface calls it.
    pub(super) id: u64,
}

/// A tool that the model calls.
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// A tool that the agent offers.
pub(super) struct Tool {
    pub(super) name: String,
    /// The JSON schema of its arguments.
    pub(super) parameters: Value,
}

impl Answer {
    pub(super) fn text(text: String) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { text, call: None, held: false, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    pub(super) fn calling(call: ToolCall) -> Self {
        Self { call: Some(call), ..Self::text(String::new()) }
    }
}

/// One interface. An event is sent with its `type` as its name if it has one.
pub(super) trait Dialect {
    /// The conversation.
    fn turns(&self, body: &Value) -> Vec<Turn>;
    /// The tools.
    fn tools(&self, body: &Value) -> Vec<Tool>;
    /// The schema that the answer must have, if one is asked for.
    fn schema<'a>(&self, body: &'a Value) -> Option<&'a Value>;
    /// Whether the answer is wanted piece by piece.
    fn streams(&self, request: &HttpRequest) -> bool {
        request.body["stream"] == true
    }
    /// The answer in one piece.
    fn whole(&self, answer: &Answer) -> Value;
    /// The events of a streamed answer up to the last of its text.
    fn beginning(&self, answer: &Answer) -> Vec<Value>;
    /// The events that end it.
    fn ending(&self, answer: &Answer) -> Vec<Value>;
}

/// The interface that a request speaks.
pub(super) fn of(request: &HttpRequest) -> Option<Box<dyn Dialect>> {
    if request.method != "POST" {
        return None;
    }
    let path = request.path.split('?').next().unwrap_or_default();
    match path.rsplit(['/', ':']).next().unwrap_or_default() {
        "messages" => Some(Box::new(anthropic::Messages)),
        "responses" => Some(Box::new(responses::Responses)),
        "completions" => Some(Box::new(chat::Completions)),
        "generateContent" | "streamGenerateContent" => Some(Box::new(gemini::Contents)),
        _ => None,
    }
}

/// The elements of a list; none if it is not one.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// All text in a value that is a string, or a list of parts with a `text` each.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A small value that satisfies a JSON schema.
pub(super) fn example(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    if let Some(first) = schema["anyOf"].get(0) {
        return example(first);
    }
    let kind = schema["type"].as_str().unwrap_or("string").to_ascii_lowercase();
    match kind.as_str() {
        "object" => {
            let names = list(&schema["required"]).iter().filter_map(Value::as_str);
            let fields = names.map(|name| (name.to_owned(), example(&schema["properties"][name])));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        "array" => json!([]),
        "boolean" => json!(false),
        "integer" | "number" => json!(1),
        _ => json!("as the test says"),
    }
}
