//! The manifest of an instance directory as bytes: reading it with one `open` and one `read`, and saying precisely what is wrong with it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use abide_model::instance::{MANIFEST_VERSION, StatusChange};
use abide_model::{
    Conversation, Instance, InstanceId, LaunchScope, Policy, Recipe, Session, Standing, Timestamp,
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

use crate::damage::Damage;
use crate::dir;
use crate::error::{IoFailure, ReadError};
use crate::layout::MANIFEST;

/// No manifest is larger.
const LIMIT: usize = 4 << 20;
const TOO_LARGE: &str = "instance.json is larger than 4 MiB";
/// Nearly every manifest is smaller, so that one read gets it and a second one is not needed to see its end.
const USUAL: usize = 64 << 10;

/// What reading a manifest met instead of one.
#[derive(Debug)]
pub(crate) enum ManifestTrouble {
    /// Nothing of that name, or the instance directory itself is gone.
    Absent,
    /// It cannot be understood.
    Damaged(Damage),
    /// The system refused for a reason of its own, which says nothing about the manifest.
    System(Errno),
}

impl ManifestTrouble {
    /// The error that this is when it is about the instance `id`, whose instance directory is at `place`.
    pub(crate) fn with(self, id: InstanceId, place: &Path) -> ReadError {
        match self {
            Self::Absent => ReadError::NotFound(id),
            Self::Damaged(reason) => ReadError::Damaged { id, reason },
            Self::System(errno) => IoFailure::new("read", place, errno).into(),
        }
    }
}

/// Reads manifests, one after the other, into the same buffer.
pub(crate) struct ManifestReader {
    buffer: Vec<u8>,
}

impl ManifestReader {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; USUAL] }
    }

    /// The manifest at `path`, relative to `dir`, of the instance `id`.
    pub(crate) fn read(
        &mut self,
        dir: impl AsFd,
        path: impl AsRef<OsStr>,
        id: InstanceId,
    ) -> Result<Instance, ManifestTrouble> {
        // Without NONBLOCK a named pipe in the place of the manifest would hang every listing.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir.as_fd(), path.as_ref(), flags, Mode::empty())
            .map_err(|errno| why_not_opened(errno, dir.as_fd(), path.as_ref()))?;
        let decoded =
            self.contents(&file).and_then(|bytes| decode(bytes, id).map_err(ManifestTrouble::Damaged));
        // Only what cannot be used is looked at more closely: asking first would cost a call for each sound manifest.
        decoded.map_err(|trouble| match rustix::fs::fstat(&file) {
            Ok(stat) => {
                Damage::unless_regular(MANIFEST, dir::kind(&stat)).map_or(trouble, ManifestTrouble::Damaged)
            }
            Err(_) => trouble,
        })
    }

    fn contents(&mut self, file: &OwnedFd) -> Result<&[u8], ManifestTrouble> {
        let mut len = 0;
        loop {
            if len == self.buffer.len() {
                if len > LIMIT {
                    return Err(ManifestTrouble::Damaged(Damage::new(TOO_LARGE)));
                }
                self.buffer.resize((len * 4).min(LIMIT + 1), 0);
            }
            // A positioned read fails on pipes and terminals, whose contents would be gone once read.
            match rustix::io::pread(file, &mut self.buffer[len..], len as u64) {
                Ok(n) => {
                    len += n;
                    if len < self.buffer.len() {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(unreadable(errno)),
            }
        }
        Ok(&self.buffer[..len])
    }
}

fn why_not_opened(errno: Errno, dir: impl AsFd, path: &OsStr) -> ManifestTrouble {
    match errno {
        Errno::NOENT => ManifestTrouble::Absent,
        Errno::LOOP | Errno::NXIO => match dir::stat(dir, path) {
            Ok(stat) => {
                let damage = Damage::unless_regular(MANIFEST, dir::kind(&stat));
                damage.map_or_else(|| unreadable(errno), ManifestTrouble::Damaged)
            }
            Err(_) => unreadable(errno),
        },
        Errno::NOTDIR => ManifestTrouble::Damaged(Damage::NOT_A_DIRECTORY),
        errno => unreadable(errno),
    }
}

fn unreadable(errno: Errno) -> ManifestTrouble {
    match errno {
        // These are about this process or this machine, and pass.
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => ManifestTrouble::System(errno),
        errno => ManifestTrouble::Damaged(Damage::unreadable(MANIFEST, errno)),
    }
}

/// The instance that `bytes` describe, which must be `id`.
pub(crate) fn decode(bytes: &[u8], id: InstanceId) -> Result<Instance, Damage> {
    if bytes.is_empty() {
        return Err(Damage::new("instance.json is empty"));
    }
    // Checked as a whole, and not string by string: with ten thousand manifests that is a sixth of the work.
    let decoded = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    };
    let instance: Instance = decoded.map_err(|error| diagnose(bytes, &error))?;
    if instance.version != MANIFEST_VERSION {
        return Err(wrong_version(instance.version.into()));
    }
    if instance.id != id {
        let other = instance.id;
        return Err(Damage::new(format!("instance.json belongs to {other}, not to this directory")));
    }
    Ok(instance)
}

/// The bytes of the manifest of `instance`, checked to read back as the same instance: a manifest that this abide
/// could not read again would be damage done by our own hand.
pub(crate) fn encode(instance: &Instance) -> Result<Vec<u8>, String> {
    let mut bytes = serde_json::to_vec_pretty(instance).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    if bytes.len() > LIMIT {
        return Err(TOO_LARGE.to_owned());
    }
    match decode(&bytes, instance.id) {
        Ok(back) if back == *instance => Ok(bytes),
        Ok(_) => Err("it would be read back differently".to_owned()),
        Err(damage) => Err(damage.to_string()),
    }
}

fn wrong_version(found: u64) -> Damage {
    Damage::new(if found > MANIFEST_VERSION.into() {
        format!(
            "written by a newer abide (manifest version {found}; this one knows {MANIFEST_VERSION}): upgrade abide"
        )
    } else {
        format!("field `version` of instance.json: there is no version {found}")
    })
}

fn diagnose(bytes: &[u8], error: &serde_json::Error) -> Damage {
    match error.classify() {
        Category::Eof => {
            let (line, column) = (error.line(), error.column());
            Damage::new(format!("instance.json is incomplete: it ends at line {line}, column {column}"))
        }
        Category::Syntax | Category::Io => Damage::new(format!("instance.json is not JSON: {error}")),
        Category::Data => match serde_json::from_slice::<Value>(bytes) {
            Ok(value) => diagnose_value(&value, error),
            Err(error) => diagnose(bytes, &error),
        },
    }
}

fn diagnose_value(value: &Value, error: &serde_json::Error) -> Damage {
    // The version comes first: what a newer abide wrote need not look like anything that this one knows.
    match value.get("version").and_then(Value::as_u64) {
        Some(version) if version != u64::from(MANIFEST_VERSION) => return wrong_version(version),
        _ => {}
    }
    for (field, check) in FIELDS {
        if let Some(found) = value.get(field)
            && let Err(error) = check(found)
        {
            return Damage::new(format!("field `{field}` of instance.json: {error}"));
        }
    }
    Damage::new(format!("instance.json is not a manifest: {error}"))
}

type Check = fn(&Value) -> Result<(), serde_json::Error>;

/// The fields of a manifest, because the parser says what is wrong but not where.
const FIELDS: &[(&str, Check)] = &[
    ("version", is::<u32>),
    ("id", is::<InstanceId>),
    ("name", is::<Option<String>>),
    ("scope", is::<LaunchScope>),
    ("role", is::<String>),
    ("status", is::<Standing>),
    ("policy", is::<Option<Policy>>),
    ("generation", is::<u64>),
    ("created", is::<Timestamp>),
    ("recipe", is::<Recipe>),
    ("prepared", is::<bool>),
    ("sessions", is::<Vec<Session>>),
    ("parked", is::<Vec<Conversation>>),
    ("last_session", is::<u32>),
    ("history", is::<Vec<StatusChange>>),
    ("isolation", is::<Option<String>>),
];

fn is<T: DeserializeOwned>(value: &Value) -> Result<(), serde_json::Error> {
    T::deserialize(value).map(drop)
}

#[cfg(test)]
mod tests {
    use abide_model::ProcessIdentity;
    use proptest::prelude::*;

    use super::*;

    fn instance() -> Instance {
        let by = ProcessIdentity { pid: abide_model::Pid(1), start: 2, boot: "b".into() };
        let scope = LaunchScope::directory("/work/shop".into());
        let recipe = Recipe::on_host("/work/shop".into());
        let mut instance = Instance::starting(
            "k7p9m2xq".parse().unwrap(),
            scope,
            "default".into(),
            recipe,
            by,
            Timestamp(1000),
        );
        instance.name = Some("shop".into());
        instance.policy = Some(Policy::Keep);
        instance.last_session = 3;
        instance
    }

    fn damage(bytes: &[u8]) -> String {
        decode(bytes, instance().id).unwrap_err().to_string()
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named_whichever_it_is() {
        let whole = serde_json::to_value(instance()).unwrap();
        for field in whole.as_object().unwrap().keys() {
            let mut wrong = whole.clone();
            wrong[field] = serde_json::json!({"wrong": ["type"]});
            let said = damage(wrong.to_string().as_bytes());
            assert!(said.starts_with(&format!("field `{field}` of instance.json: ")), "{said}");
        }
    }

    #[test]
    fn a_field_that_is_missing_is_named() {
        for field in ["id", "scope", "role", "status", "created", "recipe"] {
            let mut whole = serde_json::to_value(instance()).unwrap();
            whole.as_object_mut().unwrap().remove(field);
            let said = damage(whole.to_string().as_bytes());
            let expected = format!("instance.json is not a manifest: missing field `{field}`");
            assert!(said.starts_with(&expected), "{said}");
        }
    }

    #[test]
    fn a_newer_manifest_is_recognised_even_if_nothing_else_in_it_is() {
        let newer = "written by a newer abide (manifest version 2; this one knows 1): upgrade abide";
        assert_eq!(damage(br#"{"version": 2, "id": {"bits": 7}, "mood": "fine"}"#), newer);
        let mut whole = serde_json::to_value(instance()).unwrap();
        whole["version"] = 2.into();
        assert_eq!(damage(whole.to_string().as_bytes()), newer);
        whole["version"] = 0.into();
        assert_eq!(
            damage(whole.to_string().as_bytes()),
            "field `version` of instance.json: there is no version 0"
        );
    }

    #[test]
    fn what_could_not_be_read_back_is_not_encoded() {
        let mut twice = instance();
        twice.extra.insert("id".into(), "k7p9m2xr".into());
        assert!(encode(&twice).is_err(), "a field of ours hidden among the unknown ones");
        let mut damaged = instance();
        damaged.status.status = abide_model::Status::Damaged("x".into());
        assert!(encode(&damaged).is_err());
        let mut huge = instance();
        huge.name = Some("x".repeat(LIMIT));
        assert!(encode(&huge).is_err());
    }

    proptest! {
        #[test]
        fn no_part_of_a_manifest_passes_for_a_whole_one(cut in 0.0..1.0f64) {
            let whole = encode(&instance()).unwrap();
            // The line break at the end is the one byte whose loss means nothing.
            let cut = (cut * (whole.len() - 1) as f64) as usize;
            prop_assert!(decode(&whole[..cut], instance().id).is_err());
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(decode(&bytes, instance().id).is_err());
        }
    }
}
