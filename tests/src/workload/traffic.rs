//! Workloads that make the kernel work for them: datagrams through loopback, and pages to be written.

use std::{
    io::{Seek as _, Write as _},
    net::UdpSocket,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::Stage;

/// One write-back's worth: enough that kernel threads have something to do.
const DIRTY_BYTES: usize = 4 << 20;

/// Sends datagrams to itself: each is received in a softirq.
pub(super) fn send_datagrams(stage: &mut Stage, duration: Duration) -> Result<Value> {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).context("cannot open a socket")?;
    socket
        .connect(socket.local_addr()?)
        .context("cannot connect a socket to itself")?;
    let mut datagram = [0_u8; 64];
    stage.ready(&[])?;
    let began = Instant::now();
    let mut sent = 0_u64;
    while began.elapsed() < duration {
        socket.send(&datagram).context("cannot send")?;
        socket.recv(&mut datagram).context("cannot receive")?;
        sent += 1;
    }
    Ok(json!({ "sent": sent }))
}

/// Dirties pages of a file in `directory` and has the kernel's own threads write them.
pub(super) fn dirty_pages(
    stage: &mut Stage,
    duration: Duration,
    directory: &Path,
) -> Result<Value> {
    let mut file = tempfile::tempfile_in(directory)
        .with_context(|| format!("cannot make a file in {}", directory.display()))?;
    let content = vec![1_u8; DIRTY_BYTES];
    stage.ready(&[])?;
    let began = Instant::now();
    let mut rounds = 0_u64;
    while began.elapsed() < duration {
        file.rewind()?;
        file.write_all(&content)?;
        // Unlike a sync of the file, which writes in its caller, this one asks the flusher threads.
        rustix::fs::syncfs(&file).context("cannot sync the file system")?;
        rounds += 1;
    }
    Ok(json!({ "rounds": rounds }))
}
