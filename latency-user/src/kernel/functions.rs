//! Names for the addresses of kernel stacks, from `/proc/kallsyms`.
//!
//! What is reported of a stack is what its task did: the interrupt that found the task, our own
//! program and the switch itself are left out.

use std::sync::Arc;

use super::symbols::{Symbol, for_each_symbol};
use crate::model::ASLEEP;

/// What stands for an address that belongs to no function.
const UNKNOWN: &str = "[unknown]";

/// The functions of the kernel and its modules, by address; empty where addresses are hidden.
#[derive(Debug, Default)]
pub struct Functions {
    /// Address, and where the name begins, sorted.
    starts: Vec<(u64, usize)>,
    /// All names, each with a newline after it.
    names: String,
}

impl Functions {
    /// Reads them.
    #[must_use]
    pub fn read() -> Self {
        let mut functions = Self::default();
        for_each_symbol(|symbol| functions.add(symbol));
        functions.sort();
        functions
    }

    fn add(&mut self, symbol: Symbol<'_>) {
        let is_function = matches!(symbol.kind.to_ascii_lowercase(), b't' | b'w');
        // The padding before a function has a symbol of its own, at which nothing runs.
        if symbol.address == 0 || !is_function || symbol.name.starts_with("__pfx_") {
            return;
        }
        self.starts.push((symbol.address, self.names.len()));
        self.names += symbol.name;
        self.names += symbol.module.unwrap_or_default();
        self.names.push('\n');
    }

    /// Of several names for one address the first counts.
    fn sort(&mut self) {
        self.starts.sort_unstable();
        self.starts.dedup_by_key(|(address, _)| *address);
    }

    /// What the task did whose stack this is, leaf first; empty where it was in user space. One that went
    /// to sleep has [`ASLEEP`] first. None where nothing is known.
    #[must_use]
    pub fn path(&self, addresses: &[u64]) -> Option<Vec<Arc<str>>> {
        if self.starts.is_empty() {
            return None;
        }
        let mut path: Vec<Arc<str>> = Vec::new();
        // An address is where a call returns to, which may be the next function; where an interrupt
        // came, it is exact.
        let mut is_exact = true;
        let mut may_sleep = false;
        for &address in addresses {
            let name = self.name_at(address - u64::from(!is_exact));
            is_exact = is_interrupt_entry(name);
            if is_exact || is_tracing(name) {
                path.clear();
                may_sleep = false;
            } else if path.is_empty() && is_switch(name) {
                may_sleep = name == "schedule";
            } else {
                if path.is_empty() && may_sleep && !gives_way(name) {
                    path.push(ASLEEP.into());
                }
                path.push(name.into());
            }
        }
        Some(path)
    }

    /// The function that begins at this address; none where that is not known.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<Arc<str>> {
        let is_known = self
            .starts
            .binary_search_by_key(&address, |(start, _)| *start)
            .is_ok();
        is_known.then(|| self.name_at(address).into())
    }

    fn name_at(&self, address: u64) -> &str {
        let after = self.starts.partition_point(|(start, _)| *start <= address);
        let Some((_, begin)) = after.checked_sub(1).map(|index| self.starts[index]) else {
            return UNKNOWN;
        };
        self.names[begin..].lines().next().unwrap_or(UNKNOWN)
    }
}

/// Where an interrupt enters the kernel: what is nearer the leaf belongs to it.
fn is_interrupt_entry(name: &str) -> bool {
    const ENTRIES: [&str; 9] = [
        "asm_common_interrupt",
        "asm_call_irq_on_stack",
        "asm_call_on_stack",
        "el0t_32_irq",
        "el0t_64_irq",
        "el0t_64_fiq",
        "el1h_64_irq",
        "el1h_64_fiq",
        "call_on_irq_stack",
    ];
    name.starts_with("asm_sysvec_") || ENTRIES.contains(&name)
}

/// How the kernel reaches our program.
fn is_tracing(name: &str) -> bool {
    ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// How a task gives up the CPU, whatever it did.
fn is_switch(name: &str) -> bool {
    matches!(name, "__schedule" | "schedule")
        || ["__cond_resched", "preempt_schedule"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Whether a caller of `schedule` goes on as soon as it has the CPU again.
fn gives_way(name: &str) -> bool {
    const WAYS: [&str; 5] = [
        "exit_to_user_mode",
        "irqentry_exit",
        "syscall_exit_to_user",
        "do_notify_resume",
        "xfer_to_guest_mode",
    ];
    name.contains("sched_yield") || WAYS.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::super::symbols::for_each_of;
    use super::*;

    const LIST: &str = "\
        ffffffff81000010 T __schedule\n\
        ffffffff81000020 T schedule\n\
        ffffffff81000030 T bpf_trace_run4\n\
        ffffffff81000100 t read_zero\n\
        ffffffff81000100 t read_zero_alias\n\
        ffffffff81000200 T __pfx_vfs_read\n\
        ffffffff81000210 T vfs_read\n\
        ffffffff81000300 D some_data\n\
        ffffffff81000400 T do_syscall_64\n\
        ffffffff81000450 t exit_to_user_mode_loop\n\
        ffffffff81000480 t __do_sys_sched_yield\n\
        ffffffff810004c0 T __cond_resched\n\
        ffffffff81000500 T hrtimer_interrupt\n\
        ffffffff81000600 T asm_sysvec_apic_timer_interrupt\n\
        ffffffffc0000000 t ext4_writepages\t[ext4]\n\
        ffffffffc0001000 t bpf_prog_6deef7357e7b4530_sched_switch\t[bpf]\n";

    const BASE: u64 = 0xffff_ffff_8100_0000;

    fn functions(list: &str) -> Functions {
        let mut functions = Functions::default();
        for_each_of(list.as_bytes(), |symbol| functions.add(symbol));
        functions.sort();
        functions
    }

    #[track_caller]
    fn check(addresses: &[u64], expected: &[&str]) {
        let path = functions(LIST).path(addresses).unwrap();
        let path: Vec<_> = path.iter().map(|name| &**name).collect();
        assert_eq!(path, expected);
    }

    #[test]
    fn interrupt_that_found_the_task_is_left_out() {
        let tick = [BASE + 0x510, BASE + 0x610];
        check(&tick, &[]);
        let interrupted = [BASE + 0x110, BASE + 0x220, BASE + 0x410];
        check(
            &[&tick[..], &interrupted].concat(),
            &["read_zero", "vfs_read", "do_syscall_64"],
        );
    }

    #[test]
    fn our_program_and_the_switch_are_left_out() {
        let (ours, ext4) = (0xffff_ffff_c000_1010, 0xffff_ffff_c000_0010);
        let leaf = [ours, BASE + 0x38, BASE + 0x18, BASE + 0x4c8];
        check(
            &[&leaf[..], &[ext4, BASE + 0x410]].concat(),
            &["ext4_writepages[ext4]", "do_syscall_64"],
        );
    }

    #[test]
    fn task_that_went_to_sleep_is_told_from_one_that_gave_way() {
        let caller = |address| [BASE + 0x18, BASE + 0x28, address];
        check(&caller(BASE + 0x220), &[ASLEEP, "vfs_read"]);
        check(&caller(BASE + 0x460), &["exit_to_user_mode_loop"]);
        check(&caller(BASE + 0x490), &["__do_sys_sched_yield"]);
        check(&[BASE + 0x28, BASE + 0x610, BASE + 0x220], &["vfs_read"]);
    }

    /// A function that ends with a call to one that never returns has the next one behind it.
    #[test]
    fn return_address_belongs_to_the_call_before_it() {
        check(&[BASE + 0x100, BASE + 0x400], &["read_zero", "vfs_read"]);
        // Where an interrupt came, the address is exact.
        check(&[BASE + 0x610, BASE + 0x100], &["read_zero"]);
    }

    #[test]
    fn address_below_all_functions_is_unknown() {
        check(&[BASE], &[UNKNOWN]);
    }

    #[test]
    fn hidden_addresses_give_no_names() {
        let hidden = functions("0000000000000000 T vfs_read\n");
        assert_eq!(hidden.path(&[BASE + 0x220]), None);
    }
}
