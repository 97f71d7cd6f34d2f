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

/// Nothing: this is a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_label: &'static str) {}
