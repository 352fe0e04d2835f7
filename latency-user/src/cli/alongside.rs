//! A recording that lasts as long as some work.

use std::{future::Future, pin::pin, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::{
    filling::Filling,
    signals::{Signals, reset_interrupt},
};
use crate::observe::Session;

/// How often the rings are emptied. Traced threads fill theirs quickly.
const TURN: Duration = Duration::from_millis(20);

/// Keeps the session going until the work is done.
///
/// Whoever asks us to end is passed on by `on_signal`, and the work is waited for; a second Ctrl-C ends
/// the process.
pub(super) async fn record_while<T>(
    session: &mut Session,
    signals: &mut Signals,
    work: impl Future<Output = T>,
    mut on_signal: impl FnMut(),
) -> anyhow::Result<T> {
    let mut work = pin!(work);
    let mut next_cost = Instant::now();
    let mut turns = interval(TURN);
    turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let filling = Filling::of(session)?;
    loop {
        tokio::select! {
            biased;
            _ = signals.next() => {
                reset_interrupt();
                on_signal();
            }
            done = &mut work => return Ok(done),
            () = sleep_until(next_cost) => next_cost = Instant::now() + session.measure_cost(),
            _ = turns.tick() => session.turn()?,
            () = filling.wait() => session.empty_rings(),
        }
    }
}
