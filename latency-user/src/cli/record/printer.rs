//! From observations to the output, in the format that was asked for.

use std::collections::BTreeMap;

use latency_common::config::Detail;

use tokio::time::Instant;

use super::{Format, over::Over};
use crate::{
    Error,
    analysis::{self, Context},
    cli::output::Output,
    model::{FlightDump, GroupBy, Host, KernelNames, Observation, Report, WaitEvent, Window},
    report::{csv, folded, json, text},
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
    /// Waits over a threshold, where one was asked for.
    pub(super) over: Option<Over>,
    /// Something is printed before the whole.
    pub(super) is_stream: bool,
    pub(super) n_intervals: u64,
    /// The start of the recording; set when it is known.
    pub(super) window: Window,
}

impl Printer {
    /// Says that everything is attached, where more than the whole is printed.
    pub(super) fn start(&mut self, (start_at_ns, start_wall_ns): (u64, u64)) -> Result<(), Error> {
        self.window = Window {
            start_at_ns,
            start_wall_ns,
            ..Window::default()
        };
        if !self.is_stream {
            return Ok(());
        }
        let line = match self.format {
            Format::Text | Format::Folded => return Ok(()),
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
            Format::Folded => String::new(),
        };
        self.output.write(&line)
    }

    /// Prints waits over the threshold, but no more than can be read.
    pub(super) fn waits(
        &mut self,
        events: &[WaitEvent],
        irqs: &BTreeMap<u32, String>,
        names: &KernelNames,
    ) -> Result<(), Error> {
        let Some(over) = &mut self.over else {
            return Ok(());
        };
        let now = Instant::now();
        for event in events {
            let Some(n_skipped) = over.admit(now) else {
                continue;
            };
            let wait = analysis::autopsy(event, irqs, names);
            let text = match self.format {
                Format::Json => json::wait_line(&wait, n_skipped),
                Format::Text | Format::Csv | Format::Folded => text::autopsy(&wait, &self.window),
            };
            self.output.write(&text)?;
        }
        Ok(())
    }

    /// Prints the whole; whether its audit holds.
    pub(super) fn whole(
        &mut self,
        whole: &Observation,
        closing: &Closing<'_>,
    ) -> Result<bool, Error> {
        let report = self.summarise(whole, closing);
        let text = match self.format {
            Format::Text if self.is_stream => "\n".to_owned() + &text::render(&report, self.top),
            Format::Text => text::render(&report, self.top),
            Format::Json if self.is_stream => json::final_line(&report),
            Format::Json => json::render(&report),
            Format::Csv if self.is_stream => csv::final_rows(&report),
            Format::Csv => csv::render(&report),
            Format::Folded => folded::render(&report),
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
            over: self.over.as_ref().map(Over::stats),
            recorder_cpu_pct: closing.recorder_cpu_pct,
            flight: closing.flight,
        };
        analysis::summarise(observation, &context)
    }
}
