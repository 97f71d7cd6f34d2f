//! Reads a document by its schema and collects every mistake on the way.

use abide_model::text::nearest;
use serde_json::{Map, Value as Json};
use toml_edit::{Item, Table, TableLike, Value};

use crate::mistake::Mistake;
use crate::path::{Path, PathStep};
use crate::rule::{Rule, Written, Wrong};
use crate::schema::{Field, Presence, SettingShape, keys_of};
use crate::text::{a, printable};

/// The key that says which version of the schema a file is written for; every kind of file has it.
pub(crate) const VERSION: &str = "version";

/// A hostile file of a megabyte could hold a hundred thousand mistakes; these are enough to read.
pub(crate) const LISTED: usize = 100;

/// What is wrong: the key itself, or what stands under it.
#[derive(Clone, Copy)]
pub(crate) enum ComplaintAbout {
    Key,
    Value,
}

/// A mistake that does not know its line yet.
pub(crate) struct Complaint {
    pub(crate) path: Path,
    pub(crate) about: ComplaintAbout,
    pub(crate) mistake: Mistake,
}

/// Where reading has got to, and what was wrong so far.
pub(crate) struct ConfigReader<'h> {
    home: &'h std::path::Path,
    path: Path,
    pub(crate) complaints: Vec<Complaint>,
    pub(crate) unlisted: usize,
}

impl<'h> ConfigReader<'h> {
    pub(crate) fn new(home: &'h std::path::Path) -> Self {
        Self { home, path: Path::default(), complaints: Vec::new(), unlisted: 0 }
    }

    fn inside<T>(&mut self, step: PathStep, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.0.push(step);
        let result = read(self);
        self.path.0.pop();
        result
    }

    /// What `table` says, with the default of what it does not mention. Every setting is read, even after a mistake, so
    /// that all mistakes are found in one go; after one, what this returns means nothing.
    pub(crate) fn record(&mut self, fields: &'static [Field], table: &dyn TableLike) -> Json {
        self.refuse_unknown_keys(table, fields);
        let mut record = Map::new();
        for field in fields {
            let absent = match (field.shape, field.presence) {
                (SettingShape::Leaf(rule), Presence::Default(word)) => Item::Value(rule.value_of(word)),
                (SettingShape::Leaf(_), Presence::Unset) if !table.contains_key(field.key) => continue,
                (SettingShape::Leaf(rule), Presence::Required) if !table.contains_key(field.key) => {
                    let problem = format!("`{}` is missing", field.key);
                    self.complain(ComplaintAbout::Value, problem, rule.allowed());
                    continue;
                }
                (SettingShape::Tables(_), _) => Item::ArrayOfTables(Default::default()),
                _ => Item::Table(Table::new()),
            };
            let item = table.get(field.key).unwrap_or(&absent);
            let value = self.inside(PathStep::Key(field.key.to_owned()), |at| at.item(field.shape, item));
            record.insert(field.key.to_owned(), value);
        }
        Json::Object(record)
    }

    fn item(&mut self, shape: SettingShape, item: &Item) -> Json {
        match (shape, item) {
            (SettingShape::Leaf(rule), Item::Value(value)) => self.leaf(&rule, value),
            (SettingShape::Leaf(rule), _) => self.not_a(rule.noun, rule.allowed()),
            (SettingShape::Tables(fields), Item::ArrayOfTables(tables)) => {
                self.tables(fields, tables.iter().map(|table| Some(table as &dyn TableLike)))
            }
            (SettingShape::Tables(fields), Item::Value(Value::Array(array))) => {
                let tables = array.iter().map(Value::as_inline_table);
                self.tables(fields, tables.map(|table| table.map(|table| table as &dyn TableLike)))
            }
            (SettingShape::Tables(fields), _) => {
                self.not_a("list of tables", format!("tables of {}", keys_of(fields)))
            }
            (SettingShape::Section(fields), _) => self.table("section", fields, item.as_table_like()),
            (SettingShape::Map(key, each), _) => {
                let Some(table) = item.as_table_like() else {
                    return self.not_a("section", format!("a table of entries by {}", key.placeholder));
                };
                let mut entries = Map::new();
                for (name, item) in table.iter() {
                    let entry = self.inside(PathStep::Key(name.to_owned()), |at| {
                        if !(key.fits)(name) {
                            at.complain(
                                ComplaintAbout::Key,
                                format!("not {}", a(key.noun)),
                                key.allowed.to_owned(),
                            );
                        }
                        at.item(*each, item)
                    });
                    entries.insert(name.to_owned(), entry);
                }
                Json::Object(entries)
            }
        }
    }

    fn table(&mut self, noun: &str, fields: &'static [Field], table: Option<&dyn TableLike>) -> Json {
        match table {
            Some(table) => self.record(fields, table),
            None => self.not_a(noun, format!("a table of {}", keys_of(fields))),
        }
    }

    fn tables<'t>(
        &mut self,
        fields: &'static [Field],
        tables: impl Iterator<Item = Option<&'t dyn TableLike>>,
    ) -> Json {
        let read = |(index, table): (usize, Option<&dyn TableLike>)| {
            self.inside(PathStep::Index(index), |at| at.table("table", fields, table))
        };
        tables.enumerate().map(read).collect()
    }

    fn leaf(&mut self, rule: &Rule, value: &Value) -> Json {
        let wrong = match (rule.written, value) {
            (Written::Boolean, Value::Boolean(flag)) => return (*flag.value()).into(),
            (Written::Integer(most), Value::Integer(number))
                if (0..=most.into()).contains(number.value()) =>
            {
                return (*number.value()).into();
            }
            (Written::Text(read), Value::String(text)) => match read_line(text.value(), read, self.home) {
                Ok(text) => return text.into(),
                Err(wrong) => wrong,
            },
            (Written::List(each, check), Value::Array(array)) => {
                let before = self.complaints.len() + self.unlisted;
                let read =
                    |(index, element)| self.inside(PathStep::Index(index), |at| at.leaf(each, element));
                let elements: Vec<Json> = array.iter().enumerate().map(read).collect();
                let words: Vec<&str> = elements.iter().filter_map(Json::as_str).collect();
                match check(&words) {
                    Some(problem) if self.complaints.len() + self.unlisted == before => {
                        Wrong::because(problem)
                    }
                    _ => return elements.into(),
                }
            }
            _ => Wrong::default(),
        };
        self.wrong(rule, value, wrong)
    }

    fn wrong(&mut self, rule: &Rule, value: &Value, wrong: Wrong) -> Json {
        let problem = Some(wrong.problem).filter(|problem| !problem.is_empty());
        let meant = || nearest(value.as_str()?, rule.words.iter().copied()).map(str::to_owned);
        self.push(
            ComplaintAbout::Value,
            Mistake {
                // What stands in `[env]` may be a secret written in plain; it must not reach a terminal or a log.
                found: (!rule.secret).then(|| shown_value(value)),
                problem: problem.unwrap_or_else(|| format!("not {}", a(rule.noun))),
                allowed: wrong.allowed.or_else(|| Some(rule.allowed())),
                nearest: wrong.nearest.or_else(meant),
                ..Mistake::default()
            },
        );
        Json::Null
    }

    fn refuse_unknown_keys(&mut self, table: &dyn TableLike, fields: &'static [Field]) {
        let top = self.path.0.is_empty();
        for (key, _) in table.iter() {
            if fields.iter().any(|field| field.key == key) || top && key == VERSION {
                continue;
            }
            if self.complaints.len() >= LISTED {
                self.unlisted += 1;
                continue;
            }
            let meant = nearest(key, fields.iter().map(|field| field.key)).map(str::to_owned);
            let (problem, allowed) = ("not a setting".to_owned(), Some(keys_of(fields)));
            let mistake = Mistake { problem, allowed, nearest: meant, ..Mistake::default() };
            self.inside(PathStep::Key(key.to_owned()), |at| at.push(ComplaintAbout::Key, mistake));
        }
    }

    fn not_a(&mut self, noun: &str, allowed: String) -> Json {
        self.complain(ComplaintAbout::Value, format!("not {}", a(noun)), allowed);
        Json::Null
    }

    /// A mistake that only shows when values are compared with each other.
    pub(crate) fn disagreement(&mut self, at: Path, problem: String, allowed: &str) {
        let here = std::mem::replace(&mut self.path, at);
        self.complain(ComplaintAbout::Value, problem, allowed.to_owned());
        self.path = here;
    }

    fn complain(&mut self, about: ComplaintAbout, problem: String, allowed: String) {
        self.push(about, Mistake { problem, allowed: Some(allowed), ..Mistake::default() });
    }

    fn push(&mut self, about: ComplaintAbout, mistake: Mistake) {
        if self.complaints.len() < LISTED {
            self.complaints.push(Complaint { path: self.path.clone(), about, mistake });
        } else {
            self.unlisted += 1;
        }
    }
}

/// Text in full, as its rule reads it.
fn read_line(
    text: &str,
    read: fn(&str, &std::path::Path) -> Result<String, Wrong>,
    home: &std::path::Path,
) -> Result<String, Wrong> {
    if text.contains(char::is_control) {
        return Err(Wrong {
            allowed: Some("text on one line, without control characters".to_owned()),
            ..Wrong::because("holds a line break or another control character")
        });
    }
    read(text, home)
}

fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", printable(text.value())),
        Value::Array(_) => "a list".to_owned(),
        Value::InlineTable(_) => "a table".to_owned(),
        other => printable(other.to_string().trim()),
    }
}
