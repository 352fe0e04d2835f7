//! Ground truth of interrupts: the kernel's counts in `/proc/interrupts` and `/proc/softirqs`.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result};

/// Counts of all interrupts and softirqs, of a CPU or summed over all, or their growth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterruptCounts {
    /// By the first word of their line: a number, or a short name such as `LOC`.
    pub hard: BTreeMap<String, u64>,
    /// By name, such as `NET_RX`.
    pub soft: BTreeMap<String, u64>,
}

impl InterruptCounts {
    /// The counts since boot.
    pub fn now() -> Result<Self> {
        Self::of(None)
    }

    /// The counts of one CPU since boot.
    pub fn of_cpu(cpu: usize) -> Result<Self> {
        Self::of(Some(cpu))
    }

    fn of(cpu: Option<usize>) -> Result<Self> {
        Ok(Self {
            hard: counts("/proc/interrupts", cpu)?,
            soft: counts("/proc/softirqs", cpu)?,
        })
    }

    /// Growth since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            hard: growth(&self.hard, &earlier.hard),
            soft: growth(&self.soft, &earlier.soft),
        }
    }
}

fn growth(now: &BTreeMap<String, u64>, then: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let before = |name: &str| then.get(name).copied().unwrap_or_default();
    now.iter()
        .map(|(name, count)| (name.clone(), count - before(name)))
        .collect()
}

/// The table of one file: a column per CPU, of which one or all are taken.
fn counts(path: &str, cpu: Option<usize>) -> Result<BTreeMap<String, u64>> {
    let table = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    Ok(counts_in(&table, cpu))
}

fn counts_in(table: &str, cpu: Option<usize>) -> BTreeMap<String, u64> {
    let mut lines = table.lines();
    let heads = lines.next().unwrap_or_default().split_whitespace();
    let is_wanted = |head: &str| cpu.is_none_or(|cpu| head == format!("CPU{cpu}"));
    let wanted: Vec<bool> = heads.map(is_wanted).collect();
    lines.filter_map(|line| count_of(line, &wanted)).collect()
}

/// A line: a name, a count per CPU (some lines have one for all), and words.
fn count_of(line: &str, wanted: &[bool]) -> Option<(String, u64)> {
    let (name, rest) = line.split_once(':')?;
    let counts = rest.split_whitespace().zip(wanted);
    let counts = counts.map_while(|(word, wanted)| Some((word.parse::<u64>().ok()?, wanted)));
    let sum = counts
        .filter(|(_, wanted)| **wanted)
        .map(|(count, _)| count);
    Some((name.trim().to_owned(), sum.sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_cpus_and_the_rest_is_words() {
        let table = "      CPU0       CPU2       \n \
            36:          1      32898 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
            LOC:      55990      69272   Local timer interrupts\n\
            ERR:          7\n";
        let of = |cpu| Vec::from_iter(counts_in(table, cpu));
        let named = |counts: [u64; 3]| -> Vec<(String, u64)> {
            let names = ["36", "ERR", "LOC"].map(str::to_owned);
            names.into_iter().zip(counts).collect()
        };
        assert_eq!(of(None), named([32899, 7, 125_262]));
        assert_eq!(of(Some(2)), named([32898, 0, 69272]));
    }
}
