//! Waits of tasks that always want a CPU, against the kernel's own run delay.
//!
//! Two of them share CPU 1, at a high weight so that other work on the host hardly matters.

use std::{sync::LazyLock, time::Duration};

use anyhow::Result;
use latency_tests::{check, load::Load, observe::Observed, report::Row};

const SECONDS: Duration = Duration::from_secs(4);

/// A recording of two equal loads on CPU 1, shared by the tests of its kind.
struct Pair {
    observed: Observed,
}

impl Pair {
    fn of(kind: &str) -> Result<Self> {
        let line = format!("{kind} 20 --cpu 1 --nice -15");
        let loads = [Load::workload(&line)?, Load::workload(&line)?];
        let observed = Observed::of(&[&loads[0], &loads[1]], SECONDS)?;
        Ok(Self { observed })
    }

    fn rows(&self) -> Result<Vec<&Row>> {
        Ok(self
            .observed
            .pairs()?
            .into_iter()
            .map(|(row, _)| row)
            .collect())
    }
}

static BURNERS: LazyLock<Pair> = LazyLock::new(|| Pair::of("burn").expect("record burners"));
static SYSTEM_CALLERS: LazyLock<Pair> =
    LazyLock::new(|| Pair::of("burn-syscall").expect("record system callers"));

fn check_slices(pair: &Pair) -> Result<()> {
    for row in pair.rows()? {
        check::slices_agree(&row.audit)?;
        let slices = row.stats.cause("tick").count + row.stats.cause("hrtick").count;
        check::share("waits after a slice", slices, row.stats.n_lost_cpu(), 0.99)?;
        check::preemptors_are_named(&row.stats)?;
        assert_eq!(
            row.stats.cause("unknown").count,
            0,
            "{:?}",
            row.stats.causes
        );
        assert!(slices >= 300, "only {slices} slices in 4 s");
    }
    Ok(())
}

fn check_proc(pair: &Pair) -> Result<()> {
    for (row, truth) in pair.observed.pairs()? {
        check::waits_agree(row, truth)?;
        check::on_cpu_agrees_with_proc(row, truth)?;
    }
    Ok(())
}

fn check_halves(pair: &Pair) -> Result<()> {
    let report = &pair.observed.report;
    let rows = pair.rows()?;
    let both: u64 = rows.iter().map(|row| row.stats.on_cpu_ns).sum();
    check::share("of the CPU for both", both, report.window_ns(), 0.9)?;
    for row in rows {
        let own = check::ratio(row.stats.on_cpu_ns, both);
        assert!(
            (0.45..=0.55).contains(&own),
            "one of the two got {own:.3} of their CPU time"
        );
        // It always wants the CPU: what it does not run, it waits.
        let spent = row.stats.on_cpu_ns + row.stats.waited_ns;
        check::near(
            "running and waiting",
            spent,
            report.window_ns(),
            0.001,
            1_000_000,
        )?;
    }
    Ok(())
}

fn check_sums(pair: &Pair) -> Result<()> {
    let report = &pair.observed.report;
    check::sound(report)?;
    check::on_cpu_agrees(&report.audit)?;
    for row in pair.rows()? {
        check::on_cpu_agrees(&row.audit)?;
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
    for (row, truth) in BURNERS.observed.pairs()? {
        let switches = row.stats.switches;
        check::near(
            "involuntary",
            switches.involuntary,
            truth.involuntary,
            0.01,
            3,
        )?;
        let all = switches.involuntary + switches.voluntary;
        check::share("involuntary switches", switches.involuntary, all, 0.95)?;
    }
    Ok(())
}

#[test]
fn c019_waits_of_burners_that_others_began_name_the_preemptor() -> Result<()> {
    for row in BURNERS.rows()? {
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
    // Each slice of the competitor is a gap of about 3 ms; nothing else comes near 1 ms.
    let _rival = Load::workload("burn 20 --cpu 1 --nice -15")?;
    let logger = Load::workload("gaps 4 --threshold-us 1000 --cpu 1 --nice -15")?;
    let recorder = latency_tests::schedlat::Schedlat::record().pid(logger.pid());
    let recording = recorder.start()?;
    let tid = logger.pid();
    let truth = logger.truth()?;
    let report = recording.stop()?;
    let stats = &report.task(tid)?.stats;
    // Attaching took part of the logger's time: compare rates.
    let gaps = truth.number("gaps")?;
    let missing_ns = truth.number("sum_ns")?;
    check::near(
        "mean gap",
        mean(&stats.cause("tick")),
        missing_ns / gaps,
        0.02,
        0,
    )?;
    assert!(truth.number("max_ns")? + 100_000 >= stats.waits.max_ns());
    assert!(stats.waits.preemption.count <= gaps + gaps / 50 + 20);
    Ok(())
}

fn mean(cause: &latency_tests::report::CauseStats) -> u64 {
    cause.sum_ns / cause.count.max(1)
}
