//! The kinds of files, and a file of one kind from its bytes to a typed value.

use std::path::Path;

use toml_edit::{Document, Item};

use crate::draft::{Draft, NoPlace, replace};
use crate::error::ConfigError;
use crate::mistake::{Mistake, Mistakes};
use crate::path::{self, Position, find_nearest};
use crate::reader::{Complaint, ComplaintAbout, ConfigReader, VERSION};
use crate::schema::SettingsRecord;
use crate::text::printable;

/// One step from a version of the schema to the next.
pub(crate) type Migration = fn(&mut Draft);

/// The step to a version that only has settings which the one before did not know: nothing in a file changes. The version says
/// to an older abide that it must not read the file.
pub(crate) fn additions(_: &mut Draft) {}

/// A kind of file.
pub(crate) trait FileKind: SettingsRecord {
    /// What the file is called in the reference.
    const TITLE: &'static str;
    /// The steps from version 1 to the current one, in order.
    const MIGRATIONS: &'static [Migration] = &[];
    /// The version that is written today.
    const VERSION: i64 = Self::MIGRATIONS.len() as i64 + 1;

    /// Refuses values that are right by themselves but not together.
    fn check(&self, _at: &mut ConfigReader<'_>) {}
}

/// A file as it is on disk, and as it is being changed.
pub(crate) struct ConfigSource {
    shown: String,
    original: String,
    pub(crate) draft: Draft,
}

impl ConfigSource {
    /// A file that is not there yet.
    pub(crate) fn empty<T: FileKind>(shown: String) -> Self {
        let mut source = Self { shown, original: String::new(), draft: Draft::default() };
        source.stamp::<T>();
        source
    }

    /// The file with this content, brought to the current version in memory.
    pub(crate) fn parse<T: FileKind>(shown: String, content: Vec<u8>) -> Result<Self, ConfigError> {
        let original = String::from_utf8(content).map_err(|error| {
            let at = Position::of(error.utf8_error().valid_up_to(), error.as_bytes());
            about_file(&shown, at, "not text in UTF-8", "a TOML file in UTF-8")
        })?;
        let document = Document::parse(original.as_str()).map_err(|error| {
            let at = Position::of(error.span().map_or(0, |span| span.start), original.as_bytes());
            let problem = format!("not TOML: {}", printable(error.message()));
            Mistake { allowed: None, ..about_file(&shown, at, &problem, "") }
        })?;
        let version = version_of::<T>(&shown, &document)?;
        let draft = Draft::new(&original, document.into_mut());
        let mut source = Self { shown, original, draft };
        source.migrate::<T>(version);
        Ok(source)
    }

    fn migrate<T: FileKind>(&mut self, version: usize) {
        let steps = T::MIGRATIONS.get(version - 1..).unwrap_or_default();
        if !steps.is_empty() {
            steps.iter().for_each(|step| step(&mut self.draft));
            self.stamp::<T>();
        }
    }

    /// Notes the current version, and takes the draft so far for the file's own content.
    fn stamp<T: FileKind>(&mut self) {
        match &mut self.draft.document_mut()[VERSION] {
            Item::Value(old) => replace(old, T::VERSION.into()),
            absent => *absent = toml_edit::value(T::VERSION),
        }
        self.draft.settle();
    }

    /// Whether there is anything to write.
    pub(crate) fn is_changed(&self) -> bool {
        self.draft.is_touched() && self.draft.text() != self.original
    }

    pub(crate) fn no_place(&self, NoPlace { path, problem }: NoPlace) -> Mistake {
        Mistake {
            file: Some(self.shown.clone()),
            setting: printable(&path.to_string()),
            problem: problem.to_owned(),
            allowed: Some("editing the file by hand".to_owned()),
            ..Mistake::default()
        }
    }

    /// What the file says, or every mistake in it.
    pub(crate) fn decode<T: FileKind>(&self, home: &Path) -> Result<T, ConfigError> {
        let mut reader = ConfigReader::new(home);
        let read = reader.record(T::FIELDS, self.draft.document().as_table());
        if reader.complaints.is_empty() {
            let decoded: T = serde_json::from_value(read)
                .map_err(|error| ConfigError::Refused(format!("{}: {error}", self.shown)))?;
            decoded.check(&mut reader);
            if reader.complaints.is_empty() {
                return Ok(decoded);
            }
        }
        Err(self.mistakes(reader).into())
    }

    fn mistakes(&self, reader: ConfigReader<'_>) -> Mistakes {
        let original = Document::parse(self.original.as_str()).ok();
        let mut listed: Vec<Mistake> = reader
            .complaints
            .into_iter()
            .map(|complaint| self.mistake(complaint, original.as_ref()))
            .collect();
        listed.sort_by_key(|mistake| mistake.position);
        Mistakes { listed, more: reader.unlisted }
    }

    fn mistake(&self, complaint: Complaint, original: Option<&Document<&str>>) -> Mistake {
        let new = self.draft.touches(&complaint.path);
        let position = original.filter(|_| !new).map(|document| {
            let found = find_nearest(document, &complaint.path);
            let span = match complaint.about {
                ComplaintAbout::Key => found.key.or(found.item),
                ComplaintAbout::Value => found.item.or(found.key),
            };
            Position::of(span.map_or(0, |span| span.start), self.original.as_bytes())
        });
        Mistake {
            file: (!new).then(|| self.shown.clone()),
            position,
            setting: printable(&complaint.path.to_string()),
            ..complaint.mistake
        }
    }
}

fn about_file(shown: &str, at: Position, problem: &str, allowed: &str) -> Mistake {
    Mistake {
        file: Some(shown.to_owned()),
        position: Some(at),
        problem: problem.to_owned(),
        allowed: Some(allowed.to_owned()),
        ..Mistake::default()
    }
}

/// The version that a file says it is written for; one that says nothing is for the current one.
fn version_of<T: FileKind>(shown: &str, document: &Document<&str>) -> Result<usize, ConfigError> {
    let Some(item) = document.get(VERSION) else { return Ok(T::VERSION as usize) };
    let found = find_nearest(document, &path::Path::from_iter([VERSION]));
    let at = Position::of(found.item.map_or(0, |span| span.start), document.raw().as_bytes());
    match item.as_integer() {
        Some(found) if found > T::VERSION => {
            // What a newer abide means by it, this one cannot know.
            Err(ConfigError::Refused(format!(
                "{shown}:{}: has schema version {found}, but this abide supports up to {}; upgrade abide",
                at.line,
                T::VERSION
            )))
        }
        Some(found @ 1..) => Ok(found as usize),
        _ => {
            let problem = "not a schema version";
            let allowed = format!("whole numbers from 1 to {}", T::VERSION);
            let found = item.as_value().map(|value| printable(value.to_string().trim()));
            let setting = VERSION.to_owned();
            Err(Mistake { setting, found, ..about_file(shown, at, problem, &allowed) }.into())
        }
    }
}
