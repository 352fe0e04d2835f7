//! From an observation to a report: pure functions on the model, without I/O and without a clock.
//!
//! `summarise` makes the report; `difference` makes an observation of one interval, which is then
//! summarised like a whole one. Sums are exact; percentiles come from histograms, see `quantile`.

mod attribution;
mod audit;
mod autopsy;
pub mod bench;
mod difference;
mod distribution;
pub mod escape;
#[cfg(test)]
pub(crate) mod fixture;
pub mod flight;
mod group;
mod hint;
mod merge;
mod names;
mod paths;
mod quantile;
mod rows;
mod stats;

use std::collections::HashSet;
use std::time::Duration;

use latency_common::config::Detail;
use latency_common::hist::N_HISTS;

pub use self::attribution::interrupt;
pub use self::autopsy::autopsy;
pub use self::difference::difference;
pub use self::distribution::{Distribution, N_FOR_ALL_PERCENTILES};
pub(crate) use self::merge::{add_buckets, sum};
pub(crate) use self::rows::{TableRow, merged};
use crate::model::{
    Autopsy, Cost, FlightDump, GroupBy, Host, Observation, OverStats, Report, Row, RowIdent, Tally,
    Window,
};
use crate::units;

/// Less is what came between the readings of two clocks: nothing falls asleep and wakes up so soon.
const SHORTEST_SUSPENSION_NS: u64 = 1_000_000;

/// What a report says beside the observation.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Where.
    pub host: &'a Host,
    /// What was asked for, in words.
    pub target: &'a str,
    /// What a row stands for.
    pub by: GroupBy,
    /// How much was measured.
    pub detail: Detail,
    /// Features that were degraded or missing, in words.
    pub degraded: &'a [String],
    /// Dumps of the flight recorder.
    pub flight: &'a [FlightDump],
    /// Waits over the threshold, where one was asked for.
    pub over: Option<OverStats>,
    /// Share of one CPU that the recorder's own process used, in percent.
    pub recorder_cpu_pct: f64,
}

/// The report of an observation: of a whole recording, or of one interval.
#[must_use]
pub fn summarise(observation: &Observation, context: &Context<'_>) -> Report {
    let conditions = audit::Conditions {
        is_guest: context.host.hypervisor != "none",
        detail: context.detail,
        steal_ns: observation.cpus.steal_ns,
        suspended_ns: suspended_ns(observation),
        in_flight: context.host.n_cpus.into(),
    };
    let names = names::Names::of(&observation.rows);
    let mut totals = totals(observation);
    names.rename(&mut totals);
    let audit = audit::of_recording(&totals, observation, conditions);
    let irqs = &observation.irq_names;
    let totals = stats::stats(totals, irqs, &observation.names.works);
    let processes: HashSet<_> = observation.rows.iter().map(|row| row.ident.tgid).collect();
    let rows = group::groups(&observation.rows, context.by);
    Report {
        host: context.host.clone(),
        window: window(observation),
        target: escape::text(context.target),
        by: context.by,
        detail: context.detail.into(),
        n_tasks: observation.rows.len() as u64,
        n_processes: processes.len() as u64,
        rows: rows
            .into_iter()
            .map(|(ident, mut tally)| {
                names.rename(&mut tally);
                row(ident, tally, observation, conditions)
            })
            .collect(),
        interrupts: attribution::interrupt_totals(&observation.interrupts, irqs),
        longest: longest(observation, &names),
        stacks: paths::stacks(observation, &totals.parts),
        over: context.over,
        audit,
        censored: totals.censored,
        totals,
        loss: observation.losses,
        cost: cost(observation, context.recorder_cpu_pct),
        steal_ns: conditions.steal_ns,
        degraded: context.degraded.to_vec(),
        flight: context.flight.to_vec(),
    }
}

fn longest(observation: &Observation, names: &names::Names) -> Vec<Autopsy> {
    let taken_apart = observation.longest.iter().map(|event| {
        let mut autopsy = autopsy(event, &observation.irq_names, &observation.names);
        names.complete(&mut autopsy);
        autopsy
    });
    taken_apart.collect()
}

/// The sum of all tasks. What no row holds is in `unsent`, so no sample is missing here.
fn totals(observation: &Observation) -> Tally {
    let rows = observation.rows.iter().map(|row| &row.tally);
    let mut totals = sum(rows.chain([&observation.unsent]));
    totals.without_hist = [0; N_HISTS];
    totals
}

fn row(
    ident: RowIdent,
    tally: Tally,
    observation: &Observation,
    conditions: audit::Conditions,
) -> Row {
    let n_switching = if ident.exited { 0 } else { ident.n_tasks };
    let conditions = audit::Conditions {
        in_flight: conditions.in_flight.min(n_switching),
        ..conditions
    };
    Row {
        ident,
        audit: audit::of_tally(&tally, conditions),
        stats: stats::stats(tally, &observation.irq_names, &observation.names.works),
    }
}

fn window(observation: &Observation) -> Window {
    let Observation {
        start_at_ns,
        start_wall_ns,
        end_at_ns,
        ..
    } = *observation;
    let length_ns = end_at_ns.saturating_sub(start_at_ns);
    Window {
        seconds: Duration::from_nanos(length_ns).as_secs_f64(),
        start_at_ns,
        end_at_ns,
        start_wall_ns,
        suspended_ns: suspended_ns(observation),
    }
}

/// For how long the machine was suspended.
fn suspended_ns(observation: &Observation) -> u64 {
    match observation.cpus.suspended_ns {
        ..SHORTEST_SUSPENSION_NS => 0,
        ns => ns,
    }
}

fn cost(observation: &Observation, recorder_cpu_pct: f64) -> Cost {
    let per = |part: u64, whole: u64| (whole > 0).then(|| units::ratio(part, whole));
    let sample = observation.cost.unwrap_or_default();
    Cost {
        ns_per_switch: per(sample.run_ns, sample.switches),
        cpu_pct: per(sample.run_ns, sample.sampled_ns).map(|ratio| 100.0 * ratio),
        ns_per_run: per(sample.run_ns, sample.runs),
        sampled_ns: sample.sampled_ns,
        recorder_cpu_pct,
        attach_ns: observation.attach_ns,
    }
}

#[cfg(test)]
mod tests {
    use latency_common::class::WaitClass;
    use latency_common::hist::HistKind;

    use super::attribution::IrqNames;
    use super::fixture::{buckets_of, row, tally_of};
    use super::*;
    use crate::model::{ClassTally, CostSample, WorkNames};

    fn report_of(observation: &Observation, by: GroupBy) -> Report {
        let context = Context {
            host: &Host::default(),
            target: "all tasks",
            by,
            detail: Detail::Full,
            flight: &[],
            degraded: &[],
            over: None,
            recorder_cpu_pct: 0.5,
        };
        summarise(observation, &context)
    }

    #[test]
    fn empty_observation_gives_an_empty_report() {
        let report = report_of(&Observation::default(), GroupBy::Tid);
        assert!(report.rows.is_empty() && report.audit.ok);
        assert_eq!(
            report.totals,
            stats::stats(Tally::default(), &IrqNames::new(), &WorkNames::new())
        );
    }

    #[test]
    fn readings_of_two_clocks_that_are_a_little_apart_are_no_suspension() {
        let check = |between_ns, expected_ns| {
            let mut observation = Observation::default();
            observation.cpus.suspended_ns = between_ns;
            assert_eq!(window(&observation).suspended_ns, expected_ns);
        };
        check(300, 0);
        check(2_500_000_300, 2_500_000_300);
    }

    #[test]
    fn samples_of_a_task_without_histogram_complete_the_totals() {
        let mut without = tally_of(WaitClass::Wakeup, &[1000; 50]);
        without.hists = Default::default();
        without.without_hist[HistKind::Wakeup as usize] = 1;
        let mut observation = Observation {
            rows: vec![
                row(1, 1, "a", tally_of(WaitClass::Wakeup, &[10; 50])),
                row(2, 1, "b", without),
            ],
            ..Observation::default()
        };
        observation.unsent.hists[HistKind::Wakeup as usize] = buckets_of(&[1000; 50]);
        let report = report_of(&observation, GroupBy::Tid);
        let p90 = report.totals.waits.wakeup.p90_ns.unwrap();
        assert!((985..=1000).contains(&p90), "{p90}");
        assert_eq!(report.rows[0].ident.tid, Some(2));
        assert_eq!(report.rows[0].stats.waits.wakeup.p90_ns, None);
        assert_eq!(report.rows[1].stats.waits.wakeup.p90_ns, Some(10));
    }

    #[test]
    fn tasks_without_a_row_are_in_the_totals() {
        let mut observation = Observation {
            rows: vec![row(1, 1, "a", tally_of(WaitClass::Tick, &[10]))],
            ..Observation::default()
        };
        observation.unsent.classes[WaitClass::Tick as usize] = ClassTally {
            count: 2,
            sum_ns: 50,
            min_ns: 20,
            max_ns: 30,
            kernel_ns: 50,
        };
        let report = report_of(&observation, GroupBy::Pid);
        assert_eq!((report.totals.run_delay_ns, report.n_tasks), (60, 1));
        assert_eq!(report.totals.causes.tick.max_ns, 30);
    }

    #[test]
    fn cost_is_absent_without_the_right_to_ask() {
        let absent = cost(&Observation::default(), 1.0);
        assert_eq!((absent.ns_per_switch, absent.cpu_pct), (None, None));
        let observation = Observation {
            cost: Some(CostSample {
                sampled_ns: 1_000_000,
                run_ns: 4_000,
                runs: 40,
                switches: 20,
            }),
            ..Observation::default()
        };
        let cost = cost(&observation, 1.0);
        assert_eq!(
            (cost.ns_per_switch, cost.ns_per_run),
            (Some(200.0), Some(100.0))
        );
    }
}
