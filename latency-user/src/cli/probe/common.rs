//! What all probes have in common on the command line: policies, CPUs, loads, what is observed
//! alongside, and where the report goes.

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use clap::{Args, ValueEnum};

use crate::{
    Error,
    cli::targets::TargetOptions,
    cpus::{CpuList, CpuListError},
    model::probe::Warning,
    observe::{Child, TargetArgs},
    probe::{
        Policy,
        load::{Kind, Load},
        preemption::{Choice, Preemption},
    },
};

/// Arguments of every probe.
#[derive(Debug, Args)]
pub(super) struct CommonArgs {
    /// Scheduling policies, one after the other: other, fifo:N, rr:N, deadline:RUNTIME/DEADLINE/PERIOD
    #[arg(long = "policy", value_name = "POLICY", value_delimiter = ',')]
    pub(super) policies: Vec<Policy>,
    /// CPUs to measure on, e.g. 0,2-3, or all that this process may use
    #[arg(long, value_name = "LIST|all")]
    pub(super) cpu: Option<CpuChoice>,
    /// Loads to run beside the probe, one after the other, each beside a measurement without: none,
    /// cpu, memory, disk, serial[:PORT], pipe, fork, net
    #[arg(long = "load", value_name = "LOAD", value_delimiter = ',')]
    loads: Vec<Kind>,
    /// A command to run as a load, e.g. 'stress-ng --cpu 2'
    #[arg(long = "load-cmd", value_name = "COMMAND", value_parser = Kind::command)]
    load_commands: Vec<Kind>,
    /// Preemption models of the kernel, one after the other: none, voluntary, full, lazy; the present one
    /// is put back, and what the kernel does not have is said
    #[arg(long = "preempt", value_name = "MODEL", value_delimiter = ',')]
    preemption: Vec<Preemption>,
    /// Those of them that the kernel lacks, once that is known
    #[arg(skip)]
    pub(super) absent: Vec<Warning>,
    /// Keep CPUs from idle states that take long to leave, as long as the probe lasts
    #[arg(long)]
    pub(super) no_cstates: bool,
    /// Observe the targets that follow as well, as `record` does
    #[arg(long)]
    also: bool,
    #[command(flatten)]
    targets: TargetOptions,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
    /// Write the report to a file
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Exit with 3 when the kernel does not bear the probe out
    #[arg(long)]
    pub(super) strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// A summary for people
    Text,
    /// Everything, for programs
    Json,
}

/// `--cpu` as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CpuChoice {
    All,
    List(CpuList),
}

/// One combination to measure.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// The kernel's preemption model, where it is switched.
    pub(super) preemption: Option<Preemption>,
    /// What runs beside.
    pub(super) load: Kind,
    /// The policy of the probe's threads.
    pub(super) policy: Policy,
}

impl CommonArgs {
    /// Every combination that was asked for, in the order in which they are measured. Without policies
    /// `default` is measured. A load is never measured without none beside it.
    pub(super) fn settings(&self, default: &[Policy]) -> Vec<Setting> {
        let models: Vec<_> = match &self.preemption[..] {
            [] => vec![None],
            models => models.iter().copied().map(Some).collect(),
        };
        let mut loads = vec![Kind::None];
        for load in self.loads.iter().chain(&self.load_commands) {
            if !loads.contains(load) {
                loads.push(load.clone());
            }
        }
        let policies = match &self.policies[..] {
            [] => default,
            policies => policies,
        };
        let mut settings = Vec::new();
        for preemption in models {
            for policy in policies {
                settings.extend(loads.iter().map(|load| Setting {
                    preemption,
                    load: load.clone(),
                    policy: *policy,
                }));
            }
        }
        settings
    }

    /// Refuses what cannot be, and leaves out the models that the kernel lacks, before anything is
    /// measured.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        if self.also == self.targets.is_empty() {
            let (option, with) = if self.also {
                ("--also", "no target")
            } else {
                ("a target", "a probe without --also")
            };
            let help = "put --also before the targets that are to be observed alongside, e.g. --also --pid 1";
            return Err(Error::Conflict { option, with, help });
        }
        if !self.preemption.is_empty() {
            let choice = Choice::among(&self.preemption)?;
            self.preemption = choice.has;
            let lacking = choice.lacks.into_iter();
            self.absent = lacking
                .map(|(model, why)| Warning::NoPreemptionModel {
                    model: model.to_string(),
                    why,
                })
                .collect();
        }
        let loads = self.loads.iter().chain(&self.load_commands);
        loads.into_iter().try_for_each(check_load)
    }

    /// The CPUs that were chosen; all that are allowed where none was.
    pub(super) fn cpus(&self) -> Result<CpuList, Error> {
        match &self.cpu {
            Some(CpuChoice::List(list)) => list.clone().check_online(),
            Some(CpuChoice::All) | None => {
                CpuList::allowed().map_err(|source| Error::Thread { source })
            }
        }
    }

    /// What is observed alongside.
    pub(super) fn also(&self) -> TargetArgs {
        self.targets.typed()
    }
}

/// Whether a load can be had: a built-in one by trying it for a moment, a command by looking for it.
fn check_load(load: &Kind) -> Result<(), Error> {
    let Kind::Command(words) = load else {
        let cpus = CpuList::allowed().map_err(|source| Error::Thread { source })?;
        let first = cpus.as_slice().first().copied();
        drop(Load::start(load, first.as_slice())?);
        return Ok(());
    };
    let words: Vec<_> = words.iter().map(OsString::from).collect();
    Child::check(&words).map_err(|error| Error::Load {
        load: load.label(),
        why: error.to_string(),
    })
}

impl FromStr for CpuChoice {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        match text {
            "all" => Ok(Self::All),
            list => list.parse().map(Self::List),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        common: CommonArgs,
    }

    fn parsed(words: &str) -> CommonArgs {
        let words = words.split_whitespace();
        Line::parse_from(std::iter::once("probe").chain(words)).common
    }

    #[test]
    fn every_combination_is_measured_and_loads_beside_none() {
        let shown = |words: &str| -> Vec<_> {
            let settings = parsed(words).settings(&[Policy::Other]);
            let shown = settings.iter().map(|it| {
                let model = it
                    .preemption
                    .map_or(String::new(), |model| format!("{model} "));
                format!("{model}{} {}", it.policy, it.load)
            });
            shown.collect()
        };
        assert_eq!(shown(""), ["other none"]);
        let two = shown("--policy fifo:80,other --load cpu --load none");
        let expected = ["fifo:80 none", "fifo:80 cpu", "other none", "other cpu"];
        assert_eq!(two, expected);
        let models = shown("--preempt none,full --load-cmd true");
        let expected = [
            "none other none",
            "none other true",
            "full other none",
            "full other true",
        ];
        assert_eq!(models, expected);
    }

    #[test]
    fn targets_go_with_also_and_also_with_targets() {
        let check = |words| parsed(words).check().err().map(|error| error.to_string());
        assert_eq!(check(""), None);
        assert_eq!(check("--also --pid 7 --comm x"), None);
        assert_eq!(
            check("--pid 7").as_deref(),
            Some("a target does not go with a probe without --also")
        );
        assert_eq!(
            check("--also").as_deref(),
            Some("--also does not go with no target")
        );
        let also = parsed("--also --pid 7 --comm x").also();
        assert_eq!((also.pids, also.comms), (vec![7], vec!["x".to_owned()]));
    }

    #[test]
    fn cpus_are_a_list_or_all() {
        assert_eq!(parsed("--cpu all").cpu, Some(CpuChoice::All));
        let list = parsed("--cpu 0").cpus().unwrap();
        assert_eq!(list.as_slice(), [0]);
        assert!(parsed("--cpu 1000").cpus().is_err());
        assert!(!parsed("").cpus().unwrap().as_slice().is_empty());
        assert!(Line::try_parse_from(["probe", "--cpu", "x"]).is_err());
    }
}
