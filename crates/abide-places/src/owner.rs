//! Whose the things are that abide makes in a place: the mark by which they are found again, and by which no other home's are touched.

use std::path::{Path, PathBuf};
use std::{fs, io};

use abide_sys::atomic::{self, Durability};

/// The home of abide that things in a place belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Random and kept in the home: another machine on the same engine may have a home of the same path.
    pub id: String,
    /// Where that home is: a copy of it has the same id, and must not take what the first one made for its own.
    pub home: PathBuf,
}

impl Owner {
    /// The owner that the home at `home` is. Only one process may ask at a time for a home that never was one.
    pub fn of_home(home: &Path) -> io::Result<Self> {
        let file = home.join("owner");
        let id = match fs::read_to_string(&file) {
            Ok(id) => id.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let id = format!("{:016x}", atomic::random()?);
                atomic::write_path(&file, format!("{id}\n").as_bytes(), 0o600, Durability::Synced)?;
                id
            }
            Err(error) => return Err(error),
        };
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let text = format!("{} holds no id; what this home made in a place carries it", file.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(Self { id, home: home.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_stays_the_owner_that_it_was_and_damage_is_no_new_one() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = Owner::of_home(one.path()).unwrap();
        assert_eq!(Owner::of_home(one.path()).unwrap(), first);
        assert_ne!(Owner::of_home(other.path()).unwrap().id, first.id);
        fs::write(one.path().join("owner"), "").unwrap();
        assert_eq!(Owner::of_home(one.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
