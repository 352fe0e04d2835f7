//! Two commands, of which one ran twice.

use crate::{
    analysis::bench,
    model::{
        BenchCommand, BenchFigures, BenchReport, BenchRun, Reconciliation, RunConditions, Rusage,
        probe::{Clocksources, Warning},
    },
    report::fixture,
};

pub(super) fn report() -> BenchReport {
    let runs = vec![run("old", 1, 3.25), run("new", 1, 3.0), run("old", 2, 3.75)];
    let labels = ["old", "new"].map(str::to_owned);
    let command = |label: &str| BenchCommand {
        label: label.to_owned(),
        command: format!("./{label} -j2"),
    };
    BenchReport {
        host: fixture::report().host,
        conditions: RunConditions {
            clocksource: Clocksources {
                at_start: "tsc".into(),
                at_end: "tsc".into(),
            },
            cpus_allowed: "0-1".into(),
            ..RunConditions::default()
        },
        warnings: vec![Warning::EndedEarly],
        commands: vec![command("old"), command("new")],
        seed: 7,
        summary: bench::summary(&runs, &labels),
        delay_by_cause: bench::delay_by_cause(&runs),
        runs,
    }
}

fn run(label: &str, repetition: u32, real_s: f64) -> BenchRun {
    BenchRun {
        label: label.to_owned(),
        repetition,
        place: 1,
        figures: BenchFigures {
            real_s,
            cpu_s: 5.5,
            sys_pct: 8.25,
            tpt_pct: 100.0 * 5.5 / real_s,
            delay_s: 1.5,
            cxsw: 12_345,
            voluntary: 10_000,
            involuntary: 2_345,
            r#yield: 5,
            migrations: 77,
            waiters: 1.5 / real_s,
            delay_per_switch_ns: 121_507,
            idle_while_runnable_s: Some(0.125),
        },
        n_tasks: 40,
        restricted_waiting_s: Some(0.0),
        reconciliation: Reconciliation {
            rusage: Rusage {
                user_s: 5.0,
                system_s: 0.5,
                voluntary: 9_970,
                involuntary: 2_345,
            },
            cpu_ours_s: 5.5,
            switches_ours: 12_345,
            switches_apart: 30,
            last_switches_of_threads: 10,
            last_switches_of_processes: 30,
            missed_switches: 2,
            left_running: 1,
            delay_ours_s: 1.5,
            delay_kernel_s: 1.25,
            is_cpu_equal: true,
            are_switches_equal: true,
            is_audit_ok: false,
            ..Reconciliation::default()
        },
        audit: fixture::report().audit,
        loss: fixture::report().loss,
        exit_code: 0,
    }
}
