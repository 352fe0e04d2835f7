//! The load `pipe`: two threads of a CPU hand a message to and fro, with a switch each time.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};

use super::worker::{Job, Meter};

const MESSAGE: usize = 64;

pub(super) fn jobs() -> io::Result<Vec<Job>> {
    let (request_in, request_out) = io::pipe()?;
    let (answer_in, answer_out) = io::pipe()?;
    Ok(vec![
        Box::new(move |meter: &Meter| ask(request_out, answer_in, meter)),
        Box::new(move |_: &Meter| answer(request_in, answer_out)),
    ])
}

fn ask(mut out: PipeWriter, mut back: PipeReader, meter: &Meter) -> io::Result<()> {
    let mut message = [7; MESSAGE];
    while meter.goes_on() {
        out.write_all(&message)?;
        back.read_exact(&mut message)?;
        meter.count(2 * MESSAGE);
    }
    Ok(())
}

/// Until the other end is closed.
fn answer(mut requests: PipeReader, mut back: PipeWriter) -> io::Result<()> {
    let mut message = [0; MESSAGE];
    loop {
        let n_bytes = requests.read(&mut message)?;
        if n_bytes == 0 {
            return Ok(());
        }
        back.write_all(&message[..n_bytes])?;
    }
}
