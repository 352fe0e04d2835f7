//! The audit in words: both accounts of every kind and cause, of the switches, of the time on a
//! CPU, and what was found.

use latency_common::class::WaitClass;

use super::table;
use super::waits::share;
use crate::model::{Audit, DetailLevel, Finding};
use crate::units;

/// The audit, first of all whether it holds. What neither account holds is left out.
pub(super) fn render(audit: &Audit, detail: DetailLevel) -> String {
    let verdict = if audit.ok {
        "audit: ok"
    } else {
        "audit: FAILED"
    };
    let mut rows = vec![table::cells([
        verdict,
        "waits",
        "ours",
        "the kernel's",
        "apart",
    ])];
    let accounts = WaitClass::ALL
        .into_iter()
        .filter_map(|class| Some((class, audit.by_cause.get(class.name())?)));
    rows.extend(accounts.filter_map(|(class, account)| {
        let n_waits = units::count(account.count);
        two_accounts(
            label(class, detail),
            n_waits,
            account.ours_ns,
            account.kernel_ns,
        )
    }));
    rows.extend(two_accounts(
        "time on a CPU",
        String::new(),
        audit.on_cpu_ours_ns,
        audit.on_cpu_kernel_ns,
    ));
    rows.extend(two_accounts(
        "of stints not seen",
        String::new(),
        0,
        audit.on_cpu_unseen_kernel_ns,
    ));
    table::aligned("<>>>>", &rows) + &switches(audit) + &ticks(audit) + &findings(audit)
}

/// A row with both accounts; none where there is nothing to compare.
fn two_accounts(name: &str, n_waits: String, ours_ns: u64, kernel_ns: u64) -> Option<Vec<String>> {
    if ours_ns == 0 && kernel_ns == 0 {
        return None;
    }
    Some(vec![
        format!("  {name}"),
        n_waits,
        units::duration(ours_ns),
        units::duration(kernel_ns),
        apart(ours_ns, kernel_ns),
    ])
}

/// How far two accounts are apart, as a share of the kernel's.
pub(in crate::report) fn apart(ours_ns: u64, kernel_ns: u64) -> String {
    let known_ns = (kernel_ns > 0).then_some(kernel_ns);
    table::known(known_ns, |kernel_ns| {
        share(ours_ns.abs_diff(kernel_ns), kernel_ns)
    })
}

fn label(class: WaitClass, detail: DetailLevel) -> &'static str {
    match class {
        WaitClass::Wakeup => "after a wakeup",
        WaitClass::NewTask => "before the first run",
        WaitClass::Tick => "after the tick",
        WaitClass::Hrtick => "after the slice timer",
        WaitClass::WakeupPreemption => "after losing the CPU to a wakeup",
        WaitClass::HigherClass => "after losing it to a higher class",
        WaitClass::Yield => "after sched_yield",
        WaitClass::Throttled => "out of quota",
        WaitClass::Stopper => "after losing it to the stopper",
        WaitClass::Unknown if detail < DetailLevel::Causes => "after losing the CPU",
        WaitClass::Unknown => "of unknown cause",
        WaitClass::OpenAtStart => "waiting from before",
        WaitClass::Unmeasured => "start or end not seen",
    }
}

fn switches(audit: &Audit) -> String {
    let switches = audit.switches;
    let pair = |ours: u64, kernel: u64| {
        let sign = if ours == kernel {
            "="
        } else {
            "against the kernel's"
        };
        format!("{} {sign} {}", units::count(ours), units::count(kernel))
    };
    let all = switches.all.map_or_else(String::new, |all| {
        format!(
            "; all CPUs {} + {} missed, the kernel's {} (± {})",
            units::count(all.all_ours),
            units::count(all.missed),
            units::count(all.all_kernel),
            units::count(all.all_kernel_slack)
        )
    });
    format!(
        "  switches: voluntary {}, involuntary {}{all}\n",
        pair(switches.voluntary_ours, switches.voluntary_kernel),
        pair(switches.involuntary_ours, switches.involuntary_kernel)
    )
}

fn ticks(audit: &Audit) -> String {
    let Some(ticks) = audit.ticks else {
        return String::new();
    };
    let interrupts = ticks.local_timer_interrupts.map_or_else(String::new, |n| {
        format!(", local timer interrupts of all causes {}", units::count(n))
    });
    let (n_ticks, n_hrticks) = (units::count(ticks.ticks), units::count(ticks.hrticks));
    format!("  ticks {n_ticks}, slice timers {n_hrticks}{interrupts}\n")
}

fn findings(audit: &Audit) -> String {
    let line = |finding: &Finding| {
        let mark = if finding.is_breach { "breach" } else { "note" };
        format!("  {mark}: {}\n", finding.text)
    };
    audit.findings.iter().map(line).collect()
}
