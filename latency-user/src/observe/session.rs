//! One recording: attach, keep the ring empty, take snapshots.

use std::{
    collections::BTreeMap,
    os::fd::OwnedFd,
    thread,
    time::{Duration, Instant},
};

use super::{
    cgroups::CgroupNames,
    child::Child,
    convert,
    cost::CostMeter,
    ended::{Ended, identity},
    flight, interrupts,
    interrupts::InterruptBase,
    names::Names,
    options::SessionOptions,
    sent::SentCulprits,
    switches::Reading,
    targets::Targets,
    threshold::Threshold,
    waits::LongWaits,
};
use crate::{
    Error, analysis, host,
    kernel::{
        self, Features, FlightSize, IdleMeter, KERNEL_PATHS, Kernel, MalformedRecord, Record,
        Rights, btf::KernelTypes,
    },
    model::{
        Autopsy, Buckets, DumpReason, Flight, KernelNames, Losses, Observation, Tally, TaskRow,
        TraceEvent, WaitEvent,
    },
};
use latency_common::{class::WaitClass, config::Detail, hist::N_HISTS, record::BlameRecord};

/// How long the end waits for tasks that are ending. What takes longer is still in the lists.
const LONGEST_EXIT: Duration = Duration::from_millis(200);

/// Turns between two looks at all tasks, where users decide: their changes fire no event. As many lie
/// between two looks at how long waits are.
const TURNS_PER_LOOK: u32 = 10;

/// A recording that goes on.
#[expect(missing_debug_implementations, reason = "aya's maps have none")]
pub struct Session {
    kernel: Kernel,
    targets: Targets,
    flight: Option<FlightSize>,
    degraded: Vec<String>,
    cgroups: CgroupNames,
    /// Records that the ring holds at most.
    most_records: usize,
    cost: CostMeter,
    first: Reading,
    /// Losses before the window.
    first_losses: Losses,
    interrupts: InterruptBase,
    start_at_ns: u64,
    attach_ns: u64,
    start_wall_ns: u64,
    turns: u32,
    reselect_requests: u32,
    ended: Ended,
    orphans: [Buckets; N_HISTS],
    waits: LongWaits,
    sent: SentCulprits,
    /// None where no stacks are taken.
    threshold: Option<Threshold>,
    names: Names,
    trace: Vec<TraceEvent>,
    n_malformed: u64,
}

impl Session {
    /// Attaches, selects the tasks that exist, and starts the command, if there is one.
    pub fn start(options: &SessionOptions) -> Result<(Self, Option<Child>), Error> {
        let begun_at_ns = host::monotonic_ns();
        let rights = Rights::read();
        let missing = rights.missing();
        if !missing.is_empty() {
            return Err(Error::MissingCapabilities(missing));
        }
        let release = kernel::release();
        let types = KernelTypes::read(&release)?;
        let (features, loader) = kernel::prepare(&types, &release, rights)?;
        check(&features, &release, options)?;
        let threshold = Threshold::new(options.stacks_over_ns, options.over_ns);
        let cgroups = CgroupNames::read(options.targets.hierarchy.as_ref());
        let load = options.load(threshold.ns());
        let names = Names::new(options.names_early);
        let mut kernel = Kernel::attach(&types, &features, &release, &load, loader)?;
        let first = Reading::take(&kernel);
        let first_losses = convert::losses(kernel.losses());
        let interrupts = InterruptBase::read(&kernel);
        let start_at_ns = host::monotonic_ns();
        kernel.select()?;
        let child = if options.command.is_empty() {
            None
        } else {
            Some(Child::spawn(
                &options.command,
                options.command_output,
                &mut kernel,
            )?)
        };
        let session = Self {
            kernel,
            targets: options.targets.clone(),
            flight: options.flight,
            degraded: features.degraded(options.detail, !options.yielders.is_empty()),
            cgroups,
            most_records: options.ring_bytes as usize / size_of::<BlameRecord>(),
            cost: CostMeter::new(rights.has_sys_admin()),
            first,
            first_losses,
            interrupts,
            start_at_ns,
            attach_ns: start_at_ns - begun_at_ns,
            start_wall_ns: host::wall_clock_ns(),
            turns: 0,
            reselect_requests: 0,
            ended: Ended::default(),
            orphans: Default::default(),
            waits: LongWaits::new(start_at_ns, options.over_ns),
            sent: SentCulprits::default(),
            threshold: (options.detail == Detail::Full).then_some(threshold),
            names,
            trace: Vec::new(),
            n_malformed: 0,
        };
        Ok((session, child))
    }

    /// `CLOCK_MONOTONIC` and wall clock of the start.
    #[must_use]
    pub fn started_at(&self) -> (u64, u64) {
        (self.start_at_ns, self.start_wall_ns)
    }

    /// In words, what is not measured here.
    #[must_use]
    pub fn degraded(&self) -> &[String] {
        &self.degraded
    }

    /// Whether nothing that was asked for can be seen any more.
    #[must_use]
    pub fn are_targets_gone(&self) -> bool {
        self.targets.are_gone()
    }

    /// Becomes readable when the ring fills so fast that it should not wait for the next turn.
    pub fn ring(&self) -> Result<OwnedFd, Error> {
        let ring = self.kernel.ring();
        ring.map_err(|error| Error::Setup(format!("cannot wait for the ring: {error}")))
    }

    /// Takes what the rings hold.
    pub fn empty_rings(&mut self) {
        self.drain();
        self.drain_trace();
    }

    /// Keeps the rings empty and the selection true. To be called about ten times a second.
    pub fn turn(&mut self) -> Result<(), Error> {
        self.empty_rings();
        self.kernel.flush_logs();
        let requests = self.kernel.reselect_requests();
        let is_due = self.turns.is_multiple_of(TURNS_PER_LOOK);
        if (is_due && self.targets.needs.users) || requests != self.reselect_requests {
            self.reselect_requests = requests;
            self.kernel.select()?;
        }
        if is_due
            && let Some(threshold) = &mut self.threshold
            && threshold.follow(|| self.kernel.pool.waits())
        {
            self.kernel.take_stacks_over(threshold.ns())?;
        }
        self.turns = self.turns.wrapping_add(1);
        Ok(())
    }

    /// Waits over the threshold since the last call, as they ended.
    pub fn take_over(&mut self) -> Vec<WaitEvent> {
        self.waits.take_over()
    }

    /// Names for these waits.
    pub fn names_of(&mut self, events: &[WaitEvent]) -> KernelNames {
        self.names.of_waits(&self.kernel, events)
    }

    /// Names of device interrupts by number, as they are now.
    #[must_use]
    pub fn irq_names(&self) -> BTreeMap<u32, String> {
        interrupts::irq_names()
    }

    /// Measures what the programs cost, in short slices; says when to come again.
    pub fn measure_cost(&mut self) -> Duration {
        self.cost.step(&self.kernel, host::monotonic_ns())
    }

    /// What the flight recorder holds of its time, with these waits marked; none where it is off.
    #[must_use]
    pub fn dump(&self, reason: DumpReason, marked: Vec<Autopsy>) -> Option<Flight> {
        let (size, rings) = self.flight.zip(self.kernel.flight.as_ref())?;
        let at_ns = host::monotonic_ns();
        // Before the start not all programs were attached.
        let from_ns = at_ns.saturating_sub(size.window_ns).max(self.start_at_ns);
        Some(flight::dump(rings, (from_ns, at_ns), reason, marked))
    }

    fn drain(&mut self) {
        // Where records come as fast as they are read, the session has other things to do as well.
        let mut left = self.most_records;
        while left > 0
            && let Some(record) = self.kernel.next_record()
        {
            left -= 1;
            match record {
                Record::Exit(record) => {
                    let pool = &mut self.kernel.pool;
                    let mut row = convert::row(&record, pool, &self.cgroups, std::process::id());
                    let from = &record.counters.attribution;
                    self.sent.complete_last(&mut row, from, &self.cgroups);
                    self.ended.keep(row);
                }
                Record::Cgroup(record) => self.cgroups.learn(record.id, &record.path),
                Record::Wait(record) => self.waits.add(&record, &self.cgroups),
                Record::Blame(record) => self.sent.add(&record, &self.cgroups),
                Record::Malformed => self.n_malformed += 1,
            }
        }
    }

    fn drain_trace(&mut self) {
        while let Some(event) = self.kernel.next_trace_event() {
            match event {
                Ok(event) => self.trace.push(event),
                Err(MalformedRecord) => self.n_malformed += 1,
            }
        }
    }

    /// Calls of `sched_yield` by one of the threads whose calls are counted; none where this kernel does
    /// not show them.
    #[must_use]
    pub fn yield_calls(&self, tid: u32) -> Option<u64> {
        self.kernel.yield_calls(tid)
    }

    /// Events of traced threads since the last call, in the order of their ends. A wait is known when
    /// its thread leaves the CPU again.
    pub fn take_trace(&mut self) -> Vec<TraceEvent> {
        self.drain_trace();
        let mut events = std::mem::take(&mut self.trace);
        events.sort_by_key(TraceEvent::end_ns);
        events
    }

    /// Everything since the start, at its end: a snapshot with the stacks. Functions may have no names yet.
    pub fn last_snapshot(&mut self) -> Result<Observation, Error> {
        self.await_exits();
        let mut last = self.observe(Ended::take_rows)?;
        last.stacks = self.kernel.stacks();
        last.stacks_over_ns = self.threshold.map(Threshold::ns);
        Ok(last)
    }

    /// A task that ends is gone from all lists before its last switch-out, which sends its row.
    fn await_exits(&mut self) {
        let deadline = Instant::now() + LONGEST_EXIT;
        let (begun, _) = self.kernel.exits();
        // More may end meanwhile, whose rows are not asked for; the rings must not overflow.
        while self.kernel.exits().1 < begun && Instant::now() < deadline {
            self.empty_rings();
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Names the functions of the last snapshot. It takes a tenth of a second, which is not of the recording.
    pub fn name_functions(&mut self, last: &mut Observation) {
        self.names.name(&self.kernel, last);
    }

    /// Everything since the start, now.
    pub fn snapshot(&mut self) -> Result<Observation, Error> {
        self.observe(|ended| ended.rows().to_vec())
    }

    /// A snapshot with the rows of tasks that have ended as `ended` gives them.
    fn observe(
        &mut self,
        ended: impl FnOnce(&mut Ended) -> Vec<TaskRow>,
    ) -> Result<Observation, Error> {
        self.drain();
        self.cgroups.refresh();
        self.ended.watch();
        self.sent.begin_snapshot();
        let records = self.kernel.rows()?;
        let recorder = std::process::id();
        let mut rows: Vec<_> = records
            .iter()
            .map(|record| convert::row(record, &mut self.kernel.pool, &self.cgroups, recorder))
            .collect();
        // A task that ended while rows were written may be in both: its record is the later one.
        self.drain();
        for (row, record) in rows.iter_mut().zip(&records) {
            let from = &record.counters.attribution;
            self.sent.complete(row, from, &self.cgroups);
        }
        self.sent.end_snapshot(&self.cgroups);
        let just_ended = self.ended.watched();
        rows.retain(|row| !just_ended.contains(&identity(row)));
        let end_at_ns = host::monotonic_ns();
        self.cost.close(&self.kernel, end_at_ns);
        let cpus = Reading::take(&self.kernel).since(&self.first);
        let unsent = self.unsent();
        let lost = Losses {
            missed_switches: cpus.missed_switches,
            ..convert::losses(self.kernel.losses())
        };
        // Last, since many rows take a while in which the ring may overflow, after the end.
        rows.extend(ended(&mut self.ended));
        let losses = self.losses(lost, &rows, &unsent);
        let mut snapshot = Observation {
            start_at_ns: self.start_at_ns,
            attach_ns: self.attach_ns,
            start_wall_ns: self.start_wall_ns,
            end_at_ns,
            unsent,
            interrupts: self.interrupts.since(&self.kernel),
            irq_names: interrupts::irq_names(),
            longest: self.waits.longest().to_vec(),
            stacks: Vec::new(),
            names: KernelNames::default(),
            stacks_over_ns: None,
            cpus,
            losses,
            idle_while_runnable: self.kernel.idle.as_ref().and_then(IdleMeter::read),
            cost: self.cost.sample(),
            rows,
        };
        self.names.name_early(&self.kernel, &mut snapshot);
        Ok(snapshot)
    }

    /// What no row holds.
    fn unsent(&mut self) -> Tally {
        for (kind, hist) in self.kernel.pool.take_orphans() {
            convert::add_hist(&mut self.orphans, kind, &hist);
        }
        let parts = self.kernel.unsent();
        let parts: Vec<_> = parts
            .iter()
            .map(|counters| convert::tally(counters, &self.cgroups))
            .collect();
        let mut unsent = analysis::sum(parts.iter().chain([self.ended.folded().0]));
        for (kind, hist) in (0..).zip(&self.orphans) {
            convert::add_hist(&mut unsent.hists, kind, hist);
        }
        for (kind, slot) in self.kernel.shared_hists() {
            convert::add_hist(&mut unsent.hists, kind, &kernel::buckets(&slot));
        }
        unsent
    }

    fn losses(&self, lost: Losses, rows: &[TaskRow], unsent: &Tally) -> Losses {
        let tallies = rows.iter().map(|row| &row.tally).chain([unsent]);
        Losses {
            // Attaching interrupts all CPUs, with interrupts that it then sees the end of only.
            unpaired_interrupts: lost
                .unpaired_interrupts
                .saturating_sub(self.first_losses.unpaired_interrupts),
            unmeasured_waits: tallies
                .map(|tally| tally.class(WaitClass::Unmeasured).count)
                .sum(),
            folded_rows: self.ended.folded().1,
            recursion_misses: self.kernel.run_totals().recursion_misses,
            malformed_records: self.n_malformed,
            blame_records: lost.blame_records + self.sent.n_dropped(),
            ..lost
        }
    }
}

/// Whether this kernel can do what was asked for.
fn check(features: &Features, release: &str, options: &SessionOptions) -> Result<(), Error> {
    features.check(release)?;
    if options.needs_paths {
        features.require(KERNEL_PATHS, release)?;
    }
    Ok(())
}
