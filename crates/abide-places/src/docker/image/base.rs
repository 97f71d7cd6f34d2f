//! Images that others are built on: had by the engine or pulled, and pinned.

use std::cell::RefCell;
use std::time::Duration;

use abide_model::container::{BaseImage, is_image_name};
use abide_sys::atomic;

use super::super::Docker;
use super::super::engine::{Engine, TO_ACT, TO_ANSWER};
use super::{ImageView, Told, refused};
use crate::place::{PlaceError, Stage, StageEvent};

/// How long an image may take to arrive.
const TO_PULL: Duration = Duration::from_secs(3600);
/// What a base is called while it is built on, where its own name means another image.
const ALIAS: &str = "localhost/abide-base";

impl Docker {
    /// `base` as the engine has it now; where it is pinned already, exactly that one.
    pub(super) fn pinned(&self, base: &BaseImage, told: Told<'_>) -> Result<BaseImage, PlaceError> {
        if !is_image_name(&base.name) {
            return Err(refused(format!("`{}` is not the name of an image", base.name)));
        }
        match &base.id {
            Some(id) if self.image(id)?.is_some() => Ok(base.clone()),
            Some(id) => self.recover(base, id, told),
            None => {
                let view = match self.image(&base.name)? {
                    Some(view) => view,
                    None => self.pull(&base.name, told)?,
                };
                let digest = view.repo_digests.unwrap_or_default().into_iter().next();
                Ok(BaseImage { id: Some(view.id), digest, ..base.clone() })
            }
        }
    }

    /// Gets the image `id` again, which the engine has lost.
    fn recover(&self, base: &BaseImage, id: &str, told: Told<'_>) -> Result<BaseImage, PlaceError> {
        let mut found = self.image(&base.name)?.map(|view| view.id);
        let mut why = String::new();
        for name in base.digest.iter().chain([&base.name]) {
            if found.as_deref() == Some(id) {
                break;
            }
            match self.pull(name, told) {
                Ok(view) => found = Some(view.id),
                Err(PlaceError::Refused(error)) => why = format!(" ({error})"),
                Err(other) => return Err(other),
            }
        }
        match found {
            Some(found) if found == id => Ok(base.clone()),
            Some(other) => Err(refused(format!(
                "the image needs {name} with the id {id}, which is gone; {name} is {other} now{why}. Load the old one into the engine, or start a new instance",
                name = base.name
            ))),
            None => Err(refused(format!(
                "the image needs {} with the id {id}, which is gone and cannot be pulled{why}. Load it into the engine, or start a new instance",
                base.name
            ))),
        }
    }

    fn pull(&self, name: &str, told: Told<'_>) -> Result<ImageView, PlaceError> {
        let said = |line: &str| told(StageEvent::Said(Stage::Resolve, line.to_owned()));
        let pulled = self.watched(["pull", name], TO_PULL, &said)?;
        if pulled.status.success()
            && let Some(view) = self.image(name)?
        {
            return Ok(view);
        }
        // It is the registry that failed, unless the engine has gone away.
        self.engine.ask(["version"], TO_ANSWER)?;
        let why = pulled.last_lines.iter().next_back().map_or("", String::as_str);
        Err(refused(format!(
            "{name} is not on the engine and cannot be pulled: {why}. Name another image, or load this one with `{} load`",
            self.engine.program()
        )))
    }
}

/// Names for pinned images whose own name means another by now. They go when the build is over.
#[derive(Debug)]
pub(super) struct BaseAliases<'a> {
    engine: &'a Engine,
    made: RefCell<Vec<String>>,
}

impl<'a> BaseAliases<'a> {
    pub fn new(engine: &'a Engine) -> Self {
        Self { engine, made: RefCell::default() }
    }

    /// The name to use for `base` instead of its own, which the engine has for `named`; `None` if that is right.
    pub fn name(&self, base: &BaseImage, named: Option<&ImageView>) -> Result<Option<String>, PlaceError> {
        let Some(id) = base.id.as_deref().filter(|id| named.is_none_or(|view| view.id != **id)) else {
            return Ok(None);
        };
        let alias = format!("{ALIAS}:{:016x}", atomic::random().map_err(refused)?);
        self.engine.ask(["tag", id, &alias], TO_ACT)?;
        self.made.borrow_mut().push(alias.clone());
        Ok(Some(alias))
    }

    /// Takes `alias` away, unless the image has no other name: removing the last one would remove the image.
    fn take_away(&self, alias: &str) -> Result<(), PlaceError> {
        let view: Option<ImageView> = self.engine.inspect("image", &[alias.to_owned()])?.into_iter().next();
        let names =
            view.map(|view| [view.repo_tags, view.repo_digests]).into_iter().flatten().flatten().flatten();
        if names.into_iter().any(|name| !name.starts_with(ALIAS)) {
            self.engine.ask_if_there(["rmi", alias], TO_ACT)?;
        }
        Ok(())
    }
}

impl Drop for BaseAliases<'_> {
    fn drop(&mut self) {
        for alias in self.made.borrow().iter() {
            if let Err(error) = self.take_away(alias) {
                tracing::warn!("{alias} is left on the engine: {error}");
            }
        }
    }
}
