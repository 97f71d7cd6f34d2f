//! The environment of a session: a snapshot of its own launch, and of no other.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use abide_model::{InstanceId, SessionId, vars};

/// Variables that describe the terminal, the multiplexer or the session the launcher sat in. Inside a session they would
/// be lies: its terminal is ours. The variables for abide's state directories are valid inside too, and stay.
const OF_THE_OUTER_TERMINAL: &[&str] = &[
    vars::ABIDE_AGENT,
    vars::ABIDE_CRASH_AT,
    vars::ABIDE_PAUSE_AT,
    vars::ABIDE_TEST_BOOT,
    vars::ABIDE_TEST_MACHINE,
    vars::ABIDE_EXE,
    vars::ABIDE_GENERATION,
    vars::ABIDE_LOG_FILE,
    vars::ABIDE_INSTANCE,
    vars::ABIDE_SESSION,
    vars::ABIDE_INSTANCE_DIR,
    vars::TERM,
    vars::TMUX,
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "STY",
    "TERMCAP",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    vars::TMUX_PANE,
    "VTE_VERSION",
    "WINDOW",
    "WINDOWID",
    "ZELLIJ",
    "ZELLIJ_PANE_ID",
    "ZELLIJ_SESSION_NAME",
];

const PREFIXES: &[&str] = &["ALACRITTY_", "GHOSTTY_", "ITERM_", "KITTY_", "KONSOLE_", "WEZTERM_"];

/// Whether a session may inherit the variable.
fn inherited(name: &OsString) -> bool {
    let text = name.to_string_lossy();
    !OF_THE_OUTER_TERMINAL.contains(&&*text)
        && !PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        // It would be read as another variable.
        && !name.as_bytes().contains(&b'=')
}

/// The environment of session `session` of `instance`, launched from `outer`.
pub fn of_session(
    outer: impl IntoIterator<Item = (OsString, OsString)>,
    instance: InstanceId,
    session: SessionId,
    cwd: &std::path::Path,
) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<_, _> = outer.into_iter().filter(|(name, _)| inherited(name)).collect();
    env.insert("PWD".into(), cwd.into());
    env.insert(vars::ABIDE_INSTANCE.into(), instance.as_str().into());
    env.insert(vars::ABIDE_SESSION.into(), session.to_string().into());
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(outer: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        let outer = outer.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        of_session(outer, "k7p9m2xq".parse().unwrap(), SessionId(3), "/work".as_ref())
    }

    #[test]
    fn a_session_has_the_environment_of_its_own_launch() {
        let env = env(&[("PATH", "/bin"), ("HTTPS_PROXY", "http://proxy"), ("PWD", "/elsewhere")]);
        assert_eq!(env[&OsString::from("PATH")], "/bin");
        assert_eq!(env[&OsString::from("HTTPS_PROXY")], "http://proxy");
        assert_eq!(env[&OsString::from("PWD")], "/work");
        assert_eq!(env[&OsString::from("ABIDE_INSTANCE")], "k7p9m2xq");
        assert_eq!(env[&OsString::from("ABIDE_SESSION")], "s3");
    }

    #[test]
    fn nothing_of_an_outer_terminal_or_session_leaks_inward() {
        let leaky = [
            ("TMUX", "/tmp/x"),
            ("TMUX_PANE", "%1"),
            ("STY", "1"),
            ("ABIDE_INSTANCE", "zzzzzzzz"),
            ("ABIDE_AGENT", "claude"),
            ("ABIDE_CRASH_AT", "x"),
            ("KITTY_WINDOW_ID", "1"),
            ("COLUMNS", "80"),
        ];
        let env = env(&leaky);
        assert_eq!(env.len(), 3, "{env:?}");
        assert_eq!(env[&OsString::from("ABIDE_INSTANCE")], "k7p9m2xq");
    }
}
