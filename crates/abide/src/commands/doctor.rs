//! `abide doctor`

use abide_engine::doctor::{self, Finding, Grade, Machine, Wishes};
use abide_engine::running::keepers;
use abide_engine::running::protection::{self, InstanceProtection, Judge};
use abide_model::placement::{Exposure, Fate, Linger, PlacementFacts};
use abide_model::{Instance, UnitMode};
use abide_places::host::boot_service;
use abide_store::StoreEntry;
use serde_json::json;

use crate::context::Context;
use crate::error::{CommandError, VerbResult};
use crate::print::{Table, TableTone};

const EXAMPLES: &str = "\
Examples:
  abide doctor           check this machine
  abide doctor --json    the same, for programs
  abide doctor --fix     make sessions survive your logout: turn on linger, move running instances

Exits with 1 if something is broken. Missing optional programs are not a failure.";

/// Check this machine for problems that affect sessions
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Turn on linger (asks first), and move running instances to where a logout cannot end them
    #[arg(long, conflicts_with = "json")]
    fix: bool,
    /// Answer yes to the questions of --fix
    #[arg(long, short, requires = "fix")]
    yes: bool,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let machine = Machine::here();
    // What is wrong with the configuration is a finding of its own, below.
    let settings = context.config.load();
    let wishes = settings.map(|set| Wishes {
        unit: set.unit,
        linger: set.linger.into(),
        substrate: set.substrate,
        keep_awake: set.keep_awake,
    });
    let wishes = wishes.unwrap_or_default();
    if args.fix {
        fix(&machine, wishes.unit, args.yes, context)?;
    }
    let mut findings = doctor::examine(&machine, wishes);
    let service = boot_service::state(&context.config_home()?, &machine.login);
    findings.push(doctor::boot_service(&machine, service));
    findings.extend(examine_config(context));
    findings.extend(examine_store(context, wishes.unit));
    let problems = findings.iter().filter(|f| f.grade == Grade::Problem).count();
    if args.json {
        context.printer.json(&json!({ "version": 1, "findings": findings }))?;
    } else {
        show(&findings, context)?;
    }
    match problems {
        0 => Ok(()),
        1 => Err(CommandError::failed("one problem was found")),
        n => Err(CommandError::failed(format!("{n} problems were found"))),
    }
}

/// Makes sessions survive a logout, those that run already too.
fn fix(machine: &Machine, mode: UnitMode, yes: bool, context: &Context) -> VerbResult {
    let facts = machine.login.look();
    if !facts.systemd {
        return context.printer.line("Nothing to fix: this machine does not use systemd.");
    }
    if facts.linger == Linger::Off && !turn_on_linger(machine, &facts, yes, context)? {
        return context.printer.line("Nothing was changed.");
    }
    let entries = context.store.list()?;
    let mut moved = 0;
    for instance in entries.iter().filter_map(StoreEntry::sound) {
        let name = instance.id.display_name();
        match protection::protect(&context.store, instance.id, mode) {
            Ok(None) => continue,
            Ok(Some(unit)) => context.printer.line(format!("{name} was moved into {unit}."))?,
            Err(why) => context.printer.line(format!("{name} keeps running where it is: {why}"))?,
        }
        moved += 1;
    }
    if facts.linger == Linger::On && moved == 0 {
        context.printer.line("Nothing to fix: linger is on, and no running instance needs to be moved.")?;
    }
    Ok(())
}

/// Turns linger on; false where the operator does not want that.
fn turn_on_linger(
    machine: &Machine,
    facts: &PlacementFacts,
    yes: bool,
    context: &Context,
) -> VerbResult<bool> {
    let user = &facts.user;
    let question = format!("Turn on linger for {user}, so that sessions survive a logout?");
    if !yes && !context.confirm(&question, "--yes")? {
        return Ok(false);
    }
    machine.login.enable_linger().map_err(|why| {
        CommandError::failed(format!(
            "linger could not be turned on for {user} ({why}); `sudo loginctl enable-linger {user}` turns it on"
        ))
    })?;
    context.printer.line(format!("Linger is on for {user}."))?;
    Ok(true)
}

fn examine_config(context: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    let path = context.config.settings_file();
    findings.push(match context.config.load() {
        Ok(_) if path.exists() => Finding::new("config", Grade::Ok, path.display().to_string()),
        Ok(_) => Finding::new("config", Grade::Ok, format!("defaults; {} does not exist", path.display())),
        Err(e) => Finding::new("config", Grade::Problem, e.to_string()).advise("correct the file"),
    });
    match context.config.workspaces() {
        Ok(all) => findings.extend(all.into_iter().filter_map(|(name, workspace)| {
            let error = workspace.err()?;
            Some(
                Finding::new(format!("workspace {name}"), Grade::Problem, error.to_string())
                    .advise("correct the file"),
            )
        })),
        Err(e) => findings.push(Finding::new("workspaces", Grade::Problem, e.to_string())),
    }
    findings
}

fn examine_store(context: &Context, mode: UnitMode) -> Vec<Finding> {
    let home = context.store.layout().home();
    let entries = match context.store.list() {
        Ok(entries) => entries,
        Err(e) => return vec![Finding::new("store", Grade::Problem, e.to_string())],
    };
    let sound =
        || Finding::new("store", Grade::Ok, format!("{}, {} instances", home.display(), entries.len()));
    let mut findings = vec![doctor::home_fault(&context.store).unwrap_or_else(sound)];
    let judge = Judge::here(mode);
    findings.extend(keepers::orphaned(&context.store).into_iter().map(|orphan| {
        let detail = format!("still runs as process {}, but its directory is gone", orphan.keeper.pid);
        Finding::new(format!("capsule {}", orphan.id.display_name()), Grade::Problem, detail)
            .advise("`abide prune` shows it and ends it")
    }));
    for entry in entries {
        match entry {
            StoreEntry::Damaged { name, reason } => {
                let advice =
                    "abide leaves it alone; repair instance.json by hand, or move the directory away";
                findings.push(
                    Finding::new(format!("instance {name}"), Grade::Problem, reason.to_string())
                        .advise(advice),
                );
            }
            StoreEntry::Sound(instance) => {
                findings.extend(stuck(&instance));
                let found = judge.judge(&context.store, instance.id);
                findings.extend(found.and_then(|found| unprotected(&instance, &found)));
            }
        }
    }
    findings
}

/// What is to be said about an instance that runs and may not survive.
fn unprotected(instance: &Instance, found: &InstanceProtection) -> Option<Finding> {
    let grade = match found.decision.fate() {
        Fate::Survives => return None,
        Fate::Lost | Fate::EndsWithService => Grade::Warning,
        Fate::Unknown => Grade::Unknown,
    };
    let Exposure { danger, remedy } = found.exposure.clone()?;
    Some(Finding::new(format!("instance {}", instance.id), grade, danger).advise(remedy))
}

/// A removal that was decided and cannot be carried out.
fn stuck(instance: &Instance) -> Option<Finding> {
    let obstacle = instance.status.obstacle.as_ref()?;
    let advice =
        format!("abide retries automatically; `abide eject {} --keep` cancels the removal", instance.id);
    let detail = format!("cannot be removed yet: {obstacle}");
    Some(Finding::new(format!("instance {}", instance.id), Grade::Problem, detail).advise(advice))
}

fn show(findings: &[Finding], context: &Context) -> VerbResult {
    let mut table = Table::new(&["", "SUBJECT", "FOUND"]);
    for finding in findings {
        let (mark, tone) = match finding.grade {
            Grade::Ok => ("ok", TableTone::Good),
            Grade::Absent => ("-", TableTone::Faint),
            Grade::Unknown => ("?", TableTone::Notice),
            Grade::Warning => ("!", TableTone::Notice),
            Grade::Problem => ("BAD", TableTone::Bad),
        };
        let detail_tone = if finding.grade == Grade::Absent { TableTone::Faint } else { TableTone::Plain };
        table.row([
            (mark, tone),
            (finding.subject.as_str(), TableTone::Plain),
            (finding.detail.as_str(), detail_tone),
        ]);
        if let Some(advice) = &finding.advice {
            table.row([
                ("", TableTone::Plain),
                ("", TableTone::Plain),
                (&format!("→ {advice}"), TableTone::Faint),
            ]);
        }
    }
    context.printer.table(&table)
}
