//! From sorted calls to the figures of a series, and what they come to.

use super::SortedCalls;
use crate::{
    analysis::Distribution,
    model::{
        Row,
        probe::{Figures, Verdict, YieldSeries},
    },
    probe::yields::Peer,
    reconcile::ran_instead,
    units,
};

/// From this share of calls on yielding means switching.
pub const REAL_SWITCH_PCT: f64 = 95.0;

/// Up to this share of calls, a probe without a peer has measured a system call.
const SYSTEM_CALL_PCT: f64 = 5.0;

/// From this share of the time on that the probe waited, it was not alone.
const ALONE_PCT: f64 = 5.0;

/// Why a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All calls were made.
    Count,
    /// Its time was over.
    Time,
    /// The probe did not come back by itself.
    Watchdog,
    /// Somebody asked us to end.
    Signal,
}

/// What is known of a cell beside its calls.
#[derive(Clone, Copy, Debug)]
pub struct CellFacts<'a> {
    /// Who was beside the probe.
    pub peer: Peer,
    /// The peer's thread.
    pub peer_tid: Option<u32>,
    /// Why it ended.
    pub end: End,
    /// How long it took.
    pub length_ns: u64,
    /// Calls that the kernel counted.
    pub kernel_saw: Option<u64>,
    /// What the recorder has of the probe's thread.
    pub row: Option<&'a Row>,
    /// Its policy is a real-time one: nobody is given a turn.
    pub is_real_time: bool,
}

/// The figures of a cell. What it ran under is left to the caller.
#[must_use]
pub fn series(sorted: &SortedCalls, facts: &CellFacts<'_>) -> YieldSeries {
    let switched = sorted.switched_ns.len() as u64;
    let lost = sorted.lost_ns.len() as u64;
    let yields = switched + lost + sorted.unswitched_ns.len() as u64;
    let lengths = [&sorted.switched_ns, &sorted.unswitched_ns, &sorted.lost_ns];
    let all = figures(lengths.into_iter().flatten());
    let switched_pct = 100.0 * units::ratio(switched, yields);
    YieldSeries {
        peer: facts.peer.name(),
        yields,
        kernel_saw: facts.kernel_saw,
        switched,
        switched_pct,
        lost,
        kernel_switched: facts.row.map_or(0, |row| row.stats.switches.r#yield),
        unmatched: sorted.n_unmatched,
        worst_disagreement_ns: sorted.worst_disagreement_ns,
        ns_per_yield: all.mean_ns,
        switched_ns: figures(&sorted.switched_ns),
        unswitched_ns: figures(&sorted.unswitched_ns),
        lost_ns: figures(&sorted.lost_ns),
        ran_instead: ran_instead(facts.row, facts.peer_tid),
        ended_by: facts.end.key(),
        verdict: verdict(yields, switched_pct, facts),
        ..YieldSeries::default()
    }
}

fn figures<'a>(lengths: impl IntoIterator<Item = &'a u64>) -> Figures {
    let lengths = lengths.into_iter().map(|ns| ns.cast_signed());
    lengths.collect::<Distribution>().figures()
}

fn verdict(yields: u64, switched_pct: f64, facts: &CellFacts<'_>) -> Verdict {
    let is_alone = facts.peer == Peer::Nobody;
    let mut reasons = Vec::new();
    let verdict = if yields == 0 {
        "no yield".to_owned()
    } else if facts.end == End::Watchdog && facts.is_real_time {
        reasons.push(
            "the last yield gave the CPU to a task that keeps it; the watchdog ended that"
                .to_owned(),
        );
        "never came back".to_owned()
    } else if switched_pct >= REAL_SWITCH_PCT {
        "real switch".to_owned()
    } else if is_alone && switched_pct < SYSTEM_CALL_PCT {
        "system call only".to_owned()
    } else {
        format!("yield ignored {:.0} %", 100.0 - switched_pct)
    };
    let away_ns = facts.row.map_or(0, |row| row.stats.waited_ns);
    let away_pct = 100.0 * units::ratio(away_ns, facts.length_ns);
    if is_alone && away_pct >= ALONE_PCT {
        reasons.push(format!(
            "others had the CPU for {} of the time",
            units::percent(away_pct)
        ));
    }
    let is_breach = facts.kernel_saw.is_some_and(|counted| counted != yields);
    if is_breach {
        reasons.push("the kernel did not count as many calls".to_owned());
    }
    Verdict {
        verdict,
        reasons,
        is_breach,
    }
}

impl End {
    /// Its key.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Time => "time",
            Self::Watchdog => "watchdog",
            Self::Signal => "signal",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    const ALONE: CellFacts<'static> = CellFacts {
        peer: Peer::Nobody,
        peer_tid: None,
        end: End::Count,
        length_ns: 1_000_000_000,
        kernel_saw: Some(100),
        row: None,
        is_real_time: false,
    };

    fn of(n_switched: usize, n_unswitched: usize, facts: &CellFacts<'_>) -> YieldSeries {
        let sorted = SortedCalls {
            switched_ns: vec![2_000; n_switched],
            unswitched_ns: vec![400; n_unswitched],
            ..SortedCalls::default()
        };
        series(&sorted, facts)
    }

    #[track_caller]
    fn check(n_switched: usize, facts: &CellFacts<'_>, expected: &str) {
        let found = of(n_switched, 100 - n_switched, facts);
        assert_eq!(found.verdict.verdict, expected);
    }

    fn beside(peer: Peer) -> CellFacts<'static> {
        CellFacts { peer, ..ALONE }
    }

    #[test]
    fn share_of_real_switches_is_the_verdict() {
        check(0, &ALONE, "system call only");
        check(4, &ALONE, "system call only");
        check(5, &ALONE, "yield ignored 95 %");
        check(94, &ALONE, "yield ignored 6 %");
        check(95, &ALONE, "real switch");
        check(99, &beside(Peer::Yielder), "real switch");
        check(36, &beside(Peer::Spinner), "yield ignored 64 %");
        check(0, &beside(Peer::Spinner), "yield ignored 100 %");
        assert_eq!(of(0, 0, &ALONE).verdict.verdict, "no yield");
    }

    #[test]
    fn yield_that_never_comes_back_is_a_verdict() {
        let facts = CellFacts {
            end: End::Watchdog,
            is_real_time: true,
            ..beside(Peer::Spinner)
        };
        let found = of(1, 0, &facts);
        assert_eq!(found.verdict.verdict, "never came back");
        assert_eq!(found.ended_by, "watchdog");
        let fair = CellFacts {
            is_real_time: false,
            ..facts
        };
        assert_eq!(of(1, 1, &fair).verdict.verdict, "yield ignored 50 %");
    }

    #[test]
    fn hidden_competitor_is_named_and_is_no_solitude() {
        let record = fixture::report();
        let row = Row {
            stats: record.totals.clone(),
            ..record.rows[0].clone()
        };
        let facts = CellFacts {
            row: Some(&row),
            length_ns: 2_000_000_000,
            ..ALONE
        };
        let found = of(36, 64, &facts);
        assert_eq!(found.verdict.verdict, "yield ignored 64 %");
        assert_eq!(found.ran_instead[0].comm, "pg_dump");
        assert!(!found.ran_instead[0].is_peer);
        assert_eq!(
            found.verdict.reasons,
            ["others had the CPU for 62 % of the time"]
        );
    }

    #[test]
    fn populations_have_their_own_figures_and_the_mean_is_of_all() {
        let found = of(25, 75, &ALONE);
        assert_eq!(found.switched_ns.p50_ns, Some(2_000));
        assert_eq!(found.unswitched_ns.p50_ns, Some(400));
        assert_eq!(found.ns_per_yield, Some(800));
        assert!((found.switched_pct - 25.0).abs() < 1e-9);
    }

    #[test]
    fn calls_that_the_kernel_did_not_count_are_a_breach() {
        assert!(!of(0, 100, &ALONE).verdict.is_breach);
        assert!(of(1, 100, &ALONE).verdict.is_breach);
        let uncounted = CellFacts {
            kernel_saw: None,
            ..ALONE
        };
        assert!(!of(1, 100, &uncounted).verdict.is_breach);
    }
}
