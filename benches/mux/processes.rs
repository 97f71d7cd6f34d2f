//! What `/proc` says about the processes of a multiplexer.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::Result;
use crate::clock::Moment;

/// A process, as it was when it was looked at.
pub struct Process {
    /// Its number.
    pub pid: u32,
    cmdline: Vec<u8>,
}

impl Process {
    /// Whether it is the program at `path`. A server may well carry the name of a program further on in its command line.
    pub fn runs(&self, path: &Path) -> bool {
        self.cmdline.split(|&b| b == 0).next() == Some(path.as_os_str().as_bytes())
    }
}

/// All other processes that carry `dir` in their environment or on their command line.
///
/// Both are looked at: a server may start with a clean environment, and the environment of a set-gid program (screen)
/// may not be readable.
pub fn belonging_to(dir: &str) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that ended since it was listed reads as an error, and belongs to nobody.
        let cmdline = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let carries = |text: &[u8]| text.windows(dir.len()).any(|part| part == dir.as_bytes());
        if pid != std::process::id() && (carries(&cmdline) || carries(&environ)) {
            found.push(Process { pid, cmdline });
        }
    }
    Ok(found)
}

/// Kills everything that carries `dir`, again and again until nothing is left: a supervisor may be quicker than we are.
pub fn kill_belonging_to(dir: &str) -> Result<()> {
    let deadline = Moment::after(Duration::from_secs(10));
    loop {
        let found = belonging_to(dir)?;
        if found.is_empty() {
            return Ok(());
        }
        if deadline.remaining().is_zero() {
            return Err(format!("{} processes that carry {dir} cannot be killed", found.len()).into());
        }
        for process in &found {
            if let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) {
                // Gone already is as good as killed.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The proportional set size of a process, in bytes: memory shared with others counts by its share.
pub fn memory(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path).map_err(|err| format!("{path}: {err}"))?;
    let kilobytes = field(&text, "Pss:").ok_or_else(|| format!("{path} has no Pss"))?;
    Ok(kilobytes * 1024)
}

/// How many bytes the machine could still give without swapping.
pub fn memory_left() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    Ok(field(&text, "MemAvailable:").ok_or("meminfo does not say what is available")? * 1024)
}

/// What a process has done so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Activity {
    /// Time spent on a CPU.
    pub cpu: Duration,
    /// How often it slept and was woken again.
    pub wakeups: u64,
}

/// What all threads of a process have done so far. From the scheduler's own count of nanoseconds: the usual ticks of
/// ten milliseconds are coarser than what an idle program uses.
pub fn activity(pid: u32) -> Result<Activity> {
    let mut total = Activity::default();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let dir = thread?.path();
        let schedstat = fs::read_to_string(dir.join("schedstat"))?;
        let nanos = schedstat.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
        total.cpu += Duration::from_nanos(nanos);
        let status = fs::read_to_string(dir.join("status"))?;
        total.wakeups +=
            field(&status, "voluntary_ctxt_switches:").ok_or("status counts no context switches")?;
    }
    Ok(total)
}

/// Whether this process, and so all that it starts, was made to ignore `^C`: shells do that to background jobs.
pub fn ignores_interrupt() -> Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let ignored =
        status.lines().find_map(|line| line.strip_prefix("SigIgn:")).ok_or("status names no signals")?;
    let interrupt = 1 << (Signal::INT.as_raw() - 1);
    Ok(u64::from_str_radix(ignored.trim(), 16)? & interrupt != 0)
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
