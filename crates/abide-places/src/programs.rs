//! Our own program as containers see it: a directory per build below abide's home, mounted read-only as a whole, so that a
//! running container sees a newer one as soon as it is there, and a start does not depend on where abide is installed.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use abide_store::Store;

/// The directory that containers see.
pub fn dir(store: &Store) -> PathBuf {
    store.layout().home().join("bin")
}

/// Copies the program at `exe` likewise, and gives a path that stays: a container that was made with it finds there whatever
/// was installed last when it is started again.
pub fn install_current(store: &Store, exe: &Path) -> io::Result<PathBuf> {
    let program = install(store, exe)?;
    let (current, build) = (dir(store).join("abide"), program.strip_prefix(dir(store)).unwrap_or(&program));
    if !fs::read_link(&current).is_ok_and(|link| link == build) {
        let unfinished = dir(store).join(format!(".abide.{}", std::process::id()));
        let _ = fs::remove_file(&unfinished);
        std::os::unix::fs::symlink(build, &unfinished)?;
        fs::rename(&unfinished, &current)?;
    }
    Ok(current)
}

/// Copies the program at `exe` to where containers see it, unless it is there, and gives the path, which is the same inside.
pub fn install(store: &Store, exe: &Path) -> io::Result<PathBuf> {
    let seen = fs::metadata(exe)?;
    let build = format!(
        "{}-{:x}-{:x}{:08x}",
        env!("CARGO_PKG_VERSION"),
        seen.size(),
        seen.mtime(),
        seen.mtime_nsec()
    );
    let dir = dir(store);
    let program = dir.join(&build).join("abide");
    if program.is_file() {
        return Ok(program);
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    // Made beside its place and moved there whole: another start must not run half a program.
    let unfinished = dir.join(format!(".{build}.{}", std::process::id()));
    fs::DirBuilder::new().mode(0o755).create(&unfinished)?;
    let made = copy(exe, &unfinished.join("abide")).and_then(|()| fs::rename(&unfinished, dir.join(&build)));
    if let Err(error) = made {
        let _ = fs::remove_dir_all(&unfinished);
        // Another start was faster.
        if !program.is_file() {
            return Err(error);
        }
    }
    Ok(program)
}

fn copy(exe: &Path, to: &Path) -> io::Result<()> {
    fs::copy(exe, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    fs::File::open(to)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_copied_once_and_another_build_gets_its_own_directory() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path().to_owned()).unwrap();
        let exe = home.path().join("exe");
        fs::write(&exe, "one").unwrap();
        let first = install(&store, &exe).unwrap();
        let made = fs::metadata(&first).unwrap().ino();
        assert_eq!(fs::metadata(install(&store, &exe).unwrap()).unwrap().ino(), made);
        fs::write(&exe, "another").unwrap();
        let second = install(&store, &exe).unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"one");
        assert_eq!(fs::read(&second).unwrap(), b"another");
        assert_eq!(fs::read_dir(dir(&store)).unwrap().count(), 2, "nothing unfinished is left");
    }
}
