//! Runs other programs and turns their failure into an error that shows the command line.
//!
//! Promises: output goes straight to the terminal unless a function says that it captures it.
//! Leaves to others: what the programs are for.

use std::env;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};

/// Runs `command` to its end, its output on the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// Runs `command` to its end, its output on the terminal as it comes, and returns that as well.
pub(crate) fn run_and_keep(command: &mut Command) -> Result<(Result<()>, String)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{}`", line(command)))?;
    let mut kept = String::new();
    if let Some(output) = child.stdout.take() {
        for text in BufReader::new(output).split(b'\n') {
            let text = text.context("cannot read what it prints")?;
            let text = String::from_utf8_lossy(&text);
            println!("{text}");
            kept.push_str(&text);
            kept.push('\n');
        }
    }
    let status = child.wait().context("cannot wait for it")?;
    let outcome = if status.success() {
        Ok(())
    } else {
        Err(anyhow!("`{}` failed: {status}", line(command)))
    };
    Ok((outcome, kept))
}

/// Runs `command` to its end and returns what it printed.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}`", line(command)))?;
    if !output.status.success() {
        bail!(
            "`{}` failed: {}\n{}",
            line(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something that is not text", line(command)))
}

/// The cargo that runs this task, or the one in `PATH`.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The folder in which cargo keeps its registry and installed programs.
pub(crate) fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    env::home_dir()
        .map(|home| home.join(".cargo"))
        .context("neither CARGO_HOME nor HOME is set")
}

/// Where `program` is, looking through `PATH` and the folders that root's `PATH` usually has.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// Whether we are root, which the kernel tests and `apt-get install` need.
pub(crate) fn is_root() -> bool {
    // The owner of this process's folder in /proc is its effective user.
    use std::os::unix::fs::MetadataExt as _;
    Path::new("/proc/self")
        .metadata()
        .is_ok_and(|proc| proc.uid() == 0)
}

fn line(command: &Command) -> String {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect();
    words.join(" ").replace('\u{1f}', " ")
}
