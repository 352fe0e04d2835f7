//! A recording of schedlat's of fixed length: what it reports, and what it took meanwhile.
//!
//! Promises: the report is complete; memory is what the kernel accounts to the process and to its maps.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::project;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks at the process between two at its maps, which take longer and change no more once attached.
const LOOKS_PER_LOOK_AT_MAPS: u32 = 10;

/// What every tracer loses on hosts whose kernel fires no event for some switches, and tasks that are only
/// summed up.
const NO_LOSSES: [&str; 3] = ["missed_switches", "unmeasured_waits", "folded_rows"];

/// What a recording said and took.
#[derive(Debug)]
pub(super) struct Recording {
    report: Value,
    memory: Memory,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// The most that the process had resident, at the last look before its end.
    pub(super) resident: u64,
    /// Its maps and programs.
    pub(super) maps: u64,
    /// By how much the kernel's slabs grew, which is where each task's own record lies.
    pub(super) slabs: u64,
}

impl Recording {
    /// Runs `command`, which is a `schedlat record` with a length, to its end.
    pub(super) fn run(command: &[String]) -> Result<Self> {
        let (program, arguments) = command.split_first().context("no command")?;
        let folder = project::target("overhead");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let output = folder.join("report.json");
        let slabs_before = slab_bytes()?;
        let mut recorder = Command::new(program)
            .args(arguments)
            .args(["--format", "json", "--output"])
            .arg(&output)
            // Where it leaves what a flight recorder saves.
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        let memory = watch(&mut recorder, slabs_before)?;
        let report = read_report(&output)?;
        fs::remove_dir_all(&folder).context("cannot remove target/overhead")?;
        Ok(Self { report, memory })
    }

    pub(super) const fn memory(&self) -> Memory {
        self.memory
    }

    /// The number at `pointer` in the report.
    pub(super) fn number(&self, pointer: &str) -> Result<f64> {
        self.report
            .pointer(pointer)
            .and_then(Value::as_f64)
            .with_context(|| format!("the report has no number at {pointer}"))
    }

    /// The number at `pointer`, per second of the window.
    pub(super) fn per_second(&self, pointer: &str) -> Result<f64> {
        Ok(self.number(pointer)? / self.number("/window/seconds")?)
    }

    /// What was lost, by kind.
    pub(super) fn lost(&self) -> Result<Vec<(String, u64)>> {
        let losses = self.report["loss"]
            .as_object()
            .context("the report has no losses")?;
        let ours = losses
            .iter()
            .filter(|(name, _)| !NO_LOSSES.contains(&name.as_str()));
        let counts = ours.map(|(name, count)| {
            let count = count.as_u64();
            Ok((
                name.clone(),
                count.with_context(|| format!("{name} is no count"))?,
            ))
        });
        let counts: Result<Vec<_>> = counts.collect();
        Ok(counts?
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect())
    }
}

/// Looks at what it takes until it has ended.
fn watch(recorder: &mut Child, slabs_before: u64) -> Result<Memory> {
    let mut memory = Memory::default();
    for n_looks in 0_u32.. {
        thread::sleep(LOOK_EVERY);
        if let Some(status) = recorder.try_wait().context("cannot watch the recorder")? {
            if !status.success() {
                bail!("the recorder ended with {status}");
            }
            return Ok(memory);
        }
        // It may end meanwhile: what was seen last stands.
        let process = Path::new("/proc").join(recorder.id().to_string());
        let slabs = slab_bytes()?.saturating_sub(slabs_before);
        memory.resident = resident_bytes(&process).unwrap_or(memory.resident);
        memory.slabs = memory.slabs.max(slabs);
        if n_looks.is_multiple_of(LOOKS_PER_LOOK_AT_MAPS) {
            memory.maps = memory.maps.max(map_bytes(&process).unwrap_or(0));
        }
    }
    bail!("the recorder does not end")
}

/// The peak of what is resident.
fn resident_bytes(process: &Path) -> Option<u64> {
    kib_after("VmHWM:", &fs::read_to_string(process.join("status")).ok()?)
}

/// What the kernel accounts to the maps and programs that the process holds.
fn map_bytes(process: &Path) -> Option<u64> {
    let entries = fs::read_dir(process.join("fdinfo")).ok()?;
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    // Several descriptors may be of one map.
    let by_id = texts.filter_map(|text| {
        let ids = ["map_id:", "prog_id:"].map(|key| number_after(key, &text));
        Some((ids, number_after("memlock:", &text)?))
    });
    Some(by_id.collect::<BTreeMap<_, _>>().into_values().sum())
}

fn slab_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    kib_after("SUnreclaim:", &text).context("/proc/meminfo has no SUnreclaim")
}

fn kib_after(key: &str, text: &str) -> Option<u64> {
    number_after(key, text).map(|kib| kib << 10)
}

fn number_after(key: &str, text: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The last JSON value of the output, which is the report.
fn read_report(path: &Path) -> Result<Value> {
    let output =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let values = serde_json::Deserializer::from_str(&output).into_iter();
    let last = values.last().context("the recorder reported nothing")?;
    last.context("cannot read the report")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn losses_of_the_recorder_are_told_from_the_blind_spots_of_the_kernel() {
        let report = json!({
            "loss": { "missed_switches": 7, "unmeasured_waits": 8, "wait_records": 2, "stacks": 1, "exit_records": 0 },
            "window": { "seconds": 2.0 },
            "n": 10,
        });
        let recording = Recording {
            report,
            memory: Memory::default(),
        };
        let expected = [("stacks".to_owned(), 1), ("wait_records".to_owned(), 2)];
        assert_eq!(recording.lost().unwrap(), expected);
        assert!((recording.per_second("/n").unwrap() - 5.0).abs() < 1e-9);
        assert!(recording.number("/absent").is_err());
    }

    #[test]
    fn numbers_of_proc_are_found() {
        let text = "VmPeak:\t  99 kB\nVmHWM:\t   68 kB\nmemlock:\t4096\n";
        assert_eq!(kib_after("VmHWM:", text), Some(68 << 10));
        assert_eq!(number_after("memlock:", text), Some(4096));
        assert_eq!(number_after("SUnreclaim:", text), None);
    }
}
