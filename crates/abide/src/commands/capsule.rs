//! `abide capsule`: what abide runs itself as. Not for people, except for `call`, which tests and debugging use.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use abide_engine::end::{finish, trash};
use abide_engine::running::connect;
use abide_engine::start::command_order;
use abide_engine::{activity, reconcile};
use abide_keeper as keeper;
use abide_keeper::KeeperArgs;
use abide_model::InstanceId;
use abide_mux as mux;
use abide_places::docker::egress::proxy::{self, ProxyFiles};
use abide_places::tmux::enter;
use abide_store::ReadError;
use abide_wire::capsule_part::CapsulePart;

use crate::context::Context;
use crate::error::{CommandError, VerbResult};

/// Runs what `abide capsule …` asks for; `None` if that is not what was asked.
///
/// These are started by abide itself, often and as small as possible, so they come before the command line is parsed.
pub fn run(argv: &[OsString]) -> Option<ExitCode> {
    let words: Vec<&[u8]> = argv.iter().map(|word| word.as_bytes()).collect();
    if words.len() < 3 || !CapsulePart::is_any(&words) {
        return None;
    }
    let rest = argv.get(3..).unwrap_or_default();
    let outcome = match CapsulePart::of(&words) {
        Some(CapsulePart::Keeper) => return Some(keeper_main(rest)),
        Some(CapsulePart::Mux) => return Some(mux_main()),
        Some(CapsulePart::Report) => {
            activity::report(std::io::stdin());
            return Some(ExitCode::SUCCESS);
        }
        Some(CapsulePart::Run) => Err(CommandError::failed(command_order::carry_out(std::io::stdin()))),
        Some(CapsulePart::Probe) => probe(),
        Some(CapsulePart::Proxy) => proxy(rest),
        Some(CapsulePart::Finish) => finish_one(rest),
        Some(CapsulePart::Enter) => enter(rest),
        Some(CapsulePart::Call) => call(rest),
        None => {
            let part = argv[2].display();
            Err(CommandError::usage(format!("`abide capsule {part}` is not a verb"))
                .hint("these are internal"))
        }
    };
    Some(outcome.map_or_else(CommandError::report, |()| ExitCode::SUCCESS))
}

fn code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn keeper_main(rest: &[OsString]) -> ExitCode {
    let _ = Context::for_verb("keeper");
    match KeeperArgs::parse(rest.iter().cloned()) {
        Ok(args) => code(keeper::run(args)),
        Err(error) => CommandError::usage(error).report(),
    }
}

fn mux_main() -> ExitCode {
    let _ = Context::for_verb("mux");
    match std::io::stdin().as_fd().try_clone_to_owned() {
        Ok(link) => code(mux::run(link, activity::watch)),
        Err(error) => CommandError::failed(error).report(),
    }
}

/// Tells which running capsules this version can take over.
fn probe() -> VerbResult {
    Context::for_verb("probe")?.printer.line(keeper::probe())
}

/// What runs beside a container whose network is `allow`: `abide capsule proxy DIRECTORY`.
fn proxy(rest: &[OsString]) -> VerbResult {
    let dir = rest.first().ok_or_else(|| CommandError::usage("too few arguments"))?;
    proxy::serve(ProxyFiles::below(dir.as_ref())).map_err(CommandError::failed)
}

/// What a keeper runs when it has stopped: `abide capsule finish ID`.
fn finish_one(rest: &[OsString]) -> VerbResult {
    let context = Context::for_verb("finish")?;
    let id: InstanceId = word(rest, 0)?.parse().map_err(CommandError::usage)?;
    let instance = match context.store.read(id) {
        // The process that stopped it was faster.
        Err(ReadError::NotFound(_)) => return Ok(()),
        read => read?,
    };
    let policy = reconcile::policy(&context.config, &instance);
    let finished = finish::finish(&context.store, id, policy);
    trash::purge_expired(&context.store, &context.config);
    match finished {
        Err(_) if matches!(context.store.read(id), Err(ReadError::NotFound(_))) => Ok(()),
        finished => finished.map(drop).map_err(CommandError::failed),
    }
}

/// What tmux runs in a pane: `abide capsule enter ID SESSION`, and without a session in one that is opened by hand.
fn enter(rest: &[OsString]) -> VerbResult {
    let context = Context::for_verb("enter")?;
    let id: InstanceId = word(rest, 0)?.parse().map_err(CommandError::usage)?;
    let session = rest.get(1).map(|_| word(rest, 1)).transpose()?;
    let session = session.map(str::parse).transpose().map_err(CommandError::usage)?;
    let entered = enter::run(&context.store, id, session, &std::env::current_exe()?);
    entered.map_err(|error| {
        // Its own words are gone with the pane.
        tracing::error!(%id, "the pane ends: {error}");
        CommandError::failed(error)
    })
}

/// Sends one request as it is and prints the reply: `abide capsule call ID '{"verb": "status"}'`.
fn call(rest: &[OsString]) -> VerbResult {
    let context = Context::for_verb("call")?;
    let id = context.store.resolve(word(rest, 0)?)?;
    let request: serde_json::Map<_, _> = serde_json::from_str(word(rest, 1)?).map_err(CommandError::usage)?;
    let mut capsule = connect::connect(&connect::instance_dir(&context.store, id))?;
    let reply = capsule.call_raw(&request, connect::PATIENCE)?;
    context.printer.json(&reply)
}

fn word(rest: &[OsString], index: usize) -> VerbResult<&str> {
    let missing = || CommandError::usage("too few arguments");
    rest.get(index).and_then(|word| word.to_str()).ok_or_else(missing)
}
