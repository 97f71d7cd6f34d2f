//! The tables, the JSON, and whether abide reached what it must.

use serde_json::{Value, json};

use crate::figures::{Failure, Results};
use crate::metrics::{Better, Bound, METRICS, Metric, Summary};
use crate::options::Scale;
use crate::rows::{BARE, Mux, OURS, REFERENCE};
use crate::terminal::{COLUMNS, ROWS};

/// Prints what was measured.
pub struct Report<'a> {
    muxes: &'a [Mux],
    scale: &'a Scale,
}

impl<'a> Report<'a> {
    /// A report about `muxes`.
    pub fn new(muxes: &'a [Mux], scale: &'a Scale) -> Self {
        Self { muxes, scale }
    }

    /// What was measured where.
    pub fn print_head(&self) {
        println!("# Multiplexers at {COLUMNS}x{ROWS}\n");
        println!("{}\n", machine());
        for mux in self.muxes {
            println!("- {}: {}", mux.row.name, mux.version);
        }
        println!();
    }

    /// The tables of one figure.
    pub fn print_figure(&self, figure: &str, results: &Results) {
        for metric in METRICS.iter().filter(|metric| metric.figure == figure) {
            self.print_metric(metric, results);
        }
        for failure in results.failures.iter().filter(|failure| failure.figure == figure) {
            println!("{} failed: {}\n", failure.mux, failure.reason);
        }
    }

    fn print_metric(&self, metric: &Metric, results: &Results) {
        let better = match metric.better {
            Better::Higher => "higher is better",
            Better::Lower => "lower is better",
        };
        let summary = match metric.summary {
            Summary::Median => "median",
            Summary::P99 => "p99",
            Summary::Worst => "worst",
        };
        println!("## {} ({}, {better})\n", metric.title, metric.unit);
        println!("| | {summary} | lowest … highest of n | × {REFERENCE} | × {BARE} |");
        println!("|---|---:|---:|---:|---:|");
        for mux in self.muxes {
            let name = mux.row.name;
            let samples = results.of(metric.series, name);
            let lowest = samples.iter().copied().min_by(f64::total_cmp);
            let highest = samples.iter().copied().max_by(f64::total_cmp);
            println!(
                "| {name} | {} | {} … {} of {} | {} | {} |",
                number(metric.value(samples)),
                number(lowest),
                number(highest),
                samples.len(),
                number(ratio(metric, results, name, REFERENCE)),
                number(ratio(metric, results, name, BARE)),
            );
        }
        println!();
    }

    /// One table of everything, and how abide stands against its musts and goals.
    pub fn print_summary(&self, figures: &[&str], results: &Results) {
        let names: Vec<&str> = self.muxes.iter().map(|mux| mux.row.name).collect();
        println!("# Summary\n");
        println!("| | {} |", names.join(" | "));
        println!("|---|{}", "---:|".repeat(names.len()));
        for metric in metrics_of(figures) {
            let value = |mux: &Mux| number(metric.value(results.of(metric.series, mux.row.name)));
            let cells: Vec<String> = self.muxes.iter().map(value).collect();
            println!("| {}, {} | {} |", metric.title, metric.unit, cells.join(" | "));
        }
        println!();
        if self.muxes.iter().any(|mux| mux.row.name == OURS) {
            println!("| abide | is | must | | goal | |\n|---|---:|---:|---|---:|---|");
            for metric in metrics_of(figures) {
                let value = metric.value(results.of(metric.series, OURS));
                let [must, goal] = [metric.must, metric.goal].map(|bound| standing(metric, bound, results));
                println!("| {}, {} | {} | {must} | {goal} |", metric.title, metric.unit, number(value));
            }
            println!();
        }
    }

    /// Whether abide reached every must of `figures`; says which it missed.
    pub fn all_musts_reached(&self, figures: &[&str], results: &Results) -> bool {
        let mut all = true;
        for metric in metrics_of(figures) {
            let Some(must) = metric.must else { continue };
            if reached(metric, must, results) != Some(true) {
                all = false;
                let value = number(metric.value(results.of(metric.series, OURS)));
                eprintln!(
                    "missed: {}: {value}, must be {} {}",
                    metric.title,
                    wording(metric, must),
                    metric.unit
                );
            }
        }
        all
    }

    /// Everything for another program to read.
    pub fn json(&self, figures: &[&str], results: &Results) -> String {
        let metric = |metric: &Metric| {
            let row = |mux: &Mux| {
                let name = mux.row.name;
                json!({
                    "mux": name,
                    "value": metric.value(results.of(metric.series, name)),
                    "samples": results.of(metric.series, name),
                    "times_tmux": ratio(metric, results, name, REFERENCE),
                    "times_bare": ratio(metric, results, name, BARE),
                })
            };
            json!({
                "id": metric.id,
                "title": metric.title,
                "unit": metric.unit,
                "higher_is_better": metric.better == Better::Higher,
                "rows": self.muxes.iter().map(row).collect::<Vec<_>>(),
                "must_reached": metric.must.and_then(|must| reached(metric, must, results)),
                "goal_reached": metric.goal.and_then(|goal| reached(metric, goal, results)),
            })
        };
        let version = |mux: &Mux| (mux.row.name.to_owned(), Value::from(mux.version.clone()));
        let failure = |f: &Failure| json!({ "figure": f.figure, "mux": f.mux, "reason": f.reason });
        let all = json!({
            "machine": machine(),
            "columns": COLUMNS,
            "rows": ROWS,
            "rounds": self.scale.rounds,
            "versions": self.muxes.iter().map(version).collect::<serde_json::Map<_, _>>(),
            "metrics": metrics_of(figures).map(metric).collect::<Vec<_>>(),
            "failures": results.failures.iter().map(failure).collect::<Vec<_>>(),
        });
        format!("{all:#}\n")
    }
}

fn metrics_of(figures: &[&str]) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(|metric| figures.contains(&metric.figure))
}

fn ratio(metric: &Metric, results: &Results, name: &'static str, to: &'static str) -> Option<f64> {
    let value = metric.value(results.of(metric.series, name))?;
    let reference = metric.value(results.of(metric.series, to))?;
    (reference > 0.0).then_some(value / reference)
}

/// Whether abide reached `bound`; `None` if it, or what it is compared with, was not measured.
fn reached(metric: &Metric, bound: Bound, results: &Results) -> Option<bool> {
    let value = metric.value(results.of(metric.series, OURS))?;
    let limit = match bound {
        Bound::Value(limit) => limit,
        Bound::Times(factor, peer) => factor * metric.value(results.of(metric.series, peer))?,
    };
    Some(metric.reaches(value, limit))
}

fn standing(metric: &Metric, bound: Option<Bound>, results: &Results) -> String {
    let Some(bound) = bound else { return "– | ".to_owned() };
    let word = match reached(metric, bound, results) {
        Some(true) => "reached",
        Some(false) => "missed",
        None => "not measured",
    };
    format!("{} | {word}", wording(metric, bound))
}

fn wording(metric: &Metric, bound: Bound) -> String {
    let sign = match metric.better {
        Better::Higher => '≥',
        Better::Lower => '≤',
    };
    match bound {
        Bound::Value(value) => format!("{sign} {value}"),
        Bound::Times(factor, peer) => format!("{sign} {factor} × {peer}"),
    }
}

/// Three digits that matter; a dash for what was not measured.
fn number(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// The machine, and how busy it was with other things: the first doubt to have about a figure.
fn machine() -> String {
    let system = rustix::system::uname();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    format!("Linux {}, {cores} cores, load {load}", system.release().to_string_lossy())
}
