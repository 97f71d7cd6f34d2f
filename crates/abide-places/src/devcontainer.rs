//! A project's own `devcontainer.json`, as far as it can be followed. It comes with the code, so it is not trusted with anything
//! of this machine but the project: what else it asks for is refused by name.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use abide_model::container::{BaseImage, ImageBuild, ImageSource, is_image_name};
use abide_model::recipe::{Mount, is_env_name};
use abide_model::{EnvRef, Extra, Isolation};
use serde_json::{Map, Value};

use crate::container_recipe::ContainerPlan;
use crate::place::PlaceError;

/// Where it is looked for, below the project.
const FILES: [&str; 2] = [".devcontainer/devcontainer.json", ".devcontainer.json"];
/// What only editors read.
const EDITOR_HINTS: [&str; 3] = ["name", "customizations", "$schema"];
const SUPPORTED: &str = "image, build.dockerfile, build.context, build.args, remoteUser, containerUser, containerEnv, \
                         remoteEnv, mounts, postCreateCommand";
/// The largest file that is read.
const LONGEST: u64 = 1 << 20;

/// What the project's `devcontainer.json` asks for, for sessions that run as `uid`.
pub(crate) fn read(project: &Path, uid: u32) -> Result<ContainerPlan, PlaceError> {
    let found = FILES.iter().find(|file| project.join(file).is_file());
    let Some(file) = found else {
        return Err(PlaceError::Refused(format!(
            "{} has no {}; write one, or use another role than devcontainer",
            project.display(),
            FILES[0]
        )));
    };
    let refused = |why: String| PlaceError::Refused(format!("{}: {why}", project.join(file).display()));
    let text = read_file(&project.join(file)).map_err(|error| refused(error.to_string()))?;
    parse(&text, project, Path::new(file), uid).map_err(refused)
}

fn read_file(path: &Path) -> std::io::Result<String> {
    if std::fs::metadata(path)?.len() > LONGEST {
        return Err(std::io::Error::other("it is larger than 1 MiB"));
    }
    std::fs::read_to_string(path)
}

/// A reader of one file.
struct DevcontainerReader<'a> {
    project: &'a Path,
    /// The file's own directory, below the project: paths in it are relative to that.
    dir: &'a Path,
    uid: u32,
}

fn parse(text: &str, project: &Path, file: &Path, uid: u32) -> Result<ContainerPlan, String> {
    let value: Value =
        serde_json::from_str(&without_comments(text)).map_err(|error| format!("not JSON: {error}"))?;
    let Value::Object(keys) = value else { return Err("not an object".to_owned()) };
    let reader = DevcontainerReader { project, dir: file.parent().unwrap_or(Path::new("")), uid };
    reader.plan(&keys)
}

impl DevcontainerReader<'_> {
    fn plan(&self, keys: &Map<String, Value>) -> Result<ContainerPlan, String> {
        let mut plan = ContainerPlan::default();
        let (mut source, mut refused) = (None, Vec::new());
        let mut users = BTreeMap::new();
        let mut remote_env = BTreeMap::new();
        for (key, value) in keys {
            match key.as_str() {
                "image" | "build" if source.is_some() => {
                    return Err("has both `image` and `build`; remove one".to_owned());
                }
                "image" => source = Some(ImageSource::Reference(BaseImage::named(self.image(value)?))),
                "build" => source = Some(ImageSource::Build(self.build(value, &mut refused)?)),
                "remoteUser" | "containerUser" => drop(users.insert(key.as_str(), self.user(key, value)?)),
                "containerEnv" => plan.env = self.env(key, value)?,
                "remoteEnv" => remote_env = self.env(key, value)?,
                "mounts" => plan.mounts = self.mounts(value)?,
                "postCreateCommand" => plan.setup = self.command(key, value)?,
                hint if EDITOR_HINTS.contains(&hint) => {}
                other => refused.push(other.to_owned()),
            }
        }
        if !refused.is_empty() {
            return Err(format!("not supported: {}; supported: {SUPPORTED}", refused.join(", ")));
        }
        plan.env.extend(remote_env);
        plan.recipe.image.source = source.ok_or("names neither `image` nor `build`; add one")?;
        plan.recipe.image.user = users.remove("remoteUser").or_else(|| users.remove("containerUser"));
        Ok(plan)
    }

    fn image(&self, value: &Value) -> Result<String, String> {
        let name = self.text("image", value)?;
        if is_image_name(&name) {
            Ok(name)
        } else {
            Err(format!("image: `{name}` is not the name of an image"))
        }
    }

    fn build(&self, value: &Value, refused: &mut Vec<String>) -> Result<ImageBuild, String> {
        let keys = value.as_object().ok_or("build: not an object")?;
        let mut build = ImageBuild { origin: self.project.display().to_string(), ..ImageBuild::default() };
        build.context = self.below_project("build.context", ".")?;
        for (key, value) in keys {
            match key.as_str() {
                "dockerfile" => {
                    build.dockerfile =
                        self.below_project("build.dockerfile", &self.text("build.dockerfile", value)?)?
                }
                "context" => {
                    build.context =
                        self.below_project("build.context", &self.text("build.context", value)?)?
                }
                "args" => build.args = self.texts("build.args", value)?.into_iter().collect(),
                other => refused.push(format!("build.{other}")),
            }
        }
        if build.dockerfile.is_empty() {
            return Err("build: has no `dockerfile`".to_owned());
        }
        Ok(build)
    }

    /// `path`, which the file names from its own directory, as one below the project.
    fn below_project(&self, key: &str, path: &str) -> Result<String, String> {
        let mut below = PathBuf::new();
        let escapes = || format!("{key}: `{path}` is outside of the project");
        for part in self.dir.join(path).components() {
            match part {
                Component::Normal(name) => below.push(name),
                Component::CurDir => {}
                Component::ParentDir if below.pop() => {}
                _ => return Err(escapes()),
            }
        }
        if below.as_os_str().is_empty() {
            below.push(".");
        }
        Ok(below.display().to_string())
    }

    /// Sessions run as the operator; a file that relies on being root would fail half way.
    fn user(&self, key: &str, value: &Value) -> Result<String, String> {
        let user = self.text(key, value)?;
        let is_root = user == "root" || user == "0";
        if is_root && self.uid != 0 {
            return Err(format!(
                "{key}: sessions run with your uid {}, not as root; remove `{key}`",
                self.uid
            ));
        }
        if user.is_empty() || !user.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
            return Err(format!("{key}: `{user}` is not the name of a user"));
        }
        Ok(user)
    }

    fn env(&self, key: &str, value: &Value) -> Result<BTreeMap<String, EnvRef>, String> {
        let reference = |(name, text): (String, String)| {
            let problem = match text.parse() {
                _ if !is_env_name(&name) => "not the name of a variable",
                // It would be resolved on the host at each start: a command of the project's would run there.
                Ok(EnvRef::Plain(_)) => return Ok((name, EnvRef::Plain(text))),
                _ => "a reference; set it under `env` of the workspace",
            };
            Err(format!("{key}.{name}: {problem}"))
        };
        self.texts(key, value)?.into_iter().map(reference).collect()
    }

    fn mounts(&self, value: &Value) -> Result<Vec<Mount>, String> {
        let mounts = value.as_array().ok_or("mounts: not a list")?;
        let mount = |(index, value): (usize, &Value)| {
            let key = format!("mounts[{index}]");
            let parts = match value {
                Value::String(_) => {
                    let text = self.text(&key, value)?;
                    let part = |part: &str| {
                        let (name, value) = part.split_once('=').unwrap_or((part, ""));
                        (name.to_owned(), value.to_owned())
                    };
                    text.split(',').map(part).collect()
                }
                _ => self.texts(&key, value)?,
            };
            self.mount(&key, &parts)
        };
        mounts.iter().enumerate().map(mount).collect()
    }

    fn mount(&self, key: &str, parts: &BTreeMap<String, String>) -> Result<Mount, String> {
        let mut mount = Mount { isolation: Isolation::Shared, extra: Extra::new(), ..Mount::default() };
        let mut kind = "volume";
        for (name, value) in parts {
            match (name.as_str(), value.as_str()) {
                ("type", value) => kind = value,
                ("source" | "src", value) => mount.source = value.into(),
                ("target" | "dst" | "destination", value) => mount.target = value.into(),
                ("readonly" | "ro", "" | "true" | "1") => mount.read_only = true,
                // It has no effect on Linux.
                ("consistency", _) => {}
                (other, _) => return Err(format!("{key}: not supported: {other}")),
            }
        }
        if kind != "bind" {
            return Err(format!("{key}: not supported: type={kind}; supported: type=bind"));
        }
        if !mount.target.is_absolute() || mount.target.parent().is_none() || has_parent_dir(&mount.target) {
            return Err(format!("{key}: its target is not an absolute path below /"));
        }
        let (source, project) = (mount.source.canonicalize(), self.project.canonicalize());
        match (source, project) {
            (Ok(source), Ok(project)) if mount.source.is_absolute() && source.starts_with(&project) => {
                Ok(Mount { source, ..mount })
            }
            (Err(error), _) => Err(format!("{key}: {}: {error}", mount.source.display())),
            _ => Err(format!(
                "{key}: {} is not inside the project; list it under `mounts` of the workspace instead",
                mount.source.display()
            )),
        }
    }

    /// A command line. One that is text is for a shell.
    fn command(&self, key: &str, value: &Value) -> Result<Vec<String>, String> {
        match value {
            Value::String(_) => Ok(vec!["/bin/sh".to_owned(), "-c".to_owned(), self.text(key, value)?]),
            Value::Array(words) => words.iter().map(|word| self.text(key, word)).collect(),
            _ => Err(format!("{key}: not supported: several commands at once; write them as one")),
        }
    }

    fn texts(&self, key: &str, value: &Value) -> Result<BTreeMap<String, String>, String> {
        let entries = value.as_object().ok_or_else(|| format!("{key}: not an object"))?;
        let entry = |(name, value): (&String, &Value)| {
            self.text(&format!("{key}.{name}"), value).map(|text| (name.clone(), text))
        };
        entries.iter().map(entry).collect()
    }

    /// Text with the project's directory in place of the variables that mean it: it has the same path inside and outside.
    fn text(&self, key: &str, value: &Value) -> Result<String, String> {
        let project = self.project.display().to_string();
        let name = self.project.file_name().unwrap_or_default().to_string_lossy();
        let text = value.as_str().ok_or_else(|| format!("{key}: not text"))?;
        let text = text
            .replace("${localWorkspaceFolder}", &project)
            .replace("${containerWorkspaceFolder}", &project);
        let text = text
            .replace("${localWorkspaceFolderBasename}", &name)
            .replace("${containerWorkspaceFolderBasename}", &name);
        match (text.find("${"), text.contains('\0')) {
            // A shell has variables of its own.
            (Some(_), _) if key == "postCreateCommand" => Ok(text),
            (Some(at), _) => {
                let variable: String = text[at..].chars().take_while(|c| *c != '}').chain(['}']).collect();
                Err(format!("{key}: not supported: {variable}; supported: ${{localWorkspaceFolder}}"))
            }
            (None, true) => Err(format!("{key}: holds a NUL")),
            (None, false) => Ok(text),
        }
    }
}

fn has_parent_dir(path: &Path) -> bool {
    path.components().any(|part| part == Component::ParentDir)
}

/// `text` with blanks in place of comments and of the commas that end a list, neither of which JSON has.
fn without_comments(text: &str) -> String {
    let mut plain: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let length = match (first, after.first()) {
            (b'"', _) => string_length(rest),
            (b'/', Some(b'/')) => rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
            (b'/', Some(b'*')) => {
                after.windows(2).skip(1).position(|pair| pair == b"*/").map_or(rest.len(), |at| at + 4)
            }
            _ => 1,
        };
        let (token, remaining) = rest.split_at(length);
        match first {
            b'/' if length > 1 => plain.extend(token.iter().map(|b| if *b == b'\n' { b'\n' } else { b' ' })),
            b']' | b'}' => {
                let last = plain.iter().rposition(|b| !b.is_ascii_whitespace());
                if let Some(comma) = last.filter(|at| plain[*at] == b',') {
                    plain[comma] = b' ';
                }
                plain.extend_from_slice(token);
            }
            _ => plain.extend_from_slice(token),
        }
        rest = remaining;
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// How long the string is that `text` begins with, its quotes included.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
#[path = "devcontainer/tests.rs"]
mod tests;
