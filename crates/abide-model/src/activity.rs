//! What a session is doing, decided from what every source says about it.
//!
//! No source knows everything. Hooks are silent when the operator interrupts; a transcript does not tell a running tool from
//! a pending permission; a screen can be quoted. So the strongest source that speaks is believed, except where it is known
//! not to know, and a word that nothing has confirmed for long is checked against a second source.

use std::time::Duration;

use crate::choice::choices;

choices! {
    /// What a session is doing.
    #[derive(Default)]
    Doing, "activity" {
        Starting = "starting": "it is starting and does not accept input yet",
        Working = "working": "it is working on its task",
        Idle = "idle": "it is waiting for the next task",
        NeedsInput = "needs_input": "it is waiting for your decision",
        Failed = "failed": "its last turn failed, and it is waiting for the next task",
        Exited = "exited": "its process has ended",
        #[default]
        #[serde(other)]
        Unknown = "unknown": "it is unknown",
    }
}

choices! {
    /// Where a statement about a session comes from, the most trustworthy first.
    Source, "source" {
        Program = "program": "the program itself, through its terminal",
        Registry = "registry": "the agent's own list of what runs",
        Hook = "hook": "a hook that the agent called",
        Transcript = "transcript": "the end of the agent's transcript",
        Title = "title": "the title of its terminal",
        Screen = "screen": "what is on its screen",
        Processes = "processes": "its output and the processor time of its processes",
    }
}

choices! {
    /// What a source says.
    Says, "statement" {
        Working = "working": "it works",
        Busy = "busy": "it runs a tool or waits for permission; this source cannot tell which",
        Background = "background": "it is waiting for the next task, but something that it started still runs",
        Idle = "idle": "it is waiting for the next task",
        Failed = "failed": "an error ended its last turn",
        NeedsInput = "needs_input": "it is waiting for your decision",
    }
}

choices! {
    /// Whether what an agent started and left running, such as a server in a background shell, keeps it from being idle.
    #[derive(Default)]
    Background, "background" {
        #[default]
        Counts = "counts": "the agent works for as long as that runs",
        Ignored = "ignored": "the agent is idle when it is waiting for the next task",
    }
}

/// Whether a session that does `doing` only waits for what it has left running, given what its sources say.
pub fn is_only_background(doing: Doing, says: impl IntoIterator<Item = Says>) -> bool {
    let said: Vec<Says> = says.into_iter().collect();
    let works = said.iter().any(|says| matches!(says, Says::Working | Says::Busy));
    doing == Doing::Working && said.contains(&Says::Background) && !works
}

impl Says {
    fn doing(self) -> Doing {
        match self {
            Self::Working | Self::Busy | Self::Background => Doing::Working,
            Self::Idle => Doing::Idle,
            Self::Failed => Doing::Failed,
            Self::NeedsInput => Doing::NeedsInput,
        }
    }
}

/// What one source says about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityEvidence {
    pub source: Source,
    pub says: Says,
    /// For how long it has been saying so.
    pub age: Duration,
    /// How it says so, for people.
    pub detail: String,
    /// What the operator is asked, where the source knows.
    pub question: Option<String>,
}

impl ActivityEvidence {
    /// Whether it is what an operator would see too.
    fn is_seen(&self) -> bool {
        matches!(self.source, Source::Title | Source::Screen)
    }
}

/// What a session is doing, and why that is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    pub doing: Doing,
    /// For how long, as far as is known.
    pub age: Duration,
    /// Why that is believed.
    pub because: String,
    /// What the operator is asked.
    pub question: Option<String>,
    /// Whose word it is.
    pub source: Option<Source>,
    /// After how long the answer may be another one, though nothing happens.
    pub again: Option<Duration>,
}

impl Activity {
    /// Whether it is a shell that has its terminal to itself: of nothing else do its processes say that it is idle.
    pub fn is_waiting_shell(&self) -> bool {
        (self.doing, self.source) == (Doing::Idle, Some(Source::Processes))
    }
}

/// How long something seen must last before it may say that the work is over: between two steps an agent looks idle.
pub const SETTLE: Duration = Duration::from_millis(1500);

/// After this long without a new word and without output, work is no longer taken on trust.
pub const STALE: Duration = Duration::from_secs(60);

/// What is known of an agent that was started and may not take input yet.
#[derive(Debug, Clone, Copy)]
pub struct Startup {
    /// For how long neither was anything written nor did any of its processes compute.
    pub rest: Duration,
    /// How long ago it was started.
    pub age: Duration,
    /// For how long a source that knows the agent has been saying what it is doing; `None` if none does.
    pub known_for: Option<Duration>,
    /// Whether its terminal gives it each key as it is typed. What is typed before is often thrown away by the change to that.
    pub is_raw: bool,
    /// Whether it has written anything.
    pub has_written: bool,
}

/// An agent is at rest for this long before it takes input, if it says what it is doing and has its terminal to itself.
const AT_REST: Duration = Duration::from_millis(400);

/// The same where only one of that holds, or nothing but that it has written something.
const AT_REST_UNSEEN: Duration = Duration::from_millis(900);

/// The same for one that has shown nothing at all.
const AT_REST_SILENT: Duration = Duration::from_secs(3);

/// After this long an agent that never rests takes input all the same.
const LONGEST_START: Duration = Duration::from_secs(30);

/// The same where it has been saying for so long what it is doing: some draw all the time.
const LONGEST_KNOWN: Duration = Duration::from_secs(6);

/// Whether an agent that was started takes input by now.
pub fn takes_input(startup: &Startup) -> bool {
    let needed = match startup {
        Startup { known_for: Some(_), is_raw: true, .. } => AT_REST,
        Startup { has_written: true, .. } => AT_REST_UNSEEN,
        _ => AT_REST_SILENT,
    };
    let known_for = startup.known_for.filter(|_| startup.is_raw).unwrap_or_default();
    startup.rest >= needed || known_for >= LONGEST_KNOWN || startup.age >= LONGEST_START
}

/// What is said of an agent that takes no input yet.
pub fn starting(age: Duration) -> Activity {
    Activity {
        doing: Doing::Starting,
        age,
        because: "it is starting and does not accept input yet".to_owned(),
        question: None,
        source: None,
        again: None,
    }
}

/// Decides what a session is doing that was last taken to do `before` and has written nothing for `quiet`. A statement
/// of an earlier run must not be among the `evidence`.
pub fn decide(evidence: &[ActivityEvidence], quiet: Duration, before: Doing) -> Activity {
    let mut evidence: Vec<&ActivityEvidence> = evidence.iter().collect();
    evidence.sort_by_key(|one| one.source);
    let Some((first, weaker)) = evidence.split_first() else {
        return Activity {
            doing: Doing::Unknown,
            age: quiet,
            because: "no source reports; this is how long it has been quiet".to_owned(),
            question: None,
            source: None,
            again: None,
        };
    };
    let Ruling { winner, because, from } = rule(first, weaker, quiet);
    let seen = winner.source >= Source::Title || because.is_some();
    if seen && winner.says == Says::Idle && before == Doing::Working && winner.age < SETTLE {
        let again = Some(SETTLE - winner.age);
        let because = format!("{}, which may pass", winner.detail);
        return Activity { doing: before, again, because, ..verdict(winner, None) };
    }
    let mut activity = Activity { again: from, ..verdict(winner, because) };
    if activity.doing == Doing::NeedsInput && activity.question.is_none() {
        // Who knows that there is a question does not always know which.
        let asks = evidence.iter().filter(|one| one.says == Says::NeedsInput);
        activity.question = asks.filter_map(|one| one.question.clone()).next();
    }
    if activity.doing == Doing::Failed {
        // Who knows that it failed does not always know why.
        let failed = evidence.iter().filter(|one| one.says == Says::Failed);
        activity.because = failed.map(|one| one.detail.as_str()).collect::<Vec<_>>().join("; ");
    }
    activity
}

fn verdict(winner: &ActivityEvidence, because: Option<String>) -> Activity {
    Activity {
        doing: winner.says.doing(),
        age: winner.age,
        because: because.unwrap_or_else(|| winner.detail.clone()),
        question: winner.question.clone().filter(|_| winner.says == Says::NeedsInput),
        source: Some(winner.source),
        again: None,
    }
}

struct Ruling<'a> {
    winner: &'a ActivityEvidence,
    /// Why it is not the strongest source that is believed.
    because: Option<String>,
    /// When that may change by itself.
    from: Option<Duration>,
}

fn rule<'a>(first: &'a ActivityEvidence, weaker: &[&'a ActivityEvidence], quiet: Duration) -> Ruling<'a> {
    let dispute = Dispute { first, weaker };
    if let Some(question) = dispute.unseen_question() {
        return dispute.over(question, "which cannot tell that");
    }
    if let Some(failed) = dispute.failed_turn() {
        return dispute.over(failed, "which only says that the turn is over");
    }
    if let Some(background) = dispute.work_behind() {
        return dispute.over(background, "which only says that the turn is over");
    }
    if let Some(change) = dispute.later_change() {
        return dispute.over_after(first.age, SETTLE, change, "but that was before");
    }
    if let Some(end) = dispute.unheard_end() {
        let why = "but that was long ago, without any output since";
        return dispute.over_after(first.age.min(quiet), STALE, end, why);
    }
    Ruling { winner: first, because: None, from: None }
}

/// The strongest word, and what the others say.
struct Dispute<'a, 'b> {
    first: &'a ActivityEvidence,
    weaker: &'b [&'a ActivityEvidence],
}

impl<'a> Dispute<'a, '_> {
    fn over(&self, winner: &'a ActivityEvidence, why: &str) -> Ruling<'a> {
        let because = Some(format!("{}; {}, {why}", winner.detail, self.first.detail));
        Ruling { winner, because, from: None }
    }

    /// The strongest word stands until it has been so for `limit`.
    fn over_after(
        &self,
        been: Duration,
        limit: Duration,
        winner: &'a ActivityEvidence,
        why: &str,
    ) -> Ruling<'a> {
        if been >= limit {
            return self.over(winner, why);
        }
        Ruling { winner: self.first, because: None, from: Some(limit - been) }
    }

    fn find(&self, wanted: impl Fn(&ActivityEvidence) -> bool) -> Option<&'a ActivityEvidence> {
        self.weaker.iter().copied().find(|one| wanted(one))
    }

    /// A question, where the strongest source cannot tell one from work.
    fn unseen_question(&self) -> Option<&'a ActivityEvidence> {
        let blind = self.first.says == Says::Busy
            || (self.first.source == Source::Title && self.first.says != Says::NeedsInput);
        self.find(|one| blind && one.says == Says::NeedsInput)
    }

    /// The error that ended a turn of which the strongest source only says that it is over.
    fn failed_turn(&self) -> Option<&'a ActivityEvidence> {
        self.find(|one| self.first.says == Says::Idle && one.says == Says::Failed)
    }

    /// What still runs after a turn that is over. The agent's registry knows of it; else it is only seen, and what is seen
    /// does not overrule the program and its registry.
    fn work_behind(&self) -> Option<&'a ActivityEvidence> {
        let only_the_turn = matches!(self.first.source, Source::Hook | Source::Transcript | Source::Title);
        let believed = |one: &ActivityEvidence| only_the_turn || one.source == Source::Registry;
        self.find(|one| self.first.says == Says::Idle && one.says == Says::Background && believed(one))
    }

    /// What changed after the strongest word. No hook is called when the operator interrupts, refuses or allows something,
    /// and not every agent writes it down; nor does a transcript hold how each turn failed.
    fn later_change(&self) -> Option<&'a ActivityEvidence> {
        let first = self.first;
        let differs = |one: &ActivityEvidence| one.says.doing() != first.says.doing();
        let can_tell = |one: &ActivityEvidence| one.says != Says::Busy || first.says != Says::NeedsInput;
        let confirmed = self.weaker.iter().any(|one| one.is_seen() && !differs(one));
        let counts =
            |one: &ActivityEvidence| one.is_seen() || (one.source == Source::Transcript && !confirmed);
        let misses = matches!(first.source, Source::Hook | Source::Transcript);
        self.find(|one| misses && counts(one) && one.age < first.age && differs(one) && can_tell(one))
    }

    /// The end of work of which the strongest source may never have heard.
    fn unheard_end(&self) -> Option<&'a ActivityEvidence> {
        let works = matches!(self.first.says, Says::Working | Says::Busy);
        let ended = |one: &ActivityEvidence| matches!(one.says, Says::Idle | Says::Failed | Says::NeedsInput);
        self.find(|one| works && ended(one) && one.source != Source::Processes)
    }
}

#[cfg(test)]
mod tests;
