//! The text report of a probe: where, its tables, what it ran under, doubts, and what the recorder saw.

use super::super::text::{body, machine, table::known};
use crate::{
    model::probe::{
        Conditions, Figures, LoadReport, OtherTask, ProbeReport, RanInstead, ThreadConditions,
        Warning,
    },
    units,
};

/// Rows of the recorder's own tables.
const TOP: usize = 10;

/// Other tasks that are named.
const N_OTHERS: usize = 5;

/// Tasks that ran instead, and are named.
const N_NAMED: usize = 5;

/// The whole report; `title` says what was measured, and `tables` are the probe's own.
pub(super) fn frame<S>(report: &ProbeReport<S>, title: &str, tables: &str) -> String {
    let mut text = format!("{}\n{title}\n\n{tables}\n", machine(&report.host));
    text += &conditions(&report.conditions);
    for warning in &report.warnings {
        text += &told(warning);
    }
    let window = report.record.window;
    text + &format!(
        "\nthe recorder, of {} for {}\n\n{}",
        report.record.target,
        units::duration(window.end_at_ns - window.start_at_ns),
        body(&report.record, TOP)
    )
}

/// A duration that may be negative.
pub(super) fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "−" } else { "" };
    sign.to_owned() + &units::duration(ns.unsigned_abs())
}

/// The figures of a distribution, but for their count and sum.
pub(super) fn columns_of(figures: &Figures) -> [String; 7] {
    let Figures {
        min_ns,
        mean_ns,
        p50_ns,
        p90_ns,
        p99_ns,
        p999_ns,
        max_ns,
        ..
    } = *figures;
    [min_ns, mean_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns].map(|ns| known(ns, signed))
}

/// The kernel's preemption model, where it was switched, behind who a series is of.
pub(super) fn under(model: Option<&str>) -> String {
    model.map_or_else(String::new, |model| format!(", preempt {model}"))
}

/// The load, where there was one, and the preemption model.
pub(super) fn beside(load: &str, model: Option<&str>) -> String {
    let load = match load {
        "none" => String::new(),
        load => format!(", load {load}"),
    };
    load + &under(model)
}

/// Lines under a table.
pub(super) fn indented(lines: &[String]) -> String {
    "  ".to_owned() + &lines.join("\n  ") + "\n"
}

/// A line for each of those who ran instead, as far as they are named.
pub(super) fn ran_instead(tasks: &[RanInstead]) -> Vec<String> {
    let mut lines: Vec<_> = tasks.iter().take(N_NAMED).map(turns).collect();
    let n_more = tasks.len().saturating_sub(N_NAMED);
    if n_more > 0 {
        lines.push(format!("and {n_more} more"));
    }
    lines
}

fn turns(task: &RanInstead) -> String {
    let name = match task.tid {
        0 => format!("{}, several threads", task.comm),
        tid => format!("{}[{tid}]", task.comm),
    };
    let who = if task.is_peer { " (its peer)" } else { "" };
    format!(
        "ran instead: {name}{who}, {} times, {} each, {} at most, {} in all",
        units::count(task.count),
        units::duration(task.mean_ns),
        units::duration(task.max_ns),
        units::duration(task.sum_ns)
    )
}

fn conditions(conditions: &Conditions) -> String {
    let mut lines = vec!["conditions".to_owned()];
    lines.extend(threads(&conditions.threads));
    let clocks = &conditions.clocksource;
    lines.push(if clocks.at_start == clocks.at_end {
        format!("clock source {}", clocks.at_start)
    } else {
        format!("clock source {}, then {}", clocks.at_start, clocks.at_end)
    });
    lines.extend(conditions.rt_limit.map(|limit| match limit.runtime_ns {
        Some(runtime_ns) => format!(
            "real-time limit {} in {}; the probe was out of quota for {}",
            units::duration(runtime_ns),
            units::duration(limit.period_ns),
            units::duration(conditions.throttled_ns)
        ),
        None => "no real-time limit".to_owned(),
    }));
    let memory = if conditions.is_memory_locked {
        "all memory locked"
    } else {
        "samples locked"
    };
    let idle_states = if conditions.are_idle_states_held {
        "idle states held off"
    } else {
        "idle states untouched"
    };
    lines.push(format!("{memory}, {idle_states}"));
    lines.extend(conditions.loads.iter().map(load));
    lines.extend(others(&conditions.others));
    lines.join("\n  ") + "\n"
}

/// Threads of the same conditions on one line.
fn threads(threads: &[ThreadConditions]) -> Vec<String> {
    let shown = |thread: &ThreadConditions| {
        let policy = match thread.policy {
            "other" | "batch" | "idle" => format!("{}, nice {}", thread.policy, thread.nice),
            "deadline" => thread.asked_policy.clone(),
            _ => format!("{}:{}", thread.policy, thread.priority),
        };
        format!(
            "{policy} on CPU {}, timer slack {}",
            thread.affinity,
            units::duration(thread.timer_slack_ns)
        )
    };
    let mut lines: Vec<(String, u32)> = Vec::new();
    for thread in threads {
        let text = shown(thread);
        match lines.iter_mut().find(|(known, _)| *known == text) {
            Some((_, n_threads)) => *n_threads += 1,
            None => lines.push((text, 1)),
        }
    }
    let line = |(text, n_threads): (String, u32)| match n_threads {
        1 => format!("1 thread under {text}"),
        n_threads => format!("{n_threads} threads under {text}"),
    };
    lines.into_iter().map(line).collect()
}

fn load(load: &LoadReport) -> String {
    format!(
        "load {}: {} of CPU time, {} turns",
        load.load,
        units::duration(load.cpu_ns),
        units::count(load.n_iterations)
    )
}

fn others(others: &[OtherTask]) -> Option<String> {
    let named: Vec<_> = others
        .iter()
        .take(N_OTHERS)
        .map(|task| {
            let name = match (&task.comm, task.tid) {
                (Some(comm), 0) => comm.clone(),
                (Some(comm), tid) => format!("{comm}[{tid}]"),
                (None, tid) => format!("[{tid}]"),
            };
            let before = (task.n_before > 0)
                .then(|| format!("{} times before the probe", units::count(task.n_before)));
            let waited = (task.waited_for_ns > 0)
                .then(|| format!("{} while it waited", units::duration(task.waited_for_ns)));
            let times: Vec<_> = before.into_iter().chain(waited).collect();
            format!("{name} ({})", times.join(", "))
        })
        .collect();
    (!named.is_empty()).then(|| format!("also on its CPUs: {}", named.join(", ")))
}

/// A doubt and what to do about it.
pub(in crate::report) fn told(warning: &Warning) -> String {
    format!(
        "warning: {}\n  help: {}\n",
        warning.message(),
        warning.advice()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::probe::{Clocksources, RtLimit},
        report::fixture,
    };

    fn thread(tid: u32, policy: &'static str, priority: u32) -> ThreadConditions {
        ThreadConditions {
            tid,
            policy,
            priority,
            affinity: "1".into(),
            timer_slack_ns: 1,
            ..ThreadConditions::default()
        }
    }

    #[test]
    fn report_has_its_tables_between_where_and_under_what() {
        let other = |tid, comm: &str, waited_for_ns| OtherTask {
            tid,
            comm: Some(comm.to_owned()).filter(|comm| !comm.is_empty()),
            n_before: 1_200,
            waited_for_ns,
        };
        let report = ProbeReport::<()> {
            host: fixture::report().host,
            conditions: Conditions {
                threads: vec![
                    thread(1, "fifo", 80),
                    thread(2, "fifo", 80),
                    thread(3, "other", 0),
                ],
                clocksource: Clocksources {
                    at_start: "tsc".into(),
                    at_end: "hpet".into(),
                },
                rt_limit: Some(RtLimit {
                    runtime_ns: Some(950_000_000),
                    period_ns: 1_000_000_000,
                }),
                is_memory_locked: true,
                loads: vec![LoadReport {
                    load: "cpu".into(),
                    n_iterations: 12_000,
                    cpu_ns: 3_000_000_000,
                    ..LoadReport::default()
                }],
                others: vec![
                    other(0, "idle", 0),
                    other(77, "make", 5_000),
                    other(9, "", 0),
                ],
                ..Conditions::default()
            },
            warnings: vec![Warning::TopPriority],
            series: Vec::new(),
            record: fixture::report(),
        };
        let text = frame(&report, "what was measured", "the tables\n");
        let (own, recorded) = text.split_once("\nthe recorder, of ").unwrap();
        insta::assert_snapshot!(own.replace(super::super::super::VERSION, "VERSION"));
        assert!(recorded.contains("what the waits were made of") && recorded.contains("audit: ok"));
    }
}
