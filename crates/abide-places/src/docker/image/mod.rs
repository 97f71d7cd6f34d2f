//! The image of an instance: found or built from pinned inputs, once for all recipes that ask for the same.

mod base;
mod build;
mod build_dir;
mod dockerfile;
mod layer;
mod seed;
mod source;

use std::collections::BTreeMap;

use abide_git::SourceCache;
use abide_model::container::{ContainerRecipe, Image, ImageSource};
use serde::Deserialize;

use self::base::BaseAliases;
use self::source::ResolvedSource;
use super::engine::TO_ACT;
use super::look::ConfigView;
use super::{Docker, labels};
use crate::place::{PlaceError, Stage, StageEvent};

/// What images of this machine are called. A registry of that name is never asked for them.
const TAG: &str = "localhost/abide";
/// The same, for what a role's Dockerfile builds, while the image is made from it.
const ROLE_TAG: &str = "localhost/abide-role";

/// What is heard of what is under way.
type Told<'a> = &'a dyn Fn(StageEvent);

/// An image, as `image inspect` has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ImageView {
    pub id: String,
    #[serde(default)]
    pub repo_tags: Option<Vec<String>>,
    #[serde(default)]
    pub repo_digests: Option<Vec<String>>,
    pub config: ConfigView,
}

impl ImageView {
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.config.labels.clone().unwrap_or_default()
    }
}

impl Docker {
    /// The image `name`, a name or an id, if the engine has it.
    fn image(&self, name: &str) -> Result<Option<ImageView>, PlaceError> {
        Ok(self.engine.inspect("image", &[name.to_owned()])?.into_iter().next())
    }

    pub(super) fn prepare_image(
        &self,
        recipe: &ContainerRecipe,
        told: Told<'_>,
    ) -> Result<Image, PlaceError> {
        if !recipe.image.id.is_empty() && self.image(&recipe.image.id)?.is_some() {
            return Ok(recipe.image.clone());
        }
        told(StageEvent::Begun(Stage::Resolve));
        let cache = SourceCache::open(&self.cache_dir().join("sources.git")).map_err(refused)?;
        let aliases = BaseAliases::new(&self.engine);
        let mut image = recipe.image.clone();
        let source = self.resolve(&cache, &mut image.source, &aliases, told)?;
        let hash = cache.hash(&self.inputs(recipe, &image)?).map_err(refused)?;
        told(StageEvent::Done(Stage::Resolve, shown(&image.source)));
        image.tag = format!("{TAG}:{}", short(&hash));
        if let Some(found) = self.image_of_recipe(&hash)? {
            return Ok(Image { id: found.id, ..image });
        }
        told(StageEvent::Begun(Stage::Build));
        self.build_image(recipe, &image, &source, &hash, told)?;
        let Some(built) = self.image(&image.tag)? else {
            return Err(PlaceError::Refused(format!("{} was built and is gone again; try again", image.tag)));
        };
        told(StageEvent::Done(Stage::Build, image.tag.clone()));
        Ok(Image { id: built.id, ..image })
    }

    fn build_image(
        &self,
        recipe: &ContainerRecipe,
        image: &Image,
        source: &ResolvedSource,
        hash: &str,
        told: Told<'_>,
    ) -> Result<(), PlaceError> {
        match source {
            ResolvedSource::Image { from } => self.derive(recipe, image, from, hash, told),
            ResolvedSource::Build { file, context, args, .. } => {
                let tag = format!("{ROLE_TAG}:{}", short(hash));
                let mut flags = labels::of_owner(&self.owner);
                let arg =
                    |(name, value): &(String, String)| ["--build-arg".to_owned(), format!("{name}={value}")];
                flags.extend(args.iter().flat_map(arg));
                let next = format!("correct the Dockerfile of {}, then try again", shown(&image.source));
                self.run_build(file, context, &tag, &flags, told).map_err(|failure| failure.then(&next))?;
                let derived = self.derive(recipe, image, &tag, hash, told);
                // The image has all of it; as a parent it goes with the image.
                let untagged = self.engine.ask_if_there(["rmi", &tag], TO_ACT);
                derived.and(untagged.map(drop))
            }
        }
    }

    /// Adds the layer of `recipe` to the image `from`.
    fn derive(
        &self,
        recipe: &ContainerRecipe,
        image: &Image,
        from: &str,
        hash: &str,
        told: Told<'_>,
    ) -> Result<(), PlaceError> {
        let home = self.probe(from, image)?;
        let mut labels = labels::pairs_of_owner(&self.owner);
        labels.push((labels::RECIPE, hash.to_owned()));
        labels.extend(home.map(|home| (labels::SEED, home)));
        let text = layer::dockerfile(from, &labels, recipe, &image.packages);
        let dir = self.build_dir()?;
        let file = dir.write_dockerfile(&text)?;
        let next = "correct the image of the role, or choose another, then try again";
        let offline = ["--network".to_owned(), "none".to_owned()];
        let flags = if image.packages.is_empty() { &offline[..] } else { &[] };
        let built = self.run_build(&file, &dir.tree(), &image.tag, flags, told);
        built.map_err(|failure| failure.then(next))
    }

    /// Everything that goes into the image. Its names are part of it, and the home, so that no two homes share an image that one of
    /// them may remove.
    fn inputs(&self, recipe: &ContainerRecipe, image: &Image) -> Result<String, PlaceError> {
        let Image { source, packages, user, .. } = image;
        let (ids, owner) = ((recipe.uid, recipe.gid), (&self.owner.id, &self.owner.home));
        serde_json::to_string(&(source, packages, user, ids, owner, layer::SCRIPT)).map_err(refused)
    }

    /// The image that was built from the inputs `hash`.
    fn image_of_recipe(&self, hash: &str) -> Result<Option<ImageView>, PlaceError> {
        let filter = format!("label={}={hash}", labels::RECIPE);
        let ids = self.engine.ids(["images", "-q", "--no-trunc", "--filter", &filter])?;
        let found: Vec<ImageView> = self.engine.inspect("image", &ids)?;
        Ok(found.into_iter().find(|image| labels::are_of(&self.owner, &image.labels())))
    }
}

/// What an image is made from, in words.
fn shown(source: &ImageSource) -> String {
    match source {
        ImageSource::Reference(base) => base.name.clone(),
        ImageSource::Build(build) => {
            match build.commit.as_deref().filter(|_| source::is_url(&build.origin)) {
                Some(commit) => format!("{} at {}", build.origin, short(commit)),
                None => format!("{}/{}", build.origin, build.dockerfile),
            }
        }
    }
}

/// The beginning of a hash, enough to tell it from others.
fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

fn refused(error: impl std::fmt::Display) -> PlaceError {
    PlaceError::Refused(error.to_string())
}
