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
    let mut lines = table.lines();
    let heads: Vec<&str> = lines
        .next()
        .with_context(|| format!("{path} is empty"))?
        .split_whitespace()
        .collect();
    let is_wanted = |head: &str| cpu.is_none_or(|cpu| head == format!("CPU{cpu}"));
    let wanted: Vec<bool> = heads.into_iter().map(is_wanted).collect();
    Ok(lines.filter_map(|line| count_of(line, &wanted)).collect())
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
