//! Workloads that change who they are, or have a name that is no text.

use std::{env, os::unix::process::CommandExt as _, process::Command, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Stage, burn::spin, process, time};

/// Spins half the time under the first name, half under the other.
pub(super) fn rename_midway(stage: &mut Stage, duration: Duration, to: &str) -> Result<Value> {
    stage.ready(&[])?;
    spin(duration / 2);
    process::rename(to.as_bytes())?;
    spin(duration / 2);
    Ok(json!({ "name": to }))
}

/// Spins, then executes itself as the next link; the last link returns.
pub(super) fn exec_chain(stage: &mut Stage, n: u64, seconds: f64) -> Result<Value> {
    process::rename(format!("chain-{n}").as_bytes())?;
    stage.ready(&[])?;
    spin(time(seconds));
    if n == 0 {
        return Ok(json!({}));
    }
    let program = env::current_exe().context("cannot find this program")?;
    let cause = Command::new(program)
        .arg("exec-chain")
        .arg((n - 1).to_string())
        .arg(seconds.to_string())
        .exec();
    Err(cause).context("cannot execute the next link")
}

/// Ends the first thread, so that the process is a zombie to look at, and goes on in another.
#[expect(
    clippy::exit,
    reason = "the first thread is gone, so nothing is left to return to"
)]
pub(super) fn go_on_headless(stage: &mut Stage, duration: Duration) -> Result<Value> {
    stage.ready(&[])?;
    thread::spawn(move || {
        let began = std::time::Instant::now();
        while began.elapsed() < duration {
            thread::sleep(Duration::from_millis(5));
        }
        std::process::exit(0);
    });
    process::end_this_thread()
}

/// Spins under a name given in hexadecimal.
pub(super) fn odd_comm(stage: &mut Stage, hex: &str, duration: Duration) -> Result<Value> {
    process::rename(&bytes_of(hex)?)?;
    stage.ready(&[])?;
    spin(duration);
    Ok(json!({}))
}

fn bytes_of(hex: &str) -> Result<Vec<u8>> {
    ensure!(
        hex.is_ascii() && hex.len().is_multiple_of(2),
        "'{hex}' is not pairs of hex digits"
    );
    (0..hex.len())
        .step_by(2)
        .map(|at| {
            u8::from_str_radix(&hex[at..at + 2], 16).with_context(|| format!("'{hex}' is not hex"))
        })
        .collect()
}
