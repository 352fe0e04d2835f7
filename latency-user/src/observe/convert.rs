//! From the kernel side's records to the model.

use latency_common::{
    class::WaitClass,
    counters::{HIST_EXHAUSTED, HIST_NONE, TaskCounters},
    hist::{HistKind, N_HISTS, N_TASK_HISTS},
    interrupt::N_CATEGORIES,
    loss::{Loss, N_LOSS},
    record::{TaskHeader, TaskPhase, TaskRecord},
};

use super::{attribution, cgroups::CgroupNames};
use crate::{
    kernel::HistPool,
    model::{Buckets, ClassTally, Losses, OpenWait, PreemptorTally, Tally, TaskIdent, TaskRow},
};

/// Turns a record into a row. The histograms of an ended task go back to the pool.
pub(super) fn row(
    record: &TaskRecord,
    pool: &mut HistPool,
    cgroups: &CgroupNames,
    recorder: u32,
) -> TaskRow {
    let header = &record.header;
    let mut row = without_hists(record, cgroups, recorder);
    let TaskRow { ident, tally } = &mut row;
    for (kind, &handle) in header.hist.iter().enumerate() {
        match handle {
            HIST_NONE => {}
            HIST_EXHAUSTED => tally.without_hist[kind] = 1,
            handle => {
                let slot = handle as usize - 1;
                let owner = (header.tid, header.start_time_ns);
                tally.hists[kind] = pool.read(slot, owner).unwrap_or_default();
                if ident.has_exited {
                    pool.free(slot);
                }
            }
        }
    }
    row
}

/// All but the histograms.
pub(crate) fn without_hists(record: &TaskRecord, cgroups: &CgroupNames, recorder: u32) -> TaskRow {
    let header = &record.header;
    let mut tally = tally(&record.counters, cgroups);
    add_present(&mut tally, header);
    TaskRow {
        ident: TaskIdent {
            tid: header.tid,
            tgid: header.tgid,
            start_time_ns: header.start_time_ns,
            comm: header.comm,
            leader_comm: header.leader_comm,
            cgroup: cgroups.path(header.cgroup_id),
            has_exited: header.phase == TaskPhase::Dead as u32,
            is_self: header.tgid == recorder,
        },
        tally,
    }
}

/// The counters without what goes on at the moment.
pub(super) fn tally(counters: &TaskCounters, cgroups: &CgroupNames) -> Tally {
    let latency = &counters.latency;
    Tally {
        classes: std::array::from_fn(|index| {
            let class = &counters.classes[index];
            ClassTally {
                count: class.count,
                sum_ns: class.sum_ns,
                min_ns: class.min_ns,
                max_ns: class.max_ns,
                kernel_ns: counters.kernel_ns[index],
            }
        }),
        latency: ClassTally {
            count: latency.count,
            sum_ns: latency.sum_ns,
            min_ns: latency.min_ns,
            max_ns: latency.max_ns,
            kernel_ns: 0,
        },
        voluntary: counters.voluntary,
        involuntary: counters.involuntary,
        yields: counters.yields,
        cancelled_sleeps: counters.cancelled_sleeps,
        kernel_voluntary: counters.kernel_voluntary,
        kernel_involuntary: counters.kernel_involuntary,
        on_cpu_ns: counters.on_cpu_ns,
        on_cpu_unaudited_ns: counters.on_cpu_unaudited_ns,
        kernel_on_cpu_ns: counters.kernel_on_cpu_ns,
        migrations: counters.migrations,
        wakeups_not_asleep: counters.wakeups_not_asleep,
        unseen_on_cpu_ns: counters.unseen_on_cpu_ns,
        preemptors: preemptors(counters),
        attribution: attribution::tally(&counters.attribution, cgroups),
        ..Tally::default()
    }
}

fn preemptors(counters: &TaskCounters) -> Vec<PreemptorTally> {
    counters
        .preemptors
        .iter()
        .filter(|row| row.count > 0)
        .map(|row| PreemptorTally {
            // The row of all others mixes causes.
            class: usize::try_from(row.class)
                .ok()
                .and_then(WaitClass::from_index)
                .filter(|_| row.tid != 0),
            comm: row.comm,
            tid: row.tid,
            count: row.count,
            sum_ns: row.sum_ns,
        })
        .collect()
}

/// Adds the stint or the wait that goes on.
fn add_present(tally: &mut Tally, header: &TaskHeader) {
    let ns = header.at_ns.saturating_sub(header.since_ns);
    let class = usize::try_from(header.class)
        .ok()
        .and_then(WaitClass::from_index);
    if header.phase == TaskPhase::Running as u32 {
        // The kernel books this stint, and the wait before it, only when it ends.
        tally.on_cpu_ns += ns;
        tally.on_cpu_unaudited_ns += ns;
        let stolen = &mut tally.attribution.stolen;
        for category in 0..N_CATEGORIES {
            stolen.ns[category] += header.open_stolen.ns[category];
            stolen.counts[category] += header.open_stolen.counts[category];
        }
        if let Some(class) = class {
            tally.classes[class as usize].kernel_ns += header.pending_kernel_ns;
        }
    } else if header.phase == TaskPhase::Queued as u32 {
        tally.open.extend(class.map(|class| OpenWait { class, ns }));
        let parts = tally.attribution.parts.iter_mut();
        for (part, open) in parts.zip(header.open_parts) {
            *part += open;
        }
    }
}

/// The losses that the kernel side counts.
pub(super) fn losses(counts: [u64; N_LOSS]) -> Losses {
    let count = |loss: Loss| counts[loss as usize];
    Losses {
        untracked_tasks: count(Loss::UntrackedTasks),
        untracked_switches: count(Loss::UntrackedSwitches),
        exit_records: count(Loss::ExitRecords),
        task_histograms: count(Loss::TaskHistograms),
        clock_backwards: count(Loss::ClockBackwards),
        cgroup_names: count(Loss::CgroupNames),
        wait_records: count(Loss::WaitRecords),
        trace_records: count(Loss::TraceRecords),
        unpaired_interrupts: count(Loss::UnpairedInterrupts),
        blame_records: count(Loss::BlameRecords),
        stacks: count(Loss::Stacks),
        ..Losses::default()
    }
}

/// Adds a histogram of a kind that is known by number.
pub(super) fn add_hist(hists: &mut [Buckets; N_HISTS], kind: u32, from: &Buckets) {
    let index = usize::try_from(kind).unwrap_or(usize::MAX);
    if let Some(into) = hists.get_mut(index) {
        crate::analysis::add_buckets(into, from);
    }
}

const _: () = assert!(N_TASK_HISTS <= N_HISTS && HistKind::NewTask as usize == N_HISTS - 1);
