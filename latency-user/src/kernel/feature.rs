//! What is told of one feature of this kernel: how well it works, how that is known, what it would take.

/// How well a feature works here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Availability {
    /// Fully.
    Available,
    /// Partly: `why` says what is not seen.
    Degraded,
    /// Not at all.
    Missing,
}

/// One feature of this kernel.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Feature {
    /// What it is.
    pub name: &'static str,
    /// How well it works.
    pub availability: Availability,
    /// Without it nothing can be recorded.
    pub is_required: bool,
    /// How that is known, or why it does not work.
    pub why: String,
    /// What it would take; empty when it works.
    pub remedy: String,
}

fn feature(
    name: &'static str,
    without: Availability,
    has_it: bool,
    [good, bad, remedy]: [&str; 3],
) -> Feature {
    Feature {
        name,
        availability: if has_it {
            Availability::Available
        } else {
            without
        },
        is_required: false,
        why: if has_it { good } else { bad }.to_owned(),
        remedy: if has_it {
            String::new()
        } else {
            remedy.to_owned()
        },
    }
}

/// Without it nothing can be recorded.
pub(super) fn required(
    name: &'static str,
    has_it: bool,
    good: &str,
    bad: &str,
    remedy: &str,
) -> Feature {
    Feature {
        is_required: true,
        ..feature(name, Availability::Missing, has_it, [good, bad, remedy])
    }
}

/// Without it something else is missing.
pub(super) fn optional(
    name: &'static str,
    has_it: bool,
    good: &str,
    bad: &str,
    remedy: &str,
) -> Feature {
    feature(name, Availability::Missing, has_it, [good, bad, remedy])
}

/// Without it something works in part.
pub(super) fn degradable(
    name: &'static str,
    has_it: bool,
    good: &str,
    bad: &str,
    remedy: &str,
) -> Feature {
    feature(name, Availability::Degraded, has_it, [good, bad, remedy])
}
