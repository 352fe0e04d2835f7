//! What `probe pingpong` found: one series for each transport, placement and load.

use serde::Serialize;

use super::{Figures, Verdict};

/// One transport between two threads in one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PingpongSeries {
    /// `pipe`, `unix`, `eventfd` or `futex`.
    pub transport: &'static str,
    /// `auto`, `same`, `smt`, `llc` or `cross`.
    pub placement: &'static str,
    /// The CPUs of the two threads; absent where the scheduler chose.
    pub cpus: Option<[u32; 2]>,
    /// The two threads.
    pub tids: Vec<u32>,
    /// The policy that was asked for.
    pub policy: String,
    /// The preemption model it was switched to; absent where it was left alone.
    pub preemption: Option<String>,
    /// What ran beside it.
    pub load: String,
    /// A token to and fro.
    pub round_trip: RoundTrip,
    /// Median of the runs, in 10^6 bytes a second; absent where no bytes are carried.
    pub bandwidth_mb_s: Option<f64>,
    /// Each run.
    pub bandwidth_runs_mb_s: Vec<f64>,
    /// Switches of both threads, by the recorder, for each round trip.
    pub switches_per_round_trip: Option<f64>,
    /// Their sums.
    pub switches: SwitchCheck,
    /// Wakeups that queued the thread on the waker's CPU.
    pub local_pct: Option<f64>,
    /// Those that queued it on another one.
    pub remote_pct: Option<f64>,
    /// Of a sample of wakeups, those whose waker said that it is about to sleep.
    pub sync_pct: Option<f64>,
    /// Interrupts by which CPUs asked each other for something, of the whole machine.
    pub ipis_per_round_trip: Option<f64>,
    /// Wakeups that ended in running.
    pub wakeups: WakeupMeans,
    /// Moves of both threads to another CPU.
    pub migrations: u64,
    /// Where the wakeups went, or that the counts disagree.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Times of round trips.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoundTrip {
    /// The median run's time for one round trip.
    pub median_ns: Option<u64>,
    /// Each run's.
    pub runs_ns: Vec<u64>,
    /// All round trips of all runs, one by one.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Both counts of the threads' switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SwitchCheck {
    /// The recorder's.
    pub kernel_saw: u64,
    /// Those that blocked.
    pub voluntary: u64,
    /// Those that left the thread runnable.
    pub involuntary: u64,
    /// The threads' own, by `getrusage`.
    pub own: u64,
}

/// What a wakeup took on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WakeupMeans {
    /// Wakeups.
    pub count: u64,
    /// From waking to the queue: choosing a CPU, and the interrupt that puts the thread there.
    pub to_queue_ns: Option<u64>,
    /// From the queue to running.
    pub queue_wait_ns: Option<u64>,
    /// The part of all waits in which the CPU was idle, or leaving that.
    pub idle_exit_ns: Option<u64>,
}
