//! `schedlat probe wake`: arguments, cells, and from what they found to the report.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use latency_common::class::WaitClass;

use super::{
    common::{CommonArgs, Format, Setting},
    stage::{self, Cell, Ran},
};
use crate::{
    Error,
    analysis::N_FOR_ALL_PERCENTILES,
    cpus::CpuList,
    model::{
        Report, TraceEvent, TracedWait,
        probe::{ThreadConditions, Verdict, WakeSeries, Warning},
    },
    probe::{
        Crew, Place, Policy, conditions,
        wake::{Limit, Via, WakePlan, WakeResult, WakeWorker},
    },
    reconcile::{self, wake::Label},
    report::probe as report,
    units::Nanos,
};

/// Samples of all threads together: what the kernel saw of each takes some 200 bytes until the end.
const MAX_SAMPLES: u64 = 4_000_000;

/// How long a combination is measured.
const DEFAULT_NS: u64 = 60_000_000_000;

/// The longest that a thread sleeps before it looks whether it is to end.
const LONGEST_INTERVAL_NS: u64 = 10_000_000_000;

/// Arguments of `probe wake`.
#[derive(Debug, Args)]
pub(super) struct WakeArgs {
    /// The period of the timers; at least twice the longest lateness, or periods will be missed. 1ms
    /// unless --rt says otherwise
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    interval: Option<Nanos>,
    /// How long to measure each combination; 60s unless so many CPUs would take too many samples
    #[arg(
        long = "for",
        value_name = "DURATION",
        allow_hyphen_values = true,
        conflicts_with = "count"
    )]
    duration: Option<Nanos>,
    /// How many samples to take of each combination
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// How to sleep
    #[arg(long, value_enum, default_value_t = ViaArg::Nanosleep)]
    via: ViaArg,
    /// How late timers of the fair class may be on purpose, e.g. 1ns; without it what is inherited
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    slack: Option<Nanos>,
    /// As real-time programs are made: a period of 200us, fifo:80, and all memory locked
    #[arg(long)]
    rt: bool,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ViaArg {
    /// `clock_nanosleep` with absolute times
    Nanosleep,
    /// Reading from a periodic timer
    Timerfd,
}

/// Measures; the exit code is 3 when the kernel does not bear it out and that matters.
pub(super) fn run(args: &mut WakeArgs) -> anyhow::Result<ExitCode> {
    args.common.check()?;
    let settings = args.settings();
    let cpus = args.cpus(&settings)?;
    let plan = args.plan(&settings, &cpus)?;
    let output = stage::open(&args.common)?;
    if args.rt {
        conditions::lock_memory()?;
    }
    let cells = settings
        .into_iter()
        .map(|setting| args.cell(setting, plan, &cpus))
        .collect::<Result<Vec<_>, _>>()?;
    let mut staged = stage::run(&args.common, cells, args.rt)?;
    let ran = std::mem::take(&mut staged.ran);
    let warnings = doubts(&ran);
    let series: Vec<_> = ran
        .iter()
        .flat_map(|cell| series_of(cell, plan, &staged.record))
        .collect();
    let report = staged.report(series, warnings);
    let verdicts: Vec<&Verdict> = report.series.iter().map(|it| &it.verdict).collect();
    let render = |format| match format {
        Format::Text => report::wake_text(&report),
        Format::Json => report::json("wake", &report),
    };
    stage::finish(&args.common, output, &report, render, &verdicts)
}

impl WakeArgs {
    fn settings(&self) -> Vec<Setting> {
        let fifo = Policy::Fifo(80);
        let default: &[_] = if self.rt {
            &[fifo]
        } else {
            &[Policy::Other, fifo]
        };
        self.common.settings(default)
    }

    /// One thread on each of these. A deadline task has none of its own.
    fn cpus(&self, settings: &[Setting]) -> Result<CpuList, Error> {
        let can_be_pinned = |setting: &Setting| setting.policy.can_be_pinned();
        if self.common.cpu.is_some() && !settings.iter().all(can_be_pinned) {
            return Err(Error::Conflict {
                option: "--policy deadline",
                with: "--cpu",
                help: "the kernel does not let deadline tasks be bound to a CPU; leave --cpu out",
            });
        }
        self.common.cpus()
    }

    fn plan(&self, settings: &[Setting], cpus: &CpuList) -> Result<WakePlan, Error> {
        let default_ns = if self.rt { 200_000 } else { 1_000_000 };
        let interval_ns = self.interval.map_or(default_ns, Nanos::as_ns);
        if interval_ns > LONGEST_INTERVAL_NS {
            return Err(Error::Conflict {
                option: "--interval",
                with: "more than 10 s",
                help: "a probe that is asked to end does so after its interval",
            });
        }
        let threads_of = |setting: &Setting| {
            if setting.policy.can_be_pinned() {
                cpus.as_slice().len() as u64
            } else {
                1
            }
        };
        let n_threads = settings.iter().map(threads_of).sum::<u64>().max(1);
        let default_periods = (DEFAULT_NS / interval_ns).min(MAX_SAMPLES / n_threads);
        let limit = match (self.count, self.duration) {
            (Some(n_samples), _) => Limit::Samples(n_samples),
            (None, Some(duration)) => Limit::Periods((duration.as_ns() / interval_ns).max(1)),
            (None, None) => Limit::Periods(default_periods.max(1)),
        };
        let plan = WakePlan {
            via: match self.via {
                ViaArg::Nanosleep => Via::Nanosleep,
                ViaArg::Timerfd => Via::Timerfd,
            },
            interval_ns,
            limit,
        };
        if plan.n_samples().saturating_mul(n_threads) > MAX_SAMPLES {
            return Err(Error::Conflict {
                option: "--interval",
                with: "so many samples",
                help: "at most 4,000,000 samples are kept: measure for shorter, less often, or on fewer CPUs",
            });
        }
        Ok(plan)
    }

    fn cell(
        &self,
        setting: Setting,
        plan: WakePlan,
        cpus: &CpuList,
    ) -> Result<Cell<WakeResult>, Error> {
        let mut crew = Crew::new();
        let cpus: Vec<_> = if setting.policy.can_be_pinned() {
            cpus.as_slice().iter().copied().map(Some).collect()
        } else {
            vec![None]
        };
        for cpu in cpus {
            let worker = WakeWorker::new(plan)?;
            let place = Place {
                name: cpu.map_or_else(|| "wake".to_owned(), |cpu| format!("wake/{cpu}")),
                policy: setting.policy,
                cpu,
                slack: self.slack,
            };
            crew.hire(&place, move |start| worker.run(start))?;
        }
        Ok(Cell {
            setting,
            crew,
            is_traced: true,
            yielders: Vec::new(),
        })
    }
}

fn series_of(cell: &Ran<WakeResult>, plan: WakePlan, record: &Report) -> Vec<WakeSeries> {
    let threads = cell.threads.iter().zip(&cell.results);
    threads
        .map(|(thread, result)| {
            let waits = waits_of(&cell.trace, thread.tid);
            let label = label(&cell.setting, thread, plan);
            let rows = reconcile::rows_of(record, std::slice::from_ref(thread));
            let n_unmeasured = rows
                .iter()
                .map(|row| row.stats.tally.class(WaitClass::Unmeasured).count)
                .sum();
            reconcile::wake::series(label, result, &waits, n_unmeasured)
        })
        .collect()
}

/// The waits of a thread, in their order as the trace is.
pub(super) fn waits_of(trace: &[TraceEvent], tid: u32) -> Vec<TracedWait> {
    let waits = trace.iter().filter_map(|event| match event {
        TraceEvent::Wait(wait) if wait.tid == tid => Some(*wait),
        _ => None,
    });
    waits.collect()
}

fn label(setting: &Setting, thread: &ThreadConditions, plan: WakePlan) -> Label {
    let (via, slack_ns) = match plan.via {
        Via::Nanosleep => ("nanosleep", thread.timer_slack_ns),
        // Its timers have no slack.
        Via::Timerfd => ("timerfd", 0),
    };
    Label {
        policy: thread.asked_policy.clone(),
        cpu: thread.asked_cpu,
        load: setting.load.label(),
        preemption: setting.preemption.map(|model| model.to_string()),
        via,
        tid: thread.tid,
        interval_ns: plan.interval_ns,
        slack_ns,
    }
}

fn doubts(ran: &[Ran<WakeResult>]) -> Vec<Warning> {
    let results = || ran.iter().flat_map(|cell| &cell.results);
    let locks = stage::lock_doubt(results().map(|result| result.is_locked));
    let mut doubts: Vec<_> = locks.into_iter().collect();
    let fewest = results().map(|result| result.samples.len() as u64).min();
    let few = fewest.filter(|n_samples| *n_samples < N_FOR_ALL_PERCENTILES);
    doubts.extend(few.map(|n_samples| Warning::FewSamples {
        n_samples,
        n_needed: N_FOR_ALL_PERCENTILES,
    }));
    doubts
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: WakeArgs,
    }

    fn parsed(words: &str) -> WakeArgs {
        let words = words.split_whitespace();
        Line::parse_from(std::iter::once("wake").chain(words)).args
    }

    fn plan(words: &str) -> Result<WakePlan, String> {
        let args = parsed(words);
        let cpus = "0".parse().unwrap();
        args.plan(&args.settings(), &cpus)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn length_is_given_in_periods_or_in_samples() {
        let limit = |words| plan(words).unwrap().limit;
        assert_eq!(limit(""), Limit::Periods(60_000));
        assert_eq!(limit("--rt --for 1s"), Limit::Periods(5_000));
        assert_eq!(limit("--for 1us"), Limit::Periods(1));
        assert_eq!(limit("--count 7"), Limit::Samples(7));
        assert!(Line::try_parse_from(["wake", "--for", "1s", "--count", "1"]).is_err());
        assert_eq!(plan("--rt --interval 1ms").unwrap().interval_ns, 1_000_000);
    }

    #[test]
    fn more_samples_than_can_be_kept_are_refused() {
        let error = plan("--count 2000001").unwrap_err();
        assert_eq!(error, "--interval does not go with so many samples");
        assert!(plan("--count 2000000").is_ok());
    }

    #[test]
    fn deadline_tasks_are_not_pinned() {
        let check = |words| {
            let args = parsed(words);
            args.cpus(&args.settings())
                .map_err(|error| error.to_string())
        };
        let policy = "--policy deadline:100us/1ms/1ms";
        assert!(check(policy).is_ok());
        assert_eq!(
            check(&format!("{policy} --cpu 0")).unwrap_err(),
            "--policy deadline does not go with --cpu"
        );
    }

    #[test]
    fn both_classes_are_measured_unless_one_is_asked_for() {
        let policies = |words| {
            let settings = parsed(words).settings();
            let names: Vec<_> = settings.iter().map(|it| it.policy.to_string()).collect();
            names.join(" ")
        };
        assert_eq!(policies(""), "other fifo:80");
        assert_eq!(policies("--rt"), "fifo:80");
        assert_eq!(policies("--rt --policy rr:5"), "rr:5");
    }
}
