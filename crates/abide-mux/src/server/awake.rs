//! Keeping the machine from going to sleep while sessions work.
//!
//! logind gives a lock to a process, and takes it back when that process ends. The lock is held by a `systemd-inhibit` that
//! runs for as long as a pipe from here is open: it ends when the lock is given back, and with the mux, however that ends.
//! A machine without logind, or whose policy refuses, goes to sleep as it would without abide.

use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// What is asked for, the most first: without a login at the machine itself the policy may grant the second only.
const WHAT: [&str; 2] = ["sleep:idle", "idle"];

/// The lock, held or not.
#[derive(Debug, Default)]
pub(crate) struct AwakeLock {
    held: Option<Arc<Mutex<InhibitLock>>>,
    refused: Arc<Mutex<bool>>,
}

/// A lock that is held, or about to be.
#[derive(Debug, Default)]
struct InhibitLock {
    what: Option<&'static str>,
    /// The lock is given back when this is closed.
    pipe: Option<ChildStdin>,
    given_back: bool,
}

impl AwakeLock {
    /// Takes the lock, or gives it back. One that was refused is not asked for again.
    pub fn set(&mut self, wanted: bool, name: &str) {
        match (wanted, &self.held) {
            (true, None) if !*lock(&self.refused) => self.take(name),
            (false, Some(_)) => self.give_back(),
            _ => {}
        }
    }

    /// What the machine does not do while the lock is held, in logind's words; `None` while it is not.
    pub fn held(&self) -> Option<&'static str> {
        self.held.as_ref().and_then(|held| lock(held).what)
    }

    fn take(&mut self, name: &str) {
        let (held, refused) = (Arc::<Mutex<InhibitLock>>::default(), self.refused.clone());
        self.held = Some(held.clone());
        let why = format!("--why=sessions of {name}");
        // It waits for the end of another process and never wakes before that.
        let begun = std::thread::Builder::new().name("awake".to_owned()).spawn(move || {
            let got = WHAT.iter().any(|what| hold(what, &why, &held));
            *lock(&refused) = !got;
        });
        if let Err(error) = begun {
            tracing::warn!("the machine may go to sleep: {error}");
        }
    }

    fn give_back(&mut self) {
        if let Some(held) = self.held.take() {
            let mut held = lock(&held);
            held.given_back = true;
            held.pipe = None;
        }
    }
}

impl Drop for AwakeLock {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Holds a lock on `what` until it is given back; false if it cannot be had.
fn hold(what: &'static str, why: &str, held: &Mutex<InhibitLock>) -> bool {
    let mut command = Command::new("systemd-inhibit");
    command.arg(format!("--what={what}")).args(["--mode=block", "--who=abide", why, "cat"]);
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = spawned.inspect_err(|error| tracing::info!("systemd-inhibit: {error}")) else {
        return false;
    };
    {
        let mut held = lock(held);
        held.what = Some(what);
        held.pipe = child.stdin.take().filter(|_| !held.given_back);
    }
    let ended = child.wait();
    let mut held = lock(held);
    held.what = None;
    if !held.given_back {
        tracing::info!(what, ?ended, "logind gave no lock");
    }
    held.given_back
}

/// Nothing here is left half done by a thread that panicked.
fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
