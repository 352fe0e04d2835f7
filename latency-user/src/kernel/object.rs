//! The object before its programs are loaded: its globals, the sizes of its maps, the targets.
//!
//! Everything that the programs take for a constant is decided here, once, from the kernel's types
//! and from the options; what changes later goes through the map `CONTROL` (`loaded.rs`).

use aya::{
    Ebpf, EbpfLoader, Pod,
    maps::{Array, HashMap, Map},
    util::nr_cpus,
};
use aya_log::Level;
use latency_common::{
    attribution::N_SYNC_FUNCTIONS,
    config::{CGROUP_DEFAULT_HIERARCHY, Detail, TRACED_TARGET},
    select::Glob,
    trace::YieldCalls,
};

use super::{
    btf::KernelTypes, features::Features, flight::FlightSize, globals::Globals, programs::Needs,
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
    /// Those of them that are traced, event by event.
    pub traced: Vec<u32>,
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
    /// Bytes of the ring for events of traced threads.
    pub trace_bytes: u32,
    /// Threads whose calls of `sched_yield` are counted.
    pub yielders: Vec<u32>,
    /// How much the flight recorder is to hold; none without one.
    pub flight: Option<FlightSize>,
    /// CPUs that count for `idle while runnable`; none where that was not asked for.
    pub idle_cpus: Vec<u32>,
    /// Waits from this length on are recorded one by one; the longest are in any case.
    pub over_ns: Option<u64>,
    /// Stacks are taken where somebody has waited longer than this.
    pub stacks_over_ns: u64,
    /// Whether the programs log what they decide.
    pub has_logs: bool,
}

/// Opens the object for this kernel and these options.
pub(super) fn open(
    types: &KernelTypes,
    features: &Features,
    kernel: &str,
    options: &LoadOptions,
    loader: EbpfLoader<'static>,
) -> Result<Ebpf, Error> {
    let mut globals = Globals::resolve(types, kernel)?;
    set_options(&mut globals, types, features, options)?;
    let mut ebpf = load_object(&globals, loader, options)?;
    fill_targets(&mut ebpf, &options.selection)?;
    fill(
        &mut ebpf,
        "YIELD_CALLS",
        &options.yielders,
        YieldCalls::default(),
    )?;
    Ok(ebpf)
}

fn set_options(
    globals: &mut Globals,
    types: &KernelTypes,
    features: &Features,
    options: &LoadOptions,
) -> Result<(), Error> {
    let selection = &options.selection;
    globals.set("SELECT_ALL", selection.is_all().into());
    globals.set("ATTRIBUTE", (options.detail == Detail::Full).into());
    globals.set("TRACE", (!selection.traced.is_empty()).into());
    globals.set("SEED_AT_SWITCH", features.can_seed_at_switch.into());
    globals.set("CAN_PROBE_READ", features.can_probe_read.into());
    globals.set(
        "GLOB_COUNT",
        u32::try_from(selection.globs.len()).unwrap_or(u32::MAX),
    );
    globals.set("HAS_TGIDS", (!selection.tgids.is_empty()).into());
    let has_tids = !selection.tids.is_empty() || !selection.traced.is_empty();
    globals.set("HAS_TIDS", has_tids.into());
    globals.set(
        "IDLE_CPUS",
        u32::try_from(options.idle_cpus.len()).unwrap_or(u32::MAX),
    );
    globals.set("HAS_UIDS", (!selection.uids.is_empty()).into());
    globals.set("HAS_CGROUPS", (!selection.cgroups.is_empty()).into());
    globals.set_long("OVER_NS", options.over_ns.unwrap_or(u64::MAX));
    globals.set_long("NEED_RESCHED_MASK", features.resched_bits.mask());
    globals.set_long("TICK_CALLBACK", features.addresses.tick);
    globals.set_long("HRTICK_CALLBACK", features.addresses.hrtick);
    for (function, [begin, end]) in SYNC_GLOBALS.iter().enumerate() {
        let (from, to) = features.addresses.sync_functions[function];
        globals.set_long(begin, from);
        globals.set_long(end, to);
    }
    let flight_records = flight_records(options, n_possible_cpus()?);
    globals.set("FLIGHT_MASK", flight_records - 1);
    set_hierarchy(globals, types, options)
}

/// Begin and end of each function that wakes with a hint.
const SYNC_GLOBALS: [[&str; 2]; N_SYNC_FUNCTIONS] = [
    ["SYNC_FUNCTION_0", "SYNC_FUNCTION_0_END"],
    ["SYNC_FUNCTION_1", "SYNC_FUNCTION_1_END"],
    ["SYNC_FUNCTION_2", "SYNC_FUNCTION_2_END"],
];

/// Records of each of `n_cpus` rings of the flight recorder; the map cannot be empty.
fn flight_records(options: &LoadOptions, n_cpus: usize) -> u32 {
    options
        .flight
        .map_or(1, |size| size.records_per_cpu(n_cpus))
}

/// CPUs that may come to be.
pub(super) fn n_possible_cpus() -> Result<usize, Error> {
    nr_cpus().map_err(|(path, source)| Error::Read {
        what: path.to_owned(),
        source,
    })
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

fn load_object(
    globals: &Globals,
    loader: EbpfLoader<'static>,
    options: &LoadOptions,
) -> Result<Ebpf, Error> {
    let selection = &options.selection;
    let entries = |n: usize| u32::try_from(n.max(1)).unwrap_or(u32::MAX);
    let n_cpus = n_possible_cpus()?;
    let flight_records = entries(n_cpus).saturating_mul(flight_records(options, n_cpus));
    let log_level = if options.has_logs {
        Level::Debug as u8
    } else {
        0
    };
    // From here on it borrows what it is told.
    let mut loader: EbpfLoader<'_> = loader;
    globals.apply(&mut loader);
    loader
        .override_global("AYA_LOG_LEVEL", &log_level, true)
        .allow_unsupported_maps()
        .map_max_entries("CPUS", entries(n_cpus))
        .map_max_entries("TIMELINES", entries(n_cpus))
        .map_max_entries("IDLE_SUMS", entries(n_cpus))
        .map_max_entries("HISTS", options.n_hists)
        .map_max_entries("FREE_HISTS", options.n_hists)
        .map_max_entries("RECORDS", options.ring_bytes)
        .map_max_entries("TRACE_RECORDS", options.trace_bytes)
        .map_max_entries("YIELD_CALLS", entries(options.yielders.len()))
        .map_max_entries("FLIGHT_RECORDS", flight_records)
        .map_max_entries("FLIGHT_HEADS", entries(n_cpus))
        .map_max_entries("TARGET_TGIDS", entries(selection.tgids.len()))
        .map_max_entries(
            "TARGET_TIDS",
            entries(selection.tids.len() + selection.traced.len()),
        )
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
    fill(ebpf, "TARGET_TGIDS", &selection.tgids, TARGET)?;
    fill(ebpf, "TARGET_TIDS", &selection.tids, TARGET)?;
    fill(ebpf, "TARGET_TIDS", &selection.traced, TRACED_TARGET)?;
    fill(ebpf, "TARGET_UIDS", &selection.uids, TARGET)?;
    fill(ebpf, "TARGET_CGROUPS", &selection.cgroups, TARGET)?;
    let mut globs = Array::<_, Glob>::try_from(map_mut(ebpf, "GLOBS")?)
        .map_err(|error| map_failed("GLOBS", &error))?;
    for (index, glob) in (0..).zip(&selection.globs) {
        globs
            .set(index, glob, 0)
            .map_err(|error| map_failed("GLOBS", &error))?;
    }
    Ok(())
}

/// Value of a target that is not traced.
const TARGET: u8 = 1;

fn fill<K: Pod, V: Pod>(
    ebpf: &mut Ebpf,
    name: &'static str,
    keys: &[K],
    value: V,
) -> Result<(), Error> {
    let mut map = HashMap::<_, K, V>::try_from(map_mut(ebpf, name)?)
        .map_err(|error| map_failed(name, &error))?;
    for key in keys {
        map.insert(key, value, 0)
            .map_err(|error| map_failed(name, &error))?;
    }
    Ok(())
}

fn map_failed(name: &str, error: &dyn std::error::Error) -> Error {
    Error::Setup(format!("cannot use map {name}: {error}"))
}

/// A map that stays with the object: a program is loaded with the maps that are open.
pub(super) fn map_mut<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Map, Error> {
    ebpf.map_mut(name)
        .ok_or_else(|| Error::Setup(format!("map {name} is not in the object")))
}

/// A map that leaves the object; to be taken before the programs are loaded.
pub(super) fn take<M>(ebpf: &mut Ebpf, name: &'static str) -> Result<M, Error>
where
    M: TryFrom<Map, Error = aya::maps::MapError>,
{
    let map = ebpf
        .take_map(name)
        .ok_or_else(|| Error::Setup(format!("map {name} is not in the object")))?;
    M::try_from(map).map_err(|error| map_failed(name, &error))
}
