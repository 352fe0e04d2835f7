//! The one way in which probes run: threads made and parked, the recorder attached to them and to what
//! is observed alongside, cell after cell released, and everything that the kernel saw taken home.

use std::{cell::Cell as Flag, fs::File, process::ExitCode};

use rustix::time::ClockId;

use super::common::{CommonArgs, Format, Setting};
use crate::{
    analysis::{self, Context},
    cli::{
        alongside::record_while,
        output::Output,
        signals::{self, Signals},
    },
    cpus::{Affinity, CpuList},
    host,
    model::{
        GroupBy, Host, Report, TraceEvent,
        probe::{
            Clocksources, Conditions, LoadReport, ProbeReport, ThreadConditions, Verdict, Warning,
        },
    },
    observe::{Session, SessionOptions, TargetArgs, Targets},
    probe::{Crew, StopAtEnd, Working, conditions, load::Load, preemption::Switched},
    reconcile, units,
};

/// Threads get to their starting line in this time, also on a busy CPU.
const RUN_UP_NS: u64 = 20_000_000;

/// What is measured at a time.
#[derive(Debug)]
pub(super) struct Cell<T> {
    /// Under what.
    pub(super) setting: Setting,
    /// The threads that do it, parked.
    pub(super) crew: Crew<T>,
    /// Whether they are traced, event by event.
    pub(super) is_traced: bool,
    /// Those of them whose calls of `sched_yield` are counted.
    pub(super) yielders: Vec<u32>,
}

/// A cell that has run.
#[derive(Debug)]
pub(super) struct Ran<T> {
    /// Under what.
    pub(super) setting: Setting,
    /// What its threads ran under, in the order in which they were hired.
    pub(super) threads: Vec<ThreadConditions>,
    /// What they found, in the same order.
    pub(super) results: Vec<T>,
    /// What the kernel saw of them.
    pub(super) trace: Vec<TraceEvent>,
    /// Calls of `sched_yield` that it counted; none where it counts none.
    pub(super) n_yields: Option<u64>,
    /// A signal ended it.
    pub(super) was_ended: bool,
    /// The threads themselves, which are done: they stay for the last snapshot.
    _working: Working<T>,
}

/// Everything that was measured and recorded.
#[derive(Debug)]
pub(super) struct Staged<T> {
    /// Cells, in their order; fewer than were asked for when a signal ended it.
    pub(super) ran: Vec<Ran<T>>,
    host: Host,
    /// What all of it ran under.
    pub(super) conditions: Conditions,
    /// The recorder's report: of the probe's threads, and of those alongside.
    pub(super) record: Report,
    doubts: Vec<Warning>,
    was_ended: bool,
}

/// Runs the cells under one recording. `is_memory_locked` is told on.
///
/// Everything that can be wrong with the arguments has been looked at before.
pub(super) fn run<T: Send + 'static>(
    args: &CommonArgs,
    cells: Vec<Cell<T>>,
    is_memory_locked: bool,
) -> anyhow::Result<Staged<T>> {
    let (runtime, signals) = signals::runtime()?;
    let tids = cells.iter().flat_map(|cell| cell.crew.tids());
    let mut targets = args.also();
    let target = describe(&targets);
    targets.tids.extend(tids);
    let traced = cells.iter().filter(|cell| cell.is_traced);
    let options = SessionOptions {
        traced: traced.flat_map(|cell| cell.crew.tids()).collect(),
        yielders: cells
            .iter()
            .flat_map(|cell| cell.yielders.clone())
            .collect(),
        ..SessionOptions::new(Targets::resolve(&targets, GroupBy::Tid)?)
    };
    let idle_states = args.no_cstates.then(conditions::hold_idle_states);
    let play = Play {
        idle_states: idle_states.transpose()?,
        is_memory_locked,
        target,
        signals,
        doubts: args.absent.clone(),
    };
    runtime.block_on(play.run(cells, &options))
}

impl<T> Staged<T> {
    /// The report with these series, whose doubts are `warnings`.
    pub(super) fn report<S>(self, series: Vec<S>, warnings: Vec<Warning>) -> ProbeReport<S> {
        let mut all = reconcile::doubts(&self.conditions, self.was_ended);
        all.extend(self.doubts);
        all.extend(warnings);
        ProbeReport {
            host: self.host,
            conditions: self.conditions,
            warnings: all,
            series,
            record: self.record,
        }
    }
}

/// The doubt that buffers may be paged out while they are measured with; none where all are locked.
pub(super) fn lock_doubt(mut are_locked: impl Iterator<Item = bool>) -> Option<Warning> {
    (!are_locked.all(|is_locked| is_locked)).then_some(Warning::NotLocked)
}

/// Opens where the report goes, before anything is measured.
pub(super) fn open(args: &CommonArgs) -> Result<Output, crate::Error> {
    Output::open(args.output.clone())
}

/// Writes the report in the format that was asked for, and says how to exit.
pub(super) fn finish<S>(
    args: &CommonArgs,
    mut output: Output,
    report: &ProbeReport<S>,
    render: impl FnOnce(Format) -> String,
    verdicts: &[&Verdict],
) -> anyhow::Result<ExitCode> {
    output.write(&render(args.format))?;
    let is_breach = verdicts.iter().any(|verdict| verdict.is_breach);
    let is_sound = report.record.audit.ok && !is_breach;
    Ok(ExitCode::from(if args.strict && !is_sound { 3 } else { 0 }))
}

/// What a recording of probes needs.
struct Play {
    /// Open as long as it lasts.
    idle_states: Option<File>,
    is_memory_locked: bool,
    target: String,
    signals: Signals,
    /// About the machine, as far as they are known.
    doubts: Vec<Warning>,
}

impl Play {
    async fn run<T: Send + 'static>(
        mut self,
        cells: Vec<Cell<T>>,
        options: &SessionOptions,
    ) -> anyhow::Result<Staged<T>> {
        let host = host::collect();
        let (mut session, _) = Session::start(options)?;
        let cpu_at_start = host::clock_ns(ClockId::ThreadCPUTime);
        let clock_at_start = conditions::clocksource();
        let was_ended = Flag::new(false);
        let mut ran = Vec::new();
        let mut loads = Vec::new();
        for cell in cells {
            let (cell, load) = self.cell(&mut session, cell, &was_ended).await?;
            ran.push(cell);
            loads.extend(load);
            if was_ended.get() {
                break;
            }
        }
        let mut whole = session.last_snapshot()?;
        session.name_functions(&mut whole);
        let cpu_ns = host::clock_ns(ClockId::ThreadCPUTime) - cpu_at_start;
        let record = analysis::summarise(
            &whole,
            &Context {
                host: &host,
                target: &self.target,
                by: GroupBy::Tid,
                detail: options.detail,
                degraded: session.degraded(),
                flight: &[],
                over: None,
                recorder_cpu_pct: 100.0 * units::ratio(cpu_ns, whole.end_at_ns - whole.start_at_ns),
            },
        );
        let mut conditions = self.conditions(&record, &ran, loads);
        conditions.clocksource = Clocksources {
            at_start: clock_at_start,
            at_end: conditions::clocksource(),
        };
        Ok(Staged {
            ran,
            host,
            conditions,
            record,
            doubts: self.doubts,
            was_ended: was_ended.get(),
        })
    }

    /// Releases the threads of a cell and records until they have ended.
    async fn cell<T: Send + 'static>(
        &mut self,
        session: &mut Session,
        cell: Cell<T>,
        was_ended: &Flag<bool>,
    ) -> anyhow::Result<(Ran<T>, Option<LoadReport>)> {
        let Cell {
            setting,
            crew,
            yielders,
            ..
        } = cell;
        let switched = setting.preemption.map(Switched::to).transpose()?;
        let threads = crew.conditions();
        let cpus = cpus_of(&threads);
        let load = Load::start(&setting.load, &cpus)?;
        // The recorder would be one of those that interrupt the probe.
        let _kept_off =
            Affinity::keep_off(&cpus).map_err(|source| crate::Error::Thread { source })?;
        let stop = StopAtEnd(crew.stop());
        // What was traced before is nobody's.
        session.turn()?;
        drop(session.take_trace());
        let working = crew.go(host::monotonic_ns() + RUN_UP_NS);
        let done = tokio::task::spawn_blocking(move || {
            let mut working = working;
            (working.results(), working)
        });
        let (results, working) = record_while(session, &mut self.signals, done, || {
            was_ended.set(true);
            stop.0.now();
        })
        .await??;
        session.turn()?;
        let trace = session.take_trace();
        let label = setting.load.label();
        let load = load.stop().map(|done| LoadReport {
            load: label,
            n_iterations: done.n_iterations,
            n_bytes: done.n_bytes,
            cpu_ns: done.cpu_ns,
            has_failed: done.has_failed(),
            failed: done.failed,
        });
        let failure = switched.and_then(Switched::put_back);
        self.doubts
            .extend(failure.map(|why| Warning::ModelNotPutBack { why }));
        let ran = Ran {
            setting,
            threads,
            results,
            trace,
            n_yields: n_yields(session, &yielders),
            was_ended: was_ended.get(),
            _working: working,
        };
        Ok((ran, load))
    }

    fn conditions<T>(&self, record: &Report, ran: &[Ran<T>], loads: Vec<LoadReport>) -> Conditions {
        let threads: Vec<_> = ran.iter().flat_map(|cell| cell.threads.clone()).collect();
        let rows = reconcile::rows_of(record, &threads);
        Conditions {
            rt_limit: conditions::rt_limit(),
            throttled_ns: rows
                .iter()
                .map(|row| row.stats.parts.throttled.sum_ns)
                .sum(),
            is_memory_locked: self.is_memory_locked,
            are_idle_states_held: self.idle_states.is_some(),
            steal_ns: record.steal_ns,
            loads,
            others: reconcile::others(
                &rows,
                ran.iter().flat_map(|cell| &cell.trace),
                conditions::name_of,
            ),
            threads,
            clocksource: Clocksources::default(),
        }
    }
}

/// The CPUs that threads are bound to; all that are allowed, where none is.
fn cpus_of(threads: &[ThreadConditions]) -> Vec<u32> {
    let bound = threads.iter().filter_map(|thread| thread.asked_cpu);
    let mut cpus: Vec<_> = bound.collect();
    if cpus.is_empty() {
        let allowed = CpuList::allowed().unwrap_or_default();
        cpus.extend_from_slice(allowed.as_slice());
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// Calls of `sched_yield` by these threads that the kernel counted.
fn n_yields(session: &Session, yielders: &[u32]) -> Option<u64> {
    let counts: Option<Vec<_>> = yielders
        .iter()
        .map(|tid| session.yield_calls(*tid))
        .collect();
    counts
        .filter(|counts| !counts.is_empty())
        .map(|counts| counts.iter().sum())
}

/// What is observed, in words.
fn describe(also: &TargetArgs) -> String {
    let own = "the probe's threads".to_owned();
    match also.in_words() {
        also if also.is_empty() => own,
        also => format!("{own} and {also}"),
    }
}
