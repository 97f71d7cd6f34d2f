//! Labelled points at which a test may kill the process, to see that nothing is lost there.
//!
//! Labels begin with the name of their crate, whose tests read them from its code and see that every one is reached.

/// Dies here, as if by `kill -9`, if this is a debug build and the environment names `label`.
#[cfg(debug_assertions)]
pub fn point(label: &'static str) {
    if std::env::var_os(abide_model::vars::ABIDE_CRASH_AT).is_some_and(|at| at == label) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // The signal is delivered on the way back from the system call; this is for the compiler and for surprises.
        std::process::abort();
    }
}

/// Waits here, if this is a debug build and the environment names `label`, until the file exists that it names after it:
/// `LABEL=PATH`. What others see meanwhile is what a slow machine shows them.
#[cfg(debug_assertions)]
pub fn pause(label: &'static str) {
    let asked = std::env::var(abide_model::vars::ABIDE_PAUSE_AT).unwrap_or_default();
    let Some(file) = asked.strip_prefix(label).and_then(|rest| rest.strip_prefix('=')) else { return };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !std::path::Path::new(file).exists() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Nothing: this is a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn pause(_label: &'static str) {}

/// Nothing: this is a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_label: &'static str) {}
