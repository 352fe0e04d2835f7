//! Waits of tasks that always want a CPU, against the kernel's own run delay.
//!
//! Two of them share CPU 1, at a high weight so that other work on the host hardly matters.

use std::{sync::LazyLock, time::Duration};

use anyhow::Result;
use latency_tests::{check, load::Load, observe::Observed, report::Row, schedlat::Schedlat};

const SECONDS: Duration = Duration::from_secs(4);

/// A recording of two equal loads on CPU 1, shared by the tests of its kind.
struct Pair {
    observed: Observed,
    tids: [u32; 2],
}

impl Pair {
    fn of(kind: &str) -> Result<Self> {
        let line = format!("{kind} 60 --cpu 1 --nice -15");
        let loads = [Load::workload(&line)?, Load::workload(&line)?];
        let observed = Observed::of(&[&loads[0], &loads[1]], SECONDS)?;
        let tids = [loads[0].pid(), loads[1].pid()];
        Ok(Self { observed, tids })
    }

    /// Each row with the thread id of the other load.
    fn rows(&self) -> Result<[(&Row, u32); 2]> {
        let [first, second] = self.tids;
        let report = &self.observed.report;
        Ok([(report.task(first)?, second), (report.task(second)?, first)])
    }
}

static BURNERS: LazyLock<Pair> = LazyLock::new(|| Pair::of("burn").expect("record burners"));
static SYSTEM_CALLERS: LazyLock<Pair> =
    LazyLock::new(|| Pair::of("burn-syscall").expect("record system callers"));

fn check_slices(pair: &Pair) -> Result<()> {
    for (row, other) in pair.rows()? {
        check::slices_agree(&row.audit)?;
        let slices = check::loses_to_fellow(&row.stats, other, &["tick", "hrtick"], 0.99)?;
        assert!(slices >= 200, "only {slices} slices in {SECONDS:?}");
    }
    Ok(())
}

fn check_proc(pair: &Pair) -> Result<()> {
    for (row, truth) in pair.observed.pairs()? {
        check::waits_agree(row, truth)?;
    }
    check::on_cpu_agrees_with_proc(&pair.observed)
}

fn check_halves(pair: &Pair) -> Result<()> {
    let report = &pair.observed.report;
    let rows = pair.rows()?;
    let both: u64 = rows.iter().map(|(row, _)| row.stats.on_cpu_ns).sum();
    check::share("of the CPU for both", both, report.window_ns(), 0.85)?;
    for (row, _) in rows {
        let own = check::ratio(row.stats.on_cpu_ns, both);
        assert!(
            (0.45..=0.55).contains(&own),
            "one of the two got {own:.3} of their CPU time"
        );
        check::runs_or_waits_all_the_time(report, row)?;
    }
    Ok(())
}

fn check_sums(pair: &Pair) -> Result<()> {
    let report = &pair.observed.report;
    check::sound(report)?;
    check::on_cpu_agrees(report, &report.audit)?;
    for (row, _) in pair.rows()? {
        check::on_cpu_agrees(report, &row.audit)?;
        check::switches_agree(&row.audit, 1)?;
    }
    Ok(())
}

#[test]
fn burners_wait_for_the_tick_as_long_as_the_kernel_says() -> Result<()> {
    check_slices(&BURNERS)
}

#[test]
fn c011_burners_waits_agree_with_schedstat() -> Result<()> {
    check_proc(&BURNERS)
}

#[test]
fn burners_get_half_the_cpu_each_and_wait_the_other_half() -> Result<()> {
    check_halves(&BURNERS)
}

#[test]
fn c013_burners_switch_involuntarily_as_often_as_the_kernel_counts() -> Result<()> {
    check_sums(&BURNERS)?;
    check::switches_agree_with_proc(&BURNERS.observed)?;
    for (row, _) in BURNERS.rows()? {
        let switches = row.stats.switches;
        let all = switches.involuntary + switches.voluntary;
        check::share("involuntary switches", switches.involuntary, all, 0.95)?;
    }
    Ok(())
}

#[test]
fn c019_waits_of_burners_that_others_began_name_the_preemptor() -> Result<()> {
    for (row, _) in BURNERS.rows()? {
        check::preemptors_are_named(&row.stats)?;
        // Nobody wakes a burner: no wait of it follows a wakeup.
        assert_eq!(row.stats.waits.wakeup.count, 0);
        assert_eq!(row.stats.wakeup_latency.count, 0);
    }
    Ok(())
}

#[test]
fn system_callers_wait_for_the_tick_as_long_as_the_kernel_says() -> Result<()> {
    check_slices(&SYSTEM_CALLERS)
}

#[test]
fn system_callers_waits_agree_with_schedstat() -> Result<()> {
    check_proc(&SYSTEM_CALLERS)
}

#[test]
fn system_callers_get_half_the_cpu_each_and_wait_the_other_half() -> Result<()> {
    check_halves(&SYSTEM_CALLERS)
}

#[test]
fn system_callers_sums_are_conserved() -> Result<()> {
    check_sums(&SYSTEM_CALLERS)
}

#[test]
fn c112_a_burners_own_log_of_its_gaps_agrees_with_its_waits() -> Result<()> {
    // Each slice of the competitor is a gap of some milliseconds; little else comes near one.
    let _rival = Load::workload("burn 20 --cpu 1 --nice -15")?;
    let logger = Load::workload("gaps 4 --threshold-us 1000 --cpu 1 --nice -15")?;
    let recording = Schedlat::record().pid(logger.pid()).start()?;
    let tid = logger.pid();
    let truth = logger.truth()?;
    // It ends with its target.
    let report = recording.finish()?.success()?.report()?;
    let stats = &report.task(tid)?.stats;
    // Attaching took part of the logger's time: compare rates. Slices are of one length as long as
    // nobody else comes, which is not the same in both windows.
    let gaps = truth.number("gaps")?;
    let missing_ns = truth.number("sum_ns")?;
    let tick = stats.cause("tick");
    let hrtick = stats.cause("hrtick");
    let mean = (tick.sum_ns + hrtick.sum_ns) / (tick.count + hrtick.count).max(1);
    check::near("mean gap", mean, missing_ns / gaps, 0.1, 0)?;
    let longest = truth.number("max_ns")?;
    assert!(
        longest + 100_000 >= stats.waits.max_ns(),
        "{longest} ns is its longest gap"
    );
    // Its log ends before its exit, where it may wait once more.
    assert!(stats.waits.preemption.count <= gaps + gaps / 20 + 20);
    Ok(())
}
