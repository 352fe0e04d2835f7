//! Running a foreign tool: what it prints is shown and kept, its threads are looked at, its end is awaited.

use std::{
    collections::VecDeque,
    io::{self, Write as _},
    process::ExitStatus,
    time::Duration,
};

use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::{
    model::Watched,
    observe::{Child, CommandReader, Watch},
    reconcile::foreign::Tool,
};

/// How often its threads are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Of what it prints the end is kept, where the figures are.
const LONGEST_TEXT: usize = 4 << 20;

/// After its end its descendants may still hold its output open; what it has printed is there.
const AFTER_END: Duration = Duration::from_millis(200);

/// How it went.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) status: Option<ExitStatus>,
    pub(super) printed: Printed,
    pub(super) watched: Vec<Watched>,
}

/// What it printed, as far as that is kept.
#[derive(Debug, Default)]
pub(super) struct Printed(VecDeque<u8>);

impl Printed {
    /// As text; what is none is replaced.
    pub(super) fn text(&self) -> String {
        let (head, tail) = self.0.as_slices();
        String::from_utf8_lossy(&[head, tail].concat()).into_owned()
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        let n_too_many = self.0.len().saturating_sub(LONGEST_TEXT);
        self.0.drain(..n_too_many);
    }
}

/// Waits for the end of a tool.
pub(super) async fn run(child: Option<Child>, tool: Tool) -> io::Result<Ran> {
    let mut printed = Printed::default();
    let Some(mut child) = child else {
        return Ok(Ran {
            status: None,
            printed,
            watched: Vec::new(),
        });
    };
    let mut reader = child.take_output();
    let watched_pid = child.pid().filter(|_| tool.has_measuring_threads());
    let mut watch = watched_pid.map(Watch::of);
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            more = read(&mut reader, &mut printed) => {
                if !more {
                    reader = None;
                }
            }
            _ = looks.tick() => {
                if let Some(watch) = &mut watch {
                    watch.look();
                }
            }
        }
    };
    let rest = async { while read(&mut reader, &mut printed).await {} };
    // Where somebody holds it open the time is up, and nothing is missing.
    timeout(AFTER_END, rest).await.unwrap_or_default();
    Ok(Ran {
        status: Some(status),
        printed,
        watched: watch.map(Watch::into_seen).unwrap_or_default(),
    })
}

/// Reads what there is, shows it and keeps it; whether more may come. Never ends without a reader.
async fn read(reader: &mut Option<CommandReader>, printed: &mut Printed) -> bool {
    let Some(reader) = reader else {
        return std::future::pending().await;
    };
    if reader.readable().await.is_err() {
        return false;
    }
    let mut bytes = [0; 1 << 14];
    match reader.try_read(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
        Ok(0) | Err(_) => false,
        Ok(n) => {
            // Where it cannot be shown it is still read.
            io::stderr().write_all(&bytes[..n]).unwrap_or_default();
            printed.add(&bytes[..n]);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_what_is_printed_is_kept() {
        let mut printed = Printed::default();
        for _ in 0..5 {
            printed.add(&vec![b'a'; LONGEST_TEXT / 2]);
        }
        printed.add(b"the end\xff");
        let text = printed.text();
        assert!(text.ends_with("the end\u{fffd}"));
        assert_eq!(printed.0.len(), LONGEST_TEXT);
    }
}
