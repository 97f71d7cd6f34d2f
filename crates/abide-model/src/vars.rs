//! Every environment variable abide reads or sets, spelled once.

/// Where abide keeps its state; default `~/.abide`.
pub const ABIDE_HOME: &str = "ABIDE_HOME";
/// What is written to the log: a level or a list like `info,abide_store=debug`.
pub const ABIDE_LOG: &str = "ABIDE_LOG";
/// The log of processes in a container, which cannot see abide's own.
pub const ABIDE_LOG_FILE: &str = "ABIDE_LOG_FILE";
/// Set inside a session to its instance's id.
pub const ABIDE_INSTANCE: &str = "ABIDE_INSTANCE";
/// Set inside a session to its own id.
pub const ABIDE_SESSION: &str = "ABIDE_SESSION";
/// Set inside a session that runs an agent to the agent's name, and in no other.
pub const ABIDE_AGENT: &str = "ABIDE_AGENT";
/// Set inside a session to the `abide` that the agent's hooks call.
pub const ABIDE_EXE: &str = "ABIDE_EXE";
/// Set inside a session to its instance's directory, for the agent's hooks.
pub const ABIDE_INSTANCE_DIR: &str = "ABIDE_INSTANCE_DIR";
/// Set inside a session to the run of its instance, so that a hook of an earlier one is known.
pub const ABIDE_GENERATION: &str = "ABIDE_GENERATION";
/// In debug builds: the labelled point at which the process kills itself, to test that nothing is lost there.
pub const ABIDE_CRASH_AT: &str = "ABIDE_CRASH_AT";
/// In debug builds: the labelled point at which the process waits for a file, and that file: `LABEL=PATH`.
pub const ABIDE_PAUSE_AT: &str = "ABIDE_PAUSE_AT";
/// In debug builds: taken for the machine id, to test a home that several machines share.
pub const ABIDE_TEST_MACHINE: &str = "ABIDE_TEST_MACHINE";
/// In debug builds: taken for the boot id, likewise.
pub const ABIDE_TEST_BOOT: &str = "ABIDE_TEST_BOOT";
/// The operator's home directory.
pub const HOME: &str = "HOME";
/// Where configuration lives; default `~/.config`.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// Where the user manager's bus is.
pub const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";
/// Where programs are looked for.
pub const PATH: &str = "PATH";
pub const SHELL: &str = "SHELL";
/// What kind of terminal this is.
pub const TERM: &str = "TERM";
/// How many colours the terminal has, as some of them say.
pub const COLORTERM: &str = "COLORTERM";
/// The locale, whatever the other two say.
pub const LC_ALL: &str = "LC_ALL";
/// The locale's character set.
pub const LC_CTYPE: &str = "LC_CTYPE";
/// The locale where nothing else says it.
pub const LANG: &str = "LANG";
/// Set to anything: no colours.
pub const NO_COLOR: &str = "NO_COLOR";
/// Set to anything: questions are asked as plain numbered text.
pub const ABIDE_PLAIN: &str = "ABIDE_PLAIN";
/// Set by a shell's completion script to the shell's name, to ask what a command line can go on with.
pub const ABIDE_COMPLETE: &str = "ABIDE_COMPLETE";
/// Set inside tmux; never passed inward.
pub const TMUX: &str = "TMUX";
/// Set inside tmux to the pane; never passed inward.
pub const TMUX_PANE: &str = "TMUX_PANE";
/// Where tmux servers have their sockets; default `/tmp`.
pub const TMUX_TMPDIR: &str = "TMUX_TMPDIR";
