//! `schedlat probe busy`: arguments, cells, and from what they found to the report.

use std::process::ExitCode;

use clap::Args;

use super::{
    common::{CommonArgs, Format, Setting},
    single,
    stage::{self, Cell, Ran},
};
use crate::{
    Error,
    model::{
        Report, TraceEvent,
        probe::{BusySeries, Verdict},
    },
    probe::{
        Policy,
        busy::{Spinner, Spun},
    },
    reconcile::{
        self, Names,
        busy::{RunFacts, explain},
    },
    report::probe as report,
    units::Nanos,
};

/// Arguments of `probe busy`.
#[derive(Debug, Args)]
pub(super) struct BusyArgs {
    /// How long to spin in each combination
    #[arg(
        long = "for",
        value_name = "DURATION",
        default_value = "10s",
        allow_hyphen_values = true
    )]
    duration: Nanos,
    /// The shortest jump of the clock that counts as a gap; without it fifty turns of the loop
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    threshold: Option<Nanos>,
    /// Print every gap: how long it was, and how long until the next one
    #[arg(long)]
    pairs: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// A combination.
struct Plan {
    setting: Setting,
    spinner: Spinner,
}

/// Measures; the exit code is as for every probe.
pub(super) fn run(args: &mut BusyArgs) -> anyhow::Result<ExitCode> {
    args.common.check()?;
    let plans = args.plans()?;
    let output = stage::open(&args.common)?;
    let cells = plans
        .iter()
        .map(|plan| {
            Ok(Cell {
                setting: plan.setting.clone(),
                crew: plan.spinner.crew()?,
                is_traced: true,
                yielders: Vec::new(),
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let mut staged = stage::run(&args.common, cells, false)?;
    let ran = std::mem::take(&mut staged.ran);
    let names = Names::of(&staged.record, &staged.conditions.others);
    let series: Vec<_> = plans
        .iter()
        .zip(&ran)
        .map(|(plan, ran)| args.series_of(plan, ran, &staged.record, &names))
        .collect();
    let doubt = stage::lock_doubt(ran.iter().map(|ran| ran.results[0].is_locked));
    let report = staged.report(series, doubt.into_iter().collect());
    let verdicts: Vec<&Verdict> = report.series.iter().map(|it| &it.verdict).collect();
    let render = |format| match format {
        Format::Text => report::busy_text(&report),
        Format::Json => report::json("busy", &report),
    };
    stage::finish(&args.common, output, &report, render, &verdicts)
}

impl BusyArgs {
    fn plans(&self) -> Result<Vec<Plan>, Error> {
        let settings = self.common.settings(&[Policy::Other, Policy::Fifo(50)]);
        settings.iter().try_for_each(single::check_policy)?;
        let cpus = single::cpus(&self.common)?;
        let n_spinners = settings.len() * cpus.len();
        let mut plans = Vec::new();
        for setting in &settings {
            plans.extend(cpus.iter().map(|cpu| Plan {
                setting: setting.clone(),
                spinner: Spinner {
                    policy: setting.policy,
                    cpu: *cpu,
                    length_ns: self.duration.as_ns(),
                    threshold_ns: self.threshold.map(Nanos::as_ns),
                    n_spinners,
                },
            }));
        }
        Ok(plans)
    }

    fn series_of(
        &self,
        plan: &Plan,
        ran: &Ran<Spun>,
        record: &Report,
        names: &Names<'_>,
    ) -> BusySeries {
        let Plan { setting, spinner } = plan;
        let (probe, spun) = (&ran.threads[0], &ran.results[0]);
        let is_own = |event: &&TraceEvent| event.tid() == probe.tid;
        let events: Vec<_> = ran.trace.iter().filter(is_own).copied().collect();
        let window_ns = (spun.spin.began_at_ns, spun.spin.ended_at_ns);
        let explanation = explain(&spun.gaps, window_ns, &events);
        let rows = reconcile::rows_of(record, std::slice::from_ref(probe));
        let facts = RunFacts {
            names,
            row: rows.first().copied(),
            has_pairs: self.pairs,
        };
        BusySeries {
            policy: probe.asked_policy.clone(),
            cpu: spinner.cpu,
            load: setting.load.label(),
            preemption: setting.preemption.map(|model| model.to_string()),
            ..reconcile::busy::series(spun, &explanation, &facts)
        }
    }
}
