//! A session with the benchmark's program inside, and attaching to it.

use std::time::Duration;

use crate::Result;
use crate::clock::Moment;
use crate::corpus::mark;
use crate::rows::Tabs;
use crate::sandbox::Sandbox;
use crate::terminal::{COLUMNS, Terminal};

/// Far beyond what any single step may take: it ends a broken run, and measures nothing.
pub const LIMIT: Duration = Duration::from_secs(20);

/// How long a server may need to get over a terminal that went away: screen's sleeps for a second.
const RECOVERY: Duration = Duration::from_millis(1200);

/// How long a shell in a new tab may take to read what is typed.
const NEW_SHELL: Duration = Duration::from_millis(500);

/// One session.
pub struct Session<'a> {
    sandbox: &'a Sandbox<'a>,
    name: String,
    start: Moment,
    running: Option<Moment>,
    /// The number of the next mark, so that none is used twice in a session.
    next_mark: u32,
}

impl<'a> Session<'a> {
    /// Starts session `number`, with nobody attached. Without a multiplexer it starts with the first attach.
    pub fn start(sandbox: &'a Sandbox<'a>, number: usize) -> Result<Self> {
        // All names have one length: some multiplexers take the beginning of a name for the name.
        let name = format!("s{number:04}");
        let mut session = Self { sandbox, name, start: Moment::now(), running: None, next_mark: 1 };
        if sandbox.mux.detaches() {
            sandbox.run(sandbox.mux.row.start, &session.name)?;
            session.await_program()?;
        }
        Ok(session)
    }

    /// Opens a terminal on the session, and lets go once the session's output reaches it and its size the session.
    pub fn attach(&mut self) -> Result<Terminal> {
        let mut terminal = self.open_terminal()?;
        if self.running.is_none() {
            self.await_program()?;
        }
        self.show_on(&mut terminal)?;
        Ok(terminal)
    }

    /// Opens a session in a new tab of `terminal`, and comes back to this one.
    pub fn open_beside(&mut self, terminal: &mut Terminal, tabs: Tabs) -> Result<Self> {
        let name = format!("{}b", self.name);
        let mut session =
            Self { sandbox: self.sandbox, name, start: Moment::now(), running: None, next_mark: 1 };
        press(terminal, tabs.open)?;
        // Nothing else tells when keys reach the new shell.
        terminal.drain_for(NEW_SHELL)?;
        terminal.write(format!("{}\r", self.sandbox.script(&session.name)?).as_bytes())?;
        session.await_program()?;
        press(terminal, tabs.back)?;
        self.show_on(terminal)?;
        Ok(session)
    }

    /// Lets go once the session's output reaches `terminal`, and its size the session.
    fn show_on(&mut self, terminal: &mut Terminal) -> Result<()> {
        let deadline = Moment::after(LIMIT);
        loop {
            // A client says nothing about being ready, and one that does not repaint would never show an old mark.
            let number = self.new_mark();
            self.tell(&format!("say {number}"))?;
            let columns = self.wait("said", LIMIT)?.first().copied();
            let seen = terminal.look_for(&[&mark(number)], Duration::from_millis(100))?.is_some();
            if seen && columns == Some(COLUMNS.into()) {
                return Ok(());
            }
            if deadline.remaining().is_zero() {
                return Err(
                    format!("its output reaches the terminal: {seen}; its columns: {columns:?}").into()
                );
            }
            terminal.drain_for(Duration::from_millis(10))?;
        }
    }

    /// Opens a terminal on the session and waits for nothing.
    pub fn open_terminal(&self) -> Result<Terminal> {
        Terminal::open(self.sandbox.command(self.sandbox.mux.row.attach, &self.name)?)
    }

    /// How long it took from before the first command until the program inside ran.
    pub fn time_to_start(&self) -> Result<Duration> {
        Ok(self.running.ok_or("the program has not started")?.since(self.start))
    }

    /// A number that no mark of this session had yet.
    pub fn new_mark(&mut self) -> u32 {
        self.new_marks(1)
    }

    /// The first of `count` numbers that no mark of this session had yet.
    pub fn new_marks(&mut self, count: u32) -> u32 {
        let first = self.next_mark;
        self.next_mark += count;
        first
    }

    /// Commands the program inside.
    pub fn tell(&self, command: &str) -> Result<()> {
        self.sandbox.control.tell(&self.name, command)
    }

    /// Waits for what the program inside reports.
    pub fn wait(&self, event: &str, limit: Duration) -> Result<Vec<u64>> {
        self.sandbox.control.wait(&self.name, event, limit)
    }

    fn await_program(&mut self) -> Result<()> {
        let numbers = self.wait("started", LIMIT)?;
        self.running = numbers.first().copied().map(Moment::from_nanos);
        Ok(())
    }
}

/// Types like a person: what comes at once is taken for a paste by some.
fn press(terminal: &mut Terminal, keys: &[u8]) -> Result<()> {
    keys.iter().try_for_each(|key| {
        terminal.write(&[*key])?;
        terminal.drain_for(Duration::from_millis(20))
    })
}

/// Closes `terminal`, and lets go once its session surely runs on without it.
pub fn detach(terminal: Terminal) {
    drop(terminal);
    std::thread::sleep(RECOVERY);
}
