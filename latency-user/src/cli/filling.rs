//! Waiting for a ring that fills faster than it is emptied.

use std::os::fd::OwnedFd;

use tokio::io::{Interest, unix::AsyncFd};

use crate::{Error, observe::Session};

/// The ring of a session; the kernel side says when it should not wait for the next turn.
#[derive(Debug)]
pub(super) struct Filling(AsyncFd<OwnedFd>);

impl Filling {
    pub(super) fn of(session: &Session) -> Result<Self, Error> {
        let ring = session.ring()?;
        // SAFETY: a descriptor of our own, which stays the same and open until the value is dropped.
        let registered = unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) };
        registered
            .map(Self)
            .map_err(|error| Error::Setup(format!("cannot wait for the ring: {error}")))
    }

    /// Returns when the ring should be emptied; never where it cannot be told.
    pub(super) async fn wait(&self) {
        match self.0.readable().await {
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => std::future::pending().await,
        }
    }
}
