//! The settings reference, made from the schema.

use std::fmt::Write;

use crate::file_kind::FileKind;
use crate::reader::VERSION;
use crate::role::Role;
use crate::schema::{Presence, walk};
use crate::settings::Settings;
use crate::workspace::Workspace;

/// Every setting of every file with its type, its default and its meaning, in Markdown.
pub fn reference() -> String {
    let mut text = String::new();
    add::<Settings>(&mut text);
    add::<Workspace>(&mut text);
    add::<Role>(&mut text);
    text
}

fn add<T: FileKind>(text: &mut String) {
    let gap = if text.is_empty() { "" } else { "\n" };
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{gap}## {}\n", T::TITLE);
    let _ = writeln!(text, "| setting | allowed | default | meaning |\n|---|---|---|---|");
    let _ = writeln!(
        text,
        "| `{VERSION}` | {} | | Version of the schema that the file is written for. |",
        T::VERSION
    );
    walk(T::FIELDS, &mut |pattern, field, rule| {
        let default = match field.presence {
            Presence::Required => "required".to_owned(),
            Presence::Unset => String::new(),
            Presence::Default(value) => format!("`{value}`"),
        };
        let allowed = cell(&rule.allowed());
        let _ = writeln!(text, "| `{pattern}` | {allowed} | {default} | {} |", cell(field.doc.trim()));
    });
}

/// `text` as the cell of a table.
fn cell(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "\\<")
}
