//! What every verb needs: where things are, how to print, and whether questions can be asked.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use abide_config::ConfigDir;
use abide_engine::log;
use abide_model::{sanitised, vars};
use abide_store::{Store, refuse_foreign};
use abide_sys::passwd;

use crate::error::{CommandError, VerbResult};
use crate::print::Printer;

/// What one run of abide works with: its home, its configuration, its output.
pub struct Context {
    pub store: Store,
    pub config: ConfigDir,
    pub printer: Printer,
    /// The operator's home directory.
    pub home: PathBuf,
}

impl Context {
    /// Finds out where things are and begins to log as `verb`.
    pub fn for_verb(verb: &str) -> VerbResult<Self> {
        let home = home()?;
        let config = dir(vars::XDG_CONFIG_HOME, ".config", &home)?.join("abide");
        let state = dir(vars::ABIDE_HOME, ".abide", &home)?;
        // What prints and looks at nothing works wherever packages are built.
        if matches!(verb, "completions" | "man") {
            let config = ConfigDir::new(config, &home);
            return Ok(Self { store: Store::at(state), config, printer: Printer::new(), home });
        }
        let store = Store::of_this_user(&state)?;
        refuse_foreign(&config, vars::XDG_CONFIG_HOME)?;
        let filter = std::env::var(vars::ABIDE_LOG).map(|text| log::Filter::parse(&text)).unwrap_or_default();
        // Inside a container abide's home is not there.
        let file =
            std::env::var_os(vars::ABIDE_LOG_FILE).map_or_else(|| store.layout().log_file(), PathBuf::from);
        log::install(&file, filter, verb);
        Ok(Self { store, config: ConfigDir::new(config, &home), printer: Printer::new(), home })
    }

    /// Where configuration of every program is kept.
    pub fn config_home(&self) -> VerbResult<PathBuf> {
        dir(vars::XDG_CONFIG_HOME, ".config", &self.home)
    }

    /// The store with its directories made, for verbs that write.
    pub fn open_store(&self) -> VerbResult<Store> {
        Store::open(self.store.layout().home().to_owned()).map_err(CommandError::failed)
    }

    /// Whether a question can be asked and answered here.
    pub fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Tells the operator something that is no failure, beside what is printed.
    pub fn warn(&self, text: &str) {
        // If even stderr cannot be written, there is no way left to report that.
        let _ = writeln!(io::stderr(), "abide: {}", sanitised(text));
    }

    /// Asks a question whose safe answer is no. `flag` is the option that answers it without a terminal.
    pub fn confirm(&self, question: &str, flag: &str) -> VerbResult<bool> {
        if !self.can_ask() {
            return Err(CommandError::needs_answer(format!(
                "{question} There is no terminal to ask this on."
            ))
            .hint(format!("{flag} answers yes")));
        }
        write!(io::stderr(), "{question} [y/N] ")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}

/// The operator's home directory: what HOME says, or else the user database.
fn home() -> VerbResult<PathBuf> {
    let not_absolute = "a relative path would mean a different directory each time";
    match named_by(vars::HOME) {
        Some(home) if home.is_absolute() => Ok(home),
        Some(home) => {
            let complaint = format!("HOME is not an absolute path: {}", home.display());
            Err(CommandError::usage(complaint).hint(not_absolute))
        }
        None => passwd::entry(rustix::process::getuid().as_raw())
            .and_then(|entry| entry.home)
            .ok_or_else(|| CommandError::failed("HOME is not set").hint("set it to your home directory")),
    }
}

fn named_by(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| !path.as_os_str().is_empty())
}

/// The directory named by the variable `name`, or `fallback` in the home directory.
fn dir(name: &str, fallback: &str, home: &Path) -> VerbResult<PathBuf> {
    match named_by(name) {
        Some(path) if path.is_absolute() => Ok(path),
        Some(path) => Err(CommandError::usage(format!("{name} is not an absolute path: {}", path.display()))),
        None => Ok(home.join(fallback)),
    }
}
