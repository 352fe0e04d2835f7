//! Ground truth of interrupts: the kernel's counts in `/proc/interrupts` and `/proc/softirqs`.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result};

/// Counts of all interrupts and softirqs, summed over CPUs, or their growth.
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
        Ok(Self {
            hard: counts("/proc/interrupts")?,
            soft: counts("/proc/softirqs")?,
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

fn counts(path: &str) -> Result<BTreeMap<String, u64>> {
    let table = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let mut lines = table.lines();
    let n_cpus = lines
        .next()
        .with_context(|| format!("{path} is empty"))?
        .split_whitespace()
        .count();
    Ok(lines.filter_map(|line| count_of(line, n_cpus)).collect())
}

/// A line: a name, a count per CPU (some lines have one for all), and words.
fn count_of(line: &str, n_cpus: usize) -> Option<(String, u64)> {
    let (name, rest) = line.split_once(':')?;
    let numbers = rest.split_whitespace().take(n_cpus);
    let counts = numbers.map_while(|word| word.parse::<u64>().ok());
    Some((name.trim().to_owned(), counts.sum()))
}
