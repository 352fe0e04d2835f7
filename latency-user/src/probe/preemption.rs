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

/// A model that holds until this is dropped.
#[derive(Debug)]
pub struct Switched {
    _companion: Companion,
}

impl Switched {
    /// Says whether this kernel can have all of these models, before anything is measured.
    pub fn check(models: &[Preemption]) -> Result<(), Error> {
        let lockdown = host::collect().lockdown;
        // Where it is locked down, the kernel logs each look.
        if ["integrity", "confidentiality"].contains(&lockdown.as_str()) {
            let why = format!("it is locked down ({lockdown}), which closes {CONTROL}");
            return Err(Error::Preemption { why });
        }
        let offered = offered(Path::new(CONTROL)).map_err(|cause| Error::Preemption {
            why: format!("{CONTROL}: {cause}"),
        })?;
        match models
            .iter()
            .find(|model| !offered.contains(&model.to_string()))
        {
            Some(model) => Err(Error::Preemption {
                why: format!("it has {} and not {model}", offered.join(", ")),
            }),
            None => Ok(()),
        }
    }

    /// Switches to a model.
    pub fn to(model: Preemption) -> Result<Self, Error> {
        let arguments = ["preemption".into(), model.to_string()];
        match Companion::start(&arguments) {
            Ok(companion) => Ok(Self {
                _companion: companion,
            }),
            Err(why) => Err(Error::Preemption { why }),
        }
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
}
