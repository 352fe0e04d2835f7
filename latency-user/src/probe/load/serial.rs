//! The load `serial`: lines written to a terminal.
//!
//! To a port only where the user names one, since nobody knows what listens at the other end; without,
//! to a pair of pseudo-terminals, whose lines go through the same layers of the kernel.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    path::Path,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::Errno,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{QueueSelector, isatty, tcflush},
};

use super::worker::{Job, Meter};

/// A line of a terminal.
const LINE: &[u8; 80] =
    b"0123456789 abcdefghijklmnopqrstuvwxyz 0123456789 ABCDEFGHIJKLMNOPQRSTUVWXYZ 012\n";

/// How long to wait for a port that is busy before looking whether the load is over.
const PATIENCE: Duration = Duration::from_millis(20);

pub(super) fn jobs(port: Option<&Path>) -> io::Result<Vec<Job>> {
    match port {
        Some(port) => {
            let port = open(port, OFlags::NONBLOCK)?;
            Ok(vec![Box::new(move |meter: &Meter| to_port(port, meter))])
        }
        None => pair(),
    }
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    // It must not become the terminal that controls this process.
    let flags = i32::try_from((OFlags::NOCTTY | flags).bits()).map_err(io::Error::other)?;
    let mut options = OpenOptions::new();
    let opened = options
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(path);
    let named = |cause| io::Error::other(format!("{}: {cause}", path.display()));
    let file = opened.map_err(named)?;
    if isatty(&file) {
        Ok(file)
    } else {
        Err(named(io::Error::other("it is no terminal")))
    }
}

/// Two ends of a terminal, and a worker at each.
fn pair() -> io::Result<Vec<Job>> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let terminal = open(
        Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())),
        OFlags::empty(),
    )?;
    let master = File::from(master);
    Ok(vec![
        Box::new(move |meter: &Meter| write(terminal, meter)),
        Box::new(move |_: &Meter| read(master)),
    ])
}

fn write(mut terminal: File, meter: &Meter) -> io::Result<()> {
    while meter.goes_on() {
        terminal.write_all(LINE)?;
        meter.count(LINE.len());
    }
    Ok(())
}

/// Reads until the other end is closed, which is an error of its own.
fn read(mut master: File) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        match master.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(cause) if cause.raw_os_error() == Some(Errno::IO.raw_os_error()) => return Ok(()),
            Err(cause) => return Err(cause),
        }
    }
}

/// Keeps the port busy; what it has not sent at the end is forgotten, so that closing does not wait.
fn to_port(mut port: File, meter: &Meter) -> io::Result<()> {
    let patience = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
    while meter.goes_on() {
        match port.write(LINE) {
            Ok(n_bytes) => meter.count(n_bytes),
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(&port, PollFlags::OUT)], Some(&patience))?;
            }
            Err(cause) => return Err(cause),
        }
    }
    Ok(tcflush(&port, QueueSelector::OFlush)?)
}
