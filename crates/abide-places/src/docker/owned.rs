//! Everything on the engine that this home made.

use serde::Deserialize;

use super::Docker;
use super::labels::{self, Labels};
use super::look::ConfigView;
use crate::place::{OwnedResource, PlaceError, ResourceKind};

/// An image, as `image inspect` has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ImageView {
    id: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    config: ConfigView,
}

impl Docker {
    pub(super) fn everything_owned(&self) -> Result<Vec<OwnedResource>, PlaceError> {
        let resource = |kind, id: String, name: &str, labels: &Labels| OwnedResource {
            kind,
            id,
            name: name.trim_start_matches('/').to_owned(),
            instance: labels::instance(labels),
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
            let name =
                view.repo_tags.unwrap_or_default().into_iter().next().unwrap_or_else(|| view.id.clone());
            owned.push(resource(
                ResourceKind::Image,
                view.id,
                &name,
                &view.config.labels.unwrap_or_default(),
            ));
        }
        Ok(owned)
    }

    fn images(&self) -> Result<Vec<ImageView>, PlaceError> {
        let mut args: Vec<String> = ["images", "-q", "--no-trunc"].map(str::to_owned).to_vec();
        args.extend(labels::filters(&self.owner, None));
        self.engine.inspect("image", &self.engine.ids(args)?)
    }
}
