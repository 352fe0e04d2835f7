//! Ways to hand a token to another thread, and to wait for one.

use std::{
    fmt, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    str::FromStr,
    sync::{
        Arc,
        atomic::{
            AtomicU32,
            Ordering::{Acquire, Release},
        },
    },
};

use rustix::{
    event::{EventfdFlags, eventfd},
    io::{Errno, read, retry_on_intr, write},
    thread::futex,
};

use crate::Error;

/// What carries the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A pipe each way.
    Pipe,
    /// A pair of `AF_UNIX` stream sockets.
    Unix,
    /// An eventfd each way.
    Eventfd,
    /// A futex each way.
    Futex,
}

const NAMES: [(Transport, &str); 4] = [
    (Transport::Pipe, "pipe"),
    (Transport::Unix, "unix"),
    (Transport::Eventfd, "eventfd"),
    (Transport::Futex, "futex"),
];

impl Transport {
    /// Its name, in JSON too.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = NAMES.into_iter().find(|(transport, _)| *transport == self);
        found.map_or("", |(_, name)| name)
    }

    /// Whether it carries bytes, so that it has a bandwidth.
    #[must_use]
    pub const fn carries_bytes(self) -> bool {
        matches!(self, Self::Pipe | Self::Unix)
    }

    /// Why it could not be had, or broke.
    pub(super) fn failed(self, source: io::Error) -> Error {
        Error::Transport {
            transport: self.name(),
            source,
        }
    }

    /// Both ends of a new connection.
    pub(super) fn connect(self) -> io::Result<[End; 2]> {
        match self {
            Self::Pipe => {
                let (first_in, to_first) = io::pipe()?;
                let (second_in, to_second) = io::pipe()?;
                Ok([
                    End::stream(first_in.into(), to_second.into()),
                    End::stream(second_in.into(), to_first.into()),
                ])
            }
            Self::Unix => {
                let (one, other) = UnixStream::pair()?;
                let end = |socket: UnixStream| -> io::Result<End> {
                    Ok(End::stream(socket.try_clone()?.into(), socket.into()))
                };
                Ok([end(one)?, end(other)?])
            }
            Self::Eventfd => {
                let counter =
                    || -> io::Result<_> { Ok(Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?)) };
                let [one, other] = [counter()?, counter()?];
                Ok([
                    End::Counter {
                        from: Arc::clone(&one),
                        to: Arc::clone(&other),
                    },
                    End::Counter {
                        from: other,
                        to: one,
                    },
                ])
            }
            Self::Futex => {
                let [one, other] = [Arc::<Word>::default(), Arc::default()];
                Ok([
                    End::Futex {
                        from: Arc::clone(&one),
                        to: Arc::clone(&other),
                    },
                    End::Futex {
                        from: other,
                        to: one,
                    },
                ])
            }
        }
    }
}

impl FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.into_iter().find(|(_, name)| *name == text);
        found
            .map(|(transport, _)| transport)
            .ok_or_else(|| "a transport is one of pipe, unix, eventfd, futex".into())
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A token: go on.
pub(super) const GO: u8 = 1;

/// A token: a run is over.
pub(super) const MARK: u8 = 2;

/// A token: it is all over.
pub(super) const END: u8 = 3;

/// A futex that shares its cache line with nothing.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Word(AtomicU32);

/// One end of a connection.
#[derive(Debug)]
pub(super) enum End {
    /// Two descriptors of bytes.
    Stream { from: OwnedFd, to: OwnedFd },
    /// Two eventfds.
    Counter {
        from: Arc<OwnedFd>,
        to: Arc<OwnedFd>,
    },
    /// Two futexes.
    Futex { from: Arc<Word>, to: Arc<Word> },
}

impl End {
    const fn stream(from: OwnedFd, to: OwnedFd) -> Self {
        Self::Stream { from, to }
    }

    /// Hands a token over.
    pub(super) fn send(&self, token: u8) -> io::Result<()> {
        match self {
            Self::Stream { to, .. } => write_all(to, &[token]),
            Self::Counter { to, .. } => {
                retry_on_intr(|| write(to, &u64::from(token).to_ne_bytes()))?;
                Ok(())
            }
            Self::Futex { to, .. } => {
                to.0.store(token.into(), Release);
                futex::wake(&to.0, futex::Flags::PRIVATE, 1)?;
                Ok(())
            }
        }
    }

    /// Waits for a token; [`END`] where the other end is gone.
    pub(super) fn receive(&self) -> io::Result<u8> {
        match self {
            Self::Stream { from, .. } => {
                let mut token = [END];
                retry_on_intr(|| read(from, &mut token))?;
                Ok(token[0])
            }
            Self::Counter { from, .. } => {
                let mut count = [0; 8];
                retry_on_intr(|| read(from, &mut count))?;
                // Tokens are handed over one at a time, so that they do not add up.
                Ok(u8::try_from(u64::from_ne_bytes(count)).unwrap_or(END))
            }
            Self::Futex { from, .. } => loop {
                match from.0.swap(0, Acquire) {
                    0 => wait(&from.0)?,
                    token => return Ok(u8::try_from(token).unwrap_or(END)),
                }
            },
        }
    }

    /// Sends bytes over a stream.
    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stream { to, .. } => write_all(to, bytes),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Receives bytes from a stream; none where the other end is gone.
    pub(super) fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stream { from, .. } => Ok(retry_on_intr(|| read(from, &mut *bytes))?),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

fn write_all(to: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        let n_bytes = retry_on_intr(|| write(&to, left))?;
        left = &left[n_bytes..];
    }
    Ok(())
}

/// Sleeps while the word is 0.
fn wait(word: &AtomicU32) -> io::Result<()> {
    match futex::wait(word, futex::Flags::PRIVATE, 0, None) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(cause) => Err(cause.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Transport; 4] = [
        Transport::Pipe,
        Transport::Unix,
        Transport::Eventfd,
        Transport::Futex,
    ];

    #[test]
    fn tokens_arrive_one_by_one_in_both_directions() {
        for transport in ALL {
            let [here, there] = transport.connect().unwrap();
            let other = std::thread::spawn(move || {
                let mut tokens = Vec::new();
                while tokens.last() != Some(&END) {
                    tokens.push(there.receive().unwrap());
                    there.send(GO).unwrap();
                }
                tokens
            });
            for token in [GO, MARK, GO, END] {
                here.send(token).unwrap();
                assert_eq!(here.receive().unwrap(), GO, "{transport}");
            }
            assert_eq!(other.join().unwrap(), [GO, MARK, GO, END], "{transport}");
        }
    }

    #[test]
    fn a_stream_whose_other_end_is_gone_is_over() {
        for transport in ALL.into_iter().filter(|it| it.carries_bytes()) {
            let [here, there] = transport.connect().unwrap();
            drop(there);
            assert_eq!(here.receive().unwrap(), END);
            assert_eq!(here.read(&mut [0; 8]).unwrap(), 0);
        }
    }

    #[test]
    fn transports_are_read_as_they_are_shown() {
        for transport in ALL {
            assert_eq!(transport.to_string().parse(), Ok(transport));
        }
        assert!("tcp".parse::<Transport>().is_err());
    }
}
