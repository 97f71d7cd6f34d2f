//! What a process is part of, as the kernel tells it.

use abide_model::unit::Home;

/// The path of process `pid` in systemd's hierarchy; `None` if there is none, or no such process.
pub fn of(pid: u32) -> Option<String> {
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

/// What the logout does to a process at `path` depends on this alone.
pub fn home(path: &str) -> Home {
    let has = |prefix: &str, suffix: &str| {
        path.split('/').any(|part| part.starts_with(prefix) && part.ends_with(suffix))
    };
    if has("user@", ".service") {
        Home::Manager
    } else if has("session-", ".scope") {
        Home::Login
    } else {
        Home::Elsewhere
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
    fn a_login_the_manager_and_everything_else_are_told_apart() {
        for (path, expected) in [
            ("/user.slice/user-1000.slice/session-c1.scope", Home::Login),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/abide-k7p9m2xq.scope", Home::Manager),
            ("/user.slice/user-1000.slice/user@1000.service/session.slice/foot.service", Home::Manager),
            ("/system.slice/cron.service", Home::Elsewhere),
            ("/", Home::Elsewhere),
        ] {
            assert_eq!(home(path), expected, "{path}");
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
