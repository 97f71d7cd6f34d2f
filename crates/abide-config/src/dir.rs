//! The configuration directory: everything the rest of the program asks of it.

use std::fs;
use std::path::{Path, PathBuf};

use abide_model::text::nearest;
use toml_edit::Document;

use crate::disk::{Disk, Lock};
use crate::edit::{WorkspaceEdit, mount_entries, setting};
use crate::entry::{SettingEntry, list};
use crate::error::ConfigError;
use crate::file_kind::{ConfigSource, FileKind};
use crate::name::Name;
use crate::path;
use crate::role::Role;
use crate::schema::SettingsRecord;
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

    /// The directory of a role.
    pub fn role_dir(&self, name: &Name) -> PathBuf {
        self.path.join("roles").join(name.as_str())
    }

    /// Where a role is.
    pub fn role_file(&self, name: &Name) -> PathBuf {
        self.role_dir(name).join("role.toml")
    }

    /// The general settings.
    pub fn load(&self) -> Result<Settings, ConfigError> {
        self.settings()?.decode(&self.disk.home)
    }

    /// The value of one general setting.
    pub fn get(&self, key: &str) -> Result<SettingEntry, ConfigError> {
        let (path, _, presence) = setting::<Settings>(key)?;
        let source = self.settings()?;
        source.decode::<Settings>(&self.disk.home)?;
        Ok(SettingEntry::new(&path, source.draft.value(&path), presence))
    }

    /// Every general setting with its value; of those under names of the operator's choice, the ones that are set.
    pub fn list(&self) -> Result<Vec<SettingEntry>, ConfigError> {
        let source = self.settings()?;
        source.decode::<Settings>(&self.disk.home)?;
        Ok(list(Settings::FIELDS, source.draft.document().as_item()))
    }

    /// Sets one general setting.
    pub fn set(&self, key: &str, value: &str) -> Result<(), ConfigError> {
        let lock = self.lock()?;
        let change = |source: &mut ConfigSource| source.set::<Settings>(key, value);
        self.change::<Settings, _>(&lock, &self.settings_file(), change).map(drop)
    }

    /// Takes a general setting, or a group of them, out of the file; whether it was there.
    pub fn unset(&self, key: &str) -> Result<bool, ConfigError> {
        let lock = self.lock()?;
        let change = |source: &mut ConfigSource| source.unset::<Settings>(key);
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

    /// Every workspace by name; one that cannot be read does not hide the others.
    pub fn workspaces(&self) -> Result<Listing<Workspace>, ConfigError> {
        let files = self.disk.names(&self.path.join("workspaces"))?;
        let names = files.iter().filter_map(|file| file.strip_suffix(".toml"));
        let visible = names.filter(|name| !name.is_empty() && !name.starts_with('.'));
        let read = |name: &str| self.workspace(&name.parse()?);
        Ok(visible.map(|name| (name.to_owned(), read(name))).collect())
    }

    /// The workspace whose directory is `dir` or the nearest one above it. A file that cannot be read is an error if it may
    /// be that workspace's: to go on without what it asks for would be worse than to stop.
    pub fn workspace_for(&self, dir: &Path) -> Result<Option<(Name, Workspace)>, ConfigError> {
        let dir = real(dir);
        let depth = |root: &Path| dir.starts_with(root).then(|| root.components().count());
        let mut claims: Vec<(usize, Result<_, ConfigError>)> = Vec::new();
        for (name, workspace) in self.workspaces()? {
            let sound = workspace.and_then(|workspace| Ok((name.parse::<Name>()?, workspace)));
            let depth = match &sound {
                Ok((_, workspace)) => depth(&real(&workspace.dir)),
                Err(_) => self.stated_dir(&name).map_or(Some(usize::MAX), |root| depth(&root)),
            };
            claims.extend(depth.map(|depth| (depth, sound)));
        }
        let nearest = claims.iter().map(|(depth, _)| *depth).max();
        let nearest = claims.into_iter().filter(|(depth, _)| Some(*depth) == nearest);
        let mut nearest = nearest.map(|(_, sound)| sound).collect::<Result<Vec<_>, _>>()?;
        if nearest.len() > 1 {
            let names: Vec<&str> = nearest.iter().map(|(name, _)| name.as_str()).collect();
            return Err(ConfigError::Refused(format!(
                "{} is the directory of several workspaces: {}; change the directory of all but one, or remove them with `abide workspace remove`",
                self.disk.shown(&dir),
                names.join(", ")
            )));
        }
        Ok(nearest.pop())
    }

    /// The directory that the file of a workspace names, however wrong the rest of it is.
    fn stated_dir(&self, name: &str) -> Option<PathBuf> {
        let file = self.path.join("workspaces").join(format!("{name}.toml"));
        let text = String::from_utf8(self.disk.read(&file).ok()??).ok()?;
        let named = |line: &str| Some(Document::parse(line).ok()?.get("dir")?.as_str()?.to_owned());
        let dir = self.full(&text.lines().find_map(named)?);
        dir.is_absolute().then(|| real(&dir))
    }

    /// `path` with the home directory in place of `~`.
    fn full(&self, path: &str) -> PathBuf {
        path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |rest| self.disk.home.join(rest))
    }

    /// Makes a workspace of the directory `dir`.
    pub fn create_workspace(
        &self,
        name: &Name,
        dir: &str,
        edits: &[WorkspaceEdit],
    ) -> Result<Workspace, ConfigError> {
        let lock = self.lock()?;
        let file = self.workspace_file(name);
        if fs::symlink_metadata(&file).is_ok() {
            return Err(ConfigError::Refused(format!(
                "workspace {name} exists already; change it with `abide workspace edit {name}`, or choose another name"
            )));
        }
        let (_, made) = self.change(&lock, &file, |source| {
            source.set::<Workspace>("dir", dir)?;
            self.apply(name, source, edits)?;
            self.refuse_taken(name, source)
        })?;
        Ok(made)
    }

    /// Changes a workspace: all of `edits`, or none.
    pub fn edit_workspace(&self, name: &Name, edits: &[WorkspaceEdit]) -> Result<Workspace, ConfigError> {
        self.refuse_missing(name)?;
        let lock = self.lock()?;
        self.refuse_missing(name)?;
        let file = self.workspace_file(name);
        let moves = edits.iter().any(|edit| matches!(edit, WorkspaceEdit::Set { key, .. } if key == "dir"));
        let (_, edited) = self.change(&lock, &file, |source| {
            self.apply(name, source, edits)?;
            if moves { self.refuse_taken(name, source) } else { Ok(()) }
        })?;
        Ok(edited)
    }

    /// Refuses a workspace in the directory of another: what is launched there could belong to either.
    fn refuse_taken(&self, name: &Name, source: &ConfigSource) -> Result<(), ConfigError> {
        let wanted: Workspace = source.decode(&self.disk.home)?;
        let dir = real(&wanted.dir);
        for (other, workspace) in self.workspaces()? {
            let taken =
                workspace.map_or_else(|_| self.stated_dir(&other), |workspace| Some(real(&workspace.dir)));
            if other != name.as_str() && taken.as_ref() == Some(&dir) {
                return Err(ConfigError::Refused(format!(
                    "{} is the directory of workspace {other}; change it with `abide workspace edit {other}`, or remove it with `abide workspace remove {other}`",
                    self.disk.shown(&dir)
                )));
            }
        }
        Ok(())
    }

    /// Removes a workspace: its file, nothing of its directory.
    pub fn remove_workspace(&self, name: &Name) -> Result<(), ConfigError> {
        self.refuse_missing(name)?;
        let lock = self.lock()?;
        self.refuse_missing(name)?;
        self.disk.remove(&lock, &self.workspace_file(name))
    }

    /// One role; `default` and `devcontainer` are there without a file.
    pub fn role(&self, name: &Name) -> Result<Role, ConfigError> {
        match self.source::<Role>(&self.role_file(name))? {
            Some(source) => source.decode(&self.disk.home),
            None if *name == Name::default_role() || name.is_devcontainer_role() => Ok(Role::built_in()),
            None => Err(ConfigError::Refused(format!(
                "there is no role {name}{}; put its file at {}, or use the role default",
                did_you_mean(name, &self.role_names()?),
                self.disk.shown(&self.role_file(name))
            ))),
        }
    }

    fn role_names(&self) -> Result<Vec<String>, ConfigError> {
        let roles = self.path.join("roles");
        let mut names = self.disk.names(&roles)?;
        names.retain(|name| fs::symlink_metadata(roles.join(name).join("role.toml")).is_ok());
        names.push(Name::default_role().to_string());
        Ok(names)
    }

    fn apply(
        &self,
        name: &Name,
        source: &mut ConfigSource,
        edits: &[WorkspaceEdit],
    ) -> Result<(), ConfigError> {
        for edit in edits {
            match edit {
                WorkspaceEdit::Set { key, value } => source.set::<Workspace>(key, value)?,
                WorkspaceEdit::Unset { key } => drop(source.unset::<Workspace>(key)?),
                WorkspaceEdit::AddMount { source: dir, isolation } => {
                    let added = source.draft.push_table("mounts", &mount_entries(dir, *isolation));
                    added.map_err(|error| source.no_place(error))?;
                }
                WorkspaceEdit::RemoveMount { target } => self.remove_mount(name, source, target)?,
            }
        }
        Ok(())
    }

    fn remove_mount(&self, name: &Name, source: &mut ConfigSource, target: &str) -> Result<(), ConfigError> {
        let workspace: Workspace = source.decode(&self.disk.home)?;
        let wanted = self.full(target);
        let Some(index) = workspace.mounts.iter().position(|mount| mount.target_path() == wanted) else {
            let known = workspace.mounts.iter().map(|mount| self.disk.shown(mount.target_path()));
            let known: Vec<_> = known.collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(ConfigError::Refused(format!(
                "workspace {name} has no mount at {}; it has: {known}",
                self.disk.shown(&wanted)
            )));
        };
        let place = path::Path(vec![path::PathStep::Key("mounts".to_owned()), path::PathStep::Index(index)]);
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
        change: impl FnOnce(&mut ConfigSource) -> Result<R, ConfigError>,
    ) -> Result<(R, T), ConfigError> {
        let mut source = self.source_or_empty::<T>(file)?;
        let result = change(&mut source)?;
        let decoded = source.decode(&self.disk.home)?;
        if source.is_changed() {
            self.disk.write(lock, file, &source.draft.text())?;
        }
        Ok((result, decoded))
    }

    fn settings(&self) -> Result<ConfigSource, ConfigError> {
        self.source_or_empty::<Settings>(&self.settings_file())
    }

    fn source_or_empty<T: FileKind>(&self, file: &Path) -> Result<ConfigSource, ConfigError> {
        Ok(self.source::<T>(file)?.unwrap_or_else(|| ConfigSource::empty::<T>(self.disk.shown(file))))
    }

    fn source<T: FileKind>(&self, file: &Path) -> Result<Option<ConfigSource>, ConfigError> {
        let content = self.disk.read(file)?;
        content.map(|content| ConfigSource::parse::<T>(self.disk.shown(file), content)).transpose()
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
        let meant = did_you_mean(name, &names.collect::<Vec<_>>());
        ConfigError::NoSuchWorkspace { name: name.to_string(), meant }
    }
}

/// What was probably meant by `name`, to be said after it.
fn did_you_mean(name: &Name, known: &[String]) -> String {
    let nearest = nearest(name.as_str(), known.iter().map(String::as_str));
    nearest.map(|name| format!(" (did you mean \"{name}\"?)")).unwrap_or_default()
}

/// `dir` without links, as far as it exists.
fn real(dir: &Path) -> PathBuf {
    fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned())
}
