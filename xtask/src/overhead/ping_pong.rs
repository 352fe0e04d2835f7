//! The thing that is observed: two processes on one CPU that hand a byte to and fro.
//!
//! Promises: `perf bench sched pipe`'s own figure, of each CPU when several are used at once.

use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Microseconds per round trip on `cpu`.
pub(super) fn on_cpu(cpu: usize, loops: u32) -> Result<f64> {
    on_each(&[cpu], loops)
}

/// Microseconds per round trip, the mean of ping-pongs on each of `cpus` at once.
pub(super) fn on_each(cpus: &[usize], loops: u32) -> Result<f64> {
    let running: Result<Vec<_>> = cpus.iter().map(|&cpu| start(cpu, loops)).collect();
    let micros: Result<Vec<_>> = running?.into_iter().map(finish).collect();
    let micros = micros?;
    #[expect(clippy::cast_precision_loss, reason = "a few CPUs")]
    Ok(micros.iter().sum::<f64>() / micros.len() as f64)
}

fn start(cpu: usize, loops: u32) -> Result<Child> {
    let mut taskset = Command::new("taskset");
    taskset
        .args(["-c", &cpu.to_string(), "perf", "bench"])
        .args(["sched", "pipe", "--loop", &loops.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    taskset.spawn().context("cannot run taskset")
}

fn finish(ping_pong: Child) -> Result<f64> {
    let output = ping_pong
        .wait_with_output()
        .context("cannot wait for perf")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("`perf bench sched pipe` failed: {}", output.status);
    }
    micros_per_op(&printed)
        .with_context(|| format!("no 'usecs/op' in what perf printed: {printed}"))
}

fn micros_per_op(printed: &str) -> Option<f64> {
    let line = printed
        .lines()
        .find_map(|line| line.trim().strip_suffix("usecs/op"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::micros_per_op;

    #[test]
    fn time_per_operation_is_read_from_what_perf_prints() {
        let printed =
            "     Total time: 0.683 [sec]\n\n       3.415710 usecs/op\n  292764 ops/sec\n";
        assert_eq!(micros_per_op(printed), Some(3.415_710));
        assert_eq!(micros_per_op("nothing of the kind"), None);
    }
}
