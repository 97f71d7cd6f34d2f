//! A second process that cleans up after the first, however that ends: finished, interrupted, killed.
//!
//! It waits for the end of its standard input, whose other end the benchmark holds and no child of it inherits. No
//! signal handler could promise as much.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Result;
use crate::processes::kill_belonging_to;

/// `--sweep DIR`: remove DIR and every process that carries it once standard input ends.
pub const SWEEP: &str = "--sweep";

/// The running sweeper. Dropping it lets it sweep, and waits until it has.
pub struct Sweeper(Child);

impl Sweeper {
    /// Starts a sweeper for everything at and below `root`.
    pub fn start(root: &Path) -> Result<Self> {
        let child =
            Command::new(std::env::current_exe()?).arg(SWEEP).arg(root).stdin(Stdio::piped()).spawn()?;
        Ok(Self(child))
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        // `wait` closes the input first.
        let _ = self.0.wait();
    }
}

/// The sweeper itself.
pub fn run(root: &Path) -> Result<()> {
    // Away from the terminal whose interrupt or hang-up may be what ends the benchmark.
    rustix::process::setsid()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    kill_belonging_to(&root.display().to_string())?;
    std::fs::remove_dir_all(root)?;
    Ok(())
}
