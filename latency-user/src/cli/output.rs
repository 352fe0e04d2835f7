//! Where results go: standard output, or a file that is opened before anything is measured.

use std::{
    fs::File,
    io::{self, Write as _},
    path::PathBuf,
};

use crate::Error;

/// An open destination.
#[derive(Debug)]
pub(super) struct Output {
    file: Option<(PathBuf, File)>,
    is_closed: bool,
}

impl Output {
    /// Opens the file, or takes standard output.
    pub(super) fn open(path: Option<PathBuf>) -> Result<Self, Error> {
        let file = path.map(|path| match File::create(&path) {
            Ok(file) => Ok((path, file)),
            Err(source) => Err(Error::Output { path, source }),
        });
        Ok(Self {
            file: file.transpose()?,
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
            file.write_all(text.as_bytes())
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
