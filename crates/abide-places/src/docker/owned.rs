//! Everything on the engine that this home made.

use super::Docker;
use super::image::ImageView;
use super::labels::{self, Labels};
use crate::place::{OwnedResource, PlaceError, ResourceKind};

impl Docker {
    pub(super) fn everything_owned(&self) -> Result<Vec<OwnedResource>, PlaceError> {
        let resource = |kind, id: String, name: &str, labels: &Labels| OwnedResource {
            kind,
            id,
            name: name.trim_start_matches('/').to_owned(),
            instance: labels::instance(labels),
            lifetime: labels::lifetime(labels),
        };
        let mut owned = Vec::new();
        for view in self.containers(None)? {
            owned.push(resource(ResourceKind::Container, view.id.clone(), &view.name, &view.labels()));
        }
        for view in self.networks(None)? {
            owned.push(resource(
                ResourceKind::Network,
                view.id,
                &view.name,
                &view.labels.unwrap_or_default(),
            ));
        }
        for view in self.volumes(None)? {
            let labels = view.labels.unwrap_or_default();
            owned.push(resource(ResourceKind::Volume, view.name.clone(), &view.name, &labels));
        }
        for view in self.images()? {
            let labels = view.labels();
            let name =
                view.repo_tags.unwrap_or_default().into_iter().next().unwrap_or_else(|| view.id.clone());
            owned.push(resource(ResourceKind::Image, view.id, &name, &labels));
        }
        Ok(owned)
    }

    fn images(&self) -> Result<Vec<ImageView>, PlaceError> {
        let mut args: Vec<String> = ["images", "-q", "--no-trunc"].map(str::to_owned).to_vec();
        args.extend(labels::filters(&self.owner, None));
        let mut images: Vec<ImageView> = self.engine.inspect("image", &self.engine.ids(args)?)?;
        images.retain(|image| labels::are_of(&self.owner, &image.labels()));
        Ok(images)
    }
}
