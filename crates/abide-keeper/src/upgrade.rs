//! Continuing on another binary: the keeper replaces its own program and stays the same process.
//!
//! Because the process does not change, its children stay its children, its lock stays held and every session goes
//! on undisturbed. What a new program image cannot see, the numbers of the descriptors and what they are, crosses
//! in a memfd. Before anything is given up the new binary is asked whether it can take over.
#![allow(unsafe_code)] // Descriptors are adopted by number, and exec has no safe form that changes nothing if it fails.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use abide_model::Pid;
use abide_sys::run::{self, RunError};
use abide_sys::signals;
use abide_wire::capsule_part::CapsulePart;
use abide_wire::exit_record::ExitRecord;
use abide_wire::os_text::OsText;
use abide_wire::session::{ProcessExit, SpawnSpec};
use abide_wire::socket::SocketFile;
use rustix::fs::MemfdFlags;
use rustix::io::FdFlags;
use serde::{Deserialize, Serialize};

use crate::args::{Config, KeeperArgs};
use crate::spawn::close_on_exec_all;

/// The version of [`UpgradeState`] that this build writes.
const STATE_VERSION: u32 = 2;
/// The versions of [`UpgradeState`] that this build can take over.
const STATE_VERSIONS: &[u32] = &[2];
const PROBE_WITHIN: Duration = Duration::from_secs(5);

/// What a binary says about itself when asked `capsule probe`.
#[derive(Debug, Serialize, Deserialize)]
struct BinaryProbe {
    version: String,
    keeper_state: Vec<u32>,
}

/// The answer to `capsule probe`, for the command line to print.
pub fn probe() -> String {
    let versions = STATE_VERSIONS.to_vec();
    serde_json::json!(BinaryProbe { version: env!("CARGO_PKG_VERSION").to_owned(), keeper_state: versions })
        .to_string()
}

/// What crosses from the old program to the new one. Descriptors are numbers of the one process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct UpgradeState {
    pub config: Config,
    pub lock: RawFd,
    pub listener: RawFd,
    pub socket: SocketFile,
    pub record: ExitRecord,
    pub had_sessions: bool,
    pub sessions: Vec<SavedSession>,
}

/// A session as it crosses.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedSession {
    pub spec: SpawnSpec,
    pub pid: Pid,
    pub master: RawFd,
    pub exit: Option<ProcessExit>,
}

/// The state with its version, which is read before anything else is.
#[derive(Debug, Serialize, Deserialize)]
struct Versioned<T> {
    state_version: u32,
    #[serde(flatten)]
    state: T,
}

/// Asks the new binary whether it can take over from us. The answer is awaited for a few seconds at most.
pub(super) fn check(exe: &Path) -> Result<(), String> {
    let answer = ask(exe).map_err(|err| format!("{} cannot be asked: {err}", exe.display()))?;
    let probe: BinaryProbe = serde_json::from_slice(&answer)
        .map_err(|_| format!("{} is not an abide that can take over", exe.display()))?;
    if probe.keeper_state.contains(&STATE_VERSION) {
        return Ok(());
    }
    Err(format!(
        "{} ({}) supports keeper state {:?}, and this keeper has {STATE_VERSION}; \
         stop and resume the instance to upgrade it",
        exe.display(),
        probe.version,
        probe.keeper_state
    ))
}

fn ask(exe: &Path) -> Result<Vec<u8>, RunError> {
    let mut command = run::command(exe, CapsulePart::Probe.words());
    signals::start_fresh(&mut command);
    run::output(&mut command, PROBE_WITHIN).map(|output| output.stdout)
}

/// Replaces this program by `exe` and hands it `state`, whose descriptors are `keep`. Returns only if that failed,
/// and then everything is as it was.
pub(super) fn exec(exe: &OsText, state: &UpgradeState, keep: &[BorrowedFd<'_>]) -> io::Error {
    let result = try_exec(exe, state, keep);
    close_on_exec_all();
    match result {
        Ok(never) => match never {},
        Err(err) => err,
    }
}

fn try_exec(
    exe: &OsText,
    state: &UpgradeState,
    keep: &[BorrowedFd<'_>],
) -> io::Result<std::convert::Infallible> {
    let mut memfd = File::from(rustix::fs::memfd_create("abide-keeper-state", MemfdFlags::CLOEXEC)?);
    memfd.write_all(&serde_json::to_vec(&Versioned { state_version: STATE_VERSION, state })?)?;
    for fd in keep.iter().copied().chain([memfd.as_fd()]) {
        rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
    }
    let mut argv = vec![CString::new(exe.as_bytes())?];
    for word in CapsulePart::Keeper.words() {
        argv.push(CString::new(word)?);
    }
    for word in KeeperArgs::Resume(memfd.as_raw_fd()).to_argv() {
        argv.push(CString::new(word.as_bytes())?);
    }
    let mut pointers: Vec<_> = argv.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // Signals stay blocked across this, so that one that comes meanwhile reaches the new program instead of killing
    // it. Not `Command::exec`: that changes dispositions before it is known whether the exec succeeds.
    // SAFETY: `pointers` is a null-terminated list of C strings that outlive the call.
    unsafe { libc::execv(pointers[0], pointers.as_ptr()) };
    Err(io::Error::last_os_error())
}

/// Reads the state that the old program left in `fd`.
pub(super) fn read_state(fd: RawFd) -> io::Result<UpgradeState> {
    let mut file = File::from(adopt(fd)?);
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let version = serde_json::from_slice::<Versioned<serde::de::IgnoredAny>>(&bytes)?.state_version;
    if !STATE_VERSIONS.contains(&version) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, format!("keeper state of version {version}")));
    }
    Ok(serde_json::from_slice(&bytes)?)
}

/// Takes ownership of a descriptor that the old program left open for us.
pub(super) fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: only the number is used here, to ask whether it is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC)?;
    // SAFETY: it is open, the old program named it as ours, and each number is adopted once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
