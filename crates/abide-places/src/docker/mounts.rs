//! What a container sees of this machine: parts of its instance directory at their own paths, our binary, its trees, and what the
//! recipe shares. Everything else of the instance directory stays outside.

use std::path::{Component, Path};
use std::{fs, io};

use abide_model::choice::Isolation;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::supervisor_lock;

use crate::owner::Owner;
use crate::place::{Access, Bind, BringUp, PlaceError};

/// Makes the directories and locks that a container is given, where they are not there.
pub(super) fn prepare(wanted: &BringUp<'_>) -> Result<(), PlaceError> {
    let dir = InstanceDir::new(wanted.dir);
    let made = dir
        .prepare_run()
        .and_then(|()| dir.prepare_state())
        .and_then(|()| supervisor_lock::make_all(&dir))
        .and_then(|()| fs::create_dir_all(&wanted.home));
    made.map_err(|error| PlaceError::Refused(format!("{}: {error}", wanted.dir.display())))
}

/// Everything that a container sees, none of it nested in a later one's way.
pub(super) fn binds(wanted: &BringUp<'_>) -> Result<Vec<Bind>, PlaceError> {
    let dir = InstanceDir::new(wanted.dir);
    let at_its_path = |path: &Path, access| Bind { source: path.into(), target: path.into(), access };
    let mut binds: Vec<Bind> = [dir.run_dir(), dir.state_dir(), dir.journal_dir(), wanted.home.clone()]
        .iter()
        .map(|path| at_its_path(path, Access::ReadWrite))
        .collect();
    // A mount point cannot be replaced or removed from inside.
    let fixed = dir.locks().into_iter().chain([dir.keeper_config()]);
    binds.extend(fixed.map(|path| at_its_path(&path, Access::ReadOnly)));
    binds.push(at_its_path(wanted.programs, Access::ReadOnly));
    for mount in &wanted.instance.recipe.mounts {
        let access = if mount.read_only { Access::ReadOnly } else { Access::ReadWrite };
        binds.push(match (mount.isolation, &mount.tree) {
            (Isolation::Shared, _) => {
                Bind { source: mount.source.clone(), target: mount.target.clone(), access }
            }
            (_, Some(tree)) => at_its_path(&wanted.dir.join("tree").join(tree), access),
            (_, None) => {
                return Err(PlaceError::Refused(format!(
                    "{} has no tree in the instance yet",
                    mount.source.display()
                )));
            }
        });
    }
    binds.extend(wanted.binds.iter().cloned());
    Ok(binds)
}

/// Refuses what is not there, or must not be seen inside.
pub(super) fn check(owner: &Owner, wanted: &BringUp<'_>, binds: &[Bind]) -> Result<(), PlaceError> {
    let refuse = |path: &Path, why: &str| Err(PlaceError::Refused(format!("{}: {why}", path.display())));
    for bind in binds {
        match fs::metadata(&bind.source) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return refuse(
                    &bind.source,
                    "the instance is given this, and it is not there; put it back first",
                );
            }
            Err(error) => return refuse(&bind.source, &error.to_string()),
        }
    }
    let home = resolved(&owner.home);
    let shared = wanted.instance.recipe.mounts.iter().filter(|mount| mount.isolation == Isolation::Shared);
    for mount in shared.clone() {
        let source = resolved(&mount.source);
        let writable = shared.clone().filter(|other| !other.read_only && other.source != mount.source);
        if source != mount.source && writable.into_iter().any(|other| mount.source.starts_with(&other.source))
        {
            return refuse(
                &mount.source,
                "it is behind a link where a container can make links; put the directory itself there",
            );
        }
        if overlap(&source, &home) {
            return refuse(
                &mount.source,
                "it would show abide's own directory to the container; share a part of it",
            );
        }
        if !source.is_dir() && !source.is_file() {
            return refuse(&mount.source, "only files and directories can be shared with a container");
        }
        let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
        if !mount.target.is_absolute() || !mount.target.components().all(plain) {
            return refuse(&mount.target, "the path inside must be absolute and without `..`");
        }
        if overlap(&mount.target, &owner.home) {
            return refuse(
                &mount.target,
                "abide's own directory is there in the container; choose another path inside",
            );
        }
    }
    Ok(())
}

fn resolved(path: &Path) -> std::path::PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// The value of `--mount` for a bind: fields separated by commas, quoted as in CSV. Unlike `--volume` it never makes a missing source.
pub(super) fn flag(bind: &Bind) -> Result<String, PlaceError> {
    let field = |name: &str, path: &Path| {
        let path = path.to_str().filter(|path| !path.contains(['\0', '\n', '\r'])).ok_or_else(|| {
            PlaceError::Refused(format!("{path:?}: the engine cannot mount a path with such characters"))
        })?;
        Ok(format!("\"{name}={}\"", path.replace('"', "\"\"")))
    };
    let mut text = format!("type=bind,{},{}", field("source", &bind.source)?, field("target", &bind.target)?);
    if bind.access == Access::ReadOnly {
        text.push_str(",readonly");
    }
    Ok(text)
}
