//! Conversations that an agent keeps in one file together: each is taken out of it for the vault, and given back by a
//! command of the agent's own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use abide_agents::{Located, Shared};
use abide_sys::atomic::{self, Durability};
use abide_sys::run;

use super::{BEFORE, Vault, copy_if_grown, longest, make_dirs, with_suffix};

/// What one conversation is called in the vault.
const EXTRACT: &str = "conversation.json";

/// How long an agent may take to take a conversation back. It may have to make its database first.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// Two writes that are nearer to each other may have the same time.
const TICK: Duration = Duration::from_millis(50);

impl Vault<'_> {
    /// Keeps the conversation as it is in `transcript` now, if that was written to since it was last kept.
    pub(super) fn extract(&self, shared: Shared, transcript: &Path) -> io::Result<()> {
        let kept = self.dir.join(EXTRACT);
        let written = last_written(shared, transcript)?;
        if modified(&kept).is_ok_and(|ours| ours >= written) {
            return Ok(());
        }
        let now = (shared.extract)(transcript, self.id).map_err(io::Error::other)?;
        make_dirs(&self.dir)?;
        let ours = fs::read(&kept).unwrap_or_default();
        if ours.len() > now.len() {
            // What was taken back by the operator, or lost by the agent: the longer one stays at hand.
            copy_if_grown(&kept, &with_suffix(&kept, BEFORE))?;
        }
        if ours != now {
            atomic::write_path(&kept, &now, 0o600, Durability::Synced)?;
        }
        let settled = SystemTime::now().checked_sub(TICK).unwrap_or(written);
        File::options().append(true).open(&kept)?.set_modified(written.min(settled))
    }

    /// Has the agent take the conversation back if it has it no longer.
    pub(super) fn give_back(
        &self,
        shared: Shared,
        cwd: &Path,
        env: &BTreeMap<OsString, OsString>,
    ) -> io::Result<bool> {
        let kept = self.dir.join(EXTRACT);
        let Some(best) =
            longest([kept.clone(), with_suffix(&kept, BEFORE)]).filter(|_| self.is_gone(shared, cwd))
        else {
            return Ok(false);
        };
        let file = best.to_string_lossy();
        let arguments: Vec<String> =
            shared.give_back.iter().map(|word| word.replace("{file}", &file)).collect();
        let mut command = run::command(self.agent.program(), &arguments);
        run::succeed(command.env_clear().envs(env).current_dir(cwd), BACK_WITHIN)
            .map_err(io::Error::other)?;
        match self.agent.transcript(&self.root, cwd, self.id) {
            Located::Found(_) => Ok(true),
            _ => Err(io::Error::other(format!(
                "{} did not import it; `{} {}` shows why",
                self.agent.name(),
                self.agent.program(),
                arguments.join(" ")
            ))),
        }
    }

    /// Whether the agent has the conversation no longer. What cannot be found out is no reason to write anything, except
    /// where there is nothing at all: what is kept was once there.
    fn is_gone(&self, shared: Shared, cwd: &Path) -> bool {
        match self.agent.transcript(&self.root, cwd, self.id) {
            Located::Found(_) => false,
            Located::Missing => true,
            Located::Unknown(_) => !self.root.join(shared.file).exists(),
        }
    }
}

/// When any part of the transcript was last written to.
fn last_written(shared: Shared, transcript: &Path) -> io::Result<SystemTime> {
    let beside = shared.beside.iter().filter_map(|ending| modified(&with_suffix(transcript, ending)).ok());
    Ok(beside.fold(modified(transcript)?, SystemTime::max))
}

fn modified(path: &Path) -> io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}
