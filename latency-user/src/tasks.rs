//! What `/proc` tells of processes and threads.
//!
//! A name may hold any bytes: nothing is taken for text that stands before or in one.

use std::fs;

/// The thread id of the caller.
#[must_use]
pub fn own_tid() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .cast_unsigned()
}

/// The threads of a process; none where it has gone.
#[must_use]
pub fn threads_of(tgid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{tgid}/task"));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The name of a thread, as the kernel gives it; none where it has gone.
#[must_use]
pub fn comm(tid: u32) -> Option<Vec<u8>> {
    let mut name = fs::read(format!("/proc/{tid}/comm")).ok()?;
    name.pop_if(|last| *last == b'\n');
    Some(name)
}

/// The fields of `/proc/TID/stat` after the name, which is followed by the last parenthesis. A zombie
/// has ended as far as the scheduler is concerned, and has none.
#[must_use]
pub fn stat(tid: u32) -> Option<Vec<String>> {
    let bytes = fs::read(format!("/proc/{tid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<String> = fields.split_whitespace().map(str::to_owned).collect();
    let has_ended = matches!(fields.first().map(String::as_str), Some("Z" | "X") | None);
    (!has_ended).then_some(fields)
}

/// `/proc/TID/status`.
#[derive(Clone, Debug)]
pub struct Status(String);

impl Status {
    /// Reads it; none where the thread has gone.
    #[must_use]
    pub fn read(tid: u32) -> Option<Self> {
        let bytes = fs::read(format!("/proc/{tid}/status")).ok()?;
        Some(Self(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The value of a key, which is given with its colon.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        let line = self.0.lines().find_map(|line| line.strip_prefix(key));
        line.map(str::trim)
    }
}

/// The process id of a thread; none where there is no such thread.
#[must_use]
pub fn tgid_of(tid: u32) -> Option<u32> {
    Status::read(tid)?.value("Tgid:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_thread_is_found_in_its_process() {
        let process = std::process::id();
        let found = std::thread::Builder::new()
            .name("any) name".into())
            .spawn(|| {
                let tid = own_tid();
                (tid, tgid_of(tid), comm(tid), stat(tid))
            });
        let (tid, of, name, fields) = found.unwrap().join().unwrap();
        assert_ne!(tid, own_tid());
        assert_eq!((of, name), (Some(process), Some(b"any) name".to_vec())));
        assert_eq!(fields.unwrap()[0], "R");
        assert!(threads_of(process).contains(&own_tid()));
    }

    #[test]
    fn nothing_is_told_of_what_is_not_there() {
        assert_eq!((tgid_of(u32::MAX), stat(u32::MAX)), (None, None));
        assert_eq!((comm(u32::MAX), threads_of(u32::MAX)), (None, Vec::new()));
    }
}
