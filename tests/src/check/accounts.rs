//! Our account of a recording against the kernel's, both read by the recorder at the same instants.

use anyhow::{Result, ensure};

use super::{PER_WAIT_NS, near, ratio};
use crate::report::{Audit, Report, Row};

/// Steal time is counted in the steps of `/proc/stat`.
const STEAL_STEP_NS: u64 = 10_000_000;

/// Both accounts of one class of waits agree: within a ratio plus so much time.
pub fn class_agrees(audit: &Audit, class: &str, within: f64, or_ns: u64) -> Result<()> {
    let both = audit.class(class);
    let gap = both.ours_ns.abs_diff(both.kernel_ns);
    let spent = gap.saturating_sub(or_ns);
    ensure!(
        ratio(spent, both.kernel_ns) <= within && (both.kernel_ns > 0 || spent == 0),
        "{class}: {} waits, ours {} ns, the kernel's {} ns: they differ by {gap} ns",
        both.count,
        both.ours_ns,
        both.kernel_ns
    );
    Ok(())
}

/// Waits after a slice that the timer ended: within 0.05 % of the kernel's account plus 3 µs each.
pub fn slices_agree(audit: &Audit) -> Result<()> {
    slices_agree_within(audit, 0.0005, PER_WAIT_NS)
}

/// Waits after a slice that the timer ended, with a tolerance of one's own.
pub fn slices_agree_within(audit: &Audit, within: f64, per_wait_ns: u64) -> Result<()> {
    for class in ["tick", "hrtick"] {
        class_agrees(audit, class, within, per_wait_ns * audit.class(class).count)?;
    }
    Ok(())
}

/// Waits after a yield between these tasks: within 0.1 % of the kernel's account, and of each wait
/// in which somebody else ran, what a switch of theirs takes.
pub fn yields_agree(report: &Report, fellows: &[u32]) -> Result<()> {
    let rows = report.tasks.iter().flat_map(|row| &row.stats.preemptors);
    let third_parties = rows.filter(|by| !fellows.contains(&by.tid));
    let n: u64 = third_parties.map(|by| by.count).sum();
    class_agrees(&report.audit, "yield", 0.001, n * PER_WAIT_NS)
}
/// Our account of time on a CPU without what a hypervisor kept meanwhile, which the kernel's task
/// clock leaves out; never below the kernel's.
#[must_use]
pub fn without_steal(report: &Report, ours: u64, theirs: u64) -> u64 {
    let stolen = if report.steal_ns > 0 {
        report.steal_ns + STEAL_STEP_NS
    } else {
        0
    };
    ours - stolen.min(ours.saturating_sub(theirs))
}

/// A task that always wants a CPU runs or waits all the time: within 0.1 % or 1 ms, in our account and,
/// where an event did not fire, in the kernel's. Its clock of a stint that goes on is as old as the last
/// tick, and leaves out what a hypervisor kept.
pub fn runs_or_waits_all_the_time(report: &Report, row: &Row) -> Result<()> {
    let unmeasured = row.audit.class("unmeasured");
    let unseen = unmeasured.kernel_ns + row.audit.on_cpu_unseen_kernel_ns;
    let spent = row.stats.on_cpu_ns + row.stats.waited_ns + unseen;
    let late = if unmeasured.count > 0 {
        1_000_000_000 / report.host.hz.unwrap_or(100) + report.steal_ns
    } else {
        0
    };
    let window = report.window_ns();
    let accounted = spent + window.saturating_sub(spent).min(late);
    near("running and waiting", accounted, window, 0.001, 1_000_000)
}

/// Switches equal to the unit with the kernel's counters.
///
/// One per CPU may be in flight. A switch that fired no event at all is in the kernel's count only,
/// and is a counted break in the chain.
pub fn switches_agree(audit: &Audit, n_cpus: u64) -> Result<()> {
    let s = &audit.switches;
    for (kind, ours, kernel) in [
        ("voluntary", s.voluntary_ours, s.voluntary_kernel),
        ("involuntary", s.involuntary_ours, s.involuntary_kernel),
    ] {
        ensure!(
            ours <= kernel + n_cpus && kernel <= ours + n_cpus + s.missed,
            "{kind} switches: ours {ours}, the kernel's {kernel}; {n_cpus} may be in flight, {} \
             were missed",
            s.missed
        );
    }
    Ok(())
}

/// Every switch of the host was seen, or is counted as a break in the chain.
pub fn chain_adds_up(audit: &Audit) -> Result<()> {
    let s = &audit.switches;
    let accounted = s.all_ours + s.missed;
    ensure!(
        accounted.abs_diff(s.all_kernel) <= s.all_kernel_slack,
        "switches of all CPUs: {} seen + {} missed = {accounted}, ctxt grew by {} (±{})",
        s.all_ours,
        s.missed,
        s.all_kernel,
        s.all_kernel_slack
    );
    Ok(())
}

/// On-CPU time within 0.5 % of the kernel's, steal time apart: holds where no wakeup preempts.
pub fn on_cpu_agrees(report: &Report, audit: &Audit) -> Result<()> {
    let (ours, kernel) = (audit.on_cpu_ours_ns, audit.on_cpu_kernel_ns);
    near(
        "on-CPU time",
        without_steal(report, ours, kernel),
        kernel,
        0.005,
        0,
    )
}

/// On-CPU time not above the kernel's, which charges the switch of a preempting wakeup to the woken
/// task; 0.5 % covers the clocks. Returns the gap in percent.
pub fn on_cpu_is_not_more(report: &Report) -> Result<f64> {
    let kernel = report.audit.on_cpu_kernel_ns;
    let ours = without_steal(report, report.audit.on_cpu_ours_ns, kernel);
    ensure!(
        ours <= kernel || ratio(ours - kernel, kernel) <= 0.005,
        "on-CPU time: ours {ours} ns is above the kernel's {kernel} ns"
    );
    Ok(100.0 * ratio(kernel.saturating_sub(ours), kernel))
}
