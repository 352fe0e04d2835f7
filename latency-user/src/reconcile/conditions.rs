//! What the recorder adds to the conditions of a probe, and the doubts that follow from them.

use std::collections::{BTreeMap, HashSet};

use crate::model::{
    Report, Row, TraceEvent,
    probe::{Conditions, OtherTask, ThreadConditions, Warning},
};

/// Slack up to this is none.
const NO_SLACK_NS: u64 = 1;

/// Clock sources that are read without a system call, or at least without a device.
const FAST_CLOCKSOURCES: [&str; 5] = [
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "xen",
];

/// The rows of a probe's own threads.
#[must_use]
pub fn rows_of<'a>(record: &'a Report, threads: &[ThreadConditions]) -> Vec<&'a Row> {
    let own: HashSet<_> = threads.iter().map(|thread| Some(thread.tid)).collect();
    let rows = record.rows.iter();
    rows.filter(|row| own.contains(&row.ident.tid)).collect()
}

/// Who else had the CPUs, those first for whom the probe waited longest. `name_of` knows the names of
/// threads that live.
pub fn others<'a>(
    own: &[&Row],
    trace: impl IntoIterator<Item = &'a TraceEvent>,
    name_of: impl Fn(u32) -> Option<String>,
) -> Vec<OtherTask> {
    let own_tids: HashSet<_> = own.iter().filter_map(|row| row.ident.tid).collect();
    let mut tasks: BTreeMap<(u32, Option<&str>), OtherTask> = BTreeMap::new();
    for blame in own.iter().flat_map(|row| &row.stats.blame) {
        let culprit = &blame.culprit;
        // Threads that share a row have no id, and are told apart by name.
        let name = (culprit.tid == 0).then_some(culprit.comm.as_str());
        let task = tasks.entry((culprit.tid, name)).or_default();
        task.tid = culprit.tid;
        task.comm = Some(culprit.comm.clone());
        task.waited_for_ns += blame.sum_ns;
    }
    for event in trace {
        let TraceEvent::Wait(wait) = event else {
            continue;
        };
        let tid = wait.previous_tid;
        if own_tids.contains(&tid) {
            continue;
        }
        let task = tasks.entry((tid, None)).or_default();
        task.tid = tid;
        task.n_before += 1;
    }
    let mut tasks: Vec<_> = tasks.into_values().collect();
    for task in &mut tasks {
        if task.comm.is_none() {
            task.comm = match task.tid {
                0 => Some("idle".to_owned()),
                tid => name_of(tid),
            };
        }
    }
    tasks.sort_by_key(|task| std::cmp::Reverse((task.waited_for_ns, task.n_before)));
    tasks
}

/// What in the conditions gives reason to doubt the figures.
#[must_use]
pub fn doubts(conditions: &Conditions, was_ended: bool) -> Vec<Warning> {
    let mut doubts: Vec<_> = conditions.threads.iter().filter_map(other_policy).collect();
    let threads = || conditions.threads.iter();
    let slack_ns = threads().map(|thread| thread.timer_slack_ns).max();
    doubts.extend(
        slack_ns
            .filter(|slack_ns| *slack_ns > NO_SLACK_NS)
            .map(|slack_ns| Warning::TimerSlack { slack_ns }),
    );
    let clocks = &conditions.clocksource;
    if clocks.at_start != clocks.at_end {
        doubts.push(Warning::ClocksourceChanged {
            from: clocks.at_start.clone(),
            to: clocks.at_end.clone(),
        });
    }
    if !FAST_CLOCKSOURCES.contains(&clocks.at_end.as_str()) {
        doubts.push(Warning::SlowClocksource(clocks.at_end.clone()));
    }
    if conditions.throttled_ns > 0 {
        let ns = conditions.throttled_ns;
        doubts.push(Warning::Throttled { ns });
    }
    if threads().any(|thread| thread.priority == 99) {
        doubts.push(Warning::TopPriority);
    }
    for load in conditions.loads.iter().filter(|load| load.has_failed) {
        doubts.push(Warning::LoadFailed {
            load: load.load.clone(),
            why: load.failed.clone(),
        });
    }
    if conditions.steal_ns > 0 {
        let ns = conditions.steal_ns;
        doubts.push(Warning::Stolen { ns });
    }
    if was_ended {
        doubts.push(Warning::EndedEarly);
    }
    doubts
}

fn other_policy(thread: &ThreadConditions) -> Option<Warning> {
    (!thread.is_as_asked).then(|| Warning::OtherPolicy {
        tid: thread.tid,
        asked: thread.asked_policy.clone(),
        effective: format!("{}:{}", thread.policy, thread.priority),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::probe::{Clocksources, LoadReport};

    fn sound() -> Conditions {
        Conditions {
            threads: vec![ThreadConditions {
                tid: 7,
                policy: "fifo",
                priority: 80,
                is_as_asked: true,
                ..ThreadConditions::default()
            }],
            clocksource: Clocksources {
                at_start: "tsc".into(),
                at_end: "tsc".into(),
            },
            ..Conditions::default()
        }
    }

    #[test]
    fn sound_conditions_give_no_doubts() {
        assert_eq!(doubts(&sound(), false), []);
    }

    #[test]
    fn each_doubt_has_its_reason() {
        let mut bad = sound();
        bad.threads[0].is_as_asked = false;
        bad.threads[0].timer_slack_ns = 50_000;
        bad.threads[0].priority = 99;
        bad.clocksource.at_end = "hpet".into();
        bad.throttled_ns = 1;
        bad.steal_ns = 2;
        bad.loads = vec![LoadReport {
            has_failed: true,
            ..LoadReport::default()
        }];
        let kinds: Vec<_> = doubts(&bad, true).iter().map(Warning::kind).collect();
        let expected = [
            "other_policy",
            "timer_slack",
            "clocksource_changed",
            "slow_clocksource",
            "throttled",
            "top_priority",
            "load_failed",
            "stolen",
            "ended_early",
        ];
        assert_eq!(kinds, expected);
    }
}
