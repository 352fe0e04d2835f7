//! The loaded object: attach, select, read, and be gone when dropped.

use std::{
    fs::File,
    io::{self, Read as _},
    mem::MaybeUninit,
    os::fd::{AsFd as _, AsRawFd as _},
};

use aya::{
    Btf, Ebpf, EbpfLoader, Pod,
    maps::{Array, HashMap, Map, MapData, PerCpuArray, RingBuf, Stack},
    programs::{Iter, Program},
    util::nr_cpus,
};
use latency_common::{
    config::{CGROUP_DEFAULT_HIERARCHY, Detail},
    counters::TaskCounters,
    cpu::CpuState,
    hist::{HistSlot, N_HISTS},
    loss::N_LOSS,
    record::{CgroupRecord, RecordTag, TaskRecord},
    select::{Control, Glob},
};

use super::{
    btf::KernelTypes,
    features::Features,
    globals::Globals,
    pool::HistPool,
    programs::{self, Needs, SELECT_TASKS, WRITE_ROWS},
};
use crate::Error;

/// The object that `cargo xtask build-ebpf` made.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/schedlat.bpf.o");

/// Which tasks are selected; empty selects all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Process ids.
    pub tgids: Vec<u32>,
    /// Thread ids.
    pub tids: Vec<u32>,
    /// User ids.
    pub uids: Vec<u32>,
    /// Compiled globs.
    pub globs: Vec<Glob>,
    /// Cgroup ids, all of one hierarchy.
    pub cgroups: Vec<u64>,
    /// What a spawned child forks is selected; then nothing else need be.
    pub follows_child: bool,
}

impl Selection {
    /// Whether every task is selected.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.tgids.is_empty()
            && self.tids.is_empty()
            && self.uids.is_empty()
            && self.globs.is_empty()
            && self.cgroups.is_empty()
            && !self.follows_child
    }
}

/// How to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// How much is measured.
    pub detail: Detail,
    /// Which tasks.
    pub selection: Selection,
    /// What decides about programs.
    pub needs: Needs,
    /// Index of the v1 controller whose hierarchy is looked at; none for v2.
    pub cgroup_controller: Option<String>,
    /// Id of that hierarchy.
    pub cgroup_hierarchy_id: u32,
    /// Slots of the histogram pool.
    pub n_hists: u32,
    /// Bytes of the ring.
    pub ring_bytes: u32,
}

/// A record of the ring.
#[derive(Debug)]
pub enum Record {
    /// A task has ended.
    Exit(Box<TaskRecord>),
    /// A cgroup was made.
    Cgroup(Box<CgroupRecord>),
    /// Of a shape that is not known.
    Malformed,
}

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
    ring: RingBuf<MapData>,
    cpus: Array<MapData, CpuState>,
    losses: PerCpuArray<MapData, u64>,
    unsent: PerCpuArray<MapData, TaskCounters>,
    shared_hists: PerCpuArray<MapData, HistSlot>,
    control: Array<MapData, Control>,
    control_word: Control,
}

impl Kernel {
    /// Loads and attaches everything that the options need. Nothing is measured before `select`.
    pub fn attach(
        types: &KernelTypes,
        features: &Features,
        kernel: &str,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let mut globals = Globals::resolve(types, kernel)?;
        set_options(&mut globals, types, features, options)?;
        let btf = Btf::from_sys_fs().map_err(|error| Error::MalformedBtf {
            path: types.path().to_owned(),
            reason: error.to_string(),
        })?;
        let mut ebpf = load_object(&globals, &btf, options)?;
        fill_targets(&mut ebpf, &options.selection)?;
        let free: Stack<_, u32> = take(&mut ebpf, "FREE_HISTS")?;
        let mut this = Self {
            pool: HistPool::new(ebpf.map("HISTS"), options.n_hists, free)?,
            ring: take(&mut ebpf, "RECORDS")?,
            cpus: take(&mut ebpf, "CPUS")?,
            losses: take(&mut ebpf, "LOSSES")?,
            unsent: take(&mut ebpf, "UNSENT")?,
            shared_hists: take(&mut ebpf, "SHARED_HISTS")?,
            control: take(&mut ebpf, "CONTROL")?,
            control_word: Control::default(),
            ebpf,
        };
        programs::load_iterator(&mut this.ebpf, &btf, kernel, SELECT_TASKS)?;
        programs::load_iterator(&mut this.ebpf, &btf, kernel, WRITE_ROWS)?;
        for name in programs::tracepoints(options.detail, features, options.needs) {
            programs::attach(&mut this.ebpf, &btf, kernel, name)?;
        }
        Ok(this)
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

    fn write_control(&mut self) -> Result<(), Error> {
        self.control
            .set(0, self.control_word, 0)
            .map_err(|error| Error::Setup(format!("cannot write map CONTROL: {error}")))
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
        let item = self.ring.next()?;
        let tag = item
            .first_chunk()
            .map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Some(match (tag, item.len()) {
            (tag, len) if tag == RecordTag::Exit as u64 && len == size_of::<TaskRecord>() => {
                Record::Exit(Box::new(from_bytes(&item)))
            }
            (tag, len) if tag == RecordTag::Cgroup as u64 && len == size_of::<CgroupRecord>() => {
                Record::Cgroup(Box::new(from_bytes(&item)))
            }
            _ => Record::Malformed,
        })
    }

    /// What each CPU counted.
    #[must_use]
    pub fn cpu_states(&self) -> Vec<CpuState> {
        self.cpus.iter().filter_map(Result::ok).collect()
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

/// Reads to the end. The kernel answers EAGAIN where it wants to be asked again.
fn read_all(file: &mut File, output: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => output.extend_from_slice(&buffer[..n]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Copies a boundary type out of bytes of at least its length.
fn from_bytes<T: Pod>(bytes: &[u8]) -> T {
    assert!(
        bytes.len() >= size_of::<T>(),
        "the caller has checked the length"
    );
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the length was checked; the two do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast(), size_of::<T>());
    }
    // SAFETY: every byte was written, and every bit pattern of a `Pod` is valid.
    unsafe { value.assume_init() }
}

fn set_options(
    globals: &mut Globals,
    types: &KernelTypes,
    features: &Features,
    options: &LoadOptions,
) -> Result<(), Error> {
    let selection = &options.selection;
    globals.set("DETAIL", options.detail as u32);
    globals.set("SELECT_ALL", selection.is_all().into());
    globals.set("SEED_AT_SWITCH", features.can_seed_at_switch.into());
    globals.set("CAN_PROBE_READ", features.can_probe_read.into());
    globals.set(
        "GLOB_COUNT",
        u32::try_from(selection.globs.len()).unwrap_or(u32::MAX),
    );
    globals.set("HAS_TGIDS", (!selection.tgids.is_empty()).into());
    globals.set("HAS_TIDS", (!selection.tids.is_empty()).into());
    globals.set("HAS_UIDS", (!selection.uids.is_empty()).into());
    globals.set("HAS_CGROUPS", (!selection.cgroups.is_empty()).into());
    globals.set_long("NEED_RESCHED_MASK", features.resched_bits.mask());
    globals.set_long("TICK_CALLBACK", features.callbacks.tick);
    globals.set_long("HRTICK_CALLBACK", features.callbacks.hrtick);
    set_hierarchy(globals, types, options)
}

fn set_hierarchy(
    globals: &mut Globals,
    types: &KernelTypes,
    options: &LoadOptions,
) -> Result<(), Error> {
    let missing = |what: &str| Error::Unsupported {
        kernel: super::release(),
        what: what.to_owned(),
    };
    let Some(controller) = &options.cgroup_controller else {
        let member = types
            .offset_of("css_set", "dfl_cgrp")
            .ok_or_else(|| missing("css_set.dfl_cgrp"))?;
        globals.set("CSS_SET_MEMBER", member);
        globals.set("CGROUP_SUBSYS", CGROUP_DEFAULT_HIERARCHY);
        return Ok(());
    };
    let slots = types
        .offset_of("css_set", "subsys")
        .ok_or_else(|| missing("css_set.subsys"))?;
    let index = types
        .enum_value("cgroup_subsys_id", &format!("{controller}_cgrp_id"))
        .ok_or_else(|| missing(&format!("cgroup controller {controller}")))?;
    let pointer_bytes = u32::try_from(size_of::<usize>()).unwrap_or(8);
    globals.set("CSS_SET_MEMBER", slots + index * pointer_bytes);
    globals.set("CGROUP_SUBSYS", index);
    globals.set("CGROUP_HIERARCHY", options.cgroup_hierarchy_id);
    Ok(())
}

fn load_object(globals: &Globals, btf: &Btf, options: &LoadOptions) -> Result<Ebpf, Error> {
    let selection = &options.selection;
    let entries = |n: usize| u32::try_from(n.max(1)).unwrap_or(u32::MAX);
    let n_cpus = nr_cpus().map_err(|(path, source)| Error::Read {
        what: path.to_owned(),
        source,
    })?;
    let mut loader = EbpfLoader::new();
    globals.apply(&mut loader);
    loader
        .btf(Some(btf))
        .allow_unsupported_maps()
        .map_max_entries("CPUS", entries(n_cpus))
        .map_max_entries("HISTS", options.n_hists)
        .map_max_entries("FREE_HISTS", options.n_hists)
        .map_max_entries("RECORDS", options.ring_bytes)
        .map_max_entries("TARGET_TGIDS", entries(selection.tgids.len()))
        .map_max_entries("TARGET_TIDS", entries(selection.tids.len()))
        .map_max_entries("TARGET_UIDS", entries(selection.uids.len()))
        .map_max_entries("TARGET_CGROUPS", entries(selection.cgroups.len()))
        .load(OBJECT)
        .map_err(|error| Error::Setup(with_sources(&error)))
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn fill_targets(ebpf: &mut Ebpf, selection: &Selection) -> Result<(), Error> {
    fill(ebpf, "TARGET_TGIDS", &selection.tgids)?;
    fill(ebpf, "TARGET_TIDS", &selection.tids)?;
    fill(ebpf, "TARGET_UIDS", &selection.uids)?;
    fill(ebpf, "TARGET_CGROUPS", &selection.cgroups)?;
    let mut globs = Array::<_, Glob>::try_from(map_mut(ebpf, "GLOBS")?)
        .map_err(|error| map_failed("GLOBS", &error))?;
    for (index, glob) in (0..).zip(&selection.globs) {
        globs
            .set(index, glob, 0)
            .map_err(|error| map_failed("GLOBS", &error))?;
    }
    Ok(())
}

fn fill<K: Pod>(ebpf: &mut Ebpf, name: &'static str, keys: &[K]) -> Result<(), Error> {
    let mut map = HashMap::<_, K, u8>::try_from(map_mut(ebpf, name)?)
        .map_err(|error| map_failed(name, &error))?;
    for key in keys {
        map.insert(key, 1, 0)
            .map_err(|error| map_failed(name, &error))?;
    }
    Ok(())
}

fn map_failed(name: &str, error: &dyn std::error::Error) -> Error {
    Error::Setup(format!("cannot use map {name}: {error}"))
}

/// A map that stays with the object: a program is loaded with the maps that are open.
fn map_mut<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Map, Error> {
    ebpf.map_mut(name)
        .ok_or_else(|| Error::Setup(format!("map {name} is not in the object")))
}

fn take<M>(ebpf: &mut Ebpf, name: &'static str) -> Result<M, Error>
where
    M: TryFrom<Map, Error = aya::maps::MapError>,
{
    let map = ebpf
        .take_map(name)
        .ok_or_else(|| Error::Setup(format!("map {name} is not in the object")))?;
    M::try_from(map).map_err(|error| map_failed(name, &error))
}
