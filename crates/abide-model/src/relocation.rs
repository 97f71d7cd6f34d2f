//! An instance whose directory is somewhere else than it was: binding it to where that is now.

use std::path::{Path, PathBuf};

use crate::instance::{DirIdentity, Instance};
use crate::session::Session;
use crate::status::DecidedBy;
use crate::time::Timestamp;

impl Instance {
    /// Binds the instance to `to`, where the directory that it was launched from is now. The conversations of sessions for
    /// which `was_said` holds remember the directory in which they were held.
    pub fn relocate(
        &mut self,
        to: &Path,
        identity: Option<DirIdentity>,
        was_said: impl Fn(&Session) -> bool,
        now: Timestamp,
    ) {
        let from = std::mem::replace(&mut self.scope.dir, to.to_owned());
        for session in &mut self.sessions {
            if was_said(session) {
                let held = session.conversation.iter_mut().chain(&mut session.parked);
                for held in held.filter(|held| held.held_in.is_none()) {
                    held.held_in = Some(session.cwd.clone());
                }
            }
            session.cwd = rebased(&session.cwd, &from, to);
        }
        self.recipe.cwd = rebased(&self.recipe.cwd, &from, to);
        for mount in &mut self.recipe.mounts {
            mount.source = rebased(&mount.source, &from, to);
            mount.target = rebased(&mount.target, &from, to);
        }
        self.dir_identity = identity;
        let because = format!("its directory was moved from {} to {}", from.display(), to.display());
        self.note(because, Some(DecidedBy::Operator), now);
    }
}

/// `path` as it is called once `from` is called `to`.
fn rebased(path: &Path, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        Ok(below) if below.as_os_str().is_empty() => to.to_owned(),
        Ok(below) => to.join(below),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ProcessIdentity;
    use crate::instance::LaunchScope;
    use crate::recipe::Recipe;

    #[test]
    fn everything_below_the_old_directory_is_below_the_new_one_and_the_history_says_so() {
        let by = ProcessIdentity { pid: crate::Pid(1), start: 2, boot: "b".into() };
        let scope = LaunchScope::directory("/work/shop".into());
        let recipe = Recipe::on_host("/work/shop/src".into());
        let id = "k7p9m2xq".parse().unwrap();
        let mut instance = Instance::starting(id, scope, "default".into(), recipe, by, Timestamp(1000));
        for cwd in ["/work/shop", "/work/shop/src", "/work/shopping"] {
            let id = instance.new_session_id();
            instance.sessions.push(Session::new(id, "sh".into(), Vec::new(), cwd.into(), Timestamp(1000)));
        }
        instance.relocate(Path::new("/srv/new"), None, |_| true, Timestamp(2000));
        let cwds: Vec<_> = instance.sessions.iter().map(|session| session.cwd.to_str().unwrap()).collect();
        assert_eq!(cwds, ["/srv/new", "/srv/new/src", "/work/shopping"]);
        assert_eq!(instance.scope.dir, Path::new("/srv/new"));
        assert_eq!(instance.recipe.cwd, Path::new("/srv/new/src"));
        let last = instance.history.last().unwrap();
        assert_eq!(last.because, "its directory was moved from /work/shop to /srv/new");
    }
}
