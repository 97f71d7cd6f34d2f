//! A program in abide.

use serde_json::{Value, json};

use crate::machine::{Machine, Side};
use crate::pair::{Key, Size};
use crate::screen::{Cell, Cursor, Look, Screen};

pub struct Abide<'a> {
    machine: &'a Machine,
    id: String,
}

impl<'a> Abide<'a> {
    pub fn start(machine: &'a Machine, size: Size, argv: &[&str]) -> Self {
        let mut load: Vec<String> = ["load", "env", "--detach", "--"].map(str::to_owned).into();
        load.extend(machine.gated(Side::Abide, argv));
        let said = machine.sandbox.abide(load).ok();
        let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
        let abide = Self { machine, id };
        abide.resize(size);
        abide
    }

    fn call(&self, request: &Value) {
        self.machine.sandbox.abide(["capsule", "call", &self.id, &request.to_string()]).ok();
    }

    pub fn resize(&self, (cols, rows): Size) {
        self.call(&json!({"verb": "resize", "session": "s1", "size": {"cols": cols, "rows": rows}}));
    }

    /// One key at a time, as from a keyboard: a program may take keys that come all at once for a paste.
    pub fn type_keys(&self, keys: &[Key]) {
        for key in keys {
            let input = match key {
                Key::Named(name) => json!({"key": name}),
                Key::Text(text) => json!({"bytes": text.as_bytes()}),
            };
            self.call(&json!({"verb": "send", "session": "s1", "input": [input]}));
        }
    }

    pub fn screen(&self) -> Screen {
        let peek = self.machine.sandbox.abide(["peek", &self.id, "--json"]).json();
        let rows = peek["cells"].as_array().unwrap();
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        Screen {
            rows: rows.iter().map(|row| row.as_array().unwrap().iter().map(cell).collect()).collect(),
            cursor: Cursor {
                col: number(&peek["cursor"]["col"]),
                row: number(&peek["cursor"]["row"]),
                visible: peek["cursor"]["visible"].as_bool().unwrap(),
            },
            alternate: peek["alternate"].as_bool().unwrap(),
            title: peek["title"].as_str().unwrap().to_owned(),
        }
    }
}

fn cell(told: &Value) -> Cell {
    let text = match (told["text"].as_str(), told["width"].as_u64()) {
        (None, Some(0)) => "",
        (text, _) => text.unwrap_or(" "),
    };
    let mut attrs: Vec<String> = Vec::new();
    for attr in told["attrs"].as_array().into_iter().flatten() {
        attrs.push(attr.as_str().unwrap().to_owned());
    }
    attrs.sort_unstable();
    let color = |value: &Value| value.as_str().unwrap().to_owned();
    Cell { text: text.to_owned(), look: Look { fg: color(&told["fg"]), bg: color(&told["bg"]), attrs } }
}
