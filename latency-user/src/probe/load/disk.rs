//! The load `disk`: blocks written to a file, with a wait for the disk after each mebibyte.
//!
//! The file has no name, so nothing is left of it, and it does not grow beyond a few mebibytes.

use std::{
    env,
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstatfs};

use super::worker::{Job, Meter};

/// File systems that have no disk below them: tmpfs and ramfs, by their magic numbers.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

const BLOCK: usize = 64 << 10;

/// Blocks between two waits for the disk.
const N_PER_WAIT: u64 = 16;

/// Size of the file, in blocks.
const N_BLOCKS: u64 = 128;

/// Aligned as writes past the page cache have to be.
#[repr(align(4096))]
struct Block([u8; BLOCK]);

pub(super) fn jobs() -> io::Result<Vec<Job>> {
    let candidates = [PathBuf::from("/var/tmp"), env::temp_dir()];
    let opened: Vec<_> = candidates.iter().map(|folder| open(folder)).collect();
    let reason = |(folder, result): (&PathBuf, &io::Result<File>)| {
        let cause = result.as_ref().err()?;
        Some(format!("{}: {cause}", folder.display()))
    };
    let reasons: Vec<_> = candidates.iter().zip(&opened).filter_map(reason).collect();
    let Some(file) = opened.into_iter().find_map(Result::ok) else {
        let tried = reasons.join("; ");
        return Err(io::Error::other(format!("no file can be had: {tried}")));
    };
    Ok(vec![Box::new(move |meter: &Meter| write(&file, meter))])
}

/// A file without a name in a folder on a disk.
fn open(folder: &Path) -> io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    let magic = u64::try_from(fstatfs(&file)?.f_type).unwrap_or(0) & 0xffff_ffff;
    if IN_MEMORY.contains(&magic) {
        return Err(io::Error::other("it is in memory"));
    }
    // Where this is refused, the waits still wait for the disk.
    fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::DIRECT).unwrap_or_default();
    Ok(file)
}

fn write(file: &File, meter: &Meter) -> io::Result<()> {
    let block = Box::new(Block([0xa5; BLOCK]));
    let mut n_written = 0_u64;
    while meter.goes_on() {
        file.write_all_at(&block.0, n_written % N_BLOCKS * BLOCK as u64)?;
        n_written += 1;
        if n_written.is_multiple_of(N_PER_WAIT) {
            file.sync_data()?;
        }
        meter.count(BLOCK);
    }
    Ok(())
}
