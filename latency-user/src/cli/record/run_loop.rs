//! The recording itself: its clock, its signals, and its end.
//!
//! It ends with the duration, the command, the last target, a signal, or a reader that went away, and
//! always with a report.

use std::{
    io::{self, IsTerminal as _, Write as _},
    process::ExitStatus,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::{
    flight::FlightLog,
    printer::{Closing, Printer},
};
use crate::{
    analysis,
    cli::{
        filling::Filling,
        signals::{Request, Signals, reset_interrupt},
    },
    model::{DumpReason, Observation},
    observe::{Child, Session, SessionOptions},
    units::Nanos,
};

/// How often the ring is emptied.
const TURN: Duration = Duration::from_millis(100);

/// When to end and when to print.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) duration: Option<Nanos>,
    pub(super) interval: Option<Nanos>,
}

/// How it went.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The audit holds.
    pub(super) is_sound: bool,
    /// Status of the command, if there was one.
    pub(super) child: Option<ExitStatus>,
}

/// What ended the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Duration,
    Request(Request),
    Child(ExitStatus),
    TargetsGone,
    ReaderGone,
}

/// Records, prints and waits for the command.
pub(super) async fn record(
    options: &SessionOptions,
    plan: Plan,
    printer: Printer,
    signals: Signals,
    flight: Option<FlightLog>,
) -> anyhow::Result<Outcome> {
    let (session, child) = Session::start(options)?;
    let previous = Observation::at_start(session.started_at());
    let mut recording = Recording {
        session,
        child,
        signals,
        printer,
        flight,
        previous,
    };
    let cpu_at_start = cpu_time();
    let end = recording.observe(plan).await?;
    if matches!(end, End::Request(_)) {
        reset_interrupt();
    }
    if let (End::Request(Request::Terminate), Some(child)) = (end, &recording.child) {
        child.terminate();
    }
    let mut whole = recording.session.last_snapshot()?;
    // A dump that they ask for is made at once.
    recording.print_waits()?;
    recording.dump(DumpReason::End);
    if plan.interval.is_some() {
        recording.print_interval(&whole)?;
    }
    let cpu_pct = percent_of_window(cpu_time().saturating_sub(cpu_at_start), &whole);
    recording.session.name_functions(&mut whole);
    let Recording {
        session,
        child,
        signals,
        mut printer,
        flight,
        ..
    } = recording;
    let (dumps, failure) = flight.map(FlightLog::finish).unwrap_or_default();
    let closing = Closing {
        degraded: session.degraded(),
        recorder_cpu_pct: cpu_pct,
        flight: &dumps,
    };
    let is_sound = printer.whole(&whole, &closing)?;
    drop(session);
    if child.is_some() {
        reset_interrupt();
    }
    let child = match (end, child) {
        (End::Child(status), _) => Some(status),
        (_, Some(child)) => Some(outlived_by(child, signals).await?),
        (_, None) => None,
    };
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(Outcome { is_sound, child }),
    }
}

/// Waits for a command that outlives its recording. What asks us to end is meant for it, each time.
async fn outlived_by(mut child: Child, mut signals: Signals) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            request = signals.next() => {
                if request == Request::Terminate {
                    child.terminate();
                }
            }
        }
    }
}

/// A recording that goes on, with what may end it and where it is printed.
struct Recording {
    session: Session,
    child: Option<Child>,
    signals: Signals,
    printer: Printer,
    flight: Option<FlightLog>,
    /// The snapshot at the end of the last interval; empty at the start.
    previous: Observation,
}

impl Recording {
    /// Keeps the session going and prints the intervals, until something ends the recording.
    async fn observe(&mut self, plan: Plan) -> anyhow::Result<End> {
        let start = Instant::now();
        let deadline = plan
            .duration
            .map(|duration| start + Duration::from(duration));
        let mut next_cost = start;
        let mut turns = interval_at(start, TURN);
        turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let period = plan.interval.map_or(Duration::MAX, Duration::from);
        let mut next_interval = start.checked_add(period);
        self.printer.start(self.session.started_at())?;
        let progress = Progress::new(start, plan.duration);
        let filling = Filling::of(&self.session)?;
        let end = loop {
            tokio::select! {
                biased;
                () = until(deadline) => break End::Duration,
                request = self.signals.next() => break End::Request(request),
                status = end_of(&mut self.child) => break End::Child(status?),
                () = requested(&mut self.flight) => self.dump(DumpReason::Signal),
                () = sleep_until(next_cost) => {
                    next_cost = Instant::now() + self.session.measure_cost();
                }
                _ = turns.tick() => {
                    self.session.turn()?;
                    if self.print_waits()? {
                        self.dump(DumpReason::Wait);
                    }
                    progress.show();
                    if self.session.are_targets_gone() {
                        break End::TargetsGone;
                    }
                }
                () = filling.wait() => self.session.empty_rings(),
                // Last, because intervals shorter than it takes to print them would keep the others
                // from their turn for ever.
                () = until(next_interval) => {
                    let at = next_interval.unwrap_or(start);
                    next_interval = next_after(at, period, Instant::now());
                    // The last interval is printed at the end, together with what is left of the time.
                    if deadline.is_some_and(|deadline| deadline < at + period / 2) {
                        continue;
                    }
                    let now = self.session.snapshot()?;
                    self.print_interval(&now)?;
                    self.previous = now;
                }
            }
            if self.printer.output.is_closed() {
                break End::ReaderGone;
            }
        };
        progress.clear();
        Ok(end)
    }

    /// Saves what the flight recorder holds; nothing where it is off.
    fn dump(&mut self, reason: DumpReason) {
        if let Some(log) = &mut self.flight
            && let Some(dump) = self.session.dump(reason, log.marked())
        {
            log.write(dump);
        }
    }

    /// Prints the waits over the threshold that have ended since the last time; whether they ask for
    /// a dump.
    fn print_waits(&mut self) -> Result<bool, crate::Error> {
        let events = self.session.take_over();
        if events.is_empty() {
            return Ok(false);
        }
        let irqs = self.session.irq_names();
        let names = self.session.names_of(&events);
        self.printer.waits(&events, &irqs, &names)?;
        let flight = self.flight.as_mut();
        Ok(flight.is_some_and(|log| log.note(&events, &irqs)))
    }

    /// Prints what happened between the previous snapshot and `now`.
    fn print_interval(&mut self, now: &Observation) -> Result<(), crate::Error> {
        self.printer
            .interval(&analysis::difference(now, &self.previous))
    }
}

/// When the interval after the one that was due at `at` ends. Those missed while stopped are left out:
/// the one that was due covers their time.
fn next_after(at: Instant, period: Duration, now: Instant) -> Option<Instant> {
    let late = now.saturating_duration_since(at);
    let since_last = late.as_nanos() % period.as_nanos().max(1);
    let since_last = Duration::from_nanos(u64::try_from(since_last).ok()?);
    at.checked_add(late)?
        .checked_add(period.saturating_sub(since_last))
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn requested(flight: &mut Option<FlightLog>) {
    match flight {
        Some(flight) => flight.requested().await,
        None => std::future::pending().await,
    }
}

async fn end_of(child: &mut Option<Child>) -> io::Result<ExitStatus> {
    match child {
        Some(child) => child.wait().await,
        None => std::future::pending().await,
    }
}

/// A line on the terminal that says how far the recording is; nothing where there is none.
#[derive(Debug)]
struct Progress {
    start: Instant,
    duration: Option<Nanos>,
    is_shown: bool,
}

impl Progress {
    fn new(start: Instant, duration: Option<Nanos>) -> Self {
        Self {
            start,
            duration,
            is_shown: io::stderr().is_terminal(),
        }
    }

    fn show(&self) {
        let seconds = self.start.elapsed().as_secs();
        let end = match self.duration {
            Some(duration) => format!("{seconds} s of {duration}"),
            None => format!("{seconds} s"),
        };
        self.print(&format!(
            "\rrecording, {end}; Ctrl-C ends it with a report "
        ));
    }

    fn clear(&self) {
        self.print("\r\x1b[K");
    }

    fn print(&self, text: &str) {
        if self.is_shown {
            // Progress that cannot be shown is no reason to stop.
            io::stderr().write_all(text.as_bytes()).unwrap_or_default();
        }
    }
}

fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

fn percent_of_window(used: Duration, whole: &Observation) -> f64 {
    let window = Duration::from_nanos(whole.end_at_ns - whole.start_at_ns);
    if window.is_zero() {
        0.0
    } else {
        100.0 * used.as_secs_f64() / window.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_missed_are_left_out_and_the_rhythm_stays() {
        let start = Instant::now();
        let ms = |n| start + Duration::from_millis(n);
        let second = Duration::from_secs(1);
        assert_eq!(next_after(ms(1000), second, ms(1000)), Some(ms(2000)));
        assert_eq!(next_after(ms(1000), second, ms(1999)), Some(ms(2000)));
        assert_eq!(next_after(ms(1000), second, ms(9300)), Some(ms(10_000)));
        let shortest = Duration::from_nanos(1);
        assert_eq!(
            next_after(start, shortest, ms(9000)),
            Some(ms(9000) + shortest)
        );
        assert_eq!(next_after(start, Duration::MAX, start), None);
    }
}
