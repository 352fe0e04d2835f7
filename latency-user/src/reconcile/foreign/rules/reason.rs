//! Collecting reasons: numbers first, a sentence last.

use crate::model::{Reason, ReasonKind};

/// What was claimed, what the kernel saw, and how far they may be apart.
pub(super) type Numbers = (u64, u64, u64);

/// Reasons as they are found.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    found: Vec<Reason>,
    series: Option<String>,
}

impl Reasons {
    /// What follows concerns this series.
    pub(super) fn of_series(&mut self, name: &str) {
        self.series = Some(name.to_owned());
    }

    /// A figure that cannot be true.
    pub(super) fn contradiction(&mut self, code: &'static str, numbers: Numbers, text: String) {
        self.add(code, ReasonKind::Contradiction, Some(numbers), text);
    }

    /// Something that is not in the figures.
    pub(super) fn omission(&mut self, code: &'static str, numbers: Numbers, text: String) {
        self.add(code, ReasonKind::Omission, Some(numbers), text);
    }

    /// Something to know, with its numbers.
    pub(super) fn remark(&mut self, code: &'static str, numbers: Numbers, text: String) {
        self.add(code, ReasonKind::Note, Some(numbers), text);
    }

    /// Something to know about all.
    pub(super) fn note(&mut self, code: &'static str, text: &str) {
        self.series = None;
        self.add(code, ReasonKind::Note, None, text.to_owned());
    }

    /// The gravest first.
    pub(super) fn into_sorted(mut self) -> Vec<Reason> {
        self.found
            .sort_by_key(|reason| std::cmp::Reverse(reason.kind));
        self.found
    }

    fn add(
        &mut self,
        code: &'static str,
        kind: ReasonKind,
        numbers: Option<Numbers>,
        text: String,
    ) {
        self.found.push(Reason {
            code,
            kind,
            series: self.series.clone(),
            claimed: numbers.map(|(claimed, _, _)| claimed),
            kernel: numbers.map(|(_, kernel, _)| kernel),
            allowed: numbers.map(|(_, _, allowed)| allowed),
            text,
        });
    }
}
