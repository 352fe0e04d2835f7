//! Where results go: standard output, or a file that is opened before anything is measured.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::Error;

/// An open destination.
#[derive(Debug)]
pub(super) struct Output {
    file: Option<(PathBuf, File)>,
    /// Something was written, in place of what the file held before.
    has_begun: bool,
    is_closed: bool,
}

impl Output {
    /// Opens the file, or takes standard output.
    pub(super) fn open(path: Option<PathBuf>) -> Result<Self, Error> {
        let file = path.map(|path| match open_file(&path) {
            Ok(file) => Ok((path, file)),
            Err(source) => Err(Error::Output { path, source }),
        });
        Ok(Self {
            file: file.transpose()?,
            has_begun: false,
            is_closed: false,
        })
    }

    /// Whether nobody reads any more.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Writes at once. A reader that went away is no error: it has read what it wanted.
    pub(super) fn write(&mut self, text: &str) -> Result<(), Error> {
        if self.is_closed {
            return Ok(());
        }
        let written = if let Some((_, file)) = &mut self.file {
            // An earlier report stays until there is a new one: recording may turn out impossible.
            let emptied = if self.has_begun { Ok(()) } else { empty(file) };
            self.has_begun = true;
            emptied.and_then(|()| file.write_all(text.as_bytes()))
        } else {
            let mut stdout = io::stdout().lock();
            stdout
                .write_all(text.as_bytes())
                .and_then(|()| stdout.flush())
        };
        let Err(source) = written else {
            return Ok(());
        };
        if source.kind() == io::ErrorKind::BrokenPipe {
            self.is_closed = true;
            return Ok(());
        }
        let path = self
            .file
            .as_ref()
            .map_or("standard output".into(), |it| it.0.clone());
        Err(Error::Output { path, source })
    }
}

/// Opens a file for a result that is yet to come; what it holds stays until then.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Empties a file; there is nothing to empty in a pipe or a device.
pub(super) fn empty(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn earlier_report_stays_until_there_is_a_new_one() {
        let name = format!("schedlat-output-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, "a long earlier report").unwrap();
        let mut output = Output::open(Some(path.clone())).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a long earlier report");
        output.write("new").unwrap();
        output.write(", whole").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new, whole");
        fs::remove_file(path).unwrap();
    }
}
