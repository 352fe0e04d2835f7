//! The audit's rules for waits, by what they followed.
//!
//! The kernel's account of a wait is exact where an ordinary switch began it. Where a wakeup
//! preempted at once, the kernel skipped a clock update: the woken task's wait is missing from its
//! account, and the preempted task's wait begins too early by as much. Waits cut by the start of
//! the recording have no rule: the kernel booked them whole.

use latency_common::class::{WaitClass, WaitKind};
use latency_common::config::Detail;

use super::{Conditions, Tolerance, breach, note};
use crate::model::{Finding, Tally};
use crate::units;

/// A tick ends a slice by an ordinary switch: seen to agree to 0.001 %. 3 µs are the pick of the
/// next task, which is in our account only.
const TICK: Tolerance = Tolerance {
    ppm: 500,
    each_ns: 3_000,
};

/// Yields follow each other within microseconds: 0.02 % was seen.
const YIELD: Tolerance = Tolerance {
    ppm: 1_000,
    each_ns: 3_000,
};

/// What the accounts of a class may be apart in any case: a handful of waits is no evidence.
pub(super) const FLOOR_NS: u64 = 50_000;

/// A wakeup wait of the kernel's is a lower bound but for the reading of the clock.
const WAKEUP: Tolerance = Tolerance {
    ppm: 5_000,
    each_ns: 3_000,
};

/// Other losses of the CPU: a wakeup that left no evidence may have begun some of them early, by
/// up to the 10 µs a woken task was seen to wait.
const OTHER: Tolerance = Tolerance {
    ppm: 5_000,
    each_ns: 15_000,
};

/// From here on a blind spot of the kernel's account is worth a sentence.
const NOTEWORTHY: Tolerance = Tolerance {
    ppm: 5_000,
    each_ns: 0,
};

/// Percentage of the losses of the CPU that may have no known cause.
const MAX_UNKNOWN_PCT: u64 = 1;

/// Waits that begin at a preempting wakeup: too early in the kernel's account.
const PREEMPTED_BY_WAKEUP: [WaitClass; 3] = [
    WaitClass::WakeupPreemption,
    WaitClass::HigherClass,
    WaitClass::Stopper,
];

/// A class, the tolerance within which its accounts agree, the code of a breach, and a name.
type Agreeing = (WaitClass, Tolerance, &'static str, &'static str);

/// Waits whose two accounts agree.
#[rustfmt::skip]
const AGREEING: [Agreeing; 5] = [
    (WaitClass::Tick, TICK, "tick_waits_differ", "waits after the tick"),
    (WaitClass::Hrtick, TICK, "tick_waits_differ", "waits after the slice timer"),
    (WaitClass::Yield, YIELD, "yield_waits_differ", "waits after sched_yield"),
    (WaitClass::Throttled, OTHER, "preemption_waits_differ", "waits out of quota"),
    (WaitClass::Unknown, OTHER, "preemption_waits_differ", "waits of unknown cause"),
];

/// Everything to be said about the waits of `tally`; causes are only missed where they were asked for.
pub(super) fn findings(tally: &Tally, conditions: Conditions) -> Vec<Finding> {
    let slack_ns = FLOOR_NS + conditions.between_readings_ns();
    let mut findings: Vec<_> = AGREEING
        .into_iter()
        .filter_map(|agreeing| disagreement(tally, agreeing, slack_ns))
        .collect();
    let lower_bounds = [
        (WaitClass::Wakeup, "wakeup_waits_differ"),
        (WaitClass::NewTask, "new_task_waits_differ"),
    ];
    for (class, code) in lower_bounds {
        findings.extend(wakeup_breach(tally, class, code, slack_ns));
    }
    findings.extend(missed_wakeup_waits(tally));
    findings.extend(early_preemptions(tally));
    findings.extend(late_preemptions(tally));
    if conditions.detail >= Detail::Causes {
        findings.extend(unknown_causes(tally));
    }
    findings
}

fn two_accounts(name: &str, ours: u64, kernel: u64) -> String {
    let share = units::percent(100.0 * units::ratio(ours.abs_diff(kernel), kernel));
    let (ours, kernel) = (units::duration(ours), units::duration(kernel));
    format!("{name}: ours {ours}, the kernel's {kernel} ({share} apart)")
}

/// Where the kernel's account is more, a wakeup may have come between the request to switch and the
/// switch: its clock then stands still from the wakeup on. A gap that this explains is a note.
fn disagreement(tally: &Tally, agreeing: Agreeing, slack_ns: u64) -> Option<Finding> {
    let (class, tolerance, code, name) = agreeing;
    let account = tally.class(class);
    let (ours, kernel) = (account.sum_ns, account.kernel_ns);
    let (less, more) = (ours.min(kernel), ours.max(kernel));
    let is_beyond = |tolerance: Tolerance| {
        tolerance.exceeded(more.saturating_sub(slack_ns), less, account.count)
    };
    if !is_beyond(tolerance) {
        return None;
    }
    if kernel > ours && !is_beyond(OTHER) {
        let text = format!(
            "the kernel starts {name} too early, by {} together (its clock stands still after a \
             wakeup just before the switch)",
            units::duration(kernel - ours)
        );
        return Some(note("kernel_starts_preemption_early", text));
    }
    Some(breach(code, two_accounts(name, ours, kernel)))
}

fn wakeup_breach(
    tally: &Tally,
    class: WaitClass,
    code: &'static str,
    slack_ns: u64,
) -> Option<Finding> {
    let account = tally.class(class);
    let (ours, kernel) = (account.sum_ns, account.kernel_ns);
    let name = if class == WaitClass::Wakeup {
        "waits after a wakeup"
    } else {
        "first waits"
    };
    WAKEUP
        .exceeded(kernel.saturating_sub(slack_ns), ours, account.count)
        .then(|| breach(code, two_accounts(name, ours, kernel)))
}

fn missed_wakeup_waits(tally: &Tally) -> Option<Finding> {
    let (ours, kernel) = both_sums(tally, &[WaitClass::Wakeup, WaitClass::NewTask]);
    NOTEWORTHY.exceeded(ours, kernel, 0).then(|| {
        let text = format!(
            "the kernel's own account misses {} of wakeup waits here (its clock is not updated \
             for wakeups that preempt at once)",
            units::duration(ours - kernel)
        );
        note("kernel_misses_wakeup_waits", text)
    })
}

fn early_preemptions(tally: &Tally) -> Option<Finding> {
    let (ours, kernel) = both_sums(tally, &PREEMPTED_BY_WAKEUP);
    NOTEWORTHY.exceeded(kernel, ours, 0).then(|| {
        let n_waits = PREEMPTED_BY_WAKEUP
            .iter()
            .map(|class| tally.class(*class).count)
            .sum();
        let text = format!(
            "the kernel starts {} waits of tasks that a wakeup preempted too early, by {} \
             together (the preemptor's own wakeup wait)",
            units::count(n_waits),
            units::duration(kernel - ours)
        );
        note("kernel_starts_preemption_early", text)
    })
}

/// The other direction has no explanation, but no bound was measured either.
fn late_preemptions(tally: &Tally) -> Option<Finding> {
    let (ours, kernel) = both_sums(tally, &PREEMPTED_BY_WAKEUP);
    let n_waits = PREEMPTED_BY_WAKEUP
        .iter()
        .map(|class| tally.class(*class).count)
        .sum();
    OTHER.exceeded(ours, kernel, n_waits).then(|| {
        let text = two_accounts("waits of tasks that a wakeup preempted", ours, kernel);
        note("preemption_waits_differ", text)
    })
}

fn both_sums(tally: &Tally, classes: &[WaitClass]) -> (u64, u64) {
    let accounts = || classes.iter().map(|class| tally.class(*class));
    let ours = accounts().map(|account| account.sum_ns).sum();
    (ours, accounts().map(|account| account.kernel_ns).sum())
}

fn unknown_causes(tally: &Tally) -> Option<Finding> {
    let lost = WaitClass::ALL
        .into_iter()
        .filter(|class| class.kind() == Some(WaitKind::Preemption));
    let n_lost: u64 = lost.map(|class| tally.class(class).count).sum();
    let n_unknown = tally.class(WaitClass::Unknown).count;
    (n_unknown * 100 > n_lost * MAX_UNKNOWN_PCT).then(|| {
        let text = format!(
            "{} of {} losses of the CPU have no known cause",
            units::count(n_unknown),
            units::count(n_lost)
        );
        note("causes_unknown", text)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::codes;
    use super::*;
    use crate::model::ClassTally;

    /// Ten waits of one class.
    fn ten_waits(class: WaitClass, ours: u64, kernel: u64) -> Tally {
        let mut tally = Tally::default();
        tally.classes[class as usize] = ClassTally {
            count: 10,
            sum_ns: ours,
            kernel_ns: kernel,
            ..ClassTally::default()
        };
        tally
    }

    const QUIET: Conditions = Conditions {
        detail: Detail::Full,
        steal_ns: 0,
        suspended_ns: 0,
        is_guest: false,
        in_flight: 0,
    };

    fn found(tally: &Tally) -> Vec<String> {
        codes(&findings(tally, QUIET))
    }

    #[track_caller]
    fn check(class: WaitClass, ours: u64, kernel: u64, expected: &[&str]) {
        assert_eq!(found(&ten_waits(class, ours, kernel)), expected);
    }

    /// 0.05 % of 40 ms, 3 µs for each of ten, and the floor.
    #[test]
    fn tick_waits_agree_to_a_twentieth_percent_and_3_us_each() {
        for class in [WaitClass::Tick, WaitClass::Hrtick] {
            check(class, 40_100_000, 40_000_000, &[]);
            check(class, 40_100_001, 40_000_000, &["tick_waits_differ!"]);
        }
    }

    #[test]
    fn tick_waits_that_a_wakeup_made_begin_early_are_named() {
        let early = &["kernel_starts_preemption_early"];
        check(WaitClass::Tick, 40_000_000, 40_100_000, &[]);
        check(WaitClass::Tick, 40_000_000, 40_100_001, early);
        check(WaitClass::Tick, 40_000_000, 40_400_000, early);
        let beyond = &["tick_waits_differ!"];
        check(WaitClass::Tick, 40_000_000, 40_400_001, beyond);
    }

    #[test]
    fn yield_waits_agree_to_a_tenth_percent_and_3_us_each() {
        check(WaitClass::Yield, 10_090_000, 10_000_000, &[]);
        let beyond = &["yield_waits_differ!"];
        check(WaitClass::Yield, 10_090_001, 10_000_000, beyond);
    }

    #[test]
    fn time_kept_by_a_hypervisor_may_be_in_either_account() {
        let tally = ten_waits(WaitClass::Tick, 50_000_000, 40_000_000);
        let stolen = Conditions {
            steal_ns: 10_000_000,
            ..QUIET
        };
        assert_eq!(found(&tally), ["tick_waits_differ!"]);
        assert_eq!(findings(&tally, stolen), []);
    }

    #[test]
    fn a_suspension_may_be_in_the_kernels_account_in_part() {
        let suspended = Conditions {
            suspended_ns: 3_000_000_000,
            ..QUIET
        };
        for class in [WaitClass::Tick, WaitClass::Wakeup] {
            let found = |kernel| codes(&findings(&ten_waits(class, 40_000_000, kernel), suspended));
            assert_eq!(found(1_040_000_000), Vec::<String>::new());
            assert_eq!(found(4_040_000_000).len(), 1);
        }
    }

    #[test]
    fn wakeup_waits_the_kernel_misses_are_named() {
        check(WaitClass::Wakeup, 1_000_000, 1_000_000, &[]);
        check(
            WaitClass::Wakeup,
            8_000_000,
            131,
            &["kernel_misses_wakeup_waits"],
        );
        let text = &missed_wakeup_waits(&ten_waits(WaitClass::Wakeup, 3_500_000_131, 131))
            .unwrap()
            .text;
        assert!(text.starts_with("the kernel's own account misses 3.50 s of wakeup waits here"));
    }

    #[test]
    fn wakeup_waits_are_never_longer_in_the_kernels_account() {
        check(WaitClass::Wakeup, 1_000_000, 1_085_000, &[]);
        let beyond = &["wakeup_waits_differ!"];
        check(WaitClass::Wakeup, 1_000_000, 1_085_001, beyond);
        let beyond = &["new_task_waits_differ!"];
        check(WaitClass::NewTask, 1_000_000, 1_085_001, beyond);
    }

    #[test]
    fn waits_that_the_kernel_begins_at_the_preemptors_wakeup_are_named() {
        check(
            WaitClass::HigherClass,
            60_760,
            112_090,
            &["kernel_starts_preemption_early"],
        );
        check(WaitClass::WakeupPreemption, 60_760, 60_760, &[]);
        check(
            WaitClass::Stopper,
            1_200_000,
            1_000_000,
            &["preemption_waits_differ"],
        );
    }

    #[test]
    fn other_losses_of_the_cpu_agree_to_half_a_percent_and_15_us_each() {
        let beyond = &["preemption_waits_differ!"];
        check(WaitClass::Throttled, 1_205_000, 1_000_000, &[]);
        check(WaitClass::Throttled, 1_205_001, 1_000_000, beyond);
        check(WaitClass::Throttled, 1_000_000, 1_205_001, beyond);
    }

    #[test]
    fn more_than_one_unknown_cause_in_a_hundred_is_named() {
        let mut tally = ten_waits(WaitClass::Unknown, 10, 10);
        tally.classes[WaitClass::Tick as usize].count = 990;
        assert_eq!(found(&tally), [""; 0]);
        tally.classes[WaitClass::Tick as usize].count = 989;
        assert_eq!(found(&tally), ["causes_unknown"]);
    }

    #[test]
    fn causes_that_were_not_asked_for_are_not_missed() {
        let tally = ten_waits(WaitClass::Unknown, 10, 10);
        let basic = Conditions {
            detail: Detail::Basic,
            ..QUIET
        };
        assert_eq!(findings(&tally, basic), []);
    }

    #[test]
    fn waits_cut_by_the_start_have_no_rule() {
        check(WaitClass::OpenAtStart, 1_000, 9_000_000_000, &[]);
        check(WaitClass::Unmeasured, 0, 9_000_000_000, &[]);
    }
}
