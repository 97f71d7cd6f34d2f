//! What a process is part of, as the kernel tells it.

use abide_model::Pid;

/// The path of process `pid` in systemd's hierarchy; `None` if there is none, or no such process.
pub fn of(pid: Pid) -> Option<String> {
    path_in(&std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?).map(str::to_owned)
}

/// systemd's hierarchy in the text of a `cgroup` file: the unified one, or its own on a machine that still has both.
fn path_in(text: &str) -> Option<&str> {
    let of = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix));
    let own = || text.lines().find_map(|line| line.split_once(":name=systemd:")).map(|(_, path)| path);
    of("0::").filter(|path| *path != "/").or_else(own).or_else(|| of("0::"))
}

/// Whether `path` lies in the unit called `name`.
pub fn is_in(path: &str, name: &str) -> bool {
    path.split('/').any(|part| part == name)
}

/// What a path in systemd's hierarchy is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CgroupPart<'a> {
    /// A login session of this user.
    Login(Option<u32>),
    /// A unit of this user's manager.
    Manager(u32),
    /// A service of this user's manager.
    UserService(u32, &'a str),
    SystemService(&'a str),
    /// None of these.
    Elsewhere,
}

/// What `path` is part of.
pub fn part(path: &str) -> CgroupPart<'_> {
    let parts = || path.split('/');
    let number = |part: &str, before: &str, after: &str| -> Option<u32> {
        part.strip_prefix(before)?.strip_suffix(after)?.parse().ok()
    };
    let is_unit = |part: &&str| part.ends_with(".service") || part.ends_with(".scope");
    let manager = parts().enumerate().find_map(|(at, part)| Some((at, number(part, "user@", ".service")?)));
    if let Some((at, user)) = manager {
        return match parts().skip(at + 1).find(is_unit) {
            Some(unit) if unit.ends_with(".service") => CgroupPart::UserService(user, unit),
            _ => CgroupPart::Manager(user),
        };
    }
    match parts().find(is_unit) {
        Some(unit) if unit.starts_with("session-") && unit.ends_with(".scope") => {
            CgroupPart::Login(parts().find_map(|part| number(part, "user-", ".slice")))
        }
        Some(unit) if unit.ends_with(".service") => CgroupPart::SystemService(unit),
        _ => CgroupPart::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_that_systemd_uses_is_read_on_every_layout() {
        for (text, expected) in [
            (
                "0::/user.slice/user-1000.slice/session-3.scope\n",
                Some("/user.slice/user-1000.slice/session-3.scope"),
            ),
            (
                "9:name=systemd:/user.slice/session-3.scope\n1:cpu:/\n0::/\n",
                Some("/user.slice/session-3.scope"),
            ),
            ("9:name=systemd:/\n0::/system.slice/cron.service\n", Some("/system.slice/cron.service")),
            ("4:memory:/x\n1:name=systemd:/system.slice/ssh.service\n", Some("/system.slice/ssh.service")),
            ("0::/\n", Some("/")),
            ("", None),
        ] {
            assert_eq!(path_in(text), expected, "{text}");
        }
    }

    #[test]
    fn a_login_the_manager_and_services_are_distinguished() {
        let manager = "/user.slice/user-1000.slice/user@1000.service";
        for (path, expected) in [
            ("/user.slice/user-1001.slice/session-c1.scope", CgroupPart::Login(Some(1001))),
            ("/session-c1.scope", CgroupPart::Login(None)),
            (&format!("{manager}/app.slice/abide-k7p9m2xq.scope"), CgroupPart::Manager(1000)),
            (&format!("{manager}/init.scope"), CgroupPart::Manager(1000)),
            (&format!("{manager}/tmux-spawn-1.scope/x.service"), CgroupPart::Manager(1000)),
            (&format!("{manager}/app.slice/foot.service"), CgroupPart::UserService(1000, "foot.service")),
            ("/system.slice/cron.service", CgroupPart::SystemService("cron.service")),
            (
                "/system.slice/system-getty.slice/getty@tty1.service",
                CgroupPart::SystemService("getty@tty1.service"),
            ),
            ("/system.slice/docker-0123.scope", CgroupPart::Elsewhere),
            ("/docker/0123", CgroupPart::Elsewhere),
            ("/", CgroupPart::Elsewhere),
        ] {
            assert_eq!(part(path), expected, "{path}");
        }
    }

    #[test]
    fn a_unit_is_not_taken_for_another_that_begins_like_it() {
        let path = "/user@1000.service/app.slice/abide-k7p9m2xq-7.scope";
        assert!(is_in(path, "abide-k7p9m2xq-7.scope"));
        assert!(!is_in(path, "abide-k7p9m2xq.scope"));
        assert!(!is_in(path, "abide-k7p9m2xq-7"));
    }
}
