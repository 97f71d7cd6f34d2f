//! Watching an agent at work: what its registry, hooks, transcript, title and screen say.
//!
//! Here the statements are gathered, each with its age. Which of them is believed is decided in `abide_model::activity`;
//! when to look is the mux's business.

mod tail;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use abide_model::activity::{ActivityEvidence, SETTLE, Says, Source};
use abide_model::conversation::Located;
use abide_model::watching::{HookReport, Watched, Watcher, WatcherFindings, WatcherInput};
use abide_model::{Pid, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::tail::{backwards, text_of};

use crate::agent::Agent;
use crate::hooks::{self, Injection, Reporter};
use crate::registry::Registry;
use crate::rules::{Reading, Rules};

/// How much later than a transcript a screen shows the same thing, and how much later it may on a busy machine.
const LAG: Duration = Duration::from_millis(500);
const LONGEST_LAG: Duration = Duration::from_secs(5);

/// Reads what the last bytes of a transcript say.
pub type Tail = fn(&[u8]) -> Option<Statement>;

/// How an agent shows what it is doing.
#[derive(Debug, Clone, Copy)]
pub struct ActivitySigns {
    /// What its titles and screens mean, as TOML.
    pub rules: &'static str,
    /// What the end of its transcript says.
    pub tail: Option<Tail>,
    /// Whether it publishes what its processes do.
    pub registry: bool,
    /// How its hooks are set for one launch.
    pub hooks: Option<fn(&Reporter<'_>) -> Injection>,
    /// The agent asks the operator before it trusts hooks: they are set only with the operator's consent.
    pub needs_consent: bool,
}

impl ActivitySigns {
    /// It shows nothing that is known.
    pub const NONE: Self = Self { rules: "", tail: None, registry: false, hooks: None, needs_consent: false };
}

/// What one source says now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub says: Says,
    pub detail: String,
    /// What the operator is asked.
    pub question: Option<String>,
}

impl Statement {
    /// A statement without a question.
    pub fn new(says: Says, detail: impl Into<String>) -> Self {
        Self { says, detail: detail.into(), question: None }
    }

    /// What a transcript says by its end.
    pub(crate) fn of_transcript(says: Says, what: &str) -> Option<Self> {
        Some(Self::new(says, format!("its transcript {what}")))
    }
}

/// What the launcher tells the mux about an agent's session, so that it can be watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLaunch {
    pub agent: String,
    /// Where it keeps its conversations.
    pub config_dir: PathBuf,
    pub cwd: PathBuf,
    /// The conversation it was started in, if that is known.
    pub conversation: Option<String>,
    /// When it was started: what was written before is of an earlier run.
    pub started: Timestamp,
    /// What the operator says about its titles and screens.
    #[serde(default)]
    pub rules: Value,
}

/// The key of a [`AgentLaunch`] in what the launcher tells the mux.
pub const LAUNCH: &str = "launch";

/// Finds the watcher of a session.
pub fn watch(session: Watched<'_>) -> Option<Box<dyn Watcher>> {
    let launch: AgentLaunch = serde_json::from_value(session.meta.get(LAUNCH)?.clone()).ok()?;
    Some(Box::new(AgentWatcher::new(crate::agent(&launch.agent), launch, session.pid)))
}

#[derive(Debug)]
struct AgentWatcher {
    /// `None` for one of which only the operator knows something.
    agent: Option<&'static dyn Agent>,
    launch: AgentLaunch,
    rules: Rules,
    registry: Option<Registry>,
    /// The conversation that the registry last named.
    registered: Option<String>,
    hook: DatedStatement,
    transcript: tail::Transcript,
    title: DatedStatement,
    screen: DatedStatement,
}

/// A statement, and since when it is made.
#[derive(Debug, Default)]
struct DatedStatement(Option<(Statement, Instant)>);

impl DatedStatement {
    fn set(&mut self, statement: Option<Statement>, now: Instant) {
        let since = self.0.as_ref().filter(|(held, _)| Some(held.says) == statement.as_ref().map(|s| s.says));
        let since = since.map_or(now, |(_, since)| *since);
        self.0 = statement.map(|statement| (statement, since));
    }

    fn evidence(&self, source: Source, now: Instant) -> Option<ActivityEvidence> {
        let (statement, since) = self.0.as_ref()?;
        Some(evidence(source, statement.clone(), now.saturating_duration_since(*since)))
    }
}

fn evidence(
    source: Source,
    Statement { says, detail, question }: Statement,
    age: Duration,
) -> ActivityEvidence {
    ActivityEvidence { source, says, age, detail, question }
}

impl AgentWatcher {
    fn new(agent: Option<&'static dyn Agent>, launch: AgentLaunch, pid: Pid) -> Self {
        let signs = agent.map_or(ActivitySigns::NONE, |agent| agent.profile().signs);
        let own = Rules::deserialize(&launch.rules).unwrap_or_default();
        let rules = own.or(Rules::parse(signs.rules).unwrap_or_default());
        let registry = signs.registry.then(|| Registry::new(&launch.config_dir, pid));
        let transcript = tail::Transcript::new(signs.tail, launch.started);
        let (hook, title, screen) =
            (DatedStatement::default(), DatedStatement::default(), DatedStatement::default());
        Self { agent, launch, rules, registry, registered: None, hook, transcript, title, screen }
    }

    /// The conversation is another one now: so is the transcript.
    fn follow(&mut self, conversation: &str, transcript: Option<PathBuf>) {
        if self.launch.conversation.as_deref() != Some(conversation) {
            self.launch.conversation = Some(conversation.to_owned());
            self.transcript.forget();
        }
        if let Some(path) = transcript {
            self.transcript.is_at(path);
        }
    }

    fn find_transcript(&mut self, now: Instant) {
        let (Some(id), Some(agent)) = (&self.launch.conversation, self.agent) else { return };
        if self.transcript.may_search(now)
            && let Located::Found(path) = agent.transcript(&self.launch.config_dir, &self.launch.cwd, id)
        {
            self.transcript.is_at(path);
        }
    }

    /// The conversation that an agent has begun without reporting it: it is seen at work, and writes to another transcript than
    /// it did. With several candidates there is no way to know which is its own.
    fn begun_unheard(&mut self, lines: &[String], now: Instant) -> Option<String> {
        let tells = |signs: &ActivitySigns| signs.registry || signs.hooks.is_some() || signs.tail.is_none();
        let agent = self.agent.filter(|agent| !tells(&agent.profile().signs))?;
        let works = |held: &&DatedStatement| {
            held.0.as_ref().is_some_and(|(statement, _)| statement.says == Says::Working)
        };
        let (_, since) = [&self.title, &self.screen].into_iter().find(works)?.0.as_ref()?;
        let worked = now.saturating_duration_since(*since);
        // What shows that it works may come after what it has written by then.
        let began = SystemTime::now().checked_sub(worked)?;
        let AgentLaunch { config_dir, cwd, conversation, started, .. } = &self.launch;
        let last = self.transcript.written();
        // A conversation that was not written down yet may still be the one.
        let left = conversation.is_none() || last.is_some_and(|last| last + LAG < began);
        if worked < SETTLE || !left || !self.transcript.is_due(now) {
            return None;
        }
        // Where it is not known which one it has left, that one must not be found again.
        let since = match last {
            Some(last) => last.max(began.checked_sub(LONGEST_LAG)?),
            None => began.checked_sub(LAG)?,
        };
        let mut written = agent.discover(config_dir, Some(cwd), timestamp(since));
        written.retain(|one| {
            Some(&one.id) != conversation.as_ref() && tail::was_begun_since(&one.path, *started)
        });
        if written.len() > 1 {
            let shown = crate::shown(agent, &written, &lines.join(" "));
            written.retain(|one| shown.contains(&one.id));
        }
        let one = written.pop().filter(|_| written.is_empty())?;
        self.follow(&one.id, Some(one.path));
        Some(one.id)
    }
}

impl Watcher for AgentWatcher {
    fn look(&mut self, look: &WatcherInput<'_>) -> WatcherFindings {
        let now = look.now;
        let registered = self.registry.as_mut().and_then(Registry::look);
        let mut conversation = None;
        if let Some(entry) = &registered
            && [&self.registered, &self.launch.conversation]
                .iter()
                .any(|known| known.as_deref() != Some(&entry.conversation))
        {
            // The first is reported even if it is the expected one: where an agent came up is not known before.
            self.registered = Some(entry.conversation.clone());
            self.follow(&entry.conversation, None);
            conversation = Some(entry.conversation.clone());
        }
        if let Some(lines) = look.screen {
            self.screen.set(self.rules.screen(lines).map(|reading| shown("screen", reading)), now);
            self.find_transcript(now);
        }
        self.title.set(self.rules.title(look.title).map(|reading| shown("title", reading)), now);
        let inferred = match conversation {
            Some(_) => None,
            None => self.begun_unheard(look.screen.unwrap_or_default(), now),
        };
        let registered = registered
            .and_then(|entry| Some(evidence(Source::Registry, entry.statement?, age(entry.updated))));
        let said = self
            .transcript
            .look()
            .map(|(statement, modified)| evidence(Source::Transcript, statement, age(modified)));
        let held = [(Source::Hook, &self.hook), (Source::Title, &self.title), (Source::Screen, &self.screen)];
        let held = held.into_iter().filter_map(|(source, held)| held.evidence(source, now));
        WatcherFindings {
            evidence: registered.into_iter().chain(said).chain(held).collect(),
            conversation,
            inferred,
        }
    }

    fn file(&self) -> Option<PathBuf> {
        self.registry.as_ref().and_then(Registry::path)
    }

    fn hear(&mut self, report: &HookReport, now: Instant) {
        if let Some(conversation) = &report.conversation {
            self.follow(conversation, report.transcript.as_ref().map(PathBuf::from));
        }
        if let Some(statement) = hooks::meaning(report) {
            // The same event again is news: it is what makes the word fresh.
            self.hook = DatedStatement(Some((statement, now)));
        }
    }
}

/// What the end of the transcript at `path` says, if it was written to since `since`.
pub fn ended_in(agent: &dyn Agent, path: &std::path::Path, since: Timestamp) -> Option<Says> {
    let mut transcript = tail::Transcript::new(agent.profile().signs.tail, since);
    transcript.is_at(path.to_owned());
    transcript.look().map(|(statement, _)| statement.says)
}

fn shown(where_: &str, reading: Reading) -> Statement {
    let Reading { says, rule, question } = reading;
    Statement { says, detail: format!("the {where_} shows {says} ({rule})"), question }
}

fn timestamp(at: SystemTime) -> Timestamp {
    let since_epoch = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

/// How long ago something was on the wall clock. One that was set back makes it news, never an error.
fn age(at: SystemTime) -> Duration {
    SystemTime::now().duration_since(at).unwrap_or_default()
}
