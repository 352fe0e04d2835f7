//! Loads that run beside a probe, and end with it however it ends.
//!
//! Owns their names and what they did. A load is a process of its own, a companion: its memory,
//! locks and signals are not the probe's. It is bounded in memory, disk and processes, has the fair
//! policy, and one worker on each CPU it is given.

mod command;
mod companion;
mod cpu;
mod disk;
mod fork;
mod memory;
mod net;
mod pipe;
mod serial;
mod worker;

use std::{fmt, path::PathBuf, str::FromStr};

use serde::{Deserialize, Serialize};

pub(super) use companion::Companion;
pub use companion::Message;
pub use worker::{keep, run};

use crate::{Error, analysis::escape};

/// The first argument of a companion, which is not for users to type.
pub const COMPANION: &str = "companion";

/// What to do to the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    None,
    /// Arithmetic.
    Cpu,
    /// Map, touch, copy and unmap memory.
    Memory,
    /// Write to a file that has no name, past the page cache where that can be, and wait for the disk.
    Disk,
    /// Write to a serial port, or to a terminal that has no hardware.
    Serial(Option<PathBuf>),
    /// Two threads hand a message to and fro.
    Pipe,
    /// Fork and execute processes that end at once.
    Fork,
    /// Send to itself over loopback, TCP and UDP.
    Net,
    /// A command of the user's, in its words.
    Command(Vec<String>),
}

impl Kind {
    /// The kinds that are built in, as they are typed.
    pub const NAMES: &'static str = "none, cpu, memory, disk, serial, pipe, fork, net";

    /// A command line, split as a shell would.
    pub fn command(line: &str) -> Result<Self, String> {
        match shell_words::split(line) {
            Ok(words) if words.is_empty() => Err("a load needs a command".into()),
            Ok(words) => Ok(Self::Command(words)),
            Err(cause) => Err(cause.to_string()),
        }
    }

    /// What a report calls it: as it is typed, but for what is not for a terminal.
    #[must_use]
    pub fn label(&self) -> String {
        escape::text(&self.to_string())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "none" => Self::None,
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            "disk" => Self::Disk,
            "serial" => Self::Serial(None),
            "pipe" => Self::Pipe,
            "fork" => Self::Fork,
            "net" => Self::Net,
            _ => match text.strip_prefix("serial:") {
                Some(port) if !port.is_empty() => Self::Serial(Some(port.into())),
                _ => return Err(format!("a load is one of {}", Self::NAMES)),
            },
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::None => "none",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Serial(None) => "serial",
            Self::Serial(Some(port)) => return write!(formatter, "serial:{}", port.display()),
            Self::Pipe => "pipe",
            Self::Fork => "fork",
            Self::Net => "net",
            Self::Command(words) => return formatter.write_str(&shell_words::join(words)),
        };
        formatter.write_str(name)
    }
}

/// What a load did until it was stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Turns of its workers; none of a command.
    pub n_iterations: u64,
    /// Bytes written, copied or handed over, where that is its work.
    pub n_bytes: u64,
    /// CPU time of its processes.
    pub cpu_ns: u64,
    /// Why it ended before it was stopped.
    pub failed: Option<String>,
}

/// A command that used less CPU time than this did nothing: starting a process takes about as much.
const LEAST_CPU_NS: u64 = 5_000_000;

impl Done {
    /// Whether it loaded nothing, or not to the end.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let has_worked = self.n_iterations > 0 || self.cpu_ns >= LEAST_CPU_NS;
        self.failed.is_some() || !has_worked
    }
}

/// A load that goes on until it is stopped or dropped.
#[derive(Debug)]
pub struct Load {
    /// None for the load that is none.
    companion: Option<Companion>,
}

impl Load {
    /// Starts it, one worker on each of the CPUs, and returns when it loads.
    pub fn start(kind: &Kind, cpus: &[u32]) -> Result<Self, Error> {
        let arguments = match kind {
            Kind::None => return Ok(Self { companion: None }),
            Kind::Command(words) => [vec!["command".into(), "--".into()], words.clone()].concat(),
            built_in => {
                let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
                let cpus = format!("--cpus={}", cpus.join(","));
                vec!["load".into(), built_in.to_string(), cpus]
            }
        };
        let failed = |why| Error::Load {
            load: kind.label(),
            why,
        };
        let companion = Companion::start(&arguments).map_err(failed)?;
        Ok(Self {
            companion: Some(companion),
        })
    }

    /// The process that loads, or that the command is a child of.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.companion.as_ref().map(Companion::pid)
    }

    /// Ends it, with everything it started; none for the load that is none.
    #[must_use]
    pub fn stop(self) -> Option<Done> {
        let ended_early = || Done {
            failed: Some("it was killed".into()),
            ..Done::default()
        };
        self.companion
            .map(|companion| companion.stop().unwrap_or_else(ended_early))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_load_is_read_as_it_is_shown() {
        for name in Kind::NAMES.split(", ").chain(["serial:/dev/ttyS1"]) {
            assert_eq!(name.parse::<Kind>().unwrap().to_string(), name);
        }
        for wrong in ["", "serial:", "CPU", "cpu,disk"] {
            assert!(wrong.parse::<Kind>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_command_is_split_as_a_shell_would() {
        let command = Kind::command("sh -c 'sleep  1; true' \"a b\"").unwrap();
        let words = ["sh", "-c", "sleep  1; true", "a b"].map(String::from);
        assert_eq!(command, Kind::Command(words.to_vec()));
        assert_eq!(Kind::command(&command.to_string()).unwrap(), command);
        assert!(Kind::command(" ").is_err() && Kind::command("a 'b").is_err());
    }

    #[test]
    fn no_load_does_nothing_and_idle_ones_are_told() {
        assert_eq!(Load::start(&Kind::None, &[0]).unwrap().stop(), None);
        let mut done = Done::default();
        assert!(done.has_failed());
        done.cpu_ns = LEAST_CPU_NS;
        assert!(!done.has_failed());
        // A slow disk takes no time of a CPU.
        (done.cpu_ns, done.n_iterations) = (0, 1);
        assert!(!done.has_failed());
        done.failed = Some("exit status: 1".into());
        assert!(done.has_failed());
    }
}
