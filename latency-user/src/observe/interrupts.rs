//! All interrupts since the start, and the names of those that devices raise.

use std::{collections::BTreeMap, fs};

use crate::{kernel::Kernel, model::InterruptTotal};

/// What was counted before the window.
#[derive(Debug, Default)]
pub(super) struct InterruptBase(BTreeMap<u32, InterruptTotal>);

impl InterruptBase {
    /// The totals at the start.
    pub(super) fn read(kernel: &Kernel) -> Self {
        let totals = kernel.interrupts().into_iter();
        Self(totals.map(|total| (total.source.0, total)).collect())
    }

    /// What was counted since; the longest may be from just before.
    pub(super) fn since(&self, kernel: &Kernel) -> Vec<InterruptTotal> {
        let grown = kernel.interrupts().into_iter().map(|total| {
            let Some(before) = self.0.get(&total.source.0) else {
                return total;
            };
            let sum_ns = total.sum_ns.saturating_sub(before.sum_ns);
            InterruptTotal {
                count: total.count.saturating_sub(before.count),
                sum_ns,
                max_ns: total.max_ns.min(sum_ns),
                ..total
            }
        });
        grown.filter(|total| total.count > 0).collect()
    }
}

/// Names of device interrupts by number.
pub(super) fn irq_names() -> BTreeMap<u32, String> {
    let table = fs::read_to_string("/proc/interrupts").unwrap_or_default();
    table.lines().filter_map(named).collect()
}

/// A line has number, counts, chip, the chip's number and way of asking, and at its end, after two
/// spaces, the names of what asked for it.
fn named(line: &str) -> Option<(u32, String)> {
    let (number, rest) = line.trim().split_once(':')?;
    let (_, name) = rest.trim_end().rsplit_once("  ")?;
    Some((number.parse().ok()?, name.trim_start().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_devices_are_named_by_who_asked_for_them() {
        let line = |text| named(text);
        let virtio =
            " 38:          0       4037 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0";
        assert_eq!(line(virtio), Some((38, "virtio2-input.0".to_owned())));
        let shared = "  9:          0          0   IO-APIC   9-fasteoi   acpi, i801_smbus";
        assert_eq!(line(shared), Some((9, "acpi, i801_smbus".to_owned())));
        let local = "LOC:     240770     248046   Local timer interrupts";
        assert_eq!(line(local), None);
        assert_eq!(line("           CPU0       CPU1       "), None);
    }
}
