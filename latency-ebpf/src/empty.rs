//! Programs that do nothing, for measuring what being attached costs by itself.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};

/// Nothing at a switch.
#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn empty_switch(_ctx: BtfTracePointContext) -> i32 {
    0
}

/// Nothing at a waking.
#[btf_tracepoint(function = "sched_waking")]
pub(crate) fn empty_waking(_ctx: BtfTracePointContext) -> i32 {
    0
}

/// Nothing at a wakeup.
#[btf_tracepoint(function = "sched_wakeup")]
pub(crate) fn empty_wakeup(_ctx: BtfTracePointContext) -> i32 {
    0
}
