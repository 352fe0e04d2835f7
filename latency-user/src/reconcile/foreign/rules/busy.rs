//! Probes that never sleep: whatever took the CPU away makes one of its turns long.

use super::{n_longer, reason::Reasons};
use crate::{
    model::{ClaimedSeries, SeenThread},
    units,
};

/// Losses of the CPU that may share a turn with another, or lie before the first or after the last turn.
const SHARED_TURNS: u64 = 3;

/// Longer than the turns that nothing interrupts.
const LONG_TURN_NS: u64 = 2_000;

pub(super) fn judge(series: &ClaimedSeries, thread: &SeenThread, reasons: &mut Reasons) {
    reasons.of_series(&series.name);
    let saw = thread.interruptions;
    if let Some(max_ns) = series.latency.max_ns {
        // Its rate of the counter is rounded to a megahertz.
        let allowed_ns = series.resolution_ns + saw.lost_cpu_max_ns / 64;
        if max_ns + allowed_ns < saw.lost_cpu_max_ns {
            let text = format!(
                "its longest turn took {}, yet it was without the CPU for {}",
                units::duration(max_ns),
                units::duration(saw.lost_cpu_max_ns)
            );
            let numbers = (max_ns, saw.lost_cpu_max_ns, allowed_ns);
            reasons.contradiction("max_below_kernel", numbers, text);
        }
    }
    losses_are_turns(series, thread, reasons);
    summary(series, thread, reasons);
    if let Some(n) = series.beyond_histogram.filter(|n| *n > 0) {
        let text = format!(
            "{} turns share its last bucket: of those only the longest is known",
            units::count(n)
        );
        reasons.remark("histogram_overflow", (0, n, 0), text);
    }
}

/// At the bound of every bucket: each time without the CPU that was longer is a turn that was longer.
fn losses_are_turns(series: &ClaimedSeries, thread: &SeenThread, reasons: &mut Reasons) {
    for (bound_ns, _) in &series.histogram {
        let turns = n_turns(series, *bound_ns);
        let losses = n_longer(&thread.lost_cpu_buckets, bound_ns + series.resolution_ns);
        let allowed = losses / 50 + SHARED_TURNS;
        if losses > turns + allowed {
            let text = format!(
                "{} of its turns took {} or longer, yet it was without the CPU for longer {} times",
                units::count(turns),
                units::duration(*bound_ns),
                units::count(losses)
            );
            reasons.contradiction("losses_not_seen", (turns, losses, allowed), text);
            return;
        }
    }
}

/// Turns that took at least so long.
fn n_turns(series: &ClaimedSeries, bound_ns: u64) -> u64 {
    let longer = series.histogram.iter().filter(|(ns, _)| *ns >= bound_ns);
    longer.map(|(_, n)| n).sum()
}

fn summary(series: &ClaimedSeries, thread: &SeenThread, reasons: &mut Reasons) {
    let turns = n_turns(series, LONG_TURN_NS);
    let saw = thread.interruptions;
    let events = saw.lost_cpu + saw.interrupts;
    let unexplained = match turns.checked_sub(events) {
        Some(n) if n > 0 => format!("; {} more have no event in this kernel", units::count(n)),
        _ => String::new(),
    };
    let text = format!(
        "{} turns took 2 µs or longer; the kernel saw it lose the CPU {} times for {} and {} interrupts of {}{unexplained}",
        units::count(turns),
        units::count(saw.lost_cpu),
        units::duration(saw.lost_cpu_sum_ns),
        units::count(saw.interrupts),
        units::duration(saw.interrupts_sum_ns),
    );
    reasons.remark("interruptions", (turns, events, 0), text);
}
