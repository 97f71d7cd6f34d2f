//! A command that is run where the sessions of an instance are, in their environment: its set-up, a question to an agent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use abide_sys::run::{self, CommandOutput, RunError};
use abide_wire::os_text::OsText;
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};

use crate::start::launch::LaunchContext;

/// What to run, in which environment and directory.
#[derive(Debug)]
pub(crate) struct CommandOrder {
    pub argv: Vec<String>,
    pub env: BTreeMap<OsString, OsString>,
    pub cwd: PathBuf,
}

/// The same on its way into a container. It goes in on standard input: the environment may hold secrets, which the command
/// line of an engine's client would show.
#[derive(Serialize, Deserialize)]
struct Order {
    argv: Vec<OsText>,
    env: Vec<(OsText, OsText)>,
    cwd: OsText,
}

impl CommandOrder {
    /// The command to start, with standard input taken care of.
    pub fn command(self, ctx: &LaunchContext<'_>) -> io::Result<Command> {
        let Some(inside) = &ctx.inside else {
            let mut command = Command::new(&self.argv[0]);
            command.args(&self.argv[1..]).env_clear().envs(self.env).current_dir(self.cwd);
            command.stdin(Stdio::null());
            return Ok(command);
        };
        let mut command = inside.place.exec(inside.instance, &own_run(ctx)).map_err(io::Error::other)?;
        command.stdin(self.written()?);
        Ok(command)
    }

    /// What it prints, within `limit`.
    pub fn output(self, ctx: &LaunchContext<'_>, limit: Duration) -> Result<CommandOutput, RunError> {
        let Some(inside) = &ctx.inside else {
            let mut command = run::command(&self.argv[0], &self.argv[1..]);
            return run::output(command.env_clear().envs(self.env).current_dir(self.cwd), limit);
        };
        let program = self.argv[0].clone();
        let failed = |source| RunError::Io { program, source };
        let asked = inside.place.exec(inside.instance, &own_run(ctx)).map_err(io::Error::other);
        let (mut command, input) =
            asked.and_then(|command| Ok((command, self.written()?))).map_err(failed)?;
        run::output_fed(&mut command, input.into(), limit)
    }

    fn written(self) -> io::Result<File> {
        let order = Order {
            argv: self.argv.iter().map(OsText::from).collect(),
            env: self.env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: self.cwd.as_os_str().into(),
        };
        let mut file = File::from(rustix::fs::memfd_create("order", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(&order)?)?;
        file.rewind()?;
        Ok(file)
    }
}

/// What runs an order inside.
fn own_run(ctx: &LaunchContext<'_>) -> [OsString; 3] {
    [ctx.exe.clone().into_os_string(), "capsule".into(), "run".into()]
}

/// Becomes the command that `input` describes: `abide capsule run`, inside a container. Returns only if that fails.
pub fn carry_out(mut input: impl Read) -> io::Error {
    let mut text = Vec::new();
    let read = input.read_to_end(&mut text).and_then(|_| Ok(serde_json::from_slice::<Order>(&text)?));
    let order = match read {
        Ok(order) => order,
        Err(error) => return error,
    };
    let Some((program, args)) = order.argv.split_first() else { return io::ErrorKind::InvalidInput.into() };
    let mut command = Command::new(program.as_os_str());
    command.args(args.iter().map(OsText::as_os_str)).current_dir(order.cwd.as_path()).stdin(Stdio::null());
    command.env_clear().envs(order.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
    command.exec()
}
