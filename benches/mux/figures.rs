//! The figures, and the run: every figure, round by round, the multiplexers in turn.

use std::collections::BTreeMap;
use std::process::Command;

use crate::metrics::Series;
use crate::options::{Options, Scale};
use crate::report::Report;
use crate::rows::{Mux, ROWS};
use crate::sandbox::{Root, Sandbox};
use crate::{Result, footprint, latency, throughput};

/// What one measurement found. Empty where the figure makes no sense for the multiplexer.
pub type Samples = Vec<(Series, f64)>;

/// One thing that is measured.
pub struct Figure {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Takes one round of samples from a multiplexer that was never used before.
    measure: fn(&Sandbox<'_>, &Scale) -> Result<Samples>,
}

/// All figures.
pub const FIGURES: &[Figure] = &[
    Figure { name: "throughput", measure: throughput::attached },
    Figure { name: "detached", measure: throughput::detached },
    Figure { name: "echo", measure: latency::echo },
    Figure { name: "tabs", measure: latency::echo_beside_tab },
    Figure { name: "ctrlc", measure: latency::interrupt },
    Figure { name: "attach", measure: latency::attach },
    Figure { name: "create", measure: latency::create },
    Figure { name: "memory", measure: footprint::memory },
    Figure { name: "idle", measure: footprint::idle },
];

/// What all rounds found.
#[derive(Default)]
pub struct Results {
    samples: BTreeMap<(Series, &'static str), Vec<f64>>,
    /// What could not be measured to the end.
    pub failures: Vec<Failure>,
}

/// A figure that a multiplexer did not get through.
pub struct Failure {
    /// The figure.
    pub figure: &'static str,
    /// The multiplexer.
    pub mux: &'static str,
    /// What happened.
    pub reason: String,
}

impl Results {
    /// What was measured of `series` for the multiplexer called `name`.
    pub fn of(&self, series: Series, name: &'static str) -> &[f64] {
        self.samples.get(&(series, name)).map_or(&[], Vec::as_slice)
    }

    fn has_failed(&self, figure: &str, mux: &str) -> bool {
        self.failures.iter().any(|failure| failure.figure == figure && failure.mux == mux)
    }
}

/// Measures what `options` ask for and prints it; whether nothing stands against success.
pub fn run(options: &Options) -> Result<bool> {
    if options.install {
        install_peers(options);
    }
    let muxes = installed(options);
    let figures: Vec<&Figure> = FIGURES.iter().filter(|figure| options.wants_figure(figure.name)).collect();
    let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
    let report = Report::new(&muxes, &options.scale);
    report.print_head();
    let root = Root::new()?;
    let mut results = Results::default();
    for figure in figures {
        measure(figure, &muxes, &root, &options.scale, &mut results);
        report.print_figure(figure.name, &results);
    }
    report.print_summary(&names, &results);
    if let Some(path) = &options.json {
        std::fs::write(path, report.json(&names, &results))?;
    }
    Ok(!options.check || report.all_musts_reached(&names, &results))
}

fn measure(figure: &Figure, muxes: &[Mux], root: &Root, scale: &Scale, results: &mut Results) {
    for round in 1..=scale.rounds {
        for mux in muxes {
            let name = mux.row.name;
            if results.has_failed(figure.name, name) {
                continue;
            }
            eprintln!("{} round {round}/{}: {name}", figure.name, scale.rounds);
            // One sandbox per measurement: no multiplexer carries anything over from the one before.
            match root.sandbox(mux).and_then(|sandbox| (figure.measure)(&sandbox, scale)) {
                Ok(samples) => {
                    for (series, value) in samples {
                        results.samples.entry((series, name)).or_default().push(value);
                    }
                }
                Err(err) => {
                    eprintln!("{name}: {err}");
                    results.failures.push(Failure {
                        figure: figure.name,
                        mux: name,
                        reason: err.to_string(),
                    });
                }
            }
        }
    }
}

fn installed(options: &Options) -> Vec<Mux> {
    let mut muxes = Vec::new();
    for row in ROWS.iter().filter(|row| options.wants_mux(row.name)) {
        match Mux::find(row, options.abide.as_deref()) {
            Some(mux) => muxes.push(mux),
            None => eprintln!("{}: not installed, left out", row.name),
        }
    }
    muxes
}

fn install_peers(options: &Options) {
    for row in ROWS.iter().filter(|row| options.wants_mux(row.name)) {
        let (Some(package), None) = (row.package, Mux::find(row, None)) else { continue };
        let status =
            Command::new("apt-get").args(["install", "-y", "--no-install-recommends", package]).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{}: apt-get could not install {package}", row.name);
        }
    }
}
