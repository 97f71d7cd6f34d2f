//! What is asked of systemd and logind, through `busctl`.
//!
//! A bus library would be the largest dependency of the whole program, for three calls. Each call is bounded: a manager
//! that hangs would otherwise be waited for for a minute and a half.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use abide_sys::run::{self, RunError};

use super::Login;

/// How long a question may take whose answer is only good to know.
const TO_TELL: Duration = Duration::from_millis(250);

/// How long a request may take.
const TO_ACT: Duration = Duration::from_secs(2);

const SYSTEMD: [&str; 3] =
    ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
const LOGIND: [&str; 3] =
    ["org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"];

/// Makes the transient scope `name` of the processes `pids`. The move itself happens a moment later.
pub fn start_scope(login: &Login, name: &str, description: &str, pids: &[u32]) -> Result<(), RunError> {
    let count = pids.len().to_string();
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let mut members = vec!["PIDs", "au", &count];
    members.extend(pids.iter().map(String::as_str));
    let properties = [
        &["Description", "s", description][..],
        &members,
        // A scope that failed would stay loaded, and its name taken.
        &["CollectMode", "s", "inactive-or-failed"],
        // One child that ran out of memory must not end the agents beside it.
        &["OOMPolicy", "s", "continue"],
    ];
    match start_transient(login, name, &properties) {
        // An older systemd does not know that property of scopes, and does not end them for one child either.
        Err(RunError::Failed { stderr, .. }) if stderr.contains("OOMPolicy") => {
            start_transient(login, name, &properties[..3])
        }
        other => other,
    }
}

fn start_transient(login: &Login, name: &str, properties: &[&[&str]]) -> Result<(), RunError> {
    let count = properties.len().to_string();
    let mut words = vec!["call"];
    words.extend(SYSTEMD);
    words.extend(["StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail", &count]);
    words.extend(properties.iter().copied().flatten());
    words.push("0");
    busctl(&login.user_bus(), &words, TO_ACT).map(drop)
}

/// Turns linger on for the operator, if the policy lets them; nobody is asked for a password.
pub fn set_linger(login: &Login) -> Result<(), RunError> {
    let uid = login.uid.to_string();
    let mut words = vec!["--allow-interactive-authorization=no", "call"];
    words.extend(LOGIND);
    words.extend(["SetUserLinger", "ubb", &uid, "true", "false"]);
    busctl(&login.system_bus(), &words, TO_ACT).map(drop)
}

/// Whether logind ends what `user` leaves behind at a logout; `None` if it does not say.
pub fn kills_user_processes(login: &Login, user: &str) -> Option<bool> {
    let mut words = vec!["get-property"];
    words.extend(LOGIND);
    words.extend(["KillUserProcesses", "KillExcludeUsers", "KillOnlyUsers"]);
    kills(&busctl(&login.system_bus(), &words, TO_TELL).ok()?, user)
}

/// Whether linger is on, asked of logind itself.
pub fn lingers(login: &Login) -> Option<bool> {
    let object = format!("/org/freedesktop/login1/user/_{}", login.uid);
    let words = ["get-property", LOGIND[0], &object, "org.freedesktop.login1.User", "Linger"];
    Some(busctl(&login.system_bus(), &words, TO_TELL).ok()?.trim() == "b true")
}

fn busctl(bus: &Path, words: &[&str], limit: Duration) -> Result<String, RunError> {
    let address = format!("--address=unix:path={}", escaped(bus));
    let mut command = run::command("busctl", std::iter::once(address.as_str()).chain(words.iter().copied()));
    run::succeed(&mut command, limit).map(|output| output.text())
}

/// A path as it stands in the address of a bus: in few characters, and none of them a space.
pub(crate) fn escaped(path: &Path) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_/.*".contains(byte);
    let spell = |byte: &u8| match plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02x}"),
    };
    path.as_os_str().as_bytes().iter().map(spell).collect()
}

/// logind's own rule, from its three properties as `busctl` prints them: `b true`, `as 1 "root"`, `as 0`.
fn kills(properties: &str, user: &str) -> Option<bool> {
    let mut lines = properties.lines();
    let enabled = match lines.next()?.trim() {
        "b true" => true,
        "b false" => false,
        _ => return None,
    };
    let names = |line: &str| line.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let (except, only) = (names(lines.next()?), names(lines.next()?));
    let holds = |names: &[String]| names.iter().any(|name| name == user);
    Some(enabled && !holds(&except) && (only.is_empty() || holds(&only)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logind_spares_whom_it_is_told_to_spare() {
        for (properties, expected) in [
            ("b false\nas 0\nas 0", Some(false)),
            ("b true\nas 0\nas 0", Some(true)),
            ("b true\nas 1 \"root\"\nas 0", Some(true)),
            ("b true\nas 2 \"root\" \"ada\"\nas 0", Some(false)),
            ("b true\nas 0\nas 1 \"bob\"", Some(false)),
            ("b true\nas 0\nas 2 \"bob\" \"ada\"", Some(true)),
            ("b true", None),
            ("", None),
        ] {
            assert_eq!(kills(properties, "ada"), expected, "{properties}");
        }
    }

    #[test]
    fn an_address_holds_any_path() {
        assert_eq!(escaped("/run/user/1000/bus".as_ref()), "/run/user/1000/bus");
        assert_eq!(escaped("/tmp/a b,c;é".as_ref()), "/tmp/a%20b%2cc%3b%c3%a9");
    }
}
