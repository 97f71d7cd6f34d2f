//! What a new home begins as: the home that the image's own user has.

use std::fs;
use std::path::Path;

use abide_model::container::Image;

use super::super::engine::TO_ACT;
use super::super::{Docker, labels};
use super::refused;
use crate::place::PlaceError;

impl Docker {
    /// Makes `dest`, which is not there or empty, with what is in the home of the image's user. One that holds something is left as
    /// it is.
    pub(in super::super) fn seed(&self, image: &Image, dest: &Path) -> Result<(), PlaceError> {
        let Some(view) = self.image(&image.id)? else {
            return Err(refused(format!("{} is gone; try again to build it again", image.tag)));
        };
        let labels = view.labels();
        let (Some(home), true) = (labels.get(labels::SEED), is_new(dest).map_err(refused)?) else {
            return fs::create_dir_all(dest).map_err(refused);
        };
        let mut create: Vec<String> = ["create", "--network", "none"].map(str::to_owned).to_vec();
        create.extend(labels::of_owner(&self.owner));
        create.extend([image.id.clone(), "/bin/sh".to_owned()]);
        let container = self.engine.ask(create, TO_ACT)?.text();
        // Half a home must not be taken for a whole one.
        let staged = dest.with_extension("seed");
        let copied = self.copy_home(&container, home, &staged);
        let removed = self.engine.ask_if_there(["rm", "--force", "--volumes", &container], TO_ACT);
        let placed = copied.and_then(|()| fs::rename(&staged, dest).map_err(refused));
        let _ = fs::remove_dir_all(&staged);
        placed.and(removed.map(drop))
    }

    fn copy_home(&self, container: &str, home: &str, staged: &Path) -> Result<(), PlaceError> {
        let _ = fs::remove_dir_all(staged);
        fs::create_dir_all(staged).map_err(refused)?;
        let (from, to) = (format!("{container}:{home}/."), staged.to_string_lossy());
        self.engine.ask(["cp", &from, &to], TO_ACT).map(drop)
    }
}

fn is_new(dest: &Path) -> std::io::Result<bool> {
    match fs::read_dir(dest) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
