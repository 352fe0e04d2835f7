//! `schedlat probe yield`: arguments, cells, and from what they found to the report.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{
    common::{CommonArgs, Format, Setting},
    single,
    stage::{self, Cell, Ran},
    wake::waits_of,
};
use crate::{
    Error,
    model::{
        Report,
        probe::{Verdict, YieldSeries},
    },
    probe::{
        Policy,
        yields::{self, Peer, Yielded},
    },
    reconcile::{
        self,
        yields::{CellFacts, End, REAL_SWITCH_PCT, sort_calls},
    },
    report::probe as report,
    units::Nanos,
};

/// Arguments of `probe yield`.
#[derive(Debug, Args)]
pub(super) struct YieldArgs {
    /// Who is beside the probe on its CPU, with its policy, one after the other; all without
    #[arg(long = "peer", value_name = "PEER", value_enum, value_delimiter = ',')]
    peers: Vec<PeerArg>,
    /// The most calls of each combination
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CALLS)))]
    count: u32,
    /// The longest that a combination may take
    #[arg(
        long = "for",
        value_name = "DURATION",
        default_value = "2s",
        allow_hyphen_values = true
    )]
    longest: Nanos,
    /// Exit with 3 where less than 95 % of the calls of a combination switch
    #[arg(long)]
    require_switch: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// Of all combinations together: their memory is locked before the first begins, 16 bytes for each, and
/// what the kernel saw of each takes some 200 bytes until the end.
const MAX_CALLS: u32 = 10_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PeerArg {
    /// Nobody: what the call costs
    None,
    /// A thread that yields as well
    Yielder,
    /// A thread that never gives the CPU away
    Spinner,
}

/// A combination.
struct Plan {
    setting: Setting,
    cell: yields::Cell,
}

/// Measures; the exit code is 3 when less switched than was required, or as for every probe.
pub(super) fn run(args: &mut YieldArgs) -> anyhow::Result<ExitCode> {
    args.common.check()?;
    let plans = args.plans()?;
    let output = stage::open(&args.common)?;
    let cells = plans
        .iter()
        .map(|plan| {
            let crew = plan.cell.crew()?;
            Ok(Cell {
                setting: plan.setting.clone(),
                yielders: crew.tids()[..1].to_vec(),
                crew,
                is_traced: true,
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let mut staged = stage::run(&args.common, cells, false)?;
    let ran = std::mem::take(&mut staged.ran);
    let series: Vec<_> = plans
        .iter()
        .zip(&ran)
        .map(|(plan, ran)| series_of(plan, ran, &staged.record))
        .collect();
    let doubt = stage::lock_doubt(ran.iter().map(|ran| ran.results[0].is_locked));
    let report = staged.report(series, doubt.into_iter().collect());
    let verdicts: Vec<&Verdict> = report.series.iter().map(|it| &it.verdict).collect();
    let render = |format| match format {
        Format::Text => report::yield_text(&report),
        Format::Json => report::json("yield", &report),
    };
    let code = stage::finish(&args.common, output, &report, render, &verdicts)?;
    // Beside nobody there is nobody to switch to, and a spinner may be served first.
    let is_short = |(plan, series): (&Plan, &YieldSeries)| {
        let has_to = plan.cell.peer == Peer::Yielder || !args.peers.is_empty();
        has_to && series.switched_pct < REAL_SWITCH_PCT
    };
    let is_breach = args.require_switch && plans.iter().zip(&report.series).any(is_short);
    Ok(if is_breach { ExitCode::from(3) } else { code })
}

impl YieldArgs {
    fn plans(&self) -> Result<Vec<Plan>, Error> {
        let settings = self.common.settings(&[Policy::Other, Policy::Fifo(50)]);
        settings.iter().try_for_each(single::check_policy)?;
        let cpus = single::cpus(&self.common)?;
        let mut plans = Vec::new();
        for setting in &settings {
            for cpu in &cpus {
                plans.extend(self.peers().into_iter().map(|peer| Plan {
                    setting: setting.clone(),
                    cell: yields::Cell {
                        policy: setting.policy,
                        cpu: *cpu,
                        peer,
                        n_calls: usize::try_from(self.count).unwrap_or(usize::MAX),
                        longest: self.longest.into(),
                    },
                }));
            }
        }
        if plans.len() as u64 * u64::from(self.count) > u64::from(MAX_CALLS) {
            return Err(Error::Conflict {
                option: "--count",
                with: "so many combinations",
                help: "at most 10,000,000 calls are kept: make fewer, or choose with --peer, --policy and --cpu",
            });
        }
        Ok(plans)
    }

    fn peers(&self) -> Vec<Peer> {
        let peer = |peer: &PeerArg| match peer {
            PeerArg::None => Peer::Nobody,
            PeerArg::Yielder => Peer::Yielder,
            PeerArg::Spinner => Peer::Spinner,
        };
        if self.peers.is_empty() {
            Peer::ALL.to_vec()
        } else {
            self.peers.iter().map(peer).collect()
        }
    }
}

fn series_of(plan: &Plan, ran: &Ran<Yielded>, record: &Report) -> YieldSeries {
    let Plan { setting, cell } = plan;
    let probe = &ran.threads[0];
    let calls = &ran.results[0].calls;
    let sorted = sort_calls(calls, &waits_of(&ran.trace, probe.tid));
    let rows = reconcile::rows_of(record, std::slice::from_ref(probe));
    let length_ns = match (calls.first(), calls.last()) {
        (Some(first), Some(last)) => last.after_at_ns - first.before_at_ns,
        _ => 0,
    };
    let is_full = calls.len() == cell.n_calls;
    let facts = CellFacts {
        peer: cell.peer,
        peer_tid: (cell.peer != Peer::Nobody).then(|| ran.threads[1].tid),
        end: match ran.results.last() {
            _ if is_full => End::Count,
            _ if ran.was_ended => End::Signal,
            Some(watchdog) if watchdog.watched.was_ended => End::Watchdog,
            _ => End::Time,
        },
        length_ns,
        kernel_saw: ran.n_yields,
        row: rows.first().copied(),
        is_real_time: setting.policy != Policy::Other,
    };
    YieldSeries {
        policy: probe.asked_policy.clone(),
        cpu: cell.cpu,
        load: setting.load.label(),
        preemption: setting.preemption.map(|model| model.to_string()),
        ..reconcile::yields::series(&sorted, &facts)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: YieldArgs,
    }

    #[test]
    fn more_calls_than_can_be_kept_are_refused() {
        let refusal = |words: &str| {
            let words = words.split(' ');
            let line = Line::parse_from(std::iter::once("yield").chain(words));
            line.args.plans().err().map(|error| error.to_string())
        };
        let one = "--policy other --peer none";
        assert_eq!(refusal(&format!("{one} --count 10000000")), None);
        let many = "--count does not go with so many combinations";
        assert_eq!(refusal("--count 10000000").as_deref(), Some(many));
        assert!(Line::try_parse_from(["yield", "--count", "10000001"]).is_err());
    }
}
