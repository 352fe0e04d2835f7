//! From the recording of one repetition to its row, and from rows to their summary (`summary`).
//!
//! The kernel's account (`rusage`) has the processes that were waited for; ours has all tasks. So the two
//! are compared over tasks that ended, and what remains apart has a name: a thread's last switch comes
//! after its counters were added up, and so may a process's.

mod summary;

use std::time::Duration;

pub use self::summary::{delay_by_cause, summary};
use super::{
    audit::{ON_CPU_EACH_PREEMPTION_NS, n_preempted},
    sum,
};
use crate::model::{
    BenchFigures, BenchRun, Observation, Reconciliation, Report, Rusage, Tally, TaskRow,
};

/// How far both accounts of CPU time may be apart, in percent.
const CPU_TOLERANCE_PCT: f64 = 1.0;

/// Beside that, for each task: what it does between its last accounting and its last switch.
const CPU_PER_TASK_S: f64 = 20e-6;

/// And for each switch, at which both accounts change hands a little apart.
const CPU_PER_SWITCH_S: f64 = 100e-9;

/// What was measured around a repetition, outside of the kernel side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outside {
    /// From before its start to after its end.
    pub real: Duration,
    /// The kernel's account.
    pub rusage: Rusage,
    /// Its exit code.
    pub exit_code: u8,
}

/// The row of a repetition. Label and place are the caller's to set.
#[must_use]
pub fn repetition(observation: &Observation, report: &Report, outside: Outside) -> BenchRun {
    let idle = observation.idle_while_runnable;
    BenchRun {
        figures: figures(observation, report, outside),
        n_tasks: report.n_tasks,
        restricted_waiting_s: idle.map(|idle| seconds(idle.restricted_waiting_ns)),
        reconciliation: reconcile(observation, report, outside.rusage),
        audit: report.audit.clone(),
        loss: report.loss,
        exit_code: outside.exit_code,
        ..BenchRun::default()
    }
}

fn figures(observation: &Observation, report: &Report, outside: Outside) -> BenchFigures<u64> {
    let totals = &report.totals;
    let Rusage {
        user_s, system_s, ..
    } = outside.rusage;
    let real_s = outside.real.as_secs_f64();
    let cpu_s = seconds(totals.on_cpu_ns);
    let delay_s = seconds(totals.waited_ns);
    let switches = totals.switches;
    let cxsw = switches.voluntary + switches.involuntary;
    BenchFigures {
        real_s,
        cpu_s,
        sys_pct: percent(system_s, user_s + system_s),
        tpt_pct: percent(cpu_s, real_s),
        delay_s,
        cxsw,
        voluntary: switches.voluntary,
        involuntary: switches.involuntary,
        r#yield: switches.r#yield,
        migrations: totals.migrations,
        waiters: percent(delay_s, real_s) / 100.0,
        delay_per_switch_ns: totals.waited_ns.checked_div(cxsw).unwrap_or(0),
        idle_while_runnable_s: observation.idle_while_runnable.map(|idle| seconds(idle.ns)),
    }
}

/// Both accounts of the tasks that ended.
fn reconcile(observation: &Observation, report: &Report, rusage: Rusage) -> Reconciliation {
    let has_ended = |row: &&TaskRow| row.ident.has_exited;
    let ended = || observation.rows.iter().filter(has_ended);
    let tally = sum(ended().map(|row| &row.tally).chain([&observation.unsent]));
    let is_thread = |row: &&TaskRow| row.ident.tid != row.ident.tgid;
    let n_ended = ended().count() as u64 + n_without_row(report);
    let n_threads = ended().filter(is_thread).count() as u64;
    let n_processes = n_ended - n_threads;
    let missed = observation.losses.missed_switches;
    let cpu_ours_s = seconds(tally.on_cpu_ns);
    let cpu_s = rusage.user_s + rusage.system_s;
    let switches_ours = tally.voluntary + tally.involuntary;
    let cpu_allowed_s = cpu_s * CPU_TOLERANCE_PCT / 100.0
        + per(n_ended, CPU_PER_TASK_S)
        + per(switches_ours, CPU_PER_SWITCH_S)
        + seconds(n_preempted(&tally) * ON_CPU_EACH_PREEMPTION_NS)
        + seconds(report.steal_ns);
    // Of stints that fired no event only the kernel's account is known.
    let cpu_whole_s = cpu_ours_s + seconds(report.audit.on_cpu_unseen_kernel_ns);
    let switches_kernel = rusage.voluntary + rusage.involuntary;
    Reconciliation {
        rusage,
        cpu_ours_s,
        cpu_apart_pct: percent(cpu_ours_s - cpu_s, cpu_s),
        switches_ours,
        switches_apart: switches_ours.cast_signed() - switches_kernel.cast_signed(),
        last_switches_of_threads: n_threads,
        last_switches_of_processes: n_processes,
        missed_switches: missed,
        left_running: (observation.rows.len() - ended().count()) as u64,
        delay_ours_s: seconds(report.totals.run_delay_ns),
        delay_kernel_s: seconds(report.totals.run_delay_kernel_ns),
        is_cpu_equal: (cpu_whole_s - cpu_s).abs() <= cpu_allowed_s,
        are_switches_equal: are_switches_equal(&tally, rusage, (n_threads, n_processes), missed),
        is_audit_ok: report.audit.ok,
    }
}

/// Tasks that ended without leaving a row.
fn n_without_row(report: &Report) -> u64 {
    report.loss.exit_records + report.loss.folded_rows
}

/// The kernel's sum leaves out the last switch of each thread, and may leave out that of each process;
/// ours leaves out switches that fired no event. The last one is voluntary.
fn are_switches_equal(
    tally: &Tally,
    rusage: Rusage,
    (n_threads, n_processes): (u64, u64),
    missed: u64,
) -> bool {
    let voluntary = rusage.voluntary + n_threads;
    let least = voluntary.saturating_sub(missed);
    (least..=voluntary + n_processes).contains(&tally.voluntary)
        && tally.involuntary <= rusage.involuntary
        && rusage.involuntary - tally.involuntary <= missed
}

#[expect(clippy::cast_precision_loss, reason = "nobody starts 2^53 tasks")]
fn per(n: u64, each_s: f64) -> f64 {
    n as f64 * each_s
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        100.0 * part / whole
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use latency_common::class::WaitClass;

    use super::*;
    use crate::{
        analysis::fixture::{row, tally_of},
        model::{IdleWhileRunnable, Losses, Stats, Switches},
    };

    const MS: u64 = 1_000_000;

    /// An ended task with so many switches and milliseconds on a CPU.
    fn task(process: u32, tid: u32, (voluntary, involuntary): (u64, u64), cpu_ms: u64) -> TaskRow {
        let mut row = row(tid, process, "cc1", tally_of(WaitClass::Tick, &[MS]));
        row.ident.has_exited = true;
        row.tally.voluntary = voluntary;
        row.tally.involuntary = involuntary;
        row.tally.on_cpu_ns = cpu_ms * MS;
        row
    }

    fn observed(rows: Vec<TaskRow>, missed_switches: u64) -> Observation {
        Observation {
            rows,
            losses: Losses {
                missed_switches,
                ..Losses::default()
            },
            idle_while_runnable: Some(IdleWhileRunnable {
                ns: 250 * MS,
                restricted_waiting_ns: 0,
            }),
            ..Observation::default()
        }
    }

    /// Two processes, one of them with a second thread: 30 and 12 switches.
    fn tasks() -> Vec<TaskRow> {
        vec![
            task(10, 10, (10, 2), 400),
            task(10, 11, (10, 5), 100),
            task(12, 12, (10, 5), 500),
        ]
    }

    fn rusage(voluntary: u64, involuntary: u64) -> Rusage {
        Rusage {
            user_s: 0.8,
            system_s: 0.2,
            voluntary,
            involuntary,
        }
    }

    #[track_caller]
    fn check(rusage: Rusage, missed: u64, expected: (bool, i64)) {
        let observation = observed(tasks(), missed);
        let found = reconcile(&observation, &Report::default(), rusage);
        assert!(found.is_cpu_equal);
        assert_eq!((found.are_switches_equal, found.switches_apart), expected);
        assert_eq!(found.last_switches_of_threads, 1);
        assert_eq!(found.last_switches_of_processes, 2);
    }

    #[test]
    fn last_switches_are_all_that_may_be_apart() {
        check(rusage(29, 12), 0, (true, 1));
        check(rusage(27, 12), 0, (true, 3));
        check(rusage(30, 12), 0, (false, 0));
        check(rusage(26, 12), 0, (false, 4));
        check(rusage(29, 11), 0, (false, 2));
        check(rusage(29, 13), 0, (false, 0));
    }

    #[test]
    fn switches_that_fired_no_event_may_be_missing() {
        check(rusage(31, 13), 2, (true, -2));
        check(rusage(32, 12), 2, (false, -2));
    }

    #[test]
    fn cpu_time_is_equal_within_a_hundredth() {
        let cpu = |user_s| {
            let rusage = Rusage {
                user_s,
                ..rusage(29, 12)
            };
            let found = reconcile(&observed(tasks(), 0), &Report::default(), rusage);
            found.is_cpu_equal
        };
        assert!(cpu(0.8) && cpu(0.809) && cpu(0.791));
        assert!(!cpu(0.82) && !cpu(0.78));
    }

    #[test]
    fn tasks_that_outlive_the_command_are_in_the_figures_only() {
        let mut rows = tasks();
        rows[2].ident.has_exited = false;
        let found = reconcile(&observed(rows, 0), &Report::default(), rusage(20, 7));
        assert_eq!((found.left_running, found.switches_ours), (1, 27));
        assert!((found.cpu_ours_s - 0.5).abs() < 1e-9);
    }

    fn figures_of(real_ms: u64, delay_ms: u64, voluntary: u64) -> BenchFigures<u64> {
        let report = Report {
            totals: Stats {
                on_cpu_ns: 1000 * MS,
                waited_ns: delay_ms * MS,
                switches: Switches {
                    voluntary,
                    involuntary: 10,
                    r#yield: 3,
                },
                ..Stats::default()
            },
            ..Report::default()
        };
        let outside = Outside {
            real: Duration::from_millis(real_ms),
            rusage: rusage(0, 0),
            exit_code: 0,
        };
        figures(&observed(Vec::new(), 0), &report, outside)
    }

    #[test]
    fn columns_follow_from_each_other_as_in_the_table_of_old() {
        let row = figures_of(500, 1500, 20);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(row.sys_pct, 20.0) && near(row.tpt_pct, 200.0));
        assert!(near(row.waiters, 3.0) && near(row.delay_s, 1.5));
        assert_eq!((row.cxsw, row.r#yield), (30, 3));
        assert_eq!(row.delay_per_switch_ns, 50 * MS);
        assert_eq!(row.idle_while_runnable_s, Some(0.25));
        let nothing = figures_of(0, 0, 0);
        assert!(nothing.tpt_pct.is_finite() && nothing.waiters.is_finite());
    }
}
