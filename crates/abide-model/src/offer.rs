//! Which instances a launch may mean instead of a new one.

use crate::choice::{Isolation, Place, Policy, Substrate};
use crate::instance::{Instance, LaunchScope};
use crate::session::Session;
use crate::status::Status;

/// What a launch says about the instance it wants; what is absent may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchWish {
    /// The agent or command, by the name that its session would have.
    pub program: Option<String>,
    pub args: Vec<String>,
    /// What the instance is called.
    pub name: Option<String>,
    /// The policy of this launch.
    pub policy: Option<Policy>,
    /// How the launch directory is given.
    pub isolation: Option<Isolation>,
    /// Where its tree begins.
    pub base: Option<String>,
    /// The existing branch that its tree is on.
    pub branch: Option<String>,
    /// What holds the sessions.
    pub substrate: Option<Substrate>,
    pub place: Option<Place>,
}

impl LaunchWish {
    /// Whether `instance`, which runs or is kept, is what a launch from `scope` in `role` describes.
    pub fn fits(&self, instance: &Instance, scope: &LaunchScope, role: &str) -> bool {
        let alive = matches!(instance.status.status, Status::Active | Status::Restorable(_));
        alive && instance.role == role && belongs(instance, scope) && self.describes(instance)
    }

    fn describes(&self, instance: &Instance) -> bool {
        let (recipe, first) = (&instance.recipe, instance.sessions.first());
        let dir = &instance.scope.dir;
        let mount = recipe.mounts.iter().find(|mount| dir.starts_with(&mount.source));
        let isolation = mount.map_or(Isolation::Shared, |mount| mount.isolation);
        wanted(&self.name, instance.name.as_ref())
            && wanted(&self.policy, instance.policy.as_ref())
            && wanted(&self.isolation, Some(&isolation))
            && wanted(&self.base, mount.and_then(|mount| mount.base.as_ref()))
            && wanted(&self.branch, mount.and_then(|mount| mount.branch.as_ref()))
            && wanted(&self.substrate, Some(&recipe.substrate))
            && wanted(&self.place, Some(&recipe.place))
            && self.program.as_ref().is_none_or(|program| first.is_some_and(|session| runs(session, program)))
            && first.is_some_and(|session| session.argv.ends_with(&self.args))
    }
}

/// Whether `session` runs `program`: the operator may have given it another name since.
fn runs(session: &Session, program: &str) -> bool {
    let command = session.argv.first().map(|word| word.rsplit('/').next().unwrap_or(word));
    session.agent.as_deref() == Some(program) || session.name == program || command == Some(program)
}

fn wanted<T: PartialEq>(wish: &Option<T>, is: Option<&T>) -> bool {
    wish.as_ref().is_none_or(|wish| is == Some(wish))
}

/// Whether `instance` was launched from `scope`: from the same workspace, or from the same plain directory.
pub fn belongs(instance: &Instance, scope: &LaunchScope) -> bool {
    match &scope.workspace {
        Some(_) => instance.scope.workspace == scope.workspace,
        None => instance.scope.workspace.is_none() && instance.scope.dir == scope.dir,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Mount, Recipe};
    use crate::status::{Gone, StatusEvent};
    use crate::time::Timestamp;
    use crate::{Extra, ProcessIdentity, SessionId};

    fn kept() -> Instance {
        let by = ProcessIdentity { pid: crate::Pid(1), start: 2, boot: "b".into() };
        let mut recipe = Recipe::on_host("/unit/tree/shop".into());
        recipe.mounts.push(Mount {
            source: "/work/shop".into(),
            target: "/unit/tree/shop".into(),
            isolation: Isolation::Worktree,
            read_only: false,
            copy: Vec::new(),
            tree: Some("shop".into()),
            base: Some("v1".into()),
            branch: Some("abide/k7p9m2xq".into()),
            extra: Extra::new(),
        });
        let id = "k7p9m2xq".parse().unwrap();
        let scope = LaunchScope::directory("/work/shop".into());
        let mut instance = Instance::starting(id, scope, "default".into(), recipe, by, Timestamp(1));
        instance.apply(&StatusEvent::CapsuleGone(Gone::Stopped), "stopped", Timestamp(2)).unwrap();
        instance.name = Some("review".into());
        instance.policy = Some(Policy::Keep);
        let argv = ["claude", "--model", "opus"].map(str::to_owned).to_vec();
        let session = Session::new(SessionId(1), "claude".into(), argv, "/work/shop".into(), Timestamp(1));
        instance.sessions.push(session);
        instance
    }

    #[test]
    fn a_launch_means_what_is_there_where_every_flag_describes_it() {
        let scope = LaunchScope::directory("/work/shop".into());
        let fits = |wish: &LaunchWish| wish.fits(&kept(), &scope, "default");
        let whole = LaunchWish {
            program: Some("claude".into()),
            args: vec!["--model".into(), "opus".into()],
            name: Some("review".into()),
            policy: Some(Policy::Keep),
            isolation: Some(Isolation::Worktree),
            base: Some("v1".into()),
            branch: Some("abide/k7p9m2xq".into()),
            substrate: Some(Substrate::Capsule),
            place: Some(Place::Host),
        };
        assert!(fits(&LaunchWish::default()));
        assert!(fits(&whole));
        for other in [
            LaunchWish { program: Some("codex".into()), ..whole.clone() },
            LaunchWish { args: vec!["haiku".into()], ..whole.clone() },
            LaunchWish { name: Some("other".into()), ..whole.clone() },
            LaunchWish { policy: Some(Policy::Clean), ..whole.clone() },
            LaunchWish { isolation: Some(Isolation::Clone), ..whole.clone() },
            LaunchWish { base: Some("v2".into()), ..whole.clone() },
            LaunchWish { branch: Some("feature".into()), ..whole.clone() },
            LaunchWish { substrate: Some(Substrate::Tmux), ..whole.clone() },
            LaunchWish { place: Some(Place::Docker), ..whole.clone() },
        ] {
            assert!(!fits(&other), "{other:?}");
        }
        assert!(
            !whole.fits(&kept(), &LaunchScope::directory("/work".into()), "default"),
            "another directory"
        );
        assert!(!whole.fits(&kept(), &scope, "reviewer"), "another role");
    }

    #[test]
    fn an_instance_without_a_tree_is_a_shared_one() {
        let mut instance = kept();
        instance.recipe.mounts.clear();
        let shared = LaunchWish { isolation: Some(Isolation::Shared), ..LaunchWish::default() };
        assert!(shared.fits(&instance, &instance.scope, "default"));
    }
}
