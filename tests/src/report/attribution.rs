//! What a report says of the insides of waits: their parts, who ran meanwhile, who ended them.
//!
//! `--detail basic` and `--detail causes` have none of these keys, so they are optional here; each is
//! read through an accessor that fails where it is missing.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::Report;

/// The keys that attribution adds to a task, a group, or all.
#[derive(Debug, Deserialize)]
pub struct Attribution {
    parts: Option<Parts>,
    blame: Option<Vec<Blame>>,
    interrupts: Option<Vec<Interrupt>>,
    stolen: Option<Stolen>,
    wakers: Option<Vec<Waker>>,
    wake_path: Option<WakePath>,
}

impl Attribution {
    /// What the waits were made of.
    pub fn parts(&self) -> Result<&Parts> {
        self.parts.as_ref().context("no key 'parts'")
    }

    /// Who ran meanwhile.
    pub fn blame(&self) -> Result<&[Blame]> {
        self.blame.as_deref().context("no key 'blame'")
    }

    /// Which interrupts ran meanwhile.
    pub fn interrupts(&self) -> Result<&[Interrupt]> {
        self.interrupts.as_deref().context("no key 'interrupts'")
    }

    /// What was taken from the task while it had the CPU.
    pub fn stolen(&self) -> Result<&Stolen> {
        self.stolen.as_ref().context("no key 'stolen'")
    }

    /// Who ended its sleeps.
    pub fn wakers(&self) -> Result<&[Waker]> {
        self.wakers.as_deref().context("no key 'wakers'")
    }

    /// The way from waking to running.
    pub fn wake_path(&self) -> Result<&WakePath> {
        self.wake_path.as_ref().context("no key 'wake_path'")
    }

    /// All blame of the culprits that `is_it` names.
    pub fn blamed_on(&self, is_it: impl Fn(&Culprit) -> bool) -> Result<Blamed> {
        let mut all = Blamed::default();
        for row in self.blame()?.iter().filter(|row| is_it(&row.culprit)) {
            all.count += row.count;
            all.sum_ns += row.sum_ns;
            all.max_ns = all.max_ns.max(row.max_ns);
        }
        Ok(all)
    }

    /// The blame of one thread.
    pub fn blamed_on_thread(&self, tid: u32) -> Result<Blamed> {
        self.blamed_on(|culprit| culprit.tid == tid)
    }
}

/// Time of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Part {
    /// Its sum.
    pub sum_ns: u64,
}

/// What waits were made of.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Parts {
    /// Others ran, and are named.
    pub other_tasks: Part,
    /// Interrupts ran.
    pub hard_irq: Part,
    /// Softirqs ran.
    pub softirq: Part,
    /// The tick ran.
    pub tick: Part,
    /// The group was out of quota.
    pub throttled: Part,
    /// The CPU was idle.
    pub idle_exit: Part,
    /// On the way between CPUs.
    pub moved: Part,
    /// Others ran, whose names were not kept.
    pub unattributed: Part,
    /// The rest.
    pub unexplained: Part,
}

impl Parts {
    /// Each part by its name.
    #[must_use]
    pub fn by_name(&self) -> [(&'static str, u64); 9] {
        [
            ("other_tasks", self.other_tasks.sum_ns),
            ("hard_irq", self.hard_irq.sum_ns),
            ("softirq", self.softirq.sum_ns),
            ("tick", self.tick.sum_ns),
            ("throttled", self.throttled.sum_ns),
            ("idle_exit", self.idle_exit.sum_ns),
            ("moved", self.moved.sum_ns),
            ("unattributed", self.unattributed.sum_ns),
            ("unexplained", self.unexplained.sum_ns),
        ]
    }

    /// All of them.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.by_name().iter().map(|(_, sum_ns)| sum_ns).sum()
    }
}

/// Who ran while others waited.
#[derive(Debug, Deserialize)]
pub struct Culprit {
    /// Name.
    pub comm: String,
    /// Thread, 0 for several.
    pub tid: u32,
    /// Process, 0 for several.
    pub tgid: u32,
    /// The function that a worker of the kernel worked on.
    pub work: Option<String>,
    /// Priority as the kernel counts.
    pub prio: i16,
    /// Class of that priority.
    pub sched_class: String,
    /// How it is related to the victim.
    pub kind: String,
    /// Path of its cgroup.
    pub cgroup: Option<String>,
}

/// What one culprit cost.
#[derive(Debug, Deserialize)]
pub struct Blame {
    /// Who.
    pub culprit: Culprit,
    /// Stretches of its running that were waited through.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// What several culprits cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Blamed {
    /// Stretches of running.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Runs of one interrupt.
#[derive(Debug, Deserialize)]
pub struct Interrupt {
    /// Which kind of interrupt.
    pub kind: String,
    /// Its number among its kind; several have none.
    pub number: Option<u32>,
    /// Its name.
    pub name: String,
    /// Runs.
    pub count: u64,
    /// Their time, without what interrupted them.
    pub sum_ns: u64,
    /// The longest run; of the whole host only.
    pub max_ns: Option<u64>,
}

/// What interrupts took from a task while it had the CPU.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Stolen {
    /// Time of hard interrupts.
    pub irq_ns: u64,
    /// Time of softirqs.
    pub softirq_ns: u64,
    /// Time of the tick.
    pub tick_ns: u64,
    /// Hard interrupts.
    pub irqs: u64,
    /// Softirqs.
    pub softirqs: u64,
    /// Ticks.
    pub ticks: u64,
}

impl Stolen {
    /// All of the time.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.irq_ns + self.softirq_ns + self.tick_ns
    }
}

/// Who ended sleeps.
#[derive(Debug, Deserialize)]
pub struct Waker {
    /// A task, or which kind of interrupt.
    pub kind: String,
    /// Name of the task.
    pub comm: Option<String>,
    /// Its thread.
    pub tid: Option<u32>,
    /// Name of the interrupt.
    pub name: Option<String>,
    /// Wakeups.
    pub count: u64,
    /// Latency of those wakeups.
    pub latency_sum_ns: u64,
}

/// A stage of the way from waking to running.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct WakeStage {
    /// Wakeups.
    pub count: u64,
    /// Their time in this stage.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Wakeups that ended on a CPU of one kind.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Placement {
    /// Wakeups.
    pub count: u64,
    /// Their latency.
    pub latency_sum_ns: u64,
    /// The longest.
    pub latency_max_ns: u64,
}

/// Where woken tasks ran, seen from their wakers.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Placements {
    /// On the waker's CPU.
    pub same_cpu: Placement,
    /// On one that shares its cache.
    pub same_cache: Placement,
    /// On any other.
    pub other_cache: Placement,
}

/// The way from waking to running.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct WakePath {
    /// A CPU was chosen and its queue reached.
    pub waking_to_queued: WakeStage,
    /// Others ran, or the CPU came out of idle.
    pub queued_to_running: WakeStage,
    /// Share that ran on the waker's CPU.
    pub same_cpu_pct: Option<f64>,
    /// Where they ran.
    pub placements: Placements,
}

/// One of the longest waits.
#[derive(Debug, Deserialize)]
pub struct LongWait {
    /// Who waited.
    pub victim: Victim,
    /// Why.
    pub cause: String,
    /// How long.
    pub wait_ns: u64,
    /// Since when.
    pub at_ns: u64,
    /// Where.
    pub cpu: u32,
    /// What it was made of.
    pub parts: Parts,
    /// What ran, in order.
    pub spans: Vec<Span>,
    /// There were more than are listed.
    pub hidden_spans: bool,
    /// What would have helped.
    pub hint: Option<String>,
}

/// Who waited.
#[derive(Debug, Deserialize)]
pub struct Victim {
    /// Name.
    pub comm: String,
    /// Thread.
    pub tid: u32,
    /// Process.
    pub tgid: u32,
}

/// Something that ran during a wait.
#[derive(Debug, Deserialize)]
pub struct Span {
    /// A task, idle, or which kind of interrupt.
    pub kind: String,
    /// Thread of a task.
    pub tid: Option<u32>,
    /// System call of a task.
    pub syscall: Option<String>,
    /// Functions of a task in the kernel, leaf first.
    pub stack: Option<Vec<String>>,
    /// Its start.
    pub at_ns: u64,
    /// Its length.
    pub ns: u64,
}

impl Report {
    /// Interrupts of all CPUs.
    pub fn interrupts(&self) -> Result<&[Interrupt]> {
        self.interrupts.as_deref().context("no key 'interrupts'")
    }

    /// The longest waits.
    pub fn longest(&self) -> Result<&[LongWait]> {
        self.longest.as_deref().context("no key 'longest'")
    }
}
