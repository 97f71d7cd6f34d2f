//! The command line, and how much of everything is measured.

use std::path::PathBuf;
use std::time::Duration;

use crate::Result;
use crate::figures::FIGURES;
use crate::rows::ROWS;

/// What `--help` prints.
pub const HELP: &str = "\
Compares abide's multiplexer with its peers, in one run.

Usage: cargo bench --bench mux -- [OPTIONS]

  --only NAMES      these only, of bare,abide,tmux,screen,dtach,abduco,shpool,zellij (default: all that are installed)
  --figures NAMES   these only, of throughput,detached,echo,tabs,ctrlc,attach,create,memory,idle (default: all)
  --rounds N        how often each takes its turn (default: 3)
  --keys N          keys per round and condition (default: 500)
  --quick           small sizes and one round: whether it works, not how fast
  --abide PATH      the abide to measure (default: the one that cargo built, else the one on PATH)
  --install         apt-get install the peers that Debian has
  --json FILE       write everything that was measured to FILE as well
  --check           exit with 1 if abide misses a must
";

/// What to do.
#[derive(Debug)]
pub struct Options {
    only: Vec<String>,
    figures: Vec<String>,
    /// How much of everything.
    pub scale: Scale,
    /// The abide to measure.
    pub abide: Option<PathBuf>,
    /// Whether missing peers are installed.
    pub install: bool,
    /// Where the values go besides the tables.
    pub json: Option<PathBuf>,
    /// Whether a missed must is a failure.
    pub check: bool,
}

impl Options {
    /// Whether the multiplexer called `name` is asked for.
    pub fn wants_mux(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }

    /// Whether the figure called `name` is asked for.
    pub fn wants_figure(&self, name: &str) -> bool {
        self.figures.is_empty() || self.figures.iter().any(|wanted| wanted == name)
    }
}

/// How much of everything is measured.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// How often each multiplexer takes its turn.
    pub rounds: usize,
    /// How long a stream is at least.
    pub stream_bytes: u64,
    /// Keys per round and condition.
    pub keys: u32,
    /// Interrupted floods, over all rounds.
    pub floods: usize,
    /// Attaches, over all rounds.
    pub attaches: usize,
    /// Sessions created after the first, per round.
    pub creates: usize,
    /// Sessions at once, for memory and idleness.
    pub sessions: usize,
    /// Lines of scrollback.
    pub lines: usize,
    /// How long idleness is watched.
    pub idle: Duration,
}

impl Scale {
    const FULL: Self = Self {
        rounds: 3,
        stream_bytes: 100_000_000,
        keys: 500,
        floods: 10,
        attaches: 10,
        creates: 5,
        sessions: 50,
        lines: 10_000,
        idle: Duration::from_secs(5),
    };
    const QUICK: Self = Self {
        rounds: 1,
        stream_bytes: 4_000_000,
        keys: 50,
        floods: 2,
        attaches: 3,
        creates: 2,
        sessions: 3,
        lines: 2_000,
        idle: Duration::from_secs(1),
    };

    /// The part of `total` that one round takes.
    pub fn per_round(&self, total: usize) -> usize {
        total.div_ceil(self.rounds)
    }
}

/// Reads the command line; `None` asks for help.
pub fn parse(words: &[&str]) -> Result<Option<Options>> {
    // So does `cargo test --all-targets`, which runs benchmarks without a word; `cargo bench` says `--bench`.
    if words.is_empty() {
        return Ok(None);
    }
    let mut options = Options {
        only: Vec::new(),
        figures: Vec::new(),
        scale: if words.contains(&"--quick") { Scale::QUICK } else { Scale::FULL },
        abide: None,
        install: false,
        json: None,
        check: false,
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().ok_or_else(|| format!("{word} needs a value; see --help"));
        match word {
            "--only" => options.only = names(value()?, &ROWS.iter().map(|row| row.name).collect::<Vec<_>>())?,
            "--figures" => {
                options.figures =
                    names(value()?, &FIGURES.iter().map(|figure| figure.name).collect::<Vec<_>>())?;
            }
            "--rounds" => options.scale.rounds = value()?.parse::<usize>()?.max(1),
            "--keys" => options.scale.keys = value()?.parse::<u32>()?.max(1),
            "--abide" => options.abide = Some(std::path::absolute(value()?)?),
            "--json" => options.json = Some(value()?.into()),
            "--install" => options.install = true,
            "--check" => options.check = true,
            // The last is what cargo adds.
            "--quick" | "--bench" => {}
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("`{word}` is no option; see --help").into()),
        }
    }
    Ok(Some(options))
}

fn names(list: &str, known: &[&str]) -> Result<Vec<String>> {
    let names: Vec<String> = list.split(',').map(str::to_owned).collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("`{name}` is none of {}", known.join(", ")).into()),
        None => Ok(names),
    }
}
