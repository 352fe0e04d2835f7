//! The files of the flight recorder: the first is opened before anything is measured, each dump is
//! written beside the recording, and further ones get a number.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::OsString,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    Error,
    analysis::{self, flight},
    cli::output,
    model::{Autopsy, Flight, FlightDump, KernelNames, WaitEvent},
    report::perfetto,
};

/// Waits that are marked at most, the latest ones.
const MAX_MARKED: usize = 4096;

/// Dumps that waits ask for at most: a threshold that is set too low must not fill the disk.
const MAX_ASKED: u32 = 10;

/// Where dumps go.
#[derive(Debug)]
pub(super) struct FlightLog {
    path: PathBuf,
    /// The first dump's file.
    first: Option<File>,
    requests: Signal,
    n_dumps: u32,
    writer: Option<JoinHandle<Result<FlightDump, Error>>>,
    written: Vec<FlightDump>,
    failure: Option<Error>,
    waits: Waits,
}

/// Waits over the threshold, which are marked in the dumps and ask for some.
#[derive(Debug)]
struct Waits {
    window: Duration,
    /// The latest, without what ran meanwhile: the trace has it.
    latest: VecDeque<Autopsy>,
    /// When they last asked for a dump.
    asked: Option<Instant>,
    n_asked: u32,
}

impl FlightLog {
    /// Opens the first file and waits for SIGUSR1 from now on. Needs the runtime.
    pub(super) fn open(path: PathBuf, window: Duration) -> anyhow::Result<Self> {
        let first = match output::open_file(&path) {
            Ok(file) => file,
            Err(source) => return Err(Error::FlightOutput { path, source }.into()),
        };
        Ok(Self {
            path,
            first: Some(first),
            requests: signal(SignalKind::user_defined1())?,
            n_dumps: 0,
            writer: None,
            written: Vec::new(),
            failure: None,
            waits: Waits {
                window,
                latest: VecDeque::new(),
                asked: None,
                n_asked: 0,
            },
        })
    }

    /// Notes waits over the threshold; whether they ask for a dump. `irqs` names device interrupts.
    pub(super) fn note(&mut self, events: &[WaitEvent], irqs: &BTreeMap<u32, String>) -> bool {
        let waits = events.iter().map(|event| Autopsy {
            spans: Vec::new(),
            // The trace has the events themselves.
            ..analysis::autopsy(event, irqs, &KernelNames::default())
        });
        self.waits.note(waits, Instant::now())
    }

    /// The waits to mark.
    pub(super) fn marked(&self) -> Vec<Autopsy> {
        self.waits.latest.iter().cloned().collect()
    }

    /// The next SIGUSR1.
    pub(super) async fn requested(&mut self) {
        self.requests.recv().await.unwrap_or_default();
    }

    /// Writes a dump while the recording goes on. One at a time: a dump takes as much memory as the
    /// rings do.
    pub(super) fn write(&mut self, dump: Flight) {
        self.join();
        self.n_dumps += 1;
        let path = numbered(&self.path, self.n_dumps);
        let first = self.first.take();
        self.writer = Some(thread::spawn(move || write(&dump, path, first)));
    }

    fn join(&mut self) {
        let Some(writer) = self.writer.take() else {
            return;
        };
        match writer.join() {
            Ok(Ok(dump)) => self.written.push(dump),
            Ok(Err(error)) => _ = self.failure.get_or_insert(error),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Waits for what is being written: all dumps, and the first failure.
    pub(super) fn finish(mut self) -> (Vec<FlightDump>, Option<Error>) {
        self.join();
        (self.written, self.failure)
    }
}

impl Waits {
    fn note(&mut self, waits: impl Iterator<Item = Autopsy>, now: Instant) -> bool {
        self.latest.extend(waits);
        let surplus = self.latest.len().saturating_sub(MAX_MARKED);
        self.latest.drain(..surplus);
        self.ask(now)
    }

    /// Whether a dump is made for a wait. Sooner than the window after the last one, it would mostly
    /// hold the same.
    fn ask(&mut self, now: Instant) -> bool {
        let is_due = self.n_asked < MAX_ASKED
            && self
                .asked
                .is_none_or(|asked| now.duration_since(asked) >= self.window);
        if is_due {
            self.asked = Some(now);
            self.n_asked += 1;
        }
        is_due
    }
}

fn write(dump: &Flight, path: PathBuf, opened: Option<File>) -> Result<FlightDump, Error> {
    let save = || -> io::Result<()> {
        let mut file = match opened {
            Some(file) => file,
            None => File::create(&path)?,
        };
        output::empty(&file)?;
        file.write_all(&perfetto::render(dump))
    };
    match save() {
        Ok(()) => Ok(flight::dump(dump, path.display().to_string())),
        Err(source) => Err(Error::FlightOutput { path, source }),
    }
}

/// The file of the n-th dump: `a.pftrace`, `a-2.pftrace`, and so on.
fn numbered(path: &Path, n: u32) -> PathBuf {
    if n < 2 {
        return path.to_owned();
    }
    let mut name = path.file_stem().map(OsString::from).unwrap_or_default();
    name.push(format!("-{n}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_after_the_first_get_a_number_before_the_extension() {
        let check = |path: &str, n, expected: &str| {
            assert_eq!(numbered(Path::new(path), n), Path::new(expected));
        };
        check("a.pftrace", 1, "a.pftrace");
        check("a.pftrace", 2, "a-2.pftrace");
        check("x.y/a.b.pftrace", 10, "x.y/a.b-10.pftrace");
        check("trace", 3, "trace-3");
    }

    #[test]
    fn waits_ask_for_one_dump_in_a_window_and_ten_in_all() {
        let window = Duration::from_secs(2);
        let mut waits = Waits {
            window,
            latest: VecDeque::new(),
            asked: None,
            n_asked: 0,
        };
        let start = Instant::now();
        assert!(waits.ask(start));
        assert!(!waits.ask(start + window / 2));
        let later = (1..20).filter(|n| waits.ask(start + window * *n));
        assert_eq!(later.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
}
