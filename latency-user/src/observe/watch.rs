//! Looking at the threads of a command in `/proc` while they run: under what they run, and whether
//! somebody stopped them.
//!
//! A look takes some microseconds for each thread, so it is for tools with a handful of them.

use std::{collections::BTreeMap, fs};

use rustix::time::ClockId;

use crate::{
    host::clock_ns,
    model::Watched,
    tasks::{Status, stat, threads_of},
};

/// A thread that has slept so often has its start behind it, as far as it sleeps by a timer.
const SLEEPS_AT_START: u64 = 3;

/// Threads that are looked at.
const MAX_THREADS: usize = 256;

/// Fields of `/proc/TID/stat` after the name, counted from 0.
mod field {
    pub(super) const STATE: usize = 0;
    pub(super) const RT_PRIORITY: usize = 37;
    pub(super) const POLICY: usize = 38;
}

/// The threads of a command and of what it started.
#[derive(Debug)]
pub struct Watch {
    root: u32,
    threads: BTreeMap<u32, Thread>,
}

#[derive(Debug, Default)]
struct Thread {
    seen: Watched,
    is_stopped: bool,
    n_sleeps: u64,
}

impl Watch {
    /// Of this process and its descendants.
    #[must_use]
    pub const fn of(root: u32) -> Self {
        Self {
            root,
            threads: BTreeMap::new(),
        }
    }

    /// Looks at all of them once.
    pub fn look(&mut self) {
        let mut processes = vec![self.root];
        let mut n_looked_at = 0;
        while let Some(tgid) = processes.pop() {
            for tid in threads_of(tgid) {
                processes.extend(children_of(tgid, tid));
                n_looked_at += 1;
                if n_looked_at > MAX_THREADS {
                    return;
                }
                self.look_at(tid);
            }
        }
    }

    fn look_at(&mut self, tid: u32) {
        // Read before: it was there still at this time.
        let now_ns = clock_ns(ClockId::Boottime);
        let Some(fields) = stat(tid) else {
            return;
        };
        let thread = self.threads.entry(tid).or_default();
        let last_ns = thread.seen.last_seen_boot_ns;
        let conditions = &mut thread.seen.conditions;
        let is_stopped = matches!(
            fields.get(field::STATE).map(String::as_str),
            Some("T" | "t")
        );
        if is_stopped && !thread.is_stopped {
            conditions.stops += 1;
        }
        if is_stopped && thread.is_stopped {
            conditions.stopped_ns += now_ns.saturating_sub(last_ns);
        }
        thread.is_stopped = is_stopped;
        let number = |index: usize| fields.get(index).and_then(|text| text.parse().ok());
        conditions.policy = policy(number(field::POLICY).unwrap_or_default());
        conditions.priority = number(field::RT_PRIORITY).unwrap_or_default();
        if let Some((cpus_allowed, n_sleeps)) = mask_and_sleeps(tid) {
            conditions.cpus_allowed = cpus_allowed;
            if n_sleeps > thread.n_sleeps || is_stopped {
                thread.seen.measuring_until_ns = now_ns;
            }
            thread.n_sleeps = n_sleeps;
            if n_sleeps >= SLEEPS_AT_START && thread.seen.measuring_from.is_none() {
                // Read afterwards: it had slept so often by this time.
                let at_ns = clock_ns(ClockId::Boottime);
                thread.seen.measuring_from = Some((at_ns, n_sleeps));
            }
        }
        // A thread that ends has none any more.
        conditions.timer_slack_ns = timer_slack(tid).or(conditions.timer_slack_ns);
        thread.seen.tid = tid;
        thread.seen.last_seen_boot_ns = now_ns;
    }

    /// What was seen.
    #[must_use]
    pub fn into_seen(self) -> Vec<Watched> {
        self.threads
            .into_values()
            .map(|thread| thread.seen)
            .collect()
    }
}

/// Processes that this thread has started; none where the kernel does not tell.
fn children_of(process: u32, tid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{tid}/children"));
    text.unwrap_or_default()
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// The CPUs that a thread may use, and its voluntary switches.
fn mask_and_sleeps(tid: u32) -> Option<(String, u64)> {
    let status = Status::read(tid)?;
    let cpus_allowed = status.value("Cpus_allowed_list:")?.to_owned();
    let n_sleeps = status.value("voluntary_ctxt_switches:")?.parse().ok()?;
    Some((cpus_allowed, n_sleeps))
}

fn timer_slack(tid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{tid}/timerslack_ns")).ok()?;
    text.trim().parse().ok()
}

const fn policy(number: u32) -> &'static str {
    match number {
        0 => "other",
        1 => "fifo",
        2 => "rr",
        3 => "batch",
        5 => "idle",
        6 => "deadline",
        7 => "ext",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::tasks::own_tid;

    #[test]
    fn own_threads_are_seen_as_they_run() {
        let tid = own_tid();
        let mut watch = Watch::of(std::process::id());
        watch.look();
        let seen = watch.into_seen();
        let own = seen.iter().find(|thread| thread.tid == tid).unwrap();
        let slack = rustix::thread::current_timer_slack().unwrap();
        assert_eq!(own.conditions.timer_slack_ns, Some(slack));
        assert_eq!((own.conditions.stops, own.conditions.stopped_ns), (0, 0));
        assert!(!own.conditions.cpus_allowed.is_empty());
        assert!(own.last_seen_boot_ns > 0);
    }

    #[test]
    fn thread_measures_from_when_it_has_slept_until_it_sleeps_no_more() {
        let tid = own_tid();
        let nap = || std::thread::sleep(std::time::Duration::from_millis(2));
        let mut watch = Watch::of(std::process::id());
        (0..5).for_each(|_| nap());
        watch.look();
        nap();
        let until_least_ns = clock_ns(ClockId::Boottime);
        watch.look();
        let until_most_ns = clock_ns(ClockId::Boottime);
        // Without a sleep in between.
        let seen = watch.into_seen();
        let own = seen.iter().find(|thread| thread.tid == tid).unwrap();
        let (from_ns, n_sleeps) = own.measuring_from.unwrap();
        assert!(n_sleeps >= 5 && from_ns < until_least_ns);
        assert!((until_least_ns..=until_most_ns).contains(&own.measuring_until_ns));
    }

    #[test]
    fn stop_of_a_child_is_seen_with_its_length() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        let mut watch = Watch::of(child.id());
        watch.look();
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        let began = std::time::Instant::now();
        while began.elapsed().as_millis() < 100 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            watch.look();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        watch.look();
        let seen = watch.into_seen();
        let conditions = &seen[0].conditions;
        assert_eq!(conditions.stops, 1);
        let most_ns = u64::try_from(began.elapsed().as_nanos()).unwrap();
        assert!((50_000_000..most_ns).contains(&conditions.stopped_ns));
    }
}
