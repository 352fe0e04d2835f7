//! Tools that have a total only, or a distribution of all their threads together.

use super::reason::Reasons;
use crate::{
    model::{Claims, SeenByKernel},
    reconcile::foreign::Tool,
    units,
};

/// Totals are printed in milliseconds.
const ROUNDING_NS: u64 = 1_000_000;

/// hackbench and perf bench.
pub(super) fn judge(tool: Tool, claims: &Claims, seen: &SeenByKernel, reasons: &mut Reasons) {
    if let Some(tasks) = claims.tasks.filter(|tasks| *tasks > seen.n_tasks) {
        let text = format!(
            "it says that {} tasks ran, and the kernel saw {}",
            units::count(tasks),
            units::count(seen.n_tasks)
        );
        reasons.contradiction("tasks_not_seen", (tasks, seen.n_tasks, 0), text);
    }
    if let Some(duration_ns) = claims.duration_ns {
        duration(tool, duration_ns, seen, reasons);
        own_arithmetic(claims, duration_ns, reasons);
    }
    if let Some(operations) = claims.operations.filter(|n| *n > 0) {
        per_operation(operations, seen, reasons);
    }
    if tool == Tool::PerfBench && claims.operations.is_none() && claims.tasks.is_none() {
        let text = "it says nothing but its total time, so nothing else can be compared";
        reasons.note("total_only", text);
    }
}

fn duration(tool: Tool, duration_ns: u64, seen: &SeenByKernel, reasons: &mut Reasons) {
    let numbers = (duration_ns, seen.elapsed_ns, ROUNDING_NS);
    if duration_ns > seen.elapsed_ns + ROUNDING_NS {
        let text = format!(
            "it says that it took {}, and it was there for {}",
            units::duration(duration_ns),
            units::duration(seen.elapsed_ns)
        );
        reasons.contradiction("longer_than_it_ran", numbers, text);
        return;
    }
    let outside = match tool {
        Tool::Hackbench => ", which includes making its tasks",
        _ => "",
    };
    let text = format!(
        "its total of {} leaves out {} of its life{outside}; its tasks were {} on a CPU and waited {} for one",
        units::duration(duration_ns),
        units::duration(seen.elapsed_ns.saturating_sub(duration_ns)),
        units::duration(seen.on_cpu_ns),
        units::duration(seen.waited_ns),
    );
    reasons.remark("total", numbers, text);
}

/// Operations times their time is the total.
fn own_arithmetic(claims: &Claims, duration_ns: u64, reasons: &mut Reasons) {
    let Some((operations, each_ns)) = claims.operations.zip(claims.ns_per_operation) else {
        return;
    };
    let product_ns = operations.saturating_mul(each_ns);
    let allowed_ns = duration_ns / 100 + ROUNDING_NS + operations;
    if product_ns.abs_diff(duration_ns) > allowed_ns {
        let text = format!(
            "{} operations of {} are {}, not {}",
            units::count(operations),
            units::duration(each_ns),
            units::duration(product_ns),
            units::duration(duration_ns)
        );
        let numbers = (duration_ns, product_ns, allowed_ns);
        reasons.contradiction("own_arithmetic", numbers, text);
    }
}

fn per_operation(operations: u64, seen: &SeenByKernel, reasons: &mut Reasons) {
    let text = format!(
        "{} operations made {:.2} wakeups and {:.2} switches each: where it is below one of either, they mostly found their data without sleeping",
        units::count(operations),
        units::ratio(seen.wakeups, operations),
        units::ratio(seen.switches, operations),
    );
    reasons.remark("per_operation", (operations, seen.wakeups, 0), text);
}

/// schbench.
pub(super) fn batches(
    claims: &Claims,
    seen: &SeenByKernel,
    missed_switches: u64,
    reasons: &mut Reasons,
) {
    let Some(series) = claims.series.first() else {
        return;
    };
    reasons.of_series(&series.name);
    let taken = series.taken.unwrap_or(0);
    let allowed = taken / 100 + missed_switches + 20;
    let numbers = (taken, seen.wakeups, allowed);
    if taken > seen.wakeups + allowed {
        let text = format!(
            "it claims {} wakeups, and the kernel saw {}",
            units::count(taken),
            units::count(seen.wakeups)
        );
        reasons.contradiction("samples_exceed_wakeups", numbers, text);
    } else {
        let text = format!(
            "{} samples, and {} wakeups of all its threads; samples of 0 µs are not among them, and each begins with the batch it belongs to",
            units::count(taken),
            units::count(seen.wakeups)
        );
        reasons.remark("samples", numbers, text);
    }
}
