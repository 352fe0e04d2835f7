//! A recording of schedlat's of fixed length: what it reports, and what it took meanwhile.
//!
//! Promises: the report is complete; memory is what the kernel accounts to the process and to its maps.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::project;

const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Losses that every tracer has on hosts whose kernel fires no event for some switches.
const BLIND_SPOTS: [&str; 2] = ["missed_switches", "unmeasured_waits"];

/// What a recording said and took.
#[derive(Debug)]
pub(super) struct Recording {
    report: Value,
    memory: Memory,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// The most that the process had resident.
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
        let output = project::target("overhead.json");
        let slabs_before = slab_bytes()?;
        let mut recorder = Command::new(program)
            .args(arguments)
            .args(["--format", "json", "--output"])
            .arg(&output)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        let memory = watch(&mut recorder, slabs_before)?;
        let report = read_report(&output)?;
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

    /// All losses but those of a kernel that fires no event.
    pub(super) fn lost(&self) -> Result<u64> {
        let losses = self.report["loss"]
            .as_object()
            .context("the report has no losses")?;
        let ours = losses
            .iter()
            .filter(|(name, _)| !BLIND_SPOTS.contains(&name.as_str()));
        ours.map(|(name, count)| {
            count
                .as_u64()
                .with_context(|| format!("{name} is no count"))
        })
        .sum()
    }
}

/// Looks at what it takes until it has ended.
fn watch(recorder: &mut Child, slabs_before: u64) -> Result<Memory> {
    let mut memory = Memory::default();
    loop {
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
        memory = Memory {
            resident: resident_bytes(&process).unwrap_or(memory.resident),
            maps: memory.maps.max(map_bytes(&process).unwrap_or(0)),
            slabs: memory.slabs.max(slabs),
        };
    }
}

/// The peak of what is resident.
fn resident_bytes(process: &Path) -> Option<u64> {
    kib_after("VmHWM:", &fs::read_to_string(process.join("status")).ok()?)
}

/// What the kernel accounts to the maps and programs that the process holds.
fn map_bytes(process: &Path) -> Option<u64> {
    let entries = fs::read_dir(process.join("fdinfo")).ok()?;
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    Some(
        texts
            .filter_map(|text| number_after("memlock:", &text))
            .sum(),
    )
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
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
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
            "loss": { "missed_switches": 7, "unmeasured_waits": 8, "wait_records": 2, "stacks": 1 },
            "window": { "seconds": 2.0 },
            "n": 10,
        });
        let recording = Recording {
            report,
            memory: Memory::default(),
        };
        assert_eq!(recording.lost().unwrap(), 3);
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
