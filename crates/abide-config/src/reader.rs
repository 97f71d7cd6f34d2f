//! Reads a document by its schema and collects every mistake on the way.

use abide_model::text::nearest;
use toml_edit::{Item, TableLike};

use crate::path::{Path, PathStep};
use crate::rule::{KeyRule, Leaf, Spelling, Wrong};
use crate::schema::{Field, SettingRule, SettingShape, keys_of};
use crate::text::{a, printable};

/// The key that says which version of the schema a file is written for; every kind of file has it.
pub(crate) const VERSION: &str = "version";

/// A hostile file of a megabyte could hold a hundred thousand mistakes; nobody reads more than these.
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
    pub(crate) found: Option<String>,
    pub(crate) problem: String,
    pub(crate) allowed: Option<String>,
    pub(crate) nearest: Option<String>,
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

    pub(crate) fn inside<T>(&mut self, step: PathStep, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.0.push(step);
        let result = read(self);
        self.path.0.pop();
        result
    }

    pub(crate) fn field<R: SettingRule>(
        &mut self,
        table: &dyn TableLike,
        key: &str,
        absent: impl FnOnce() -> Option<R::Value>,
    ) -> Option<R::Value> {
        match table.get(key) {
            Some(item) => self.inside(PathStep::Key(key.to_owned()), |at| R::read(item, at)),
            None => absent().or_else(|| {
                let allowed = match R::SHAPE {
                    SettingShape::Leaf(spelling) => (spelling.allowed)(),
                    _ => key.to_owned(),
                };
                self.complain(ComplaintAbout::Value, None, format!("`{key}` is missing"), Some(allowed), None)
            }),
        }
    }

    pub(crate) fn leaf<L: Leaf>(&mut self, item: &Item) -> Option<L::Value> {
        let Some(value) = item.as_value() else {
            return self.not_a(L::SPELLING.noun, &(L::SPELLING.allowed)());
        };
        match L::parse(value, self.home) {
            Ok(value) => Some(value),
            Err(wrongs) => {
                for wrong in wrongs {
                    self.wrong(&L::SPELLING, value, wrong);
                }
                None
            }
        }
    }

    fn wrong(&mut self, spelling: &Spelling, value: &toml_edit::Value, wrong: Wrong) {
        let element = wrong.index.and_then(|index| value.as_array()?.get(index));
        let value = element.unwrap_or(value);
        // What stands in `[env]` may be a secret written in plain; it must not reach a terminal or a log.
        let found = (!spelling.secret).then(|| shown_value(value));
        let meant = wrong
            .nearest
            .or_else(|| nearest(value.as_str()?, spelling.words.iter().copied()).map(str::to_owned));
        let allowed = wrong.allowed.unwrap_or_else(spelling.allowed);
        let steps = wrong.index.map(PathStep::Index);
        let depth = self.path.0.len();
        self.path.0.extend(steps);
        self.complain::<()>(ComplaintAbout::Value, found, wrong.problem, Some(allowed), meant);
        self.path.0.truncate(depth);
    }

    pub(crate) fn key<K: KeyRule>(&mut self, key: &str) -> Option<K::Key> {
        K::parse(key).or_else(|| {
            self.complain(
                ComplaintAbout::Key,
                None,
                format!("not {}", a(K::NOUN)),
                Some(K::ALLOWED.to_owned()),
                None,
            )
        })
    }

    pub(crate) fn refuse_unknown_keys(&mut self, table: &dyn TableLike, fields: &'static [Field]) {
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
            self.inside(PathStep::Key(key.to_owned()), |at| {
                at.complain::<()>(
                    ComplaintAbout::Key,
                    None,
                    "not a setting".to_owned(),
                    Some(keys_of(fields)),
                    meant,
                );
            });
        }
    }

    pub(crate) fn not_a<T>(&mut self, noun: &str, allowed: &str) -> Option<T> {
        self.complain(ComplaintAbout::Value, None, format!("not {}", a(noun)), Some(allowed.to_owned()), None)
    }

    /// A mistake that only shows when values are compared with each other.
    pub(crate) fn disagreement(&mut self, at: Path, problem: String, allowed: &str) {
        let here = std::mem::replace(&mut self.path, at);
        self.complain::<()>(ComplaintAbout::Value, None, problem, Some(allowed.to_owned()), None);
        self.path = here;
    }

    /// Always `None`, so that a reader can complain and give up its own value in one expression.
    fn complain<T>(
        &mut self,
        about: ComplaintAbout,
        found: Option<String>,
        problem: String,
        allowed: Option<String>,
        nearest: Option<String>,
    ) -> Option<T> {
        if self.complaints.len() < LISTED {
            let path = self.path.clone();
            self.complaints.push(Complaint { path, about, found, problem, allowed, nearest });
        } else {
            self.unlisted += 1;
        }
        None
    }
}

fn shown_value(value: &toml_edit::Value) -> String {
    match value {
        toml_edit::Value::String(text) => format!("\"{}\"", printable(text.value())),
        toml_edit::Value::Array(_) => "a list".to_owned(),
        toml_edit::Value::InlineTable(_) => "a table".to_owned(),
        other => printable(other.to_string().trim()),
    }
}
