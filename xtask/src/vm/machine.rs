//! One emulated machine: from power-on to the guest's verdict.
//!
//! Promises: only the line `guest: verdict pass` passes; a panic, silence and a hang are failures
//! that show the last lines of the console, which is kept whole.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::kernel::Kernel;
use super::plan::Plan;
use crate::project;

/// An emulated boot takes half a minute and the guest's checks a few, several times that where the host
/// has other work; a hang is what takes longer.
const TIMEOUT: Duration = Duration::from_mins(40);

/// How much of the console a failure shows.
const N_SHOWN: usize = 30;

/// Boots `kernel` with `initramfs` in the machine of `plan`, and returns when its guest has passed.
pub(crate) fn run(plan: Plan<'_>, kernel: &Kernel, initramfs: &Path) -> Result<()> {
    let name = plan.name;
    let log = project::target("vm").join(format!("{name}.log"));
    println!(
        "vm {name}: starting {}, console in {}",
        kernel.version,
        log.display()
    );
    let start = Instant::now();
    let mut machine = Machine::start(plan, kernel, initramfs)?;
    let console = machine.watch(name, &log)?;
    judge(&console)
        .with_context(|| format!("kernel {}, console in {}", kernel.version, log.display()))?;
    let took_s = start.elapsed().as_secs();
    println!("vm {name}: pass, {} in {took_s} s", kernel.version);
    Ok(())
}

/// Only the guest's verdict counts: whoever cannot say it has not passed.
fn judge(console: &[String]) -> Result<()> {
    let said = || console.iter().filter_map(|line| said_by_guest(line));
    let problem = match said().find_map(|said| said.strip_prefix("verdict ")) {
        Some("pass") => return Ok(()),
        Some(_) => "the guest's checks failed",
        None if console.iter().any(|line| line.contains("Kernel panic")) => "the kernel panicked",
        None => "the machine ended or hung without a verdict",
    };
    let last = console
        .iter()
        .skip(console.len().saturating_sub(N_SHOWN))
        .map(String::as_str);
    let shown: Vec<_> = last
        .chain(said().filter(|said| said.starts_with("fail ")))
        .collect();
    bail!("{problem}\n  {}", shown.join("\n  "))
}

/// The kernel may have left half a line of its own before what the guest says.
fn said_by_guest(line: &str) -> Option<&str> {
    line.split_once("guest: ").map(|(_, said)| said)
}

/// A running emulator, ended when dropped.
#[derive(Debug)]
struct Machine {
    emulator: Child,
    deadline: Instant,
}

impl Machine {
    fn start(plan: Plan<'_>, kernel: &Kernel, initramfs: &Path) -> Result<Self> {
        let only = plan.only.map(|only| format!(" schedlat.only={only}"));
        let architecture = plan.architecture;
        // Guards against speculation have nothing to guard in an emulated processor, and take time.
        let command_line = format!(
            "{} mitigations=off panic=-1 schedlat.checks={}{}",
            architecture.boot_parameters(),
            plan.checks(),
            only.unwrap_or_default()
        );
        let emulator = Command::new(architecture.emulator())
            // Emulation in several threads sometimes breaks the kernel's patching of its own text.
            .args(["-accel", "tcg,thread=single"])
            .args(architecture.hardware())
            .args(["-smp", plan.cpus(), "-m", "1024"])
            .args(["-nodefaults", "-no-user-config", "-no-reboot"])
            .args(["-display", "none", "-serial", "stdio", "-kernel"])
            .arg(&kernel.image)
            .arg("-initrd")
            .arg(initramfs)
            .args(["-append", &command_line])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", architecture.emulator()))?;
        Ok(Self {
            emulator,
            deadline: Instant::now() + TIMEOUT,
        })
    }

    /// Follows the console to its end or the deadline, and returns its lines.
    fn watch(&mut self, name: &str, log: &Path) -> Result<Vec<String>> {
        let output = self
            .emulator
            .stdout
            .take()
            .context("the console has no pipe")?;
        let mut log_file =
            File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
        let lines = read_lines(output);
        let mut console = Vec::new();
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        while let Ok(line) = lines.recv_timeout(left(self.deadline)) {
            writeln!(log_file, "{line}")
                .with_context(|| format!("cannot write {}", log.display()))?;
            if let Some(said) = said_by_guest(&line)
                && (said.starts_with("pass ") || said.starts_with("fail "))
            {
                println!("vm {name}: {said}");
            }
            console.push(line);
        }
        Ok(console)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It has ended already unless it hangs; either way there is nothing left to do.
        drop(self.emulator.kill());
        drop(self.emulator.wait());
    }
}

/// Reads the console in a thread, because a hung machine says nothing for ever.
fn read_lines(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::judge;

    fn check(console: &[&str], expected: Result<(), &str>) {
        let lines: Vec<_> = console.iter().map(|&line| line.to_owned()).collect();
        let judged = judge(&lines).map_err(|error| error.to_string());
        let first_line = judged
            .as_ref()
            .map_err(|text| text.lines().next().unwrap_or_default());
        assert_eq!(first_line.copied(), expected);
    }

    #[test]
    fn verdict_of_the_guest_passes() {
        check(&["guest: pass burners", "guest: verdict pass"], Ok(()));
    }

    #[test]
    fn failed_check_fails() {
        check(&["guest: verdict fail"], Err("the guest's checks failed"));
    }

    #[test]
    fn passed_checks_without_a_verdict_are_no_pass() {
        let expected = Err("the machine ended or hung without a verdict");
        check(&["guest: pass burners"], expected);
        check(&[], expected);
    }

    #[test]
    fn verdict_counts_even_after_half_a_line_of_the_kernel() {
        check(&["[    3.1] clocksource: guest: verdict pass"], Ok(()));
    }

    #[test]
    fn panic_is_named() {
        check(
            &["[1.0] Kernel panic - not syncing"],
            Err("the kernel panicked"),
        );
    }
}
