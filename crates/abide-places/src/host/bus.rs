//! What is asked of systemd and logind, through `busctl`.
//!
//! A bus library would be the largest dependency of the whole program, for a few calls. Each call is bounded: a manager
//! that hangs would otherwise be waited for for a minute and a half.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use abide_model::placement::{EndRule, KillRules, Linger, LingerPolicy};
use abide_model::{Pid, ProcessIdentity};
use abide_sys::run::{self, RunError};

use crate::host::Login;

/// How long a question may take whose answer is only good to know.
const TO_TELL: Duration = Duration::from_millis(250);

/// How long a request may take.
const TO_ACT: Duration = Duration::from_secs(2);

const SYSTEMD: [&str; 3] =
    ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
const POLKIT: [&str; 3] = [
    "org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority",
    "org.freedesktop.PolicyKit1.Authority",
];
const LOGIND: [&str; 3] =
    ["org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"];

/// Makes the transient scope `name` of the processes `pids`. The move itself happens a moment later.
pub fn start_scope(login: &Login, name: &str, description: &str, pids: &[Pid]) -> Result<(), RunError> {
    let count = pids.len().to_string();
    let pids: Vec<String> = pids.iter().map(Pid::to_string).collect();
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
    let head = ["StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail", &count];
    let words = [&head[..], &properties.concat(), &["0"]].concat();
    ask(&login.user_bus(), &["call"], SYSTEMD, &words, TO_ACT).map(drop)
}

/// Turns linger on for the operator, if the policy lets them; there is no question for a password.
pub fn set_linger(login: &Login) -> Result<(), RunError> {
    let uid = login.uid.to_string();
    let (verb, words) =
        (["--allow-interactive-authorization=no", "call"], ["SetUserLinger", "ubb", &uid, "true", "false"]);
    ask(&login.system_bus(), &verb, LOGIND, &words, TO_ACT).map(drop)
}

/// Whether the policy lets the operator turn linger on for themselves without a password.
pub fn linger_policy(login: &Login, process: &ProcessIdentity) -> LingerPolicy {
    let (pid, start) = (process.pid.to_string(), process.start.to_string());
    let words = [
        "CheckAuthorization", "(sa{sv})sa{ss}us", "unix-process", "2", "pid", "u", &pid, "start-time", "t",
        &start, "org.freedesktop.login1.set-self-linger", "0", "0", "",
    ];
    match ask(&login.system_bus(), &["call"], POLKIT, &words, TO_ACT) {
        Ok(answer) if answer.split_whitespace().nth(1) == Some("true") => LingerPolicy::Allows,
        // Where the policy daemon is absent or does not start, logind lets only root do it.
        Ok(_) | Err(RunError::Failed { .. }) => LingerPolicy::Refuses,
        Err(_) => LingerPolicy::Unknown,
    }
}

/// Asks the user manager something that it answers at once if it answers at all.
pub fn ask_manager(login: &Login) -> Result<(), RunError> {
    ask(&login.user_bus(), &["get-property"], SYSTEMD, &["Version"], TO_ACT).map(drop)
}

/// Whether the user manager still knows the unit `name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKnown {
    Yes,
    No,
    /// It does not answer.
    Unknown,
}

pub fn knows_unit(login: &Login, name: &str) -> UnitKnown {
    match ask(&login.user_bus(), &["call"], SYSTEMD, &["GetUnit", "s", name], TO_ACT) {
        Ok(_) => UnitKnown::Yes,
        Err(RunError::Failed { stderr, .. }) if stderr.contains("not loaded") => UnitKnown::No,
        Err(_) => UnitKnown::Unknown,
    }
}

/// Moves further processes into the unit `name`.
pub fn attach(login: &Login, name: &str, pids: &[Pid]) -> Result<(), RunError> {
    let count = pids.len().to_string();
    let pids: Vec<String> = pids.iter().map(Pid::to_string).collect();
    let mut words = vec!["AttachProcessesToUnit", "ssau", name, "", &count];
    words.extend(pids.iter().map(String::as_str));
    ask(&login.user_bus(), &["call"], SYSTEMD, &words, TO_ACT).map(drop)
}

/// What logind does to what logins leave behind; `None` if it does not say.
pub fn kill_rules(login: &Login) -> Option<KillRules> {
    let words = ["KillUserProcesses", "KillExcludeUsers", "KillOnlyUsers"];
    parse_kill_rules(&ask(&login.system_bus(), &["get-property"], LOGIND, &words, TO_TELL).ok()?)
}

/// What the end of the service `name`, which the manager behind `bus` runs, does to what it started.
pub fn service_rule(bus: &Path, name: &str) -> EndRule {
    let object = format!("{}/unit/{}", SYSTEMD[1], object_label(name));
    let object = [SYSTEMD[0], &object, "org.freedesktop.systemd1.Service"];
    match ask(bus, &["get-property"], object, &["KillMode"], TO_TELL) {
        Ok(answer) if matches!(answer.trim(), "s \"process\"" | "s \"none\"") => EndRule::Keeps,
        Ok(_) => EndRule::Kills,
        Err(_) => EndRule::Unknown,
    }
}

/// A unit's name as it stands in the path of its object.
fn object_label(name: &str) -> String {
    let spell = |(at, byte): (usize, u8)| match byte {
        b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
        b'0'..=b'9' if at > 0 => char::from(byte).to_string(),
        _ => format!("_{byte:02x}"),
    };
    name.bytes().enumerate().map(spell).collect()
}

/// Whether linger is on, asked of logind itself; `None` if it does not answer.
pub fn linger(login: &Login) -> Option<Linger> {
    let object = format!("/org/freedesktop/login1/user/_{}", login.uid);
    let object = [LOGIND[0], &object, "org.freedesktop.login1.User"];
    let answer = ask(&login.system_bus(), &["get-property"], object, &["Linger"], TO_TELL).ok()?;
    Some(if answer.trim() == "b true" { Linger::On } else { Linger::Off })
}

/// Calls, or asks for properties of, an object: `verb` is `call` or `get-property`.
fn ask(
    bus: &Path,
    verb: &[&str],
    object: [&str; 3],
    words: &[&str],
    limit: Duration,
) -> Result<String, RunError> {
    let address = format!("--address=unix:path={}", escaped(bus));
    let mut command = run::command("busctl", [&[address.as_str()], verb, &object, words].concat());
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

/// logind's three properties as `busctl` prints them: `b true`, `as 1 "root"`, `as 0`.
fn parse_kill_rules(properties: &str) -> Option<KillRules> {
    let mut lines = properties.lines();
    let enabled = match lines.next()?.trim() {
        "b true" => true,
        "b false" => false,
        _ => return None,
    };
    let names = |line: &str| line.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    Some(KillRules { enabled, except: names(lines.next()?), only: names(lines.next()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_logind_says_about_killing_is_understood() {
        let ada_and_bob = || vec!["ada".to_owned(), "bob".to_owned()];
        for (properties, expected) in [
            ("b false\nas 0\nas 0", Some(KillRules::default())),
            (
                "b true\nas 2 \"ada\" \"bob\"\nas 0",
                Some(KillRules { enabled: true, except: ada_and_bob(), only: Vec::new() }),
            ),
            (
                "b true\nas 0\nas 2 \"ada\" \"bob\"",
                Some(KillRules { enabled: true, except: Vec::new(), only: ada_and_bob() }),
            ),
            ("b true", None),
            ("", None),
        ] {
            assert_eq!(parse_kill_rules(properties), expected, "{properties}");
        }
    }

    #[test]
    fn the_object_of_a_unit_is_spelled_as_systemd_spells_it() {
        assert_eq!(object_label("run-u12.service"), "run_2du12_2eservice");
        assert_eq!(object_label("7z@x.service"), "_37z_40x_2eservice");
    }

    #[test]
    fn an_address_holds_any_path() {
        assert_eq!(escaped("/run/user/1000/bus".as_ref()), "/run/user/1000/bus");
        assert_eq!(escaped("/tmp/a b,c;é".as_ref()), "/tmp/a%20b%2cc%3b%c3%a9");
    }
}
