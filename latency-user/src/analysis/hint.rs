//! What would have helped a single wait: only what follows from its record, nothing likely.

use std::collections::BTreeMap;

use latency_common::attribution::Part;

use super::escape;
use crate::{
    model::{SchedClass, Span, WaitEvent, rank},
    units,
};

/// What would have helped; `spans` is what ran meanwhile. The first that holds is said: out of quota
/// it would have waited whoever ran, and another CPU helps where a lower rank does not.
pub(super) fn hint(event: &WaitEvent, spans: &[Span]) -> Option<String> {
    let record = &event.record;
    if record.parts[Part::Throttled as usize] >= event.wait_ns().div_ceil(2) {
        let cgroup = escape::text(&event.cgroup);
        return Some(format!("out of quota: cpu.max of {cgroup} is too small"));
    }
    let pinned = || (record.n_cpus_allowed == 1).then(|| format!("pinned to CPU {}", record.cpu));
    overtaken(event, spans).or_else(pinned)
}

/// Behind a task that the scheduler always prefers, for half of the wait or longer.
fn overtaken(event: &WaitEvent, spans: &[Span]) -> Option<String> {
    let mut times: BTreeMap<_, u64> = BTreeMap::new();
    for span in spans {
        if let (Some(comm), Some(tid), Some(prio)) = (&span.comm, span.tid, span.prio)
            && outranks(comm, prio, event.record.prio)
        {
            *times.entry((comm, tid, prio)).or_default() += span.ns;
        }
    }
    let ((comm, tid, prio), ns) = times.into_iter().max_by_key(|(_, ns)| *ns)?;
    let rank = rank(prio).unwrap_or_default();
    let time = units::duration(ns);
    (ns >= event.wait_ns().div_ceil(2)).then(|| {
        format!("behind a real-time task: {comm}[{tid}] ({rank}) had the CPU for {time} of it")
    })
}

/// Whether a task runs before one of priority `victim` whatever the latter does. The kernel's threads
/// that move tasks do so on somebody's behalf.
fn outranks(comm: &str, prio: i16, victim: i32) -> bool {
    let is_stopper = comm.starts_with("migration/");
    !is_stopper && SchedClass::of(prio) != SchedClass::Fair && i32::from(prio) < victim
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::wait_record;

    /// A wait of 1001 ns: how long it was out of quota, and how many CPUs the task may use.
    fn event(throttled_ns: u64, n_cpus_allowed: u32) -> WaitEvent {
        let mut record = wait_record(1_000, 2_001);
        record.parts[Part::Throttled as usize] = throttled_ns;
        record.n_cpus_allowed = n_cpus_allowed;
        WaitEvent {
            record,
            cgroup: "/a".into(),
        }
    }

    #[track_caller]
    fn check(throttled_ns: u64, n_cpus_allowed: u32, expected: Option<&str>) {
        let event = event(throttled_ns, n_cpus_allowed);
        assert_eq!(hint(&event, &[]).as_deref(), expected);
    }

    #[test]
    fn only_what_is_certain_is_hinted_at() {
        check(0, 2, None);
        check(500, 2, None);
        check(501, 1, Some("out of quota: cpu.max of /a is too small"));
        check(500, 1, Some("pinned to CPU 1"));
    }

    /// A task of priority `prio` had the CPU for `ns` of the wait of a task of priority `victim`.
    fn behind(name: &str, prio: i16, victim: i32, ns: u64) -> Option<String> {
        let mut event = event(0, 2);
        event.record.prio = victim;
        let span = |ns| Span {
            comm: Some(name.into()),
            tid: Some(9),
            prio: Some(prio),
            ns,
            ..Span::default()
        };
        hint(&event, &[span(400), Span::default(), span(ns - 400)])
    }

    #[test]
    fn who_outranks_the_task_is_named_where_it_had_half_of_the_wait() {
        let expected = "behind a real-time task: t[9] (rt 50) had the CPU for 501 ns of it";
        assert_eq!(behind("t", 49, 120, 501).as_deref(), Some(expected));
        assert_eq!(behind("t", 49, 50, 501).as_deref(), Some(expected));
        let expected = "behind a real-time task: t[9] (deadline) had the CPU for 700 ns of it";
        assert_eq!(behind("t", -1, 0, 700).as_deref(), Some(expected));
        for (name, prio, victim, ns) in [
            ("t", 49, 120, 500),
            ("t", 49, 49, 501),
            ("t", -1, -1, 501),
            ("t", 100, 120, 501),
            ("migration/1", 0, 120, 501),
        ] {
            assert_eq!(behind(name, prio, victim, ns), None, "{name} {prio} {ns}");
        }
    }
}
