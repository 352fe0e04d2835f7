//! Somebody else's probes: which tool a command is, what it says, and whether that can be true.
//!
//! Documents of foreign tools are hostile: whatever they hold is refused in words or fits.
//! Definitions of the tools' figures stand at the top of each tool's file.

mod cyclictest;
mod hackbench;
mod histogram;
mod number;
mod oslat;
mod perf_bench;
mod rules;
mod schbench;
mod stress_ng;
mod threads;

use serde_json::Value;

pub use self::{
    rules::{judge, verdict},
    threads::seen,
};
use crate::{analysis::escape, model::Claims};

/// A tool whose figures can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// rt-tests' wakeups by a timer.
    Cyclictest,
    /// rt-tests' busy loop.
    Oslat,
    /// rt-tests' senders and receivers.
    Hackbench,
    /// perf's pipe and messaging.
    PerfBench,
    /// stress-ng's wakeups by a timer.
    StressNg,
    /// Wakeups of workers by messengers.
    Schbench,
}

/// What a tool left behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output<'a> {
    /// The JSON file that it wrote; empty for tools that write none.
    pub json: &'a str,
    /// Standard output and error.
    pub text: &'a str,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Cyclictest,
        Self::Oslat,
        Self::Hackbench,
        Self::PerfBench,
        Self::StressNg,
        Self::Schbench,
    ];

    /// Its name, which is that of its program but for `perf bench`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cyclictest => "cyclictest",
            Self::Oslat => "oslat",
            Self::Hackbench => "hackbench",
            Self::PerfBench => "perf bench",
            Self::StressNg => "stress-ng",
            Self::Schbench => "schbench",
        }
    }

    /// Which tool a program of this name, without its directory, is.
    #[must_use]
    pub fn of_program(name: &str) -> Option<Self> {
        let is_it = |tool: &Self| match tool {
            Self::PerfBench => name == "perf",
            _ => name == tool.name(),
        };
        Self::ALL.into_iter().find(is_it)
    }

    /// Whether it writes its figures to a file named with `--json=FILE`.
    #[must_use]
    pub const fn writes_json(self) -> bool {
        matches!(self, Self::Cyclictest | Self::Oslat)
    }

    /// Whether threads of it measure, each for itself, and are worth a look at how they run.
    #[must_use]
    pub const fn has_measuring_threads(self) -> bool {
        matches!(self, Self::Cyclictest | Self::Oslat | Self::StressNg)
    }

    /// Reads what it said.
    pub fn read(self, output: Output<'_>) -> Result<Claims, Malformed> {
        match self {
            Self::Cyclictest => cyclictest::parse(output.json, output.text),
            Self::Oslat => oslat::parse(output.json),
            Self::Hackbench => hackbench::parse(output.text),
            Self::PerfBench => perf_bench::parse(output.text),
            Self::StressNg => stress_ng::parse(output.text),
            Self::Schbench => schbench::parse(output.text),
        }
    }
}

/// Why what a tool said cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(super) String);

impl Malformed {
    fn missing(what: &str) -> Self {
        Self(format!("'{what}' is missing"))
    }

    fn text(what: &str, found: &str) -> Self {
        let found = shortened(found);
        Self(format!(
            "'{what}' is followed by '{found}', which is no number that fits"
        ))
    }

    fn number(key: &str, found: &Value) -> Self {
        let found = shortened(&found.to_string());
        let key = shortened(key);
        Self(format!("'{key}' is {found}, which is no number that fits"))
    }
}

/// The beginning of a text, fit to be printed.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut short: String = text.chars().take(LONGEST).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    escape::text(&short)
}

fn json(text: &str) -> Result<Value, Malformed> {
    serde_json::from_str(text).map_err(|error| Malformed(format!("it is not JSON: {error}")))
}

/// The members of an object whose keys are `"0"`, `"1"`…, in their order.
fn numbered(object: &Value) -> Result<Vec<(u64, &Value)>, Malformed> {
    let members = object
        .as_object()
        .ok_or_else(|| Malformed("'thread' is no object".into()))?;
    let member = |(key, value): (&String, _)| {
        let index = number::count(key);
        index
            .map(|index| (index, value))
            .ok_or_else(|| Malformed(format!("'{}' is no number of a thread", shortened(key))))
    };
    let mut members: Vec<_> = members.iter().map(member).collect::<Result<_, _>>()?;
    members.sort_by_key(|(index, _)| *index);
    Ok(members)
}

/// The word that follows the first `mark`.
fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark)?.1.split_whitespace().next()
}

/// The word before the first `mark`, without an opening parenthesis.
fn before<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let before = text.split_once(mark)?.0;
    let word = before.split_whitespace().next_back()?;
    Some(word.trim_start_matches('('))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_known_by_their_programs() {
        for tool in Tool::ALL {
            let program = tool.name().split(' ').next().unwrap_or_default();
            assert_eq!(Tool::of_program(program), Some(tool));
        }
        assert_eq!(Tool::of_program("cyclictest2"), None);
    }

    #[test]
    fn no_tool_panics_at_rubbish_or_at_anything_cut_short() {
        let documents = [
            include_str!("fixtures/cyclictest.json"),
            include_str!("fixtures/cyclictest_histogram.json"),
            include_str!("fixtures/cyclictest.txt"),
            include_str!("fixtures/oslat.json"),
            include_str!("fixtures/hackbench.txt"),
            include_str!("fixtures/perf_bench_pipe.txt"),
            include_str!("fixtures/stress_ng_cyclic.txt"),
            include_str!("fixtures/schbench.txt"),
        ];
        for document in documents {
            assert!(document.is_ascii());
            for end in 0..document.len() {
                let cut = &document[..end];
                let reversed: String = cut.chars().rev().collect();
                for tool in Tool::ALL {
                    for text in [cut, &reversed] {
                        // What is there may be enough; that nothing panics is the claim.
                        drop(tool.read(Output { json: text, text }));
                    }
                }
            }
        }
    }

    #[test]
    fn messages_quote_little_of_what_is_wrong() {
        let message = Malformed::text("Time", &format!("\u{1b}[2J{}", "9".repeat(1000)));
        assert!(message.to_string().len() < 200, "{message}");
        assert!(!message.to_string().contains('\u{1b}'), "{message}");
    }
}
