//! Makes tallies and rows for the tests of this folder, from samples rather than from counters.
//!
//! The tallies are what the kernel side would keep of the same waits, so a test states waits and
//! checks figures.

use latency_common::attribution::Part;
use latency_common::class::{WaitClass, WaitKind};
use latency_common::hist::{HistKind, bucket_of};
use latency_common::interrupt::Source;
use latency_common::record::{RecordTag, WaitRecord, WaitStint};
use latency_common::timeline::RecentInterrupt;

use crate::model::{Buckets, ClassTally, Tally, TaskIdent, TaskRow};

/// A small generator with a seed that a failing test prints (xorshift64*).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// Durations of all magnitudes up to half a minute.
    pub(super) fn durations(&mut self, n: usize) -> Vec<u64> {
        (0..n)
            .map(|_| {
                let bits = self.next() % 36;
                self.next() & ((1 << bits) - 1)
            })
            .collect()
    }
}

/// The tally of waits of one class, in which other tasks ran. The kernel's account equals ours.
pub(super) fn tally_of(class: WaitClass, samples: &[u64]) -> Tally {
    let mut tally = Tally::default();
    let sum_ns = samples.iter().sum();
    tally.classes[class as usize] = ClassTally {
        count: samples.len() as u64,
        sum_ns,
        min_ns: samples.iter().copied().min().unwrap_or(0),
        max_ns: samples.iter().copied().max().unwrap_or(0),
        kernel_ns: sum_ns,
    };
    let kind = match class.kind() {
        Some(WaitKind::Wakeup) => HistKind::Wakeup,
        Some(WaitKind::NewTask) => HistKind::NewTask,
        _ => HistKind::Preemption,
    };
    tally.hists[kind as usize] = buckets_of(samples);
    tally.attribution.parts[Part::OtherTasks as usize] = sum_ns;
    tally
}

pub(crate) fn buckets_of(samples: &[u64]) -> Buckets {
    let mut buckets = Buckets::default();
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    for ns in sorted {
        let Some(bucket) = bucket_of(ns) else {
            buckets.overflow += 1;
            continue;
        };
        let bucket = u16::try_from(bucket).unwrap();
        match buckets.counts.last_mut() {
            Some((last, count)) if *last == bucket => *count += 1,
            _ => buckets.counts.push((bucket, 1)),
        }
    }
    buckets
}

pub(crate) fn comm(name: &str) -> [u8; 16] {
    let mut padded = [0; 16];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    padded
}

/// A row of thread `tid` of `process`, named `name`.
pub(crate) fn row(tid: u32, process: u32, name: &str, tally: Tally) -> TaskRow {
    TaskRow {
        ident: TaskIdent {
            tid,
            tgid: process,
            start_time_ns: u64::from(tid) * 1000,
            comm: comm(name),
            leader_comm: comm("leader"),
            cgroup: "/system.slice".into(),
            has_exited: false,
            is_self: false,
        },
        tally,
    }
}

/// A wait without a story.
pub(crate) fn wait_record(since_ns: u64, until_ns: u64) -> WaitRecord {
    WaitRecord {
        tag: RecordTag::Wait as u64,
        since_ns,
        until_ns,
        waking_at_ns: 0,
        here_since_ns: since_ns,
        start_time_ns: 7_000,
        cgroup_id: 0,
        parts: [0; _],
        interrupted_ns: 0,
        tid: 7,
        tgid: 7,
        class: WaitClass::Tick as u32,
        cpu: 1,
        prio: 120,
        n_cpus_allowed: 2,
        waker_tid: 0,
        waker_source: Source::default(),
        n_stints: 0,
        n_interrupts: 0,
        comm: comm("victim"),
        leader_comm: comm("leader"),
        waker_comm: [0; 16],
        stints: [WaitStint::default(); _],
        interrupts: [RecentInterrupt::default(); _],
    }
}
