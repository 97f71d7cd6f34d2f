//! Where an image comes from: everything that it is built from, had and pinned.

use std::fs;
use std::path::{Path, PathBuf};

use abide_git::SourceCache;
use abide_model::container::{BaseImage, ImageBuild, ImageSource};

use super::super::Docker;
use super::base::BaseAliases;
use super::build_dir::BuildDir;
use super::{Told, dockerfile, refused};
use crate::place::PlaceError;

/// What an image can be built from at once.
#[derive(Debug)]
pub(super) enum ResolvedSource {
    /// An image that the engine has under this name.
    Image { from: String },
    /// A Dockerfile, and the directory that it is built in.
    Build { _dir: BuildDir, file: PathBuf, context: PathBuf, args: Vec<(String, String)> },
}

pub(super) fn is_url(origin: &str) -> bool {
    origin.contains("://")
}

impl Docker {
    /// Has everything that `source` is made from, and pins it there.
    pub(super) fn resolve(
        &self,
        cache: &SourceCache,
        source: &mut ImageSource,
        aliases: &BaseAliases<'_>,
        told: Told<'_>,
    ) -> Result<ResolvedSource, PlaceError> {
        match source {
            ImageSource::Reference(base) => {
                *base = self.pinned(base, told)?;
                let alias = aliases.name(base, self.image(&base.name)?.as_ref())?;
                Ok(ResolvedSource::Image { from: alias.unwrap_or_else(|| base.name.clone()) })
            }
            ImageSource::Build(build) => {
                let dir = self.build_dir()?;
                let id = copy(cache, build, &dir)?;
                cache.check_out(&id, &dir.tree(), &dir.index()).map_err(refused)?;
                build.commit = Some(id);
                let text = fs::read_to_string(dir.inside(&build.dockerfile)?);
                let text = text.map_err(|error| refused(format!("{}: {error}", build.dockerfile)))?;
                let text = self.pin_bases(&text, build, aliases, told)?;
                let (file, context) = (dir.write_dockerfile(&text)?, dir.inside(&build.context)?);
                Ok(ResolvedSource::Build { _dir: dir, file, context, args: build.args.clone() })
            }
        }
    }

    /// Pins what a Dockerfile starts from, and gives its text with names that mean what was pinned.
    fn pin_bases(
        &self,
        text: &str,
        build: &mut ImageBuild,
        aliases: &BaseAliases<'_>,
        told: Told<'_>,
    ) -> Result<String, PlaceError> {
        let known = std::mem::take(&mut build.bases);
        let mut pin = |name: &str| -> Result<Option<String>, PlaceError> {
            let is = |base: &&BaseImage| base.name == name;
            let base = known.iter().find(is).cloned().unwrap_or_else(|| BaseImage::named(name));
            let base = self.pinned(&base, told)?;
            let alias = aliases.name(&base, self.image(name)?.as_ref())?;
            if !build.bases.contains(&base) {
                build.bases.push(base);
            }
            Ok(alias)
        };
        dockerfile::with_bases(text, &build.args, &mut pin)
    }
}

/// git's id of what is built, which `cache` then has: of what is pinned, or else of what is there now.
fn copy(cache: &SourceCache, build: &ImageBuild, dir: &BuildDir) -> Result<String, PlaceError> {
    let now = || {
        let paths = [build.context.as_str(), build.dockerfile.as_str()];
        cache.copy(Path::new(&build.origin), &paths, &dir.index()).map_err(refused)
    };
    match &build.commit {
        None => now(),
        Some(id) if is_url(&build.origin) => {
            let fetched = cache.fetch(&build.origin, id);
            fetched.map_err(|error| refused(format!("{} at {id}: {error}", build.origin)))?;
            Ok(id.clone())
        }
        // The cache may be deleted; the directory may still be as it was.
        Some(id) if cache.has(id).map_err(refused)? || now()? == *id => Ok(id.clone()),
        Some(_) => Err(refused(format!(
            "{} has changed since the image was built from it, and abide's copy of it is gone; restore the directory, or start a new instance",
            build.origin
        ))),
    }
}
