//! What the tables show: which samples, summed up how, and what abide must reach.

use crate::rows::{BARE, REFERENCE};

/// A kind of sample that a figure takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Series {
    /// Text through an attached session.
    AttachedAscii,
    /// Redraws through an attached session.
    AttachedTui,
    /// Text into a session that nobody watches.
    DetachedAscii,
    /// Redraws into a session that nobody watches.
    DetachedTui,
    /// A key and its answer.
    EchoIdle,
    /// A key and its answer while another session floods.
    EchoFlooded,
    /// A key and its answer while another tab of the same terminal floods.
    EchoBesideTab,
    /// `^C` and the end of a flood.
    Interrupt,
    /// An attach and the full screen.
    Attach,
    /// The first session of a multiplexer.
    CreateFirst,
    /// A session beside others.
    CreateNext,
    /// Memory with one session that printed nothing.
    MemoryEmpty,
    /// Memory per session with a full scrollback.
    MemoryFull,
    /// CPU time while nothing happens.
    IdleCpu,
    /// Wake-ups while nothing happens.
    IdleWakeups,
}

/// How samples become one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summary {
    /// The one in the middle.
    Median,
    /// The one that 99 of 100 do not exceed.
    P99,
    /// The one furthest from good.
    Worst,
}

/// Which of two values is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// What a value is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A value in the metric's own unit.
    Value(f64),
    /// So many times what another row reached in the same run.
    Times(f64, &'static str),
}

/// One value per multiplexer.
pub struct Metric {
    /// The figure that takes the samples.
    pub figure: &'static str,
    /// Its name in JSON.
    pub id: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The samples.
    pub series: Series,
    /// What is made of them.
    pub summary: Summary,
    /// The unit of samples and value.
    pub unit: &'static str,
    /// Which way is up.
    pub better: Better,
    /// What abide has to reach.
    pub must: Option<Bound>,
    /// What abide wants to reach.
    pub goal: Option<Bound>,
}

const METRIC: Metric = Metric {
    figure: "",
    id: "",
    title: "",
    series: Series::Attach,
    summary: Summary::Median,
    unit: "",
    better: Better::Lower,
    must: None,
    goal: None,
};

const DTACH: &str = "dtach";

const THROUGHPUT: Metric = Metric { figure: "throughput", unit: "MB/s", better: Better::Higher, ..METRIC };
const DETACHED: Metric = Metric {
    figure: "detached",
    unit: "MB/s",
    better: Better::Higher,
    must: Some(Bound::Times(2.2, REFERENCE)),
    goal: Some(Bound::Times(1.0, DTACH)),
    ..METRIC
};
const ECHO: Metric = Metric {
    figure: "echo",
    unit: "µs",
    must: Some(Bound::Times(1.0, REFERENCE)),
    goal: Some(Bound::Times(1.0, DTACH)),
    ..METRIC
};
/// Against the peer alone: the goal's has no tabs.
const BESIDE_TAB: Metric = Metric { figure: "tabs", goal: None, ..ECHO };
const CREATE: Metric = Metric {
    figure: "create",
    unit: "ms",
    must: Some(Bound::Value(40.0)),
    goal: Some(Bound::Value(15.0)),
    ..METRIC
};

/// All metrics, in the order of the tables.
pub const METRICS: &[Metric] = &[
    Metric {
        id: "attached_ascii",
        title: "attached, text",
        series: Series::AttachedAscii,
        must: Some(Bound::Times(1.8, REFERENCE)),
        goal: Some(Bound::Times(0.75, BARE)),
        ..THROUGHPUT
    },
    Metric {
        id: "attached_tui",
        title: "attached, TUI redraws",
        series: Series::AttachedTui,
        must: Some(Bound::Times(4.0, REFERENCE)),
        goal: Some(Bound::Times(0.75, BARE)),
        ..THROUGHPUT
    },
    Metric { id: "detached_ascii", title: "detached, text", series: Series::DetachedAscii, ..DETACHED },
    Metric { id: "detached_tui", title: "detached, TUI redraws", series: Series::DetachedTui, ..DETACHED },
    Metric { id: "echo_idle_p50", title: "key echo p50, idle", series: Series::EchoIdle, ..ECHO },
    Metric {
        id: "echo_idle_p99",
        title: "key echo p99, idle",
        series: Series::EchoIdle,
        summary: Summary::P99,
        ..ECHO
    },
    Metric {
        id: "echo_flooded_p50",
        title: "key echo p50, another session floods",
        series: Series::EchoFlooded,
        ..ECHO
    },
    Metric {
        id: "echo_flooded_p99",
        title: "key echo p99, another session floods",
        series: Series::EchoFlooded,
        summary: Summary::P99,
        ..ECHO
    },
    Metric {
        id: "echo_tab_p50",
        title: "key echo p50, another tab floods",
        series: Series::EchoBesideTab,
        ..BESIDE_TAB
    },
    Metric {
        id: "echo_tab_p99",
        title: "key echo p99, another tab floods",
        series: Series::EchoBesideTab,
        summary: Summary::P99,
        ..BESIDE_TAB
    },
    Metric {
        figure: "ctrlc",
        id: "ctrlc",
        title: "^C of a flood takes effect, worst",
        series: Series::Interrupt,
        summary: Summary::Worst,
        unit: "ms",
        must: Some(Bound::Value(10.0)),
        goal: Some(Bound::Value(2.0)),
        ..METRIC
    },
    Metric {
        figure: "attach",
        id: "attach",
        title: "attach until repainted",
        series: Series::Attach,
        unit: "ms",
        must: Some(Bound::Times(0.8, REFERENCE)),
        goal: Some(Bound::Value(2.0)),
        ..METRIC
    },
    Metric { id: "create_first", title: "create the first session", series: Series::CreateFirst, ..CREATE },
    Metric { id: "create_next", title: "create another session", series: Series::CreateNext, ..CREATE },
    Metric {
        figure: "memory",
        id: "memory_full",
        title: "memory per session, full scrollback",
        series: Series::MemoryFull,
        unit: "MB",
        must: Some(Bound::Value(8.0)),
        goal: Some(Bound::Value(5.0)),
        ..METRIC
    },
    Metric {
        figure: "memory",
        id: "memory_empty",
        title: "memory with one empty session",
        series: Series::MemoryEmpty,
        unit: "MB",
        must: Some(Bound::Value(4.0)),
        goal: Some(Bound::Value(2.0)),
        ..METRIC
    },
    Metric {
        figure: "idle",
        id: "idle_cpu",
        title: "CPU of idle attached sessions",
        series: Series::IdleCpu,
        unit: "% of a core",
        must: Some(Bound::Value(0.5)),
        goal: Some(Bound::Value(0.0)),
        ..METRIC
    },
    Metric {
        figure: "idle",
        id: "idle_wakeups",
        title: "wake-ups of idle attached sessions",
        series: Series::IdleWakeups,
        unit: "per second",
        goal: Some(Bound::Value(0.0)),
        ..METRIC
    },
];

impl Metric {
    /// The one value that `samples` come to; `None` if there are none.
    pub fn value(&self, samples: &[f64]) -> Option<f64> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        match (self.summary, self.better) {
            (Summary::Median, _) => rank(&sorted, 0.5),
            (Summary::P99, _) => rank(&sorted, 0.99),
            (Summary::Worst, Better::Lower) => sorted.last().copied(),
            (Summary::Worst, Better::Higher) => sorted.first().copied(),
        }
    }

    /// Whether `value` is at least as good as `limit`.
    pub fn reaches(&self, value: f64, limit: f64) -> bool {
        match self.better {
            Better::Higher => value >= limit,
            Better::Lower => value <= limit,
        }
    }
}

/// The value that `share` of the sorted samples do not exceed: always one that was measured.
fn rank(sorted: &[f64], share: f64) -> Option<f64> {
    let position = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(position.saturating_sub(1)).copied()
}
