//! The signals that ask us to end, which always end in a report.

use std::io;

use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
};

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Ctrl-C, which commands that we run get as well.
    Interrupt,
    /// SIGTERM, or the end of the terminal.
    Terminate,
}

/// The signals that end a recording.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None under `nohup`.
    hangup: Option<Signal>,
}

/// What a command runs on, and the signals, which from now on end in a report.
pub(super) fn runtime() -> io::Result<(Runtime, Signals)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _context = runtime.enter();
        Signals::install()?
    };
    Ok((runtime, signals))
}

impl Signals {
    /// Needs the runtime.
    fn install() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if is_hangup_ignored() {
                None
            } else {
                Some(signal(SignalKind::hangup())?)
            },
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => Request::Interrupt,
            _ = self.terminate.recv() => Request::Terminate,
            () = arrival(&mut self.hangup) => Request::Terminate,
        }
    }
}

async fn arrival(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => signal.recv().await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

/// Whether somebody, such as `nohup`, has decided that we survive the terminal.
fn is_hangup_ignored() -> bool {
    const SIGHUP_BIT: u64 = 1 << (libc::SIGHUP - 1);
    procfs::process::Process::myself()
        .and_then(|myself| myself.status())
        .is_ok_and(|status| status.sigign & SIGHUP_BIT != 0)
}

/// From now on Ctrl-C ends the process at once, be it in the middle of a long report: it is the second
/// one, or nothing is left but to wait for the command.
pub(super) fn reset_interrupt() {
    use nix::sys::signal::{SigHandler, Signal::SIGINT, signal};
    // SAFETY: the default action runs no code of ours.
    unsafe { signal(SIGINT, SigHandler::SigDfl) }
        .map(|_| ())
        .unwrap_or_default();
}
