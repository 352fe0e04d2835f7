//! Results of probes: plain data whose field names are the keys of the JSON contract.

mod busy;
mod conditions;
mod wake;
mod warning;
mod yields;

pub use self::{
    busy::{BusySeries, CauseGaps, GapCauses, GapsBy, Pair, TurnFigures},
    conditions::{Clocksources, Conditions, LoadReport, OtherTask, RtLimit, ThreadConditions},
    wake::{Disagreement, WakePhases, WakeSamples, WakeSeries},
    warning::Warning,
    yields::{RanInstead, YieldSeries},
};

use serde::Serialize;

use super::{Host, Report};

/// A distribution of times, which may be negative. Percentiles are withheld where there are fewer
/// samples than ten beyond them, and everything but the sum where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Samples.
    pub count: u64,
    /// Their sum, exact.
    pub sum_ns: i64,
    /// The smallest, exact.
    pub min_ns: Option<i64>,
    /// The mean, of exact sums.
    pub mean_ns: Option<i64>,
    /// The largest, exact.
    pub max_ns: Option<i64>,
    /// Median, at most 1/1000 off, like the others.
    pub p50_ns: Option<i64>,
    /// 90th percentile.
    pub p90_ns: Option<i64>,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// 99.9th percentile.
    pub p999_ns: Option<i64>,
}

/// What a measurement comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// In a word or two.
    pub verdict: String,
    /// Why, where that is not plain.
    pub reasons: Vec<String>,
    /// A stated tolerance is exceeded, or what was required is not so.
    #[serde(skip)]
    pub is_breach: bool,
}

/// The whole report of a probe.
#[derive(Clone, Debug)]
pub struct ProbeReport<S> {
    /// Where.
    pub host: Host,
    /// What it ran under.
    pub conditions: Conditions,
    /// Doubts, with advice.
    pub warnings: Vec<Warning>,
    /// What was measured, one for each combination.
    pub series: Vec<S>,
    /// What the recorder saw of the probe's threads and of those observed alongside.
    pub record: Report,
}
