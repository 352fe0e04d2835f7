//! Kernel stacks: what a task did while others waited for its CPU, and whether a waker was about to sleep.

use aya_ebpf::{
    EbpfContext as _,
    helpers::generated::{bpf_get_stack, bpf_get_stackid},
    programs::BtfTracePointContext,
};
use latency_common::{
    attribution::{N_SYNC_FUNCTIONS, SAMPLE_EVERY, Sync},
    config::LEAST_STACKS_OVER_NS,
    cpu::CpuState,
    loss::Loss,
    timeline::{Runner, StackHandle, StackKey, StackWeight, Stint, Timeline},
};

use crate::{
    given::given,
    globals as g,
    maps::{STACK_WEIGHTS, STACKS, control, count_loss, word},
    task::Task,
    timeline::{face, present, present_mut},
};

/// Between two stacks of a CPU lies this at least: they cost more than anything else here.
const DISTANCE_NS: u64 = 1_000_000;

/// As above, where the task has had the CPU for less than that: a crowd switches often.
const DISTANCE_OF_SHORT_NS: u64 = 10_000_000;

/// Places that a stack may have. A place is found by hash, without a second one, so it is tried anew
/// without the innermost frames: these are our own program and how the kernel comes to it.
const N_PLACES: u64 = 4;

/// Whether somebody has waited here so long that it is of interest for whom.
#[inline(always)]
pub(crate) fn is_due(timeline: &Timeline, now: u64) -> bool {
    let waited_ns = now.saturating_sub(timeline.waiting_since_ns);
    timeline.waiting_since_ns != 0
        && waited_ns >= LEAST_STACKS_OVER_NS
        && is_far(timeline, now)
        && waited_ns >= control().stacks_over_ns
}

/// Whether the last stack is far enough in the past.
#[inline(always)]
fn is_far(timeline: &Timeline, now: u64) -> bool {
    let distance_ns = now.saturating_sub(timeline.stack_at_ns);
    let stint_ns = present(timeline).map_or(0, |stint| now.saturating_sub(stint.since_ns));
    distance_ns >= DISTANCE_OF_SHORT_NS || (distance_ns >= DISTANCE_NS && stint_ns >= DISTANCE_NS)
}

/// Keeps the stack of the current task with its stint.
#[inline(never)]
pub(crate) fn take(
    ctx: &BtfTracePointContext,
    timeline: &mut Timeline,
    task: Task,
    now: u64,
) -> u32 {
    timeline.stack_at_ns = now;
    let Some(stint) = present_mut(timeline) else {
        return 0;
    };
    if stint.tid == 0 || Runner(stint.tid).tid() != task.tid() {
        return 0;
    }
    let Some(id) = keep(ctx) else {
        count_loss(Loss::Stacks);
        return 0;
    };
    stint.stack = StackHandle::new(id, task.syscall());
    1
}

/// The number of the present stack, unless all its places belong to others.
#[inline(always)]
fn keep(ctx: &BtfTracePointContext) -> Option<u32> {
    for n_left_out in 0..N_PLACES {
        let stacks = (&raw const STACKS).cast_mut().cast();
        // SAFETY: context and map are what the helper asks for.
        let id = unsafe { bpf_get_stackid(ctx.as_ptr(), stacks, n_left_out) };
        if let Ok(id) = u32::try_from(id) {
            return Some(id);
        }
    }
    None
}

/// Adds time that a task waited through a stint whose stack is known.
///
/// VERIFIER: exported, so that it is verified once and not for each caller.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn weigh_stack(timeline: *const Timeline, tid: u32, stack: u32, ns: u64) -> u32 {
    let Some(timeline) = given(timeline) else {
        return 0;
    };
    let Some(face) = face(timeline, tid) else {
        count_loss(Loss::Stacks);
        return 0;
    };
    let key = StackKey {
        comm: face.comm,
        stack,
        is_kernel_thread: face.is_kernel_thread.into(),
    };
    if add_weight(&key, ns) {
        return 0;
    }
    // Refused where another CPU has made the row meanwhile, which then is as good.
    let is_made = STACK_WEIGHTS.insert(key, StackWeight::default(), BPF_NOEXIST);
    if !add_weight(&key, ns) && is_made.is_err() {
        count_loss(Loss::Stacks);
    }
    0
}

#[inline(always)]
fn add_weight(key: &StackKey, ns: u64) -> bool {
    let Some(weight) = STACK_WEIGHTS.get_ptr_mut(key) else {
        return false;
    };
    // SAFETY: a per-CPU value, written under this CPU's runqueue lock only.
    let weight = unsafe { &mut *weight };
    weight.sum_ns += ns;
    weight.count += 1;
    true
}

/// As `weigh_stack`, for a stint whose stack may not be known.
#[inline(always)]
pub(crate) fn weigh(timeline: &Timeline, stint: &Stint, ns: u64) {
    if stint.stack.0 != 0 {
        weigh_stack(&raw const *timeline, stint.tid, stint.stack.0, ns);
    }
}

/// Frames looked at: the waking function is near the leaf.
const N_FRAMES: usize = 16;

/// Whether the waking that is going on hints that its waker is about to sleep; asked of a sample.
///
/// The hint is no argument of the event, but the function that gives it is on the waker's stack.
#[inline(always)]
pub(crate) fn sample_sync(ctx: &BtfTracePointContext, cpu: &mut CpuState) -> Sync {
    cpu.n_wakings = cpu.n_wakings.wrapping_add(1);
    if cpu.n_wakings < SAMPLE_EVERY || g::SYNC_FUNCTION_0.read() == 0 {
        return Sync::NotSampled;
    }
    cpu.n_wakings = 0;
    read_sync(ctx)
}

#[inline(never)]
fn read_sync(ctx: &BtfTracePointContext) -> Sync {
    let mut frames = [0_u64; N_FRAMES];
    let n_bytes = word(size_of_val(&frames));
    // SAFETY: the buffer has the length given.
    let read = unsafe { bpf_get_stack(ctx.as_ptr(), (&raw mut frames).cast(), n_bytes, 0) };
    if read <= 0 {
        return Sync::NotSampled;
    }
    for frame in frames {
        if is_in_sync_function(frame) {
            return Sync::Yes;
        }
    }
    Sync::No
}

#[inline(always)]
fn is_in_sync_function(frame: u64) -> bool {
    let ranges: [(u64, u64); N_SYNC_FUNCTIONS] = [
        (g::SYNC_FUNCTION_0.read(), g::SYNC_FUNCTION_0_END.read()),
        (g::SYNC_FUNCTION_1.read(), g::SYNC_FUNCTION_1_END.read()),
        (g::SYNC_FUNCTION_2.read(), g::SYNC_FUNCTION_2_END.read()),
    ];
    for (begin, end) in ranges {
        if frame >= begin && frame < end {
            return true;
        }
    }
    false
}

/// Flag of an insertion that must not replace.
const BPF_NOEXIST: u64 = 1;
