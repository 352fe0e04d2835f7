//! The kernel's preemption model, switched for a while.
//!
//! A companion writes it and puts the old one back, so that this happens whatever becomes of us.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    str::FromStr,
};

use super::load::{Companion, Done, keep};
use crate::{Error, host};

/// Where the model is switched, on kernels that can.
pub const CONTROL: &str = "/sys/kernel/debug/sched/preempt";

/// A preemption model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// User space only.
    None,
    /// Also where the kernel asks whether it should.
    Voluntary,
    /// Wherever it is not forbidden.
    Full,
    /// As full, but for fair tasks with the next tick.
    Lazy,
}

const MODELS: [(Preemption, &str); 4] = [
    (Preemption::None, "none"),
    (Preemption::Voluntary, "voluntary"),
    (Preemption::Full, "full"),
    (Preemption::Lazy, "lazy"),
];

impl FromStr for Preemption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = MODELS.into_iter().find(|(_, name)| *name == text);
        found
            .map(|(model, _)| model)
            .ok_or_else(|| "a preemption model is one of none, voluntary, full, lazy".into())
    }
}

impl fmt::Display for Preemption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = MODELS.into_iter().find(|(model, _)| model == self);
        formatter.write_str(found.map_or("", |(_, name)| name))
    }
}

/// A model that holds until it is put back, or this is dropped.
#[derive(Debug)]
pub struct Switched {
    companion: Companion,
}

/// Which of the models that were asked for this kernel has, found out before anything is measured.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// In the order in which they were asked for.
    pub has: Vec<Preemption>,
    /// Those that it has not, in words what it has.
    pub lacks: Vec<(Preemption, String)>,
}

impl Choice {
    /// Looks at this kernel; an error where it has none of them.
    pub fn among(models: &[Preemption]) -> Result<Self, Error> {
        let lockdown = host::collect().lockdown;
        // Where it is locked down, the kernel logs each look.
        if ["integrity", "confidentiality"].contains(&lockdown.as_str()) {
            return Err(Error::Preemption {
                why: format!("it is locked down ({lockdown}), which closes {CONTROL}"),
                help: "boot with preempt=MODEL, once for each, and leave out --preempt",
            });
        }
        let control = Path::new(CONTROL);
        let offered = offered(control).map_err(|cause| Error::Preemption {
            why: format!("{CONTROL}: {cause}"),
            help: unreadable_help(control, &cause),
        })?;
        Self::of(models, &offered)
    }

    fn of(models: &[Preemption], offered: &[String]) -> Result<Self, Error> {
        let is_offered = |model: &&Preemption| offered.contains(&model.to_string());
        let (has, lacking): (Vec<_>, Vec<_>) = models.iter().partition(is_offered);
        let why = format!("it has {}", offered.join(", "));
        if has.is_empty() {
            return Err(Error::Preemption {
                why,
                help: "give those that it has to --preempt",
            });
        }
        Ok(Self {
            has,
            lacks: lacking
                .into_iter()
                .map(|model| (model, why.clone()))
                .collect(),
        })
    }
}

impl Switched {
    /// Switches to a model.
    pub fn to(model: Preemption) -> Result<Self, Error> {
        let arguments = ["preemption".into(), model.to_string()];
        match Companion::start(&arguments) {
            Ok(companion) => Ok(Self { companion }),
            Err(why) => Err(Error::Preemption {
                why,
                help: "run as root; a security policy may forbid it: look at `dmesg`",
            }),
        }
    }

    /// Puts the old model back; says why where that failed.
    #[must_use]
    pub fn put_back(self) -> Option<String> {
        match self.companion.stop() {
            Some(done) => done.failed,
            None => Some("whoever was to do it was killed".into()),
        }
    }
}

/// What to do about a control that cannot be read.
fn unreadable_help(control: &Path, cause: &io::Error) -> &'static str {
    let has_parent = control.parent().is_some_and(Path::exists);
    match cause.kind() {
        io::ErrorKind::NotFound if has_parent => "it takes a kernel with CONFIG_PREEMPT_DYNAMIC=y",
        io::ErrorKind::NotFound => "mount -t debugfs debugfs /sys/kernel/debug",
        _ => "run as root",
    }
}

/// Keeps a model up in a companion, until its input ends.
#[must_use]
pub fn run(model: Preemption, control: &Path) -> ExitCode {
    let switch = || {
        let before = current(&fs::read_to_string(control)?)?.to_owned();
        fs::write(control, model.to_string())?;
        Ok((control.to_owned(), before))
    };
    keep(switch, |(control, before): (PathBuf, String)| Done {
        failed: fs::write(&control, before)
            .err()
            .map(|cause| cause.to_string()),
        ..Done::default()
    })
}

/// The models that a control offers.
fn offered(control: &Path) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(control)?;
    let plain = text.replace(['(', ')'], " ");
    Ok(plain.split_whitespace().map(str::to_owned).collect())
}

/// The model in force, which is the one in parentheses.
fn current(choices: &str) -> io::Result<&str> {
    choices
        .split_once('(')
        .and_then(|(_, from)| from.split_once(')'))
        .map(|(model, _)| model)
        .ok_or_else(|| io::Error::other(format!("no model is in force in '{}'", choices.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_read_as_they_are_shown() {
        for (model, name) in MODELS {
            assert_eq!(model.to_string(), name);
            assert_eq!(name.parse(), Ok(model));
        }
        assert!("rt".parse::<Preemption>().is_err());
    }

    #[test]
    fn the_model_in_force_is_the_one_in_parentheses() {
        assert_eq!(current("none voluntary (full) lazy\n").unwrap(), "full");
        assert!(current("full\n").is_err());
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("preempt");
        fs::write(&control, "(full) lazy\n").unwrap();
        assert_eq!(offered(&control).unwrap(), ["full", "lazy"]);
    }

    #[test]
    fn models_that_a_kernel_lacks_are_told_until_none_is_left() {
        let offered = ["full", "lazy", "laziest"].map(str::to_owned);
        let choice = Choice::of(&[Preemption::None, Preemption::Lazy], &offered).unwrap();
        assert_eq!(choice.has, [Preemption::Lazy]);
        let why = "it has full, lazy, laziest".to_owned();
        assert_eq!(choice.lacks, [(Preemption::None, why)]);
        let refused = Choice::of(&[Preemption::Voluntary], &offered);
        assert!(matches!(refused, Err(Error::Preemption { .. })));
    }

    #[test]
    fn help_is_what_makes_the_control_appear() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let folder = tempfile::tempdir().unwrap();
        let help = unreadable_help(&folder.path().join("preempt"), &missing);
        assert!(help.contains("PREEMPT_DYNAMIC"), "{help}");
        let help = unreadable_help(&folder.path().join("sched/preempt"), &missing);
        assert!(help.contains("mount"), "{help}");
        let forbidden = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(unreadable_help(folder.path(), &forbidden), "run as root");
    }
}
