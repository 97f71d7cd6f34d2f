//! The configuration directory: everything the rest of the program asks of it.

use std::fs;
use std::path::{Path, PathBuf};

use abide_model::text::nearest;

use crate::disk::{Disk, Lock};
use crate::edit::{Edit, setting};
use crate::entry::{Entry, list};
use crate::error::ConfigError;
use crate::file_kind::{FileKind, Source};
use crate::name::Name;
use crate::path;
use crate::role::Role;
use crate::schema::Record;
use crate::settings::Settings;
use crate::workspace::Workspace;

/// A configuration directory. Reading takes no lock and never writes; a file of an older version is migrated in memory
/// and only rewritten by a change to it.
#[derive(Debug, Clone)]
pub struct ConfigDir {
    path: PathBuf,
    disk: Disk,
}

/// Everything of one kind by name, sound or not.
pub type Listing<T> = Vec<(String, Result<T, ConfigError>)>;

/// The workspace that a directory belongs to.
#[derive(Debug)]
pub struct FoundWorkspace {
    /// The workspace with the nearest directory.
    pub workspace: Option<(Name, Workspace)>,
    /// Workspaces that could not be read, so that nobody knows whether the directory is theirs.
    pub unreadable: Vec<(String, ConfigError)>,
}

impl ConfigDir {
    /// The configuration in `path`, of the operator whose home directory is `home`.
    pub fn new(path: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), disk: Disk { home: home.into() } }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the general settings are.
    pub fn settings_file(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// Where a workspace is.
    pub fn workspace_file(&self, name: &Name) -> PathBuf {
        self.path.join("workspaces").join(format!("{name}.toml"))
    }

    /// Where a role is.
    pub fn role_file(&self, name: &Name) -> PathBuf {
        self.path.join("roles").join(name.as_str()).join("role.toml")
    }

    /// The general settings.
    pub fn load(&self) -> Result<Settings, ConfigError> {
        self.settings()?.decode(&self.disk.home)
    }

    /// The value of one general setting.
    pub fn get(&self, key: &str) -> Result<Entry, ConfigError> {
        let (path, _, presence) = setting::<Settings>(key)?;
        let source = self.settings()?;
        source.decode::<Settings>(&self.disk.home)?;
        Ok(Entry::new(&path, source.draft.value(&path).as_ref(), presence))
    }

    /// Every general setting with its value; of those under names of the operator's choice, the ones that are set.
    pub fn list(&self) -> Result<Vec<Entry>, ConfigError> {
        let source = self.settings()?;
        source.decode::<Settings>(&self.disk.home)?;
        let document = source.draft.document().map_err(|error| source.no_place(error))?;
        Ok(list(Settings::FIELDS, document.as_item()))
    }

    /// Sets one general setting.
    pub fn set(&self, key: &str, value: &str) -> Result<(), ConfigError> {
        let lock = self.lock()?;
        let change = |source: &mut Source| source.set::<Settings>(key, value);
        self.change::<Settings, _>(&lock, &self.settings_file(), change).map(drop)
    }

    /// Takes a general setting, or a group of them, out of the file; whether it was there.
    pub fn unset(&self, key: &str) -> Result<bool, ConfigError> {
        let lock = self.lock()?;
        let change = |source: &mut Source| source.unset::<Settings>(key);
        let (was_there, _) = self.change::<Settings, _>(&lock, &self.settings_file(), change)?;
        Ok(was_there)
    }

    /// One workspace.
    pub fn workspace(&self, name: &Name) -> Result<Workspace, ConfigError> {
        match self.source::<Workspace>(&self.workspace_file(name))? {
            Some(source) => source.decode(&self.disk.home),
            None => Err(self.missing_workspace(name)),
        }
    }

    /// Every workspace by name; one that can not be read does not hide the others.
    pub fn workspaces(&self) -> Result<Listing<Workspace>, ConfigError> {
        let files = self.disk.names(&self.path.join("workspaces"))?;
        let names = files.iter().filter_map(|file| file.strip_suffix(".toml"));
        let visible = names.filter(|name| !name.is_empty() && !name.starts_with('.'));
        let read = |name: &str| self.workspace(&name.parse()?);
        Ok(visible.map(|name| (name.to_owned(), read(name))).collect())
    }

    /// The workspace whose directory is `dir` or the nearest one above it.
    pub fn workspace_for(&self, dir: &Path) -> Result<FoundWorkspace, ConfigError> {
        let dir = real(dir);
        let mut unreadable = Vec::new();
        let mut nearest: Vec<(Name, Workspace)> = Vec::new();
        let mut depth = 0;
        for (name, workspace) in self.workspaces()? {
            let parsed = workspace.and_then(|workspace| Ok((name.parse::<Name>()?, workspace)));
            let (name, workspace) = match parsed {
                Ok(sound) => sound,
                Err(error) => {
                    unreadable.push((name, error));
                    continue;
                }
            };
            let root = real(&workspace.dir);
            let parts = root.components().count();
            if dir.starts_with(&root) && parts >= depth {
                if parts > depth {
                    nearest.clear();
                }
                depth = parts;
                nearest.push((name, workspace));
            }
        }
        if nearest.len() > 1 {
            let names = nearest.iter().map(|(name, _)| name.to_string()).collect();
            return Err(ConfigError::Ambiguous { dir: self.disk.shown(&dir), names });
        }
        Ok(FoundWorkspace { workspace: nearest.pop(), unreadable })
    }

    /// Makes a workspace of the directory `dir`.
    pub fn create_workspace(&self, name: &Name, dir: &str, edits: &[Edit]) -> Result<Workspace, ConfigError> {
        let lock = self.lock()?;
        let file = self.workspace_file(name);
        if fs::symlink_metadata(&file).is_ok() {
            return Err(ConfigError::Exists { name: name.to_string() });
        }
        let (_, made) = self.change(&lock, &file, |source| {
            source.set::<Workspace>("dir", dir)?;
            self.apply(name, source, edits)
        })?;
        Ok(made)
    }

    /// Changes a workspace: all of `edits`, or none.
    pub fn edit_workspace(&self, name: &Name, edits: &[Edit]) -> Result<Workspace, ConfigError> {
        self.refuse_missing(name)?;
        let lock = self.lock()?;
        self.refuse_missing(name)?;
        let file = self.workspace_file(name);
        let (_, edited) = self.change(&lock, &file, |source| self.apply(name, source, edits))?;
        Ok(edited)
    }

    /// Removes a workspace: its file, nothing of its directory.
    pub fn remove_workspace(&self, name: &Name) -> Result<(), ConfigError> {
        self.refuse_missing(name)?;
        let lock = self.lock()?;
        self.refuse_missing(name)?;
        self.disk.remove(&lock, &self.workspace_file(name))
    }

    /// One role; `default` is there without a file.
    pub fn role(&self, name: &Name) -> Result<Role, ConfigError> {
        match self.source::<Role>(&self.role_file(name))? {
            Some(source) => source.decode(&self.disk.home),
            None if *name == Name::default_role() => Ok(Role::built_in()),
            None => Err(ConfigError::NoSuchRole {
                name: name.to_string(),
                nearest: nearest_name(name, &self.role_names()?),
                file: self.disk.shown(&self.role_file(name)),
            }),
        }
    }

    /// Every role by name; one that can not be read does not hide the others.
    pub fn roles(&self) -> Result<Listing<Role>, ConfigError> {
        let read = |name: &String| self.role(&name.parse()?);
        Ok(self.role_names()?.into_iter().map(|name| (name.clone(), read(&name))).collect())
    }

    fn role_names(&self) -> Result<Vec<String>, ConfigError> {
        let roles = self.path.join("roles");
        let mut names = self.disk.names(&roles)?;
        names.retain(|name| fs::symlink_metadata(roles.join(name).join("role.toml")).is_ok());
        let built_in = Name::default_role().to_string();
        if !names.contains(&built_in) {
            names.push(built_in);
            names.sort();
        }
        Ok(names)
    }

    fn apply(&self, name: &Name, source: &mut Source, edits: &[Edit]) -> Result<(), ConfigError> {
        for edit in edits {
            match edit {
                Edit::Set { key, value } => source.set::<Workspace>(key, value)?,
                Edit::Unset { key } => drop(source.unset::<Workspace>(key)?),
                Edit::AddMount(mount) => {
                    let added = source.draft.push_tables("mounts", &[mount.entries()]);
                    added.map_err(|error| source.no_place(error))?;
                }
                Edit::RemoveMount { target } => self.remove_mount(name, source, target)?,
            }
        }
        Ok(())
    }

    fn remove_mount(&self, name: &Name, source: &mut Source, target: &str) -> Result<(), ConfigError> {
        let workspace: Workspace = source.decode(&self.disk.home)?;
        let wanted = match target.strip_prefix("~/") {
            Some(rest) => self.disk.home.join(rest),
            None => PathBuf::from(target),
        };
        let Some(index) = workspace.mounts.iter().position(|mount| mount.target_path() == wanted) else {
            let known = workspace.mounts.iter().map(|mount| self.disk.shown(mount.target_path()));
            let known: Vec<_> = known.collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(ConfigError::NoSuchMount {
                name: name.to_string(),
                target: self.disk.shown(&wanted),
                known,
            });
        };
        let place = path::Path(vec![path::Step::Key("mounts".to_owned()), path::Step::Index(index)]);
        source.draft.remove(&place).map_err(|error| source.no_place(error).into())
    }

    fn lock(&self) -> Result<Lock, ConfigError> {
        self.disk.lock(&self.path)
    }

    /// Changes a file, and tells what it says then. Nothing is written unless the whole result is sound.
    fn change<T: FileKind, R>(
        &self,
        lock: &Lock,
        file: &Path,
        change: impl FnOnce(&mut Source) -> Result<R, ConfigError>,
    ) -> Result<(R, T), ConfigError> {
        let mut source = self.source_or_empty::<T>(file)?;
        let result = change(&mut source)?;
        let decoded = source.decode(&self.disk.home)?;
        if source.is_changed() {
            self.disk.write(lock, file, source.draft.text())?;
        }
        Ok((result, decoded))
    }

    fn settings(&self) -> Result<Source, ConfigError> {
        self.source_or_empty::<Settings>(&self.settings_file())
    }

    fn source_or_empty<T: FileKind>(&self, file: &Path) -> Result<Source, ConfigError> {
        Ok(self.source::<T>(file)?.unwrap_or_else(|| Source::empty::<T>(self.disk.shown(file))))
    }

    fn source<T: FileKind>(&self, file: &Path) -> Result<Option<Source>, ConfigError> {
        let content = self.disk.read(file)?;
        content.map(|content| Source::parse::<T>(self.disk.shown(file), content)).transpose()
    }

    fn refuse_missing(&self, name: &Name) -> Result<(), ConfigError> {
        match fs::symlink_metadata(self.workspace_file(name)) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.missing_workspace(name)),
        }
    }

    fn missing_workspace(&self, name: &Name) -> ConfigError {
        let files = self.disk.names(&self.path.join("workspaces")).unwrap_or_default();
        let names = files.iter().filter_map(|file| file.strip_suffix(".toml")).map(str::to_owned);
        let nearest = nearest_name(name, &names.collect::<Vec<_>>());
        ConfigError::NoSuchWorkspace { name: name.to_string(), nearest }
    }
}

fn nearest_name(name: &Name, known: &[String]) -> Option<String> {
    nearest(name.as_str(), known.iter().map(String::as_str)).map(str::to_owned)
}

/// `dir` without links, as far as it exists.
fn real(dir: &Path) -> PathBuf {
    fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned())
}
