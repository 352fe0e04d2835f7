//! schedlat's BPF programs: how long tasks wait for a CPU, and why they lost it.
//!
//! Each file holds the programs of one subject, named after their tracepoint.
//! All run with interrupts off or under scheduler locks: they only look up, add, and never wait.
#![no_std]
#![no_main]
#![feature(core_intrinsics)]
#![expect(
    internal_features,
    reason = "the target counts as one without atomic additions, since it has no atomic bytes"
)]
#![warn(clippy::float_arithmetic, clippy::indexing_slicing)]
#![expect(
    clippy::inline_always,
    reason = "a call costs more than most of these bodies, and the verifier follows values better without"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "aya's macros hand the context over by value"
)]

mod basic;
mod blame;
mod cause;
mod cgroup;
mod counters;
mod empty;
mod flight;
mod given;
mod globals;
mod hist;
mod idle;
mod interrupt;
mod iter;
mod lifecycle;
mod maps;
mod migrate;
mod ring;
mod rows;
mod sched;
mod segment;
mod select;
mod sent;
mod stack;
mod state;
mod task;
mod throttle;
mod timeline;
mod timer;
mod trace;
mod unsent;
mod waitlog;
mod waker;
mod wakeup;
mod walk;
mod words;
mod work;
mod yields;

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    // The verifier refuses a program in which this loop is reachable.
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
