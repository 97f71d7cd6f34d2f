//! Linger, which sessions on the host need to survive a logout: asked about once, and remembered.

use abide_config::Origin;
use abide_model::placement::{self, Linger, LingerConsent};
use abide_model::{Place, UnitMode};
use abide_places::host::Login;
use clap::builder::{BoolishValueParser, TypedValueParser};

use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const SETTING: &str = "linger";

/// Reads `--linger YES|NO`.
pub fn consent_parser() -> impl TypedValueParser<Value = LingerConsent> {
    BoolishValueParser::new().map(LingerConsent::from)
}

/// Finds out whether abide may turn linger on for the operator, where that is open and makes a difference. Without a
/// terminal it stays open, and the start reports what to do.
pub fn settle(answer: Option<LingerConsent>, context: &Context) -> VerbResult {
    let answer = match answer {
        Some(answer) => answer,
        None if context.can_ask() && is_open(context)? => {
            let question = "Sessions that outlive your logout need linger, which is off. Turn it on for you? \
                            (asked once; `abide config set linger` changes the answer)";
            context.confirm(question, "--linger yes")?.into()
        }
        None => return Ok(()),
    };
    let may_turn_on = answer == LingerConsent::Given;
    tracing::info!(answer = may_turn_on, "linger");
    context.config.set(SETTING, &may_turn_on.to_string()).map_err(CommandError::failed)
}

fn is_open(context: &Context) -> VerbResult<bool> {
    if context.config.get(SETTING)?.origin == Origin::File {
        return Ok(false);
    }
    let settings = context.config.load()?;
    let facts = Login::here().look();
    let concerned = settings.place == Place::Host && settings.unit != UnitMode::Off;
    Ok(concerned && facts.systemd && facts.linger == Linger::Off && placement::prospect(&facts, "").is_some())
}
