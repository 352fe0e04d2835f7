//! Our account of a recording against the kernel's, and what is to be said about it.
//!
//! Both were taken at the same instants, so a difference is an error of ours unless it is a known
//! blind spot of the kernel's account. The first is a breach, the second a note; MEASUREMENT.md
//! explains each. `waits` holds the rules by cause, `switches` those of counts, `parts`
//! that of sums, `losses` what was lost.

mod losses;
mod parts;
mod switches;
mod waits;

use latency_common::class::WaitClass;
use latency_common::config::Detail;

use super::stats::Totals;
use crate::model::{
    AllSwitchAudit, Audit, AuditClass, CpuTotals, Finding, Observation, SwitchAudit, Tally,
    TickAudit,
};
use crate::units;

/// How far two accounts of the same time may be apart.
#[derive(Clone, Copy, Debug)]
struct Tolerance {
    /// Of the whole, in millionths.
    ppm: u64,
    /// For each wait or switch.
    each_ns: u64,
}

/// The kernel reads its clock on other lines than we do, at each switch; 0.5 % covers stints of
/// some hundred microseconds, the rest is for short ones.
const ON_CPU: Tolerance = Tolerance {
    ppm: 5_000,
    each_ns: 2_000,
};

/// Steal time comes in the steps of `/proc/stat`: a hundredth of a second.
const STEAL_STEP_NS: u64 = 10_000_000;

/// A wakeup that preempts holds the kernel's clock from when the woken task is queued until the switch:
/// this time of the preempted task is charged to the woken one. 7 µs were seen at the end of `vfork`.
pub(super) const ON_CPU_EACH_PREEMPTION_NS: u64 = 10_000;

impl Tolerance {
    /// Whether `more` exceeds `less` by more than is allowed for `count` of them.
    fn exceeded(self, more: u64, less: u64, count: u64) -> bool {
        let allowed = u128::from(less) * u128::from(self.ppm) / 1_000_000
            + u128::from(self.each_ns) * u128::from(count);
        u128::from(more.saturating_sub(less)) > allowed
    }
}

/// What a comparison depends on beside the figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    /// How much was measured: basic knows no causes.
    pub(super) detail: Detail,
    /// What a hypervisor kept from all CPUs together.
    pub(super) steal_ns: u64,
    /// How long the machine was suspended.
    pub(super) suspended_ns: u64,
    /// There is a hypervisor: less than a step may have been kept unseen.
    pub(super) is_guest: bool,
    /// Switches that may be in flight while rows are read: one per CPU, and one per task that lives.
    pub(super) in_flight: u64,
}

impl Conditions {
    /// What a hypervisor may have kept, given the step of its account.
    const fn stolen_at_most_ns(self) -> u64 {
        if self.is_guest || self.steal_ns > 0 {
            self.steal_ns + STEAL_STEP_NS
        } else {
            0
        }
    }

    /// What may fall between our reading of the clock and the kernel's: what a hypervisor kept, and of a
    /// suspension the part from which on the scheduler's clock goes on while ours stands still.
    const fn between_readings_ns(self) -> u64 {
        self.stolen_at_most_ns() + self.suspended_ns
    }
}

/// The audit of one task or group.
pub(super) fn of_tally(tally: &Tally, conditions: Conditions) -> Audit {
    let mut findings = waits::findings(tally, conditions);
    findings.extend(on_cpu_finding(tally, conditions));
    findings.extend(switches::row_finding(tally, conditions.in_flight));
    findings.extend(parts::finding(tally, conditions));
    audit(tally, None, findings)
}

/// The audit of a whole recording, whose sum is `tally`.
pub(super) fn of_recording(
    tally: &Tally,
    observation: &Observation,
    conditions: Conditions,
) -> Audit {
    let cpus = &observation.cpus;
    let mut findings = waits::findings(tally, conditions);
    findings.extend(on_cpu_finding(tally, conditions));
    findings.extend(switches::task_finding(
        &observation.rows,
        cpus.missed_switches,
        conditions.in_flight,
    ));
    findings.extend(parts::finding(tally, conditions));
    if conditions.detail != Detail::Empty {
        findings.extend(switches::all_finding(cpus));
    }
    findings.extend(losses::findings(&observation.losses));
    let audit = audit(tally, Some(cpus), findings);
    Audit {
        // Timers are looked at for causes only.
        ticks: audit.ticks.filter(|_| conditions.detail >= Detail::Causes),
        ..audit
    }
}

fn audit(tally: &Tally, cpus: Option<&CpuTotals>, mut findings: Vec<Finding>) -> Audit {
    findings.sort_by_key(|finding| !finding.is_breach);
    let delay = Totals::of(tally);
    let occurs = |class: &WaitClass| {
        let account = tally.class(*class);
        account.count > 0 || account.kernel_ns > 0
    };
    let account = |class: WaitClass| {
        let account = tally.class(class);
        let by_cause = AuditClass {
            count: account.count,
            ours_ns: account.sum_ns,
            kernel_ns: account.kernel_ns,
        };
        (class.name(), by_cause)
    };
    Audit {
        by_cause: WaitClass::ALL
            .into_iter()
            .filter(occurs)
            .map(account)
            .collect(),
        run_delay_ours_ns: delay.run_delay_ns,
        run_delay_kernel_ns: delay.run_delay_kernel_ns,
        switches: SwitchAudit {
            voluntary_ours: tally.voluntary,
            voluntary_kernel: tally.kernel_voluntary,
            involuntary_ours: tally.involuntary,
            involuntary_kernel: tally.kernel_involuntary,
            all: cpus.map(|cpus| AllSwitchAudit {
                all_ours: cpus.switches,
                missed: cpus.missed_switches,
                all_kernel: cpus.kernel_switches,
                all_kernel_slack: cpus.kernel_switches_slack,
            }),
        },
        on_cpu_ours_ns: audited_on_cpu_ns(tally),
        on_cpu_kernel_ns: tally.kernel_on_cpu_ns,
        on_cpu_unseen_kernel_ns: tally.unseen_on_cpu_ns,
        ticks: cpus.map(|cpus| TickAudit {
            ticks: cpus.ticks,
            hrticks: cpus.hrticks,
            local_timer_interrupts: cpus.local_timer_interrupts,
        }),
        ok: findings.iter().all(|finding| !finding.is_breach),
        findings,
    }
}

const fn audited_on_cpu_ns(tally: &Tally) -> u64 {
    tally.on_cpu_ns.saturating_sub(tally.on_cpu_unaudited_ns)
}

/// The kernel charges the switch of a preempting wakeup to the woken task, so its account may be
/// the larger one. Ours may only by what a hypervisor kept: the kernel's task clock leaves that
/// out, and any task may have been the one that ran.
fn on_cpu_finding(tally: &Tally, conditions: Conditions) -> Option<Finding> {
    let (ours, kernel) = (audited_on_cpu_ns(tally), tally.kernel_on_cpu_ns);
    let n_switches = tally.voluntary + tally.involuntary;
    let gap = units::duration(ours.abs_diff(kernel));
    let share = units::percent(100.0 * units::ratio(ours.abs_diff(kernel), kernel));
    let kernel_at_most = kernel + waits::FLOOR_NS + n_preempted(tally) * ON_CPU_EACH_PREEMPTION_NS;
    if ON_CPU.exceeded(ours, kernel_at_most, n_switches) {
        let text = format!("time on a CPU: ours is {gap} ({share}) more than the kernel's");
        let stolen = conditions.stolen_at_most_ns();
        if ON_CPU.exceeded(ours.saturating_sub(stolen), kernel_at_most, n_switches) {
            return Some(breach("on_cpu_differs", text));
        }
        let stolen = units::duration(conditions.steal_ns);
        let text = format!("{text}, which leaves out what a hypervisor kept ({stolen} in all)");
        return Some(note("kernel_leaves_out_steal", text));
    }
    let without_slack = Tolerance {
        each_ns: 0,
        ..ON_CPU
    };
    without_slack.exceeded(kernel, ours, 0).then(|| {
        let suspension = match conditions.suspended_ns {
            0 => "",
            _ => ", and of a suspension its clock counts a part",
        };
        let text = format!(
            "time on a CPU: the kernel's is {gap} ({share}) more than ours (it charges the \
             switch of a wakeup that preempts to the woken task{suspension})"
        );
        note("kernel_charges_switch_to_wakee", text)
    })
}

/// How often a wakeup took the CPU, of any class.
pub(super) fn n_preempted(tally: &Tally) -> u64 {
    [
        WaitClass::WakeupPreemption,
        WaitClass::HigherClass,
        WaitClass::Stopper,
    ]
    .map(|class| tally.class(class).count)
    .iter()
    .sum()
}

/// A finding that makes the audit fail.
fn breach(code: &'static str, text: String) -> Finding {
    Finding {
        code,
        is_breach: true,
        text,
    }
}

/// A finding that explains a difference.
fn note(code: &'static str, text: String) -> Finding {
    Finding {
        code,
        is_breach: false,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::{row, tally_of};

    pub(super) const FULL: Conditions = Conditions {
        detail: Detail::Full,
        steal_ns: 0,
        suspended_ns: 0,
        is_guest: false,
        in_flight: 1,
    };

    /// Codes of the findings, breaches with a `!`.
    pub(super) fn codes(findings: &[Finding]) -> Vec<String> {
        let mark = |finding: &Finding| if finding.is_breach { "!" } else { "" };
        findings
            .iter()
            .map(|finding| format!("{}{}", finding.code, mark(finding)))
            .collect()
    }

    #[track_caller]
    fn check_on_cpu(ours: u64, kernel: u64, expected: &[&str]) {
        let tally = Tally {
            on_cpu_ns: ours + 77,
            on_cpu_unaudited_ns: 77,
            kernel_on_cpu_ns: kernel,
            voluntary: 10,
            kernel_voluntary: 10,
            ..Tally::default()
        };
        let audit = of_tally(&tally, FULL);
        assert_eq!(codes(&audit.findings), expected);
        assert_eq!(audit.on_cpu_ours_ns, ours);
    }

    #[test]
    fn time_on_a_cpu_may_only_be_more_in_the_kernels_account() {
        check_on_cpu(1_000_000, 1_000_000, &[]);
        check_on_cpu(1_075_250, 1_000_000, &[]);
        check_on_cpu(1_075_251, 1_000_000, &["on_cpu_differs!"]);
        check_on_cpu(1_000_000, 1_005_000, &[]);
        check_on_cpu(1_000_000, 1_005_001, &["kernel_charges_switch_to_wakee"]);
    }

    #[test]
    fn time_of_a_preempted_task_is_charged_to_the_one_that_was_woken() {
        let mut tally = tally_of(WaitClass::WakeupPreemption, &[2_000]);
        (tally.on_cpu_ns, tally.kernel_on_cpu_ns) = (340_000, 280_000);
        assert!(on_cpu_finding(&tally, FULL).is_none());
        tally.on_cpu_ns = 342_000;
        let found = on_cpu_finding(&tally, FULL).unwrap();
        assert_eq!(codes(&[found]), ["on_cpu_differs!"]);
    }

    #[test]
    fn time_kept_by_a_hypervisor_is_in_our_account_only() {
        let tally = Tally {
            on_cpu_ns: 1_040_000_000,
            kernel_on_cpu_ns: 1_000_000_000,
            ..Tally::default()
        };
        let found = |steal_ns| codes(&of_tally(&tally, Conditions { steal_ns, ..FULL }).findings);
        assert_eq!(found(0), ["on_cpu_differs!"]);
        assert_eq!(found(20_000_000), ["on_cpu_differs!"]);
        assert_eq!(found(30_000_000), ["kernel_leaves_out_steal"]);
    }

    #[test]
    fn a_breach_of_any_rule_fails_the_audit() {
        let tally = Tally {
            voluntary: 2,
            ..Tally::default()
        };
        let observation = Observation {
            rows: vec![row(1, 1, "a", tally)],
            ..Observation::default()
        };
        let audit = of_recording(&Tally::default(), &observation, FULL);
        assert_eq!(codes(&audit.findings), ["switches_differ!"]);
        assert!(!audit.ok);
        assert!(of_recording(&Tally::default(), &Observation::default(), FULL).ok);
    }

    #[test]
    fn only_causes_that_occur_are_listed() {
        let mut tally = tally_of(WaitClass::Tick, &[5]);
        tally.classes[WaitClass::Unmeasured as usize].kernel_ns = 3;
        let audit = of_tally(&tally, FULL);
        assert_eq!(
            audit.by_cause.keys().copied().collect::<Vec<_>>(),
            ["tick", "unmeasured"]
        );
        assert_eq!((audit.run_delay_ours_ns, audit.run_delay_kernel_ns), (5, 8));
    }
}
