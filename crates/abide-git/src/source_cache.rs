//! What images are built from: abide's own copies of directories and of commits of other repositories, in one bare repository.
//! A build starts from a copy, so that it can be repeated when the directory has changed or the repository has moved on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::{Git, GitDeadline};
use crate::error::{GitError, GitStep as _};

/// How long one step may take; a context may be large, and a repository far away.
const LIMIT: Duration = Duration::from_secs(600);
/// Files are kept as they are: no filter runs, and no line ending changes.
const ATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding\n";

#[derive(Debug)]
pub struct SourceCache {
    dir: PathBuf,
}

impl SourceCache {
    /// The copies in `dir`, which is made if it is not there.
    pub fn open(dir: &Path) -> Result<Self, GitError> {
        let cache = Self { dir: dir.to_owned() };
        let attributes = dir.join("info/attributes");
        if !attributes.exists() {
            fs::create_dir_all(dir).doing("create", dir)?;
            cache.git().run(["init", "--quiet", "--bare", "--template="])?;
            fs::create_dir_all(dir.join("info")).doing("create", dir)?;
            fs::write(&attributes, ATTRIBUTES).doing("write", &attributes)?;
        }
        Ok(cache)
    }

    fn git(&self) -> Git {
        Git::of_repository(&self.dir, GitDeadline::within(LIMIT)).with("GIT_LITERAL_PATHSPECS", "1")
    }

    /// Git that takes `dir` for its tree, with the index `index`.
    fn git_in(&self, dir: &Path, index: &Path) -> Git {
        // What the operator ignores everywhere is their editor's, not a part of what is built.
        let git = self.git().with("GIT_WORK_TREE", dir).with("GIT_INDEX_FILE", index);
        git.configured("core.excludesFile", "/dev/null").configured("core.autocrlf", "false")
    }

    /// Copies `paths` of `dir` as they are now, without what git ignores there, and gives git's id of the copy. `index` is a file to
    /// work with.
    pub fn copy(&self, dir: &Path, paths: &[&str], index: &Path) -> Result<String, GitError> {
        let git = self.git_in(dir, index);
        git.run(["add", "--all", "--"].iter().chain(paths))?;
        let entries = git.text(["ls-files", "--stage"])?;
        if let Some(nested) = entries.lines().find_map(|line| line.strip_prefix("160000 ")) {
            let path = dir.join(nested.split('\t').next_back().unwrap_or_default());
            let reason = "it is a repository of its own, which cannot be part of a build";
            return Err(GitError::Broken { path, reason });
        }
        let id = git.text(["write-tree"])?;
        self.keep(&id)?;
        Ok(id)
    }

    /// Gets the commit `id` of the repository at `url`.
    pub fn fetch(&self, url: &str, id: &str) -> Result<(), GitError> {
        if self.has(id)? {
            return Ok(());
        }
        let fetch =
            ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", "--end-of-options"];
        self.git().run(fetch.iter().copied().chain([url, id]))?;
        self.keep(id)
    }

    /// Keeps git from taking the copy for garbage.
    fn keep(&self, id: &str) -> Result<(), GitError> {
        self.git().run(["update-ref", &format!("refs/sources/{id}"), id])?;
        Ok(())
    }

    /// Whether there is a copy `id`.
    pub fn has(&self, id: &str) -> Result<bool, GitError> {
        Ok(self
            .git()
            .try_run(["rev-parse", "--verify", "--quiet", &format!("{id}^{{tree}}")])?
            .status
            .success())
    }

    /// Writes the copy `id` into the empty directory `dir`.
    pub fn check_out(&self, id: &str, dir: &Path, index: &Path) -> Result<(), GitError> {
        let git = self.git_in(dir, index);
        git.run(["read-tree", id])?;
        git.run(["checkout-index", "--all", "--force"])?;
        Ok(())
    }

    /// A name for `text` that no other text has.
    pub fn hash(&self, text: &str) -> Result<String, GitError> {
        let out = self.git().fed(["hash-object", "--stdin"], text.as_bytes())?;
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sources {
        dir: tempfile::TempDir,
        cache: SourceCache,
    }

    impl Sources {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let cache = SourceCache::open(&dir.path().join("cache")).unwrap();
            Self { dir, cache }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
            fs::write(self.path(name), text).unwrap();
        }

        fn copy(&self, dir: &str, paths: &[&str]) -> Result<String, GitError> {
            let copied = self.cache.copy(&self.path(dir), paths, &self.path("index"));
            let _ = fs::remove_file(self.path("index"));
            copied
        }

        fn check_out(&self, id: &str, to: &str) -> PathBuf {
            fs::create_dir_all(self.path(to)).unwrap();
            self.cache.check_out(id, &self.path(to), &self.path("index-out")).unwrap();
            fs::remove_file(self.path("index-out")).unwrap();
            self.path(to)
        }

        fn git(&self, dir: &str, args: &[&str]) -> String {
            Git::at(self.path(dir), GitDeadline::within(LIMIT)).text(args).unwrap()
        }
    }

    #[test]
    fn a_copy_stays_as_it_was_whatever_becomes_of_the_directory() {
        let sources = Sources::new();
        sources.write("role/Dockerfile", "FROM a\r\n");
        sources.write("role/.gitattributes", "* text=auto filter=evil\n");
        sources.write("role/.gitignore", "*.log\n");
        sources.write("role/x.log", "");
        sources.write("role/elsewhere/large", "");
        let id = sources.copy("role", &["Dockerfile", ".gitattributes", ".gitignore"]).unwrap();
        assert_eq!(sources.copy("role", &["Dockerfile", ".gitattributes", ".gitignore"]).unwrap(), id);
        sources.write("role/Dockerfile", "FROM b\n");
        assert_ne!(sources.copy("role", &["."]).unwrap(), id);
        let out = sources.check_out(&id, "out");
        assert_eq!(fs::read_to_string(out.join("Dockerfile")).unwrap(), "FROM a\r\n");
        assert!(!out.join("elsewhere").exists());
        let all = sources.check_out(&sources.copy("role", &["."]).unwrap(), "all");
        assert!(all.join("elsewhere/large").exists() && !all.join("x.log").exists());
    }

    #[test]
    fn a_repository_inside_is_refused_by_name() {
        let sources = Sources::new();
        sources.write("role/sub/file", "");
        sources.git("role/sub", &["init", "-q"]);
        sources.git(
            "role/sub",
            &["-c", "user.name=a", "-c", "user.email=a", "commit", "-q", "--allow-empty", "-m", "x"],
        );
        let why = sources.copy("role", &["."]).unwrap_err().to_string();
        assert!(why.contains("role/sub: it is a repository of its own"), "{why}");
    }

    #[test]
    fn a_commit_can_be_had_when_the_repository_has_moved_on_and_when_it_is_gone() {
        let sources = Sources::new();
        let commit = |text: &str| {
            sources.write("roles/Dockerfile", text);
            sources.git("roles", &["add", "-A"]);
            sources.git("roles", &["-c", "user.name=a", "-c", "user.email=a", "commit", "-q", "-m", "x"]);
            sources.git("roles", &["rev-parse", "HEAD"])
        };
        fs::create_dir(sources.path("roles")).unwrap();
        sources.git("roles", &["init", "-q"]);
        let (first, _second) = (commit("FROM a\n"), commit("FROM b\n"));
        let url = format!("file://{}", sources.path("roles").display());
        sources.cache.fetch(&url, &first).unwrap();
        fs::remove_dir_all(sources.path("roles")).unwrap();
        sources.cache.fetch(&url, &first).unwrap();
        let out = sources.check_out(&first, "out");
        assert_eq!(fs::read_to_string(out.join("Dockerfile")).unwrap(), "FROM a\n");
        let why = sources.cache.fetch(&url, &"0".repeat(40)).unwrap_err().to_string();
        assert!(why.contains("fatal:"), "{why}");
    }
}
