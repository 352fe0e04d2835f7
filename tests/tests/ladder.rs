//! Kernels that lack a tracepoint: what can be done without is named, what cannot is an error.
//!
//! Each is this kernel with type information that does not know the tracepoint.

use anyhow::{Context as _, Result};
use latency_tests::{btf::Btf, check, report::Report};

/// One of each group that a recording does without, with a word of what is then said to be degraded.
const OPTIONAL: [(&str, &str); 11] = [
    ("irq_handler_entry", "interrupts: no irq_handler_entry"),
    ("softirq_exit", "interrupts: no softirq_entry"),
    ("local_timer_exit", "interrupts: no local_timer_entry"),
    ("reschedule_entry", "interrupts: no reschedule_entry"),
    ("call_function_exit", "interrupts: no call_function_entry"),
    (
        "call_function_single_entry",
        "interrupts: no call_function_single_entry",
    ),
    ("irq_work_exit", "interrupts: no irq_work_entry"),
    ("workqueue_execute_start", "work functions: "),
    ("hrtimer_expire_exit", "cause: tick, hrtick: "),
    ("cgroup_mkdir", "moves between cgroups: "),
    // Needed by `probe yield` only.
    ("sched_entry_tp", ""),
];

const REQUIRED: [&str; 4] = [
    "sched_switch",
    "sched_migrate_task",
    "task_newtask",
    "sched_process_exit",
];

const RECORD: &str = "record --for 200ms --by cgroup --format json";

/// The report's sums hold; what is said to be degraded.
fn recorded(btf: &Btf) -> Result<String> {
    let outcome = btf.run(RECORD)?.success()?;
    let document = outcome.only_document()?;
    let report = Report::parse(&document.to_string())?;
    check::sums_are_conserved(&report)?;
    assert!(report.totals.on_cpu_ns > 0);
    Ok(document["degraded"].to_string())
}

#[test]
fn each_optional_tracepoint_can_be_missing_and_is_named() -> Result<()> {
    let kernel = Btf::of_kernel()?;
    for (tracepoint, expected) in OPTIONAL {
        let degraded = recorded(&kernel.clone().without(tracepoint)?)
            .with_context(|| tracepoint.to_owned())?;
        assert!(degraded.contains(expected), "{tracepoint}: {degraded}");
        assert_eq!(
            degraded == "[]",
            expected.is_empty(),
            "{tracepoint}: {degraded}"
        );
    }
    Ok(())
}

#[test]
fn all_optional_tracepoints_can_be_missing_at_once() -> Result<()> {
    let mut poor = Btf::of_kernel()?;
    for (tracepoint, _) in OPTIONAL {
        poor = poor.without(tracepoint)?;
    }
    let degraded = recorded(&poor)?;
    for (tracepoint, expected) in OPTIONAL {
        // Those of the interrupts are one line.
        let word = expected.rsplit("no ").next().unwrap_or_default();
        assert!(degraded.contains(word), "{tracepoint}: {degraded}");
    }
    let doctor = poor.run("doctor")?.success()?.output();
    assert!(doctor.contains("missing    work functions"), "{doctor}");
    assert!(doctor.contains("degraded   interrupts"), "{doctor}");
    assert!(doctor.contains("a kernel of 6.16 or later"), "{doctor}");
    Ok(())
}

#[test]
fn without_a_required_tracepoint_nothing_is_recorded() -> Result<()> {
    for tracepoint in REQUIRED {
        let outcome = Btf::of_kernel()?.without(tracepoint)?.run(RECORD)?;
        outcome
            .fails_with(1, &["cannot record on this kernel", "BTF"])
            .with_context(|| tracepoint.to_owned())?;
    }
    Ok(())
}
