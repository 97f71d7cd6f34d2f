//! `abide doctor`

use abide_engine::doctor::{self, Finding, Grade, Machine, Wishes};
use abide_store::Entry;
use serde_json::json;

use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::print::{Table, Tone};

const EXAMPLES: &str = "\
Examples:
  abide doctor           what this machine has, and what is wrong with it
  abide doctor --json    the same for a program
  abide doctor --fix     turn on linger, so that sessions survive your logout; asks first

Exits with 1 if something is broken; what is merely absent is no failure.";

/// Tell what this machine has and what that means for sessions
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Turn on linger where it is off; asks first
    #[arg(long, conflicts_with = "json")]
    fix: bool,
    /// Answer yes to what --fix asks
    #[arg(long, short, requires = "fix")]
    yes: bool,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let machine = Machine::here();
    if args.fix {
        turn_on_linger(&machine, args.yes, context)?;
    }
    // What is wrong with the configuration is a finding of its own, below.
    let wishes = context.config.load().map(|set| Wishes { unit: set.unit, linger: set.linger });
    let mut findings = doctor::examine(&machine, wishes.unwrap_or_default());
    findings.extend(examine_config(context));
    findings.extend(examine_store(context));
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

fn turn_on_linger(machine: &Machine, yes: bool, context: &Context) -> Outcome {
    let facts = machine.login.look();
    if !facts.systemd {
        return Ok(context.printer.line("Nothing to fix: this machine is not run by systemd.")?);
    }
    if facts.linger {
        return Ok(context.printer.line("Nothing to fix: linger is on.")?);
    }
    let question = format!("Turn on linger for {}, so that sessions survive the logout?", facts.user);
    if !yes && !context.confirm(&question, "--yes")? {
        return Ok(context.printer.line("Nothing was changed.")?);
    }
    let user = &facts.user;
    machine.login.enable_linger().map_err(|why| {
        CommandError::failed(format!(
            "linger could not be turned on for {user} ({why}); `sudo loginctl enable-linger {user}` does it"
        ))
    })?;
    Ok(context.printer.line(format!("Linger is on for {}.", facts.user))?)
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

fn examine_store(context: &Context) -> Vec<Finding> {
    let home = context.store.layout().home().display().to_string();
    let entries = match context.store.list() {
        Ok(entries) => entries,
        Err(e) => return vec![Finding::new("store", Grade::Problem, e.to_string())],
    };
    let mut findings = vec![Finding::new("store", Grade::Ok, format!("{home}, {} instances", entries.len()))];
    for entry in entries {
        if let Entry::Damaged { name, reason } = entry {
            let advice = "nothing removes it; repair instance.json by hand, or move the directory away";
            findings.push(
                Finding::new(format!("instance {name}"), Grade::Problem, reason.to_string()).advise(advice),
            );
        }
    }
    findings
}

fn show(findings: &[Finding], context: &Context) -> Outcome {
    let mut table = Table::new(&["", "SUBJECT", "FOUND"]);
    for finding in findings {
        let (mark, tone) = match finding.grade {
            Grade::Ok => ("ok", Tone::Good),
            Grade::Absent => ("-", Tone::Faint),
            Grade::Warning => ("!", Tone::Notice),
            Grade::Problem => ("BAD", Tone::Bad),
        };
        let detail_tone = if finding.grade == Grade::Absent { Tone::Faint } else { Tone::Plain };
        table.row([
            (mark, tone),
            (finding.subject.as_str(), Tone::Plain),
            (finding.detail.as_str(), detail_tone),
        ]);
        if let Some(advice) = &finding.advice {
            table.row([("", Tone::Plain), ("", Tone::Plain), (&format!("→ {advice}"), Tone::Faint)]);
        }
    }
    Ok(context.printer.table(&table)?)
}
