//! The loaded object: attach, select, read, and be gone when dropped.

use std::{
    fs::File,
    io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
};

use aya::{
    Ebpf,
    maps::{Array, HashMap, MapData, PerCpuArray, PerCpuHashMap, RingBuf, Stack, StackTraceMap},
    programs::{Iter, Program},
};
use aya_log::EbpfLogger;
use latency_common::{
    counters::TaskCounters,
    cpu::CpuState,
    hist::{HistSlot, N_HISTS},
    interrupt::{InterruptCounters, N_SOURCES, Source},
    loss::N_LOSS,
    record::{Exits, TaskRecord},
    select::Control,
    timeline::{StackHandle, StackKey, StackWeight},
    trace::YieldCalls,
};

use super::{
    btf::KernelTypes,
    bytes::{from_bytes, read_all},
    features::Features,
    flight::FlightRings,
    idle::{self, IdleMeter},
    load,
    object::{self, LoadOptions, take},
    pool::HistPool,
    prepare::Loader,
    programs::{self, SELECT_TASKS, WRITE_ROWS},
    record::{self, Record},
    trace::{self, MalformedRecord},
    whole::WholeArray,
};
use crate::{
    Error,
    model::{InterruptTotal, StackTally, TraceEvent},
    topology::last_level_cache,
};

/// Runs of all our programs, by the kernel's count.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotals {
    /// Runs, while the statistics were on.
    pub runs: u64,
    /// Their time.
    pub ns: u64,
    /// Runs skipped since the same program was active.
    pub recursion_misses: u64,
}

/// The kernel side of a recording.
#[expect(missing_debug_implementations, reason = "aya's maps have none")]
pub struct Kernel {
    ebpf: Ebpf,
    /// The histogram pool.
    pub pool: HistPool,
    /// The flight recorder's rings, where it is on.
    pub flight: Option<FlightRings>,
    /// Idle while runnable, where it was asked for.
    pub idle: Option<IdleMeter>,
    ring: RingBuf<MapData>,
    trace: RingBuf<MapData>,
    /// Of threads whose yields are counted; none where nothing counts them.
    yield_calls: Option<HashMap<MapData, u32, YieldCalls>>,
    cpus: Array<MapData, CpuState>,
    sources: WholeArray<InterruptCounters>,
    stacks: StackTraceMap<MapData>,
    stack_weights: PerCpuHashMap<MapData, StackKey, StackWeight>,
    works: Array<MapData, u64>,
    losses: PerCpuArray<MapData, u64>,
    unsent: PerCpuArray<MapData, TaskCounters>,
    exits: PerCpuArray<MapData, Exits>,
    shared_hists: PerCpuArray<MapData, HistSlot>,
    control: Array<MapData, Control>,
    control_word: Control,
    logs: Option<EbpfLogger<&'static dyn log::Log>>,
}

impl Kernel {
    /// Loads and attaches everything that the options need. Nothing is measured before `select`.
    pub fn attach(
        types: &KernelTypes,
        features: &Features,
        kernel: &str,
        options: &LoadOptions,
        loader: Loader,
    ) -> Result<Self, Error> {
        let n_cpus = object::n_possible_cpus()?;
        let mut ebpf = object::open(types, features, kernel, options, loader.object)?;
        let logs = options
            .has_logs
            .then(|| EbpfLogger::init(&mut ebpf))
            .transpose();
        let idle = (!options.idle_cpus.is_empty())
            .then(|| IdleMeter::new(&mut ebpf, &options.idle_cpus, n_cpus))
            .transpose()?;
        let free: Stack<_, u32> = take(&mut ebpf, "FREE_HISTS")?;
        let mut this = Self {
            pool: HistPool::new(ebpf.map("HISTS"), options.n_hists, free)?,
            flight: options
                .flight
                .map(|size| FlightRings::map(&ebpf, size, n_cpus))
                .transpose()?,
            idle,
            ring: take(&mut ebpf, "RECORDS")?,
            trace: take(&mut ebpf, "TRACE_RECORDS")?,
            yield_calls: programs::counts_yields(features, options)
                .then(|| take(&mut ebpf, "YIELD_CALLS"))
                .transpose()?,
            cpus: take(&mut ebpf, "CPUS")?,
            sources: WholeArray::take(&mut ebpf, "SOURCES", N_SOURCES, n_cpus)?,
            stacks: take(&mut ebpf, "STACKS")?,
            stack_weights: take(&mut ebpf, "STACK_WEIGHTS")?,
            works: take(&mut ebpf, "WORKS")?,
            losses: take(&mut ebpf, "LOSSES")?,
            unsent: take(&mut ebpf, "UNSENT")?,
            exits: take(&mut ebpf, "EXITS")?,
            shared_hists: take(&mut ebpf, "SHARED_HISTS")?,
            control: take(&mut ebpf, "CONTROL")?,
            control_word: Control {
                stacks_over_ns: options.stacks_over_ns,
                ..Control::default()
            },
            logs: logs.map_err(|error| Error::Setup(format!("cannot read logs: {error}")))?,
            ebpf,
        };
        this.tell_caches()?;
        this.write_control()?;
        let needed = programs::needed(features, options);
        load::load(&mut this.ebpf, &loader.types, kernel, &needed)?;
        for attachment in needed {
            programs::attach(&mut this.ebpf, attachment)?;
        }
        idle::visit(&options.idle_cpus)?;
        Ok(this)
    }

    /// Lets the programs know which CPUs share a cache.
    fn tell_caches(&mut self) -> Result<(), Error> {
        for cpu in 0..self.cpus.len() {
            let state = CpuState {
                cache: last_level_cache(cpu),
                ..CpuState::default()
            };
            self.cpus
                .set(cpu, state, 0)
                .map_err(|error| Error::Setup(format!("cannot write map CPUS: {error}")))?;
        }
        Ok(())
    }

    /// Looks at all tasks: selects those that fit and lets go of those that no longer do.
    pub fn select(&mut self) -> Result<(), Error> {
        let mut nothing = Vec::new();
        self.iterate(SELECT_TASKS, &mut nothing)?;
        if self.control_word.is_seeded == 0 {
            self.control_word.is_seeded = 1;
            self.write_control()?;
        }
        Ok(())
    }

    /// Follows what this thread spawns from now on; 0 ends it.
    pub fn follow_spawner(&mut self, tid: u32) -> Result<(), Error> {
        self.control_word.spawner_tid = tid;
        self.write_control()
    }

    /// From now on, stacks are taken where somebody has waited longer than this.
    pub fn take_stacks_over(&mut self, ns: u64) -> Result<(), Error> {
        self.control_word.stacks_over_ns = ns;
        self.write_control()
    }

    fn write_control(&mut self) -> Result<(), Error> {
        self.control
            .set(0, self.control_word, 0)
            .map_err(|error| Error::Setup(format!("cannot write map CONTROL: {error}")))
    }

    /// Hands what the programs logged to the logger of this process.
    pub fn flush_logs(&mut self) {
        if let Some(logs) = &mut self.logs {
            logs.flush();
        }
    }

    /// How often a whole process has changed its cgroup.
    #[must_use]
    pub fn reselect_requests(&self) -> u32 {
        self.cpu_states()
            .iter()
            .fold(0, |sum, cpu| sum.wrapping_add(cpu.reselect_requests))
    }

    /// The rows of all tasks that are, or were, selected and have not ended.
    pub fn rows(&mut self) -> Result<Vec<TaskRecord>, Error> {
        let mut bytes = Vec::new();
        self.iterate(WRITE_ROWS, &mut bytes)?;
        Ok(bytes
            .chunks_exact(size_of::<TaskRecord>())
            .map(from_bytes)
            .collect())
    }

    fn iterate(&mut self, name: &str, output: &mut Vec<u8>) -> Result<(), Error> {
        let failed = |error: &dyn std::error::Error| {
            Error::Setup(format!("cannot run iterator {name}: {error}"))
        };
        let program: &mut Iter = programs::program_mut(&mut self.ebpf, name)?;
        let link = program.attach().map_err(|error| failed(&error))?;
        let link = program.take_link(link).map_err(|error| failed(&error))?;
        let mut file: File = link.into_file().map_err(|error| failed(&error))?;
        read_all(&mut file, output).map_err(|error| failed(&error))
    }

    /// The next record of the ring.
    pub fn next_record(&mut self) -> Option<Record> {
        self.ring.next().map(|item| record::record(&item))
    }

    /// A descriptor that is readable when the ring is filling.
    pub fn ring(&self) -> io::Result<OwnedFd> {
        self.ring.as_fd().try_clone_to_owned()
    }

    /// The next event of a traced thread.
    pub fn next_trace_event(&mut self) -> Option<Result<TraceEvent, MalformedRecord>> {
        self.trace.next().map(|item| trace::event(&item))
    }

    /// Calls of `sched_yield` by a thread whose calls are counted; none where nothing counts them.
    #[must_use]
    pub fn yield_calls(&self, tid: u32) -> Option<u64> {
        let calls = self.yield_calls.as_ref()?.get(&tid, 0).ok()?;
        Some(calls.count)
    }

    /// What each CPU counted.
    #[must_use]
    pub fn cpu_states(&self) -> Vec<CpuState> {
        self.cpus.iter().filter_map(Result::ok).collect()
    }

    /// All interrupts that were handled, over all CPUs.
    #[must_use]
    pub fn interrupts(&self) -> Vec<InterruptTotal> {
        let rows = (0..).zip(self.sources.rows().unwrap_or_default());
        let totals = rows.map(|(row, cpus)| {
            let mut total = InterruptTotal {
                source: Source::of_row(row),
                count: 0,
                sum_ns: 0,
                max_ns: 0,
            };
            for counters in cpus {
                total.count += counters.count;
                total.sum_ns += counters.sum_ns;
                total.max_ns = total.max_ns.max(counters.max_ns);
            }
            total
        });
        totals.filter(|total| total.count > 0).collect()
    }

    /// The time that tasks waited, by the stack of who had the CPU, over all CPUs.
    #[must_use]
    pub fn stacks(&self) -> Vec<StackTally> {
        let rows = self.stack_weights.iter().filter_map(Result::ok);
        rows.map(|(key, weights)| StackTally {
            comm: key.comm,
            is_kernel_thread: key.is_kernel_thread != 0,
            stack: StackHandle(key.stack),
            sum_ns: weights.iter().map(|weight| weight.sum_ns).sum(),
            count: weights.iter().map(|weight| weight.count).sum(),
        })
        .collect()
    }

    /// The addresses of a stack, leaf first.
    #[must_use]
    pub fn stack(&self, id: u32) -> Vec<u64> {
        let stack = self.stacks.get(&id, 0);
        stack.map_or_else(
            |_| Vec::new(),
            |stack| stack.frames().iter().map(|frame| frame.ip).collect(),
        )
    }

    /// The address of the function with this number that workers of the kernel run.
    #[must_use]
    pub fn work(&self, number: u32) -> Option<u64> {
        self.works.get(&number, 0).ok()
    }

    /// Losses by kind, over all CPUs.
    #[must_use]
    pub fn losses(&self) -> [u64; N_LOSS] {
        std::array::from_fn(|index| {
            u32::try_from(index)
                .ok()
                .and_then(|index| self.losses.get(&index, 0).ok())
                .map_or(0, |values| values.iter().sum())
        })
    }

    /// Measured tasks that began to end, and those of them whose last switch-out was seen.
    #[must_use]
    pub fn exits(&self) -> (u64, u64) {
        let exits = self.exits.get(&0, 0);
        exits.map_or((0, 0), |cpus| {
            cpus.iter().fold((0, 0), |(begun, ended), exits| {
                (begun + exits.begun, ended + exits.ended)
            })
        })
    }

    /// Counters of ended tasks without a record, per CPU.
    #[must_use]
    pub fn unsent(&self) -> Vec<TaskCounters> {
        self.unsent
            .get(&0, 0)
            .map(|values| values.to_vec())
            .unwrap_or_default()
    }

    /// Histograms of tasks that found the pool empty: kind and samples.
    #[must_use]
    pub fn shared_hists(&self) -> Vec<(u32, HistSlot)> {
        (0..u32::try_from(N_HISTS).unwrap_or(0))
            .filter_map(|kind| Some((kind, self.shared_hists.get(&kind, 0).ok()?)))
            .flat_map(|(kind, slots)| slots.iter().map(|slot| (kind, *slot)).collect::<Vec<_>>())
            .collect()
    }

    /// Runs of all our programs.
    #[must_use]
    pub fn run_totals(&self) -> RunTotals {
        let mut totals = RunTotals::default();
        for (_, program) in self.ebpf.programs() {
            let Program::BtfTracePoint(program) = program else {
                continue;
            };
            // A program that this recording does not need is not loaded.
            let (Ok(info), Ok(fd)) = (program.info(), program.fd()) else {
                continue;
            };
            totals.runs += info.run_count();
            totals.ns += u64::try_from(info.run_time().as_nanos()).unwrap_or(u64::MAX);
            totals.recursion_misses += recursion_misses(fd.as_fd().as_raw_fd());
        }
        totals
    }
}

/// aya does not hand out this counter, so it is read where the kernel shows it.
fn recursion_misses(fd: i32) -> u64 {
    std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}"))
        .ok()
        .and_then(|text| {
            text.lines()
                .find_map(|line| line.strip_prefix("recursion_misses:"))
                .and_then(|value| value.trim().parse().ok())
        })
        .unwrap_or(0)
}
