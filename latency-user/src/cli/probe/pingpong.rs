//! `schedlat probe pingpong`: arguments, then pairs of threads, then series.

use std::{io, process::ExitCode};

use clap::Args;

use super::{
    common::{CommonArgs, Format, Setting},
    stage::{self, Cell, Ran},
};
use crate::{
    Error,
    cpus::CpuList,
    model::{
        Report,
        probe::{PingpongSeries, Warning},
    },
    probe::{
        Policy,
        pingpong::{self, Length, Outcome, Placement, Plan, Quantity, Side, Spot, Transport},
    },
    reconcile::pingpong::{Measured, series},
    report::probe as report,
    topology,
    units::Nanos,
};

/// Arguments of `probe pingpong`.
#[derive(Debug, Args)]
pub(super) struct PingpongArgs {
    /// What carries the token: pipe, unix, eventfd, futex
    #[arg(
        long = "transport",
        value_name = "TRANSPORT",
        value_delimiter = ',',
        default_value = "pipe,unix"
    )]
    transports: Vec<Transport>,
    /// Where the two threads run: auto, same CPU, smt siblings, two cores of one last-level cache (llc),
    /// across caches (cross); what the machine does not have is said
    #[arg(
        long = "placement",
        value_name = "PLACEMENT",
        value_delimiter = ',',
        default_value = "auto,same,smt,llc,cross"
    )]
    placements: Vec<Placement>,
    /// Runs of each measurement; their median is shown
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Length of each run
    #[arg(long = "for", value_name = "DURATION", default_value = "1s")]
    length: Nanos,
    #[command(flatten)]
    common: CommonArgs,
}

/// A pair of threads and what they run under.
type PairCell = Cell<io::Result<Side>>;

/// Runs it.
pub(super) fn run(args: &mut PingpongArgs) -> anyhow::Result<ExitCode> {
    args.common.check()?;
    let (spots, absent) = args.spots()?;
    let output = stage::open(&args.common)?;
    let (plans, cells): (Vec<_>, Vec<_>) = args.cells(&spots)?.into_iter().unzip();
    let staged = stage::run(&args.common, cells, false)?;
    let series = all_series(&plans, &staged.ran, &staged.record)?;
    let report = staged.report(series, absent);
    let verdicts: Vec<_> = report.series.iter().map(|series| &series.verdict).collect();
    let render = |format| match format {
        Format::Text => report::pingpong_text(&report),
        Format::Json => report::json("pingpong", &report),
    };
    stage::finish(&args.common, output, &report, render, &verdicts)
}

impl PingpongArgs {
    /// The places that this machine has, and doubts about those that it has not.
    fn spots(&self) -> Result<(Vec<Spot>, Vec<Warning>), Error> {
        let wanted = self.common.cpus()?;
        let is_bound = wanted.as_slice().len() < CpuList::online().as_slice().len();
        let cpus = topology::places(wanted.as_slice());
        let mut spots = Vec::new();
        let mut absent = Vec::new();
        for placement in &self.placements {
            if *placement == Placement::Auto && is_bound {
                absent.push(Warning::NoPlacement {
                    placement: placement.to_string(),
                    why: "it leaves the CPUs to the kernel, and --cpu does not".to_owned(),
                });
                continue;
            }
            match placement.on(&cpus) {
                Ok(spot) => spots.push(spot),
                Err(why) => absent.push(Warning::NoPlacement {
                    placement: placement.to_string(),
                    why: why.to_owned(),
                }),
            }
        }
        if spots.is_empty() {
            let placements: Vec<_> = self.placements.iter().map(Placement::to_string).collect();
            return Err(Error::NoPlacement(placements.join(", ")));
        }
        Ok((spots, absent))
    }

    /// What is measured, and the threads that do it.
    fn cells(&self, spots: &[Spot]) -> Result<Vec<(Plan, PairCell)>, Error> {
        let mut cells = Vec::new();
        let is_pinned = spots.iter().any(|spot| spot.cpus.is_some());
        for setting in self.common.settings(&[Policy::Other]) {
            if is_pinned && !setting.policy.can_be_pinned() {
                return Err(Error::Conflict {
                    option: "--policy deadline",
                    with: "threads that are bound to CPUs",
                    help: "the kernel does not let deadline tasks be bound to a CPU; use --placement auto",
                });
            }
            for plan in self.plans(&setting, spots) {
                let cell = Cell {
                    setting: setting.clone(),
                    crew: pingpong::pair(plan)?,
                    // A pair switches several hundred thousand times a second.
                    is_traced: false,
                    yielders: Vec::new(),
                };
                cells.push((plan, cell));
            }
        }
        Ok(cells)
    }

    fn plans(&self, setting: &Setting, spots: &[Spot]) -> Vec<Plan> {
        let mut plans = Vec::new();
        for spot in spots {
            for transport in &self.transports {
                let plan = |quantity| Plan {
                    transport: *transport,
                    spot: *spot,
                    quantity,
                    policy: setting.policy,
                    length: Length {
                        n_runs: self.runs,
                        run_ns: self.length.as_ns(),
                    },
                };
                plans.push(plan(Quantity::Latency));
                if transport.carries_bytes() {
                    plans.push(plan(Quantity::Bandwidth));
                }
            }
        }
        plans
    }
}

/// A series for each pair that made round trips, with the bandwidth of the one that followed.
fn all_series(
    plans: &[Plan],
    ran: &[Ran<io::Result<Side>>],
    record: &Report,
) -> Result<Vec<PingpongSeries>, Error> {
    let outcomes = plans
        .iter()
        .zip(ran)
        .map(|(plan, cell)| Outcome::of(plan.transport, &cell.results))
        .collect::<Result<Vec<_>, _>>()?;
    let mut all = Vec::new();
    for (index, (plan, cell)) in plans.iter().zip(ran).enumerate() {
        if plan.quantity == Quantity::Bandwidth {
            continue;
        }
        let is_followed = plans
            .get(index + 1)
            .is_some_and(|next| next.quantity == Quantity::Bandwidth);
        let tids: Vec<_> = cell.threads.iter().map(|thread| thread.tid).collect();
        let measured = Measured {
            plan: *plan,
            load: &cell.setting.load.label(),
            preemption: cell.setting.preemption.map(|model| model.to_string()),
            tids: &tids,
            latency: &outcomes[index],
            bandwidth: outcomes.get(index + 1).filter(|_| is_followed),
        };
        all.push(series(&measured, &record.rows, record.loss.missed_switches));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "pingpong")]
    struct Line {
        #[command(flatten)]
        args: PingpongArgs,
    }

    fn parsed(words: &str) -> PingpongArgs {
        let words = words.split_whitespace();
        Line::parse_from(std::iter::once("pingpong").chain(words)).args
    }

    #[test]
    fn bytes_are_measured_after_the_round_trips_of_the_same_transport() {
        let args = parsed("--transport futex,unix --runs 3 --for 20ms");
        let settings = args.common.settings(&[Policy::Other]);
        let spot = |placement: Placement| placement.on(&topology::places(&[0])).unwrap();
        let spots = [spot(Placement::Auto), spot(Placement::Same)];
        let plans = args.plans(&settings[0], &spots);
        let shown = plans.iter().map(|plan| {
            let quantity = plan.quantity == Quantity::Bandwidth;
            (plan.spot.placement.name(), plan.transport.name(), quantity)
        });
        let in_place = |place| {
            [
                (place, "futex", false),
                (place, "unix", false),
                (place, "unix", true),
            ]
        };
        let expected = [in_place("auto"), in_place("same")].concat();
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        assert_eq!(plans[0].length.run_ns, 20_000_000);
    }

    #[test]
    fn places_that_are_missing_are_doubts_until_none_is_left() {
        let (spots, absent) = parsed("--cpu 0").spots().unwrap();
        assert_eq!((spots.len(), absent.len()), (1, 4));
        let refused = parsed("--cpu 0 --placement llc,cross").spots();
        assert!(matches!(refused, Err(Error::NoPlacement(_))));
    }
}
