//! What each session is doing.
//!
//! The mux sees the terminal and the processes; what an agent writes elsewhere, and what its screens mean, only code
//! who knows the agent can say: that is a [`Watcher`]. Everything that is said is judged in `abide_model::activity`.
//!
//! A session is looked at when something has happened to it, shortly after, and never to see whether something has: an
//! idle session costs nothing.

mod file_watch;
mod processes;
mod startup;

use std::time::{Duration, Instant};

use abide_journal::rebuild::ProgramContinuity;
use abide_model::activity::{self as model, ActivityEvidence, Background, Says, Source};
use abide_model::watching::{HookReport, INFERRED, Watcher, WatcherInput};
use abide_model::{Doing, Pid};
use abide_sys::clock;
use abide_term::{ProgramState, ProgramStatus, Term, TermEvent, row_text};
use abide_wire::protocol::{
    ActivityReport, Done, Event, EvidenceReply, GetEvidence as EvidenceOf, RequestRefusal, SourceReport,
    WaitOutcome, error_code,
};
use abide_wire::session::SessionId;
use abide_wire::{hook_report_file, reporter};

pub(crate) use self::file_watch::FileWatch;

use self::processes::Processes;
use self::startup::{Starting, StartupSigns};
use crate::screen::bar::Mark;
use crate::server::Server;
use crate::server::client::ClientId;
use crate::server::wait::no_such_session;
use crate::session::MuxSession;

/// How soon after output a session is looked at. A busy screen changes many times within that.
const LOOK_AFTER: Duration = Duration::from_millis(250);
/// The shortest time from one look to the next, however much a program has to say.
const LOOK_GAP: Duration = Duration::from_millis(20);

/// The event of a conversation that an agent's registry names.
const REGISTRY: &str = "registry";

/// Return, as programs see it that ask for unambiguous keys.
const ENTER: &[u8] = b"\x1b[13u";

/// Whether a session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idleness {
    Idle,
    Working,
    /// There is only its output to judge by.
    Unknown,
}

/// What is known of one session's activity.
pub(crate) struct Watching {
    watcher: Option<Box<dyn Watcher>>,
    /// What the program says itself, and since when.
    said: Option<(ProgramState, Instant)>,
    processes: Processes,
    /// Whether it takes input yet.
    starting: Option<Starting>,
    /// When its program last wrote something.
    wrote: Option<Instant>,
    /// When to look next.
    look_at: Option<Instant>,
    /// Something was written since the last look.
    unseen: bool,
    typed: Option<Instant>,
    /// Something was entered since this mux watches.
    entered: bool,
    evidence: Vec<ActivityEvidence>,
    looked: Instant,
    /// What came out of it, and since when.
    belief: model::Activity,
    since: Instant,
}

impl Watching {
    /// Begins to watch a program, which is the one that an earlier mux watched or a new one; `said` is what the same one
    /// said to that.
    pub fn new(
        watcher: Option<Box<dyn Watcher>>,
        program: ProgramContinuity,
        said: Option<&ProgramStatus>,
        now: Instant,
    ) -> Self {
        let is_new_agent = watcher.is_some() && program == ProgramContinuity::New;
        Self {
            watcher,
            said: said
                .filter(|_| program == ProgramContinuity::Same)
                .map(|status| (status.state.clone(), now)),
            starting: is_new_agent.then(|| Starting::new(now)),
            wrote: None,
            processes: Processes::default(),
            look_at: Some(now),
            unseen: true,
            typed: None,
            entered: false,
            evidence: Vec::new(),
            looked: now,
            belief: model::decide(&[], Duration::ZERO, Doing::Unknown),
            since: now,
        }
    }

    /// The program has written something.
    pub fn wrote(&mut self, now: Instant) {
        self.unseen = true;
        self.wrote = Some(now);
        self.processes.wrote(now);
        self.look_by(now + LOOK_AFTER);
    }

    /// The program may have said what it is doing.
    pub fn heard(&mut self, event: &TermEvent, now: Instant) {
        if let TermEvent::Status(status) = event {
            if self.said.as_ref().is_none_or(|(state, _)| *state != status.state) {
                self.said = Some((status.state.clone(), now));
            }
            self.look_by(now.max(self.looked + LOOK_GAP));
        }
    }

    fn look_by(&mut self, at: Instant) {
        self.look_at = Some(self.look_at.map_or(at, |planned| planned.min(at)));
    }

    /// When to look next.
    pub fn look_at(&self) -> Option<Instant> {
        self.look_at
    }

    /// Something was typed by a command.
    pub fn typed(&mut self, now: Instant) {
        self.typed = Some(now);
    }

    /// Until when the session may not have taken notice of what was typed: what it did before says nothing until then.
    pub fn unaware_until(&self, now: Instant) -> Option<Instant> {
        self.typed
            .filter(|typed| self.since <= *typed)
            .map(|typed| typed + model::SETTLE)
            .filter(|until| now < *until)
    }

    /// Whether the session has answered what was typed last, or had the time to, and was quiet since for `quiet`.
    pub fn has_answered(&self, quiet: Duration, now: Instant) -> bool {
        let answered = self.wrote.zip(self.typed).is_none_or(|(wrote, typed)| wrote >= typed);
        answered && self.wrote.is_none_or(|wrote| now.saturating_duration_since(wrote) >= quiet)
    }

    /// When [`Self::has_answered`] may come to be, if nothing happens.
    pub fn answered_at(&self, quiet: Duration) -> Option<Instant> {
        self.wrote.map(|wrote| wrote + quiet)
    }

    /// Whether the session takes input.
    pub fn is_ready(&self) -> bool {
        self.starting.is_none()
    }

    pub fn idleness(&self, background: Background) -> Idleness {
        if self.starting.is_some() {
            return Idleness::Working;
        }
        let reported = self.belief.source.is_some_and(|source| source != Source::Processes);
        let waits = background == Background::Ignored
            && model::is_only_background(self.doing(), self.evidence.iter().map(|one| one.says));
        match waits || self.doing() != Doing::Working {
            _ if !reported => Idleness::Unknown,
            true => Idleness::Idle,
            false => Idleness::Working,
        }
    }

    /// What is wrong with the answer to one who waited for the session to be idle.
    pub fn problem(&self, outcome: WaitOutcome) -> Option<String> {
        let is_wrong = outcome == WaitOutcome::TimedOut || self.doing() == Doing::Failed;
        is_wrong.then(|| self.belief.because.clone())
    }

    pub fn doing(&self) -> Doing {
        self.belief.doing
    }

    /// When to look again at an agent that takes no input yet.
    fn look_at_start(&mut self, pid: Pid, is_known: bool, is_raw: bool, now: Instant) -> Option<Duration> {
        let signs = StartupSigns { pid, wrote: self.wrote, is_known, is_raw };
        let again = self.starting.as_mut()?.look(&signs, now);
        if again.is_none() {
            self.starting = None;
        }
        again
    }
}

/// Whether the terminal gives its program each key as it is typed.
fn is_raw(terminal: &impl std::os::fd::AsFd) -> bool {
    rustix::termios::tcgetattr(terminal)
        .is_ok_and(|modes| !modes.local_modes.contains(rustix::termios::LocalModes::ICANON))
}

impl MuxSession {
    /// Looks at the session; says whether it does something else now, and which conversation it has changed to.
    fn look(&mut self, now: Instant) -> (bool, Option<(String, &'static str)>) {
        let quiet = self.quiet_for(now);
        let watching = &mut self.watching;
        let mut evidence: Vec<ActivityEvidence> =
            said(watching.said.as_ref(), &self.term, now).into_iter().collect();
        let mut conversation = None;
        if let Some(watcher) = &mut watching.watcher {
            let lines = watching.unseen.then(|| lines(&self.term));
            let look = WatcherInput { now, title: self.term.title(), screen: lines.as_deref() };
            let seen = watcher.look(&look);
            evidence.extend(seen.evidence);
            let said = seen.conversation.map(|id| (id, REGISTRY));
            conversation = said.or(seen.inferred.map(|id| (id, INFERRED)));
        }
        let mut again = None;
        if evidence.is_empty() {
            let (seen, after) = watching.processes.look(self.pid, &self.program, quiet, now);
            evidence.extend(seen);
            again = after;
        }
        let mut belief = model::decide(&evidence, quiet, watching.doing());
        let is_known = evidence.iter().any(|one| one.source != Source::Processes);
        if let Some(after) = watching.look_at_start(self.pid, is_known, is_raw(&self.master), now) {
            let age = watching.starting.as_ref().map(|starting| starting.age(now)).unwrap_or_default();
            belief = model::Activity { again: Some(after), ..model::starting(age) };
        }
        // Files are flushed a moment after the screen has changed, and a glimpse needs a second look.
        let settled = watching.unseen.then_some(model::SETTLE);
        let again = [belief.again, again, settled].into_iter().flatten().min();
        let before = &watching.belief;
        let changed = (belief.doing, &belief.question) != (before.doing, &before.question);
        if belief.doing != before.doing {
            let began = now.checked_sub(belief.age).unwrap_or(now);
            watching.since = if before.source.is_some() { began.max(watching.since) } else { began };
        }
        watching.belief = belief;
        watching.evidence = evidence;
        watching.looked = now;
        watching.unseen = false;
        watching.look_at = again.map(|after| now + after);
        (changed, conversation)
    }

    /// What the session is doing.
    pub fn activity(&self, now: Instant) -> ActivityReport {
        let for_ms = |since: Instant| millis(now.saturating_duration_since(since));
        if let Some(exit) = self.exit {
            let (for_ms, because) = (for_ms(self.exited_at().unwrap_or(now)), exit.to_string());
            let (question, is_waiting_shell) = (None, false);
            return ActivityReport { state: Doing::Exited, for_ms, because, question, is_waiting_shell };
        }
        let is_waiting_shell = self.watching.belief.is_waiting_shell();
        let model::Activity { doing, because, question, .. } = self.watching.belief.clone();
        let for_ms = for_ms(self.watching.since);
        ActivityReport { state: doing, for_ms, because, question, is_waiting_shell }
    }
}

/// What the program says through its terminal.
fn said(said: Option<&(ProgramState, Instant)>, term: &Term, now: Instant) -> Option<ActivityEvidence> {
    let ((state, since), status) = (said?, term.status()?);
    let says = match state {
        ProgramState::Working => Says::Working,
        ProgramState::Idle | ProgramState::Done => Says::Idle,
        ProgramState::Error => Says::Failed,
        ProgramState::Blocked => Says::NeedsInput,
        ProgramState::Other(_) => return None,
    };
    let what = status.message.as_deref().or(status.kind.as_deref()).or(status.title.as_deref());
    let app = status.app.as_deref().unwrap_or("the program");
    let detail = match what {
        Some(what) => format!("{app} says {}: {what}", state.as_str()),
        None => format!("{app} says {}", state.as_str()),
    };
    let age = now.saturating_duration_since(*since);
    let question = status.message.clone().or_else(|| status.title.clone());
    Some(ActivityEvidence { source: Source::Program, says, age, detail, question })
}

fn lines(term: &Term) -> Vec<String> {
    (0..term.size().rows).map(|y| row_text(term, term.row(y)).0).collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Server {
    /// `bytes` were typed into a session. The first line that is entered is written down: what an agent wrote before that
    /// is not of this session.
    pub fn note_entry(&mut self, id: &SessionId, bytes: &[u8]) {
        let generation = self.generation;
        let entered = bytes.contains(&b'\r') || bytes.windows(ENTER.len()).any(|part| part == ENTER);
        let Some(session) = self.session_mut(id).filter(|session| entered && !session.watching.entered)
        else {
            return;
        };
        session.watching.entered = true;
        hook_report_file::append_turn(&self.instance_dir, id, generation);
    }

    /// Looks at the sessions that something happened to.
    pub fn look_at_sessions(&mut self) {
        let now = self.now;
        self.look_where(|watching| watching.look_at().is_some_and(|at| at <= now));
    }

    /// Looks at every session about which something may be new: a client asks.
    pub fn look_closely(&mut self) {
        let is_open = |watching: &Watching| {
            watching.look_at().is_some() || watching.idleness(Background::Counts) == Idleness::Unknown
        };
        self.look_where(|watching| watching.watcher.is_some() || is_open(watching));
    }

    /// Plans a look at the sessions whose agents have published something.
    pub fn on_files(&mut self) {
        let now = self.now;
        for id in self.files.changed() {
            if let Some(session) = self.session_mut(&id) {
                session.watching.look_by(now.max(session.watching.looked + LOOK_GAP));
            }
        }
    }

    fn look_where(&mut self, due: impl Fn(&Watching) -> bool) {
        let (now, generation) = (self.now, self.generation);
        let mut all = Vec::new();
        let living = self.sessions.iter_mut().enumerate().filter(|(_, session)| session.exit.is_none());
        for (index, session) in living.filter(|(_, session)| due(&session.watching)) {
            let (changed, conversation) = session.look(now);
            let file = session.watching.watcher.as_ref().and_then(|watcher| watcher.file());
            if let Some(path) = file {
                self.files.watch(session.id, &path);
            }
            if let Some((id, event)) = conversation {
                hook_report_file::append(
                    &self.instance_dir,
                    &HookReport::of_conversation(session.id, generation, id, event),
                );
            }
            if changed {
                all.push((index, session.id, session.activity(now)));
            }
        }
        for (index, session, activity) in all {
            self.note_activity(index, &activity);
            tracing::debug!(%session, "{}: {}", activity.state, activity.because);
            if activity.state == Doing::NeedsInput {
                self.mark(index, Mark::Bell);
            }
            self.emit(&Event::Activity { session, activity }, Some(&session));
        }
    }

    /// Writes down what a session is doing now.
    fn note_activity(&mut self, index: usize, activity: &ActivityReport) {
        let session = &self.sessions[index];
        let is_told = session.watching.belief.source.is_some_and(|source| source != Source::Processes);
        let detail = match activity.state {
            Doing::Failed => Some(activity.because.clone()),
            _ => activity.question.clone(),
        };
        self.last_seen.note(&self.instance_dir, &session.id, |seen| {
            seen.at_ms = clock::now().0.saturating_sub(i64::try_from(activity.for_ms).unwrap_or_default());
            seen.worked |= activity.state == Doing::Working && is_told;
            (seen.doing, seen.told, seen.detail) = (activity.state, is_told, detail);
        });
    }

    /// A hook reports something. Only the session's own agent is believed: what it runs inherits its environment, and
    /// may be an agent with hooks and a conversation of its own.
    pub fn on_report(&mut self, client: ClientId, report: &HookReport) -> Result<Done, RequestRefusal> {
        let refused = |why: String| {
            tracing::info!(session = %report.session, event = report.event, "report refused: {why}");
            Err(RequestRefusal::new(error_code::BAD_REQUEST, why))
        };
        if report.generation != self.generation {
            return refused(format!(
                "it is from run {}, and this is run {}",
                report.generation, self.generation
            ));
        }
        let peer = self.clients.get(&client).and_then(|client| client.peer);
        let now = self.now;
        let Some(session) = self.session_mut(&report.session) else {
            return Err(no_such_session(&report.session));
        };
        if let Err(why) = reporter::check(peer, session.pid) {
            return refused(why);
        }
        if let Some(watcher) = &mut session.watching.watcher {
            watcher.hear(report, now);
            session.watching.look_by(now);
        }
        hook_report_file::append(&self.instance_dir, report);
        Ok(Done {})
    }

    /// What is said about a session, by whom.
    pub fn evidence(&mut self, ask: &EvidenceOf) -> Result<EvidenceReply, RequestRefusal> {
        self.look_closely();
        let session = self.session(&ask.session).ok_or_else(|| no_such_session(&ask.session))?;
        let since = millis(self.now.saturating_duration_since(session.watching.looked));
        let statement = |evidence: &ActivityEvidence| SourceReport {
            source: evidence.source,
            says: evidence.says,
            for_ms: millis(evidence.age) + since,
            detail: evidence.detail.clone(),
        };
        let statements = session.watching.evidence.iter().map(statement).collect();
        Ok(EvidenceReply { activity: session.activity(self.now), statements })
    }
}
