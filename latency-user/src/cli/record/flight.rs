//! The files of the flight recorder: the first is opened before anything is measured, each dump is
//! written beside the recording, and further ones get a number.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    Error,
    analysis::flight,
    cli::output,
    model::{Flight, FlightDump},
    report::perfetto,
};

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
}

impl FlightLog {
    /// Opens the first file and waits for SIGUSR1 from now on. Needs the runtime.
    pub(super) fn open(path: PathBuf) -> anyhow::Result<Self> {
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
        })
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
}
