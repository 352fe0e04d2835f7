//! The load `net`: a stream and datagrams over loopback, so softirqs and wakeups out of them.

use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
};

use super::worker::{Job, Meter};

const BLOCK: usize = 16 << 10;

const DATAGRAM: usize = 64;

/// Datagrams after each block of the stream.
const N_DATAGRAMS: usize = 4;

pub(super) fn jobs() -> io::Result<Vec<Job>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let stream = TcpStream::connect(listener.local_addr()?)?;
    let (other_end, _) = listener.accept()?;
    let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    datagrams.connect(datagrams.local_addr()?)?;
    datagrams.set_nonblocking(true)?;
    Ok(vec![
        Box::new(move |meter: &Meter| send(stream, &datagrams, meter)),
        Box::new(move |_: &Meter| receive(other_end)),
    ])
}

fn send(mut stream: TcpStream, datagrams: &UdpSocket, meter: &Meter) -> io::Result<()> {
    let block = [3; BLOCK];
    let mut datagram = [5; DATAGRAM];
    while meter.goes_on() {
        stream.write_all(&block)?;
        let mut n_bytes = block.len();
        for _ in 0..N_DATAGRAMS {
            n_bytes += unless_busy(datagrams.send(&datagram))?;
            unless_busy(datagrams.recv(&mut datagram))?;
        }
        meter.count(n_bytes);
    }
    Ok(())
}

/// A datagram more or less does not matter.
fn unless_busy(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(cause) if cause.kind() == ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}

/// Until the other end is closed.
fn receive(mut stream: TcpStream) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    while stream.read(&mut block)? > 0 {}
    Ok(())
}
