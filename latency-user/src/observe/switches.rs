//! The kernel's own figures that concern all CPUs, read just outside ours.

use std::fs;

use crate::{clocks, kernel::Kernel, model::CpuTotals};

/// One reading of both accounts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    ours: CpuTotals,
    /// `ctxt` before and after ours was read: the truth lies between.
    kernel_before: u64,
    kernel_after: u64,
    n_cpus: u64,
    local_timer_interrupts: Option<u64>,
    steal_ns: u64,
    suspended_ns: u64,
}

impl Reading {
    /// Reads both.
    pub(super) fn take(kernel: &Kernel) -> Self {
        let before = fs::read_to_string("/proc/stat").unwrap_or_default();
        let mut ours = CpuTotals::default();
        let cpus = kernel.cpu_states();
        for cpu in &cpus {
            ours.switches += cpu.switches;
            ours.missed_switches += cpu.missed_switches;
            ours.ticks += cpu.ticks;
            ours.hrticks += cpu.hrticks;
        }
        let after = fs::read_to_string("/proc/stat").unwrap_or_default();
        let interrupts = fs::read_to_string("/proc/interrupts").unwrap_or_default();
        Self {
            ours,
            kernel_before: context_switches(&before),
            kernel_after: context_switches(&after),
            n_cpus: cpus.len() as u64,
            local_timer_interrupts: local_timer_interrupts(&interrupts),
            steal_ns: steal_ns(&after),
            suspended_ns: clocks::suspended_ns(),
        }
    }

    /// The growth since an earlier reading.
    ///
    /// Each CPU may be within a switch that only the kernel has counted, or run a task whose switch-in
    /// fired no event and whose break in the chain is yet to be seen.
    pub(super) fn since(&self, earlier: &Self) -> CpuTotals {
        let slack = (self.kernel_after - self.kernel_before)
            + (earlier.kernel_after - earlier.kernel_before)
            + self.n_cpus;
        CpuTotals {
            switches: self.ours.switches - earlier.ours.switches,
            missed_switches: self.ours.missed_switches - earlier.ours.missed_switches,
            ticks: self.ours.ticks - earlier.ours.ticks,
            hrticks: self.ours.hrticks - earlier.ours.hrticks,
            kernel_switches: self.kernel_after - earlier.kernel_after,
            kernel_switches_slack: slack,
            local_timer_interrupts: self
                .local_timer_interrupts
                .zip(earlier.local_timer_interrupts)
                .map(|(now, then)| now.saturating_sub(then)),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
            suspended_ns: self.suspended_ns.saturating_sub(earlier.suspended_ns),
        }
    }
}

fn context_switches(stat: &str) -> u64 {
    stat.lines()
        .find_map(|line| line.strip_prefix("ctxt ")?.trim().parse().ok())
        .unwrap_or(0)
}

/// The eighth figure of the line that sums all CPUs, in ticks of `USER_HZ`.
fn steal_ns(stat: &str) -> u64 {
    let ticks: Option<u64> = stat.lines().find_map(|line| {
        line.strip_prefix("cpu ")?
            .split_whitespace()
            .nth(7)?
            .parse()
            .ok()
    });
    ticks.unwrap_or(0) * (1_000_000_000 / rustix::param::clock_ticks_per_second())
}

/// The row `LOC` of x86, or that of arm64's timer; none where neither is.
fn local_timer_interrupts(interrupts: &str) -> Option<u64> {
    interrupts.lines().find_map(|line| {
        let (name, counts) = line.trim().split_once(':')?;
        let is_it = name == "LOC" || counts.ends_with(" arch_timer");
        let counts = counts.split_whitespace();
        let counts = counts.map_while(|word| word.parse::<u64>().ok());
        is_it.then(|| counts.sum())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_proc() {
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nctxt 12345\n";
        assert_eq!(context_switches(stat), 12345);
        assert_eq!(steal_ns(stat), 80_000_000);
    }

    #[test]
    fn timer_interrupts_are_summed_over_cpus() {
        let text =
            "           CPU0       CPU1\n LOC:        10         32   Local timer interrupts\n";
        assert_eq!(local_timer_interrupts(text), Some(42));
        let arm64 = "  9:   1   2   GICv2  25 Level     vgic\n 11:  10  32   GICv2  27 Level     arch_timer\n";
        assert_eq!(local_timer_interrupts(arm64), Some(42));
        assert_eq!(local_timer_interrupts("  0: 1 2 IO-APIC"), None);
    }
}
