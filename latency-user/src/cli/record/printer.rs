//! From observations to the output, in the format that was asked for.

use latency_common::config::Detail;

use super::Format;
use crate::{
    Error,
    analysis::{self, Context},
    cli::output::Output,
    model::{FlightDump, GroupBy, Host, Observation, Report},
    report::{csv, json, text},
};

/// What only the whole report says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closing<'a> {
    /// Features that were degraded or missing, in words.
    pub(super) degraded: &'a [String],
    /// Share of one CPU that the recorder's own process used, in percent.
    pub(super) recorder_cpu_pct: f64,
    /// Dumps of the flight recorder.
    pub(super) flight: &'a [FlightDump],
}

/// Prints the parts of a recording.
#[derive(Debug)]
pub(super) struct Printer {
    pub(super) output: Output,
    pub(super) format: Format,
    /// Rows in text.
    pub(super) top: usize,
    pub(super) host: Host,
    pub(super) target: String,
    pub(super) by: GroupBy,
    pub(super) detail: Detail,
    pub(super) n_intervals: u64,
}

impl Printer {
    /// Says that everything is attached, where intervals are printed.
    pub(super) fn start(&mut self, (start_at_ns, start_wall_ns): (u64, u64)) -> Result<(), Error> {
        let line = match self.format {
            Format::Text => return Ok(()),
            Format::Json => json::start_line(&self.host, &self.target, start_at_ns, start_wall_ns),
            Format::Csv => csv::interval_header(),
        };
        self.output.write(&line)
    }

    /// Prints one interval.
    pub(super) fn interval(&mut self, interval: &Observation) -> Result<(), Error> {
        self.n_intervals += 1;
        let report = self.summarise(interval, &Closing::default());
        let line = match self.format {
            Format::Text => text::interval_line(&report, self.n_intervals),
            Format::Json => json::interval_line(&report, self.n_intervals),
            Format::Csv => csv::interval_rows(&report, self.n_intervals),
        };
        self.output.write(&line)
    }

    /// Prints the whole; whether its audit holds.
    pub(super) fn whole(
        &mut self,
        whole: &Observation,
        closing: &Closing<'_>,
    ) -> Result<bool, Error> {
        let report = self.summarise(whole, closing);
        let has_intervals = self.n_intervals > 0;
        let text = match self.format {
            Format::Text if has_intervals => "\n".to_owned() + &text::render(&report, self.top),
            Format::Text => text::render(&report, self.top),
            Format::Json if has_intervals => json::final_line(&report),
            Format::Json => json::render(&report),
            Format::Csv if has_intervals => csv::final_rows(&report),
            Format::Csv => csv::render(&report),
        };
        self.output.write(&text)?;
        Ok(report.audit.ok)
    }

    fn summarise(&self, observation: &Observation, closing: &Closing<'_>) -> Report {
        let context = Context {
            host: &self.host,
            target: &self.target,
            by: self.by,
            detail: self.detail,
            degraded: closing.degraded,
            recorder_cpu_pct: closing.recorder_cpu_pct,
            flight: closing.flight,
        };
        analysis::summarise(observation, &context)
    }
}
