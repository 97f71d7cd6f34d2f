//! One pane, as the server describes it.

use std::path::Path;

use abide_model::{InstanceId, Pid};

/// The option of a tmux session, and of each pane that we put there, that says which instance it is.
pub const ID: &str = "@abide_id";
/// The option that says which run of that instance.
pub const GENERATION: &str = "@abide_generation";
/// The option that says whose: several homes may share one server.
pub const HOME: &str = "@abide_home";
/// The option of a pane that says which session it is.
pub const SESSION: &str = "@abide_session";

/// One line per pane. What may hold anything comes last, and a home is spelled without spaces.
pub(super) const FORMAT: &str = "#{session_id} #{pane_id} #{pane_pid} #{pane_dead} #{@abide_id} \
     #{@abide_home} #{@abide_session} #{window_activity} #{pane_width} #{pane_height} #{cursor_x} #{cursor_y} \
     #{cursor_flag} #{alternate_on} #{keypad_cursor_flag} #{session_attached} #{pid} #{pane_title}";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxPane {
    /// The server's id of the tmux session it is in, as `$3`.
    pub tmux_session: String,
    /// The server's id of the pane, as `%5`.
    pub id: String,
    /// The process that the server started in it.
    pub pid: Pid,
    /// Whether that has ended, and the pane only stays to be looked at.
    pub dead: bool,
    /// The instance that the session belongs to; empty for a session that is not ours.
    pub instance: String,
    /// The home that it belongs to, as [`home_mark`] spells it.
    pub home: String,
    /// The session of ours; empty for a pane that is not known to be one.
    pub session: String,
    /// When its window last showed something new, in seconds since 1970.
    pub active: i64,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Column and row of the cursor.
    pub cursor: (u16, u16),
    /// Whether the cursor is shown.
    pub cursor_visible: bool,
    /// Whether the alternate screen is shown.
    pub alternate: bool,
    /// Whether cursor keys are wanted in their other form.
    pub app_cursor_keys: bool,
    /// How many clients look at the session.
    pub attached: usize,
    pub server: Pid,
    pub title: String,
}

impl TmuxPane {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(18, ' ');
        let mut next = || fields.next();
        Some(Self {
            tmux_session: next()?.to_owned(),
            id: next()?.to_owned(),
            pid: next()?.parse().ok()?,
            dead: next()? == "1",
            instance: next()?.to_owned(),
            home: next()?.to_owned(),
            session: next()?.to_owned(),
            active: next()?.parse().unwrap_or(0),
            size: (next()?.parse().ok()?, next()?.parse().ok()?),
            cursor: (next()?.parse().unwrap_or(0), next()?.parse().unwrap_or(0)),
            cursor_visible: next()? == "1",
            alternate: next()? == "1",
            app_cursor_keys: next()? == "1",
            attached: next()?.parse().unwrap_or(0),
            server: next()?.parse().ok()?,
            title: next()?.to_owned(),
        })
    }

    /// Whether it belongs to `instance` of the home that is spelled `home`, and runs.
    pub fn is_of(&self, instance: InstanceId, home: &str) -> bool {
        self.instance == instance.as_str() && self.home == home && !self.dead
    }
}

/// How a home is spelled in the option of a session.
pub fn home_mark(home: &Path) -> String {
    crate::host::escaped(home)
}
