//! Known-answer workloads: processes whose waits, switches and names are known beforehand.
//!
//! Each one is bounded in time, dies with the thread that started it, and with `--report` prints two
//! JSON lines: one when it is ready, one at its end with the kernel's own counters of itself.
//! What the figures should be is left to the tests.

mod burn;
mod crowd;
mod identity;
mod memory;
mod pingpong;
mod process;
mod sleep;
mod stage;
mod stress;
mod traffic;

use std::{path::PathBuf, time::Duration};

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use serde_json::Value;

pub use process::set_affinity;
pub(crate) use process::{kill, kill_group, pid_of};
pub use stage::Stage;

/// A workload with a known answer.
#[derive(Debug, Parser)]
#[command(name = "workload")]
pub struct Workload {
    #[command(flatten)]
    setting: Setting,
    #[command(subcommand)]
    kind: Kind,
}

/// Where and how it runs.
#[derive(Debug, Args)]
pub(crate) struct Setting {
    /// Pin the workload to this CPU.
    #[arg(long, global = true)]
    cpu: Option<usize>,
    /// Name of the process.
    #[arg(long, global = true)]
    name: Option<String>,
    /// Nice value.
    #[arg(long, global = true, allow_negative_numbers = true)]
    nice: Option<i32>,
    /// Run under the FIFO policy at this priority.
    #[arg(long, global = true)]
    fifo: Option<i32>,
    /// Join this cgroup first (a directory, may be repeated).
    #[arg(long, global = true)]
    cgroup: Vec<PathBuf>,
    /// Print a line when ready and the ground truth at the end.
    #[arg(long, global = true)]
    report: bool,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Spin reading the clock.
    Burn { seconds: f64 },
    /// Spin inside system calls: read /dev/zero, 16 MiB a call.
    BurnSyscall { seconds: f64 },
    /// Spin and log own gaps of at least `--threshold-us`.
    Gaps {
        seconds: f64,
        #[arg(long, default_value_t = 500)]
        threshold_us: u64,
    },
    /// Yield in a loop.
    Yield { seconds: f64 },
    /// Wake up at absolute times and work a little.
    Periodic {
        seconds: f64,
        #[arg(long, default_value_t = 1000)]
        interval_us: u64,
        #[arg(long, default_value_t = 50)]
        work_us: u64,
    },
    /// Two processes hand a byte to and fro through pipes.
    Pipe {
        seconds: f64,
        #[command(flatten)]
        peer: pingpong::Peer,
    },
    /// Wake a sleeping reader `n` times through a pipe.
    Wake {
        n: u64,
        #[arg(long, default_value_t = 200)]
        interval_us: u64,
        #[command(flatten)]
        reader: pingpong::Reader,
    },
    /// Wake a thread that is only on its way to sleep.
    FutexRunning { seconds: f64 },
    /// Short-lived children, one after the other.
    Forks {
        n: u64,
        /// How long each child spins.
        #[arg(long, default_value_t = 0)]
        burn_us: u64,
        /// Kill each child after this time instead of waiting for it.
        #[arg(long)]
        kill_after_us: Option<u64>,
    },
    /// Fork until the process ids have wrapped `n` times, at most `most` forks.
    PidWraps {
        n: u64,
        #[arg(long, default_value_t = 100_000)]
        most: u64,
    },
    /// Threads that sleep some times each.
    Threads(crowd::Sleepers),
    /// `threads` spinning threads of one name.
    Team {
        seconds: f64,
        #[arg(long, default_value_t = 4)]
        threads: u64,
        #[arg(long, default_value = "pool")]
        thread_name: String,
    },
    /// Spin under one name, then under another.
    Rename {
        seconds: f64,
        #[arg(long, default_value = "renamed")]
        to: String,
    },
    /// Spin, then execute itself as `chain-N`, down to `chain-0`.
    ExecChain { n: u64, seconds: f64 },
    /// Spin under a name of arbitrary bytes.
    OddComm { hex: String, seconds: f64 },
    /// End the first thread and go on in another.
    Headless { seconds: f64 },
    /// Call membarrier in a loop.
    Membarrier { seconds: f64 },
    /// Read files of every process in a loop.
    ProcReaders { seconds: f64 },
    /// Spin and log own gaps of a microsecond, while another thread interrupts from `--peer-cpu`.
    Interrupted {
        seconds: f64,
        #[arg(long)]
        peer_cpu: usize,
    },
    /// Send datagrams to itself through loopback.
    Datagrams { seconds: f64 },
    /// Fork children that end at once, with `--mib` MiB of pages in use.
    ForkLarge {
        seconds: f64,
        #[arg(long, default_value_t = 256)]
        mib: usize,
    },
    /// Map and use `--mib` MiB, and unmap them, in a loop.
    Unmap {
        seconds: f64,
        #[arg(long, default_value_t = 512)]
        mib: usize,
    },
    /// Dirty pages of a file in `directory`, and have the kernel write them.
    DirtyPages { seconds: f64, directory: PathBuf },
}

impl Workload {
    /// Runs it to its end.
    pub fn run(self) -> Result<()> {
        process::bind_to_parent()?;
        self.setting.apply()?;
        let mut stage = Stage::new(self.setting.report);
        let own = self.kind.play(&mut stage)?;
        stage.finish(&own)
    }
}

impl Setting {
    fn apply(&self) -> Result<()> {
        for group in &self.cgroup {
            process::join_cgroup(group)?;
        }
        if let Some(nice) = self.nice {
            rustix::process::setpriority_process(None, nice)?;
        }
        if let Some(cpu) = self.cpu {
            process::pin(cpu)?;
        }
        if let Some(priority) = self.fifo {
            process::become_fifo(priority)?;
        }
        // Last, since a recorder may observe it from here on.
        if let Some(name) = &self.name {
            process::rename(name.as_bytes())?;
        }
        Ok(())
    }
}

impl Kind {
    fn play(self, stage: &mut Stage) -> Result<Value> {
        match self {
            Self::Burn { seconds } => burn::burn(stage, time(seconds)),
            Self::BurnSyscall { seconds } => burn::burn_in_system_calls(stage, time(seconds)),
            Self::Gaps {
                seconds,
                threshold_us,
            } => burn::log_gaps(stage, time(seconds), Duration::from_micros(threshold_us)),
            Self::Yield { seconds } => burn::yield_in_a_loop(stage, time(seconds)),
            Self::Periodic {
                seconds,
                interval_us,
                work_us,
            } => sleep::wake_periodically(
                stage,
                time(seconds),
                Duration::from_micros(interval_us),
                Duration::from_micros(work_us),
            ),
            Self::Pipe { seconds, peer } => pingpong::pipe(stage, time(seconds), &peer),
            Self::Wake {
                n,
                interval_us,
                reader,
            } => pingpong::wake(stage, n, Duration::from_micros(interval_us), &reader),
            Self::FutexRunning { seconds } => pingpong::wake_the_running(stage, time(seconds)),
            Self::Forks {
                n,
                burn_us,
                kill_after_us,
            } => {
                let kill_after = kill_after_us.map(Duration::from_micros);
                crowd::forks(stage, n, Duration::from_micros(burn_us), kill_after)
            }
            Self::PidWraps { n, most } => crowd::wrap_pids(stage, n, most),
            Self::Threads(sleepers) => crowd::threads(stage, &sleepers),
            Self::Team {
                seconds,
                threads,
                thread_name,
            } => crowd::team(stage, time(seconds), threads, &thread_name),
            Self::Rename { seconds, to } => identity::rename_midway(stage, time(seconds), &to),
            Self::ExecChain { n, seconds } => identity::exec_chain(stage, n, seconds),
            Self::OddComm { hex, seconds } => identity::odd_comm(stage, &hex, time(seconds)),
            Self::Headless { seconds } => identity::go_on_headless(stage, time(seconds)),
            Self::Membarrier { seconds } => stress::membarrier_loop(stage, time(seconds)),
            Self::ProcReaders { seconds } => stress::read_proc(stage, time(seconds)),
            Self::Interrupted { seconds, peer_cpu } => {
                stress::interrupt_a_spinner(stage, time(seconds), peer_cpu)
            }
            Self::Datagrams { seconds } => traffic::send_datagrams(stage, time(seconds)),
            Self::ForkLarge { seconds, mib } => memory::fork_with_memory(stage, time(seconds), mib),
            Self::Unmap { seconds, mib } => memory::unmap(stage, time(seconds), mib),
            Self::DirtyPages { seconds, directory } => {
                traffic::dirty_pages(stage, time(seconds), &directory)
            }
        }
    }
}

fn time(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 3_600.0))
}
