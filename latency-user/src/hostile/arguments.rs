//! What can be typed: each value is refused in words, or means what it shows.

use std::{fmt, str::FromStr};

use latency_common::select::Glob;

use super::is_harmless;
use crate::{
    cpus::CpuList,
    observe::{glob, threshold::Threshold},
    probe::{
        load::Kind,
        pingpong::{Placement, Transport},
        policy::Policy,
        preemption::Preemption,
    },
    units::Nanos,
};

/// Names that globs are tried on beside the text itself.
const NAMES: [&[u8]; 5] = [b"", b"a", b"kworker/0:1H", b"[a-c]*", b"caf\xc3"];

/// Bytes of a task's name.
const NAME_BYTES: usize = 15;

/// Reads the bytes, where they are text, as every kind of value that an option takes.
///
/// # Panics
///
/// Where something was taken that does not mean what it shows.
pub fn arguments(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    if let Ok(duration) = text.parse() {
        check_duration(duration);
    }
    if let Ok(cpus) = text.parse::<CpuList>() {
        let cpus = cpus.as_slice();
        assert!(cpus.is_sorted_by(|cpu, next| cpu < next) && cpus.last() < Some(&1024));
    }
    match text.parse() {
        Ok(policy) => check_policy(policy),
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
    if let Ok(command) = Kind::command(text) {
        let again = Kind::command(&command.to_string());
        assert!(is_harmless(&command.label()), "{command:?}");
        assert_eq!(again, Ok(command));
    }
    if let Ok(load) = text.parse::<Kind>() {
        assert!(is_harmless(&load.label()), "{load:?}");
    }
    means_what_it_shows::<CpuList>(text);
    means_what_it_shows::<Kind>(text);
    means_what_it_shows::<Preemption>(text);
    means_what_it_shows::<Transport>(text);
    means_what_it_shows::<Placement>(text);
    check_glob(text);
}

fn means_what_it_shows<T: FromStr + fmt::Display>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        let shown = value.to_string();
        let again = shown.parse::<T>().ok().map(|value| value.to_string());
        assert_eq!(again, Some(shown), "{text:?}");
    }
}

/// What is shown has three digits; a threshold is what was asked for, within its bounds.
fn check_duration(duration: Nanos) {
    let ns = duration.as_ns();
    assert!(ns > 0);
    assert_eq!(format!("{ns}ns").parse(), Ok(duration));
    let shown = duration.to_string().replace(',', "");
    let read = shown.parse::<Nanos>().map(Nanos::as_ns);
    assert!(
        // Half of the last of three digits.
        read.as_ref()
            .is_ok_and(|read| read.abs_diff(ns) <= ns / 200),
        "{ns} ns are shown as {shown}, which is read as {read:?}"
    );
    assert_eq!(Threshold::new(Some(ns), None).ns(), ns);
    let followed = Threshold::new(None, Some(ns)).ns();
    assert!(followed <= ns.max(100_000) && followed >= 100_000);
}

fn check_policy(policy: Policy) {
    let shown = policy.to_string();
    assert!(is_harmless(&shown), "{shown:?}");
    match policy {
        Policy::Other => {}
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
            assert!((1..=99).contains(&priority));
        }
        Policy::Deadline {
            runtime,
            deadline,
            period,
        } => {
            // The figures are rounded when they are shown.
            assert!(runtime <= deadline && deadline <= period);
            return;
        }
    }
    assert_eq!(shown.parse(), Ok(policy));
}

/// The automaton accepts what a matcher accepts that goes through the pattern element by element.
fn check_glob(pattern: &str) {
    let Ok(glob) = glob::compile(pattern) else {
        return;
    };
    let elements = elements(pattern.as_bytes()).expect("what compiles has elements");
    let itself = &pattern.as_bytes()[..pattern.len().min(NAME_BYTES)];
    for name in NAMES.into_iter().chain([itself]) {
        let step = |state, byte: &u8| glob.step(state, *byte);
        let is_accepted = name.iter().fold(Glob::START, step) & glob.accept_state != 0;
        let expected = matches(&elements, name);
        assert_eq!(is_accepted, expected, "{pattern:?} on {name:?}");
    }
}

/// Bytes from the first to the second of a pair.
type Ranges = Vec<(u8, u8)>;

/// One element of a pattern.
enum Element {
    /// Any bytes.
    Star,
    /// One byte that lies in one of these ranges, or in none of them.
    One { ranges: Ranges, is_in: bool },
}

/// Takes a pattern apart; none where it ends too early.
fn elements(mut pattern: &[u8]) -> Option<Vec<Element>> {
    let mut elements = Vec::new();
    while let [first, rest @ ..] = pattern {
        let one = |ranges, is_in| Element::One { ranges, is_in };
        let (element, rest) = match (first, rest) {
            (b'*', _) => (Element::Star, rest),
            (b'?', _) => (one(Vec::new(), false), rest),
            (b'\\', [byte, rest @ ..]) => (one(vec![(*byte, *byte)], true), rest),
            (b'\\', []) => return None,
            (b'[', [b'!' | b'^', rest @ ..]) => {
                let (ranges, rest) = class(rest)?;
                (one(ranges, false), rest)
            }
            (b'[', _) => {
                let (ranges, rest) = class(rest)?;
                (one(ranges, true), rest)
            }
            (byte, _) => (one(vec![(*byte, *byte)], true), rest),
        };
        elements.push(element);
        pattern = rest;
    }
    Some(elements)
}

/// The ranges of a class, and what follows it.
fn class(mut rest: &[u8]) -> Option<(Ranges, &[u8])> {
    let mut ranges = Vec::new();
    loop {
        let (low, after) = match rest {
            [b']', after @ ..] if !ranges.is_empty() => return Some((ranges, after)),
            [b'\\', low, after @ ..] | [low, after @ ..] => (*low, after),
            [] => return None,
        };
        let (high, after) = match after {
            [b'-', high, after @ ..] if *high != b']' => (*high, after),
            _ => (low, after),
        };
        ranges.push((low, high));
        rest = after;
    }
}

/// Whether the elements match the whole name: after each, where in the name it can end.
fn matches(elements: &[Element], name: &[u8]) -> bool {
    let mut ends = vec![false; name.len() + 1];
    ends[0] = true;
    for element in elements {
        match element {
            Element::Star => {
                let first = ends.iter().position(|can_end| *can_end);
                (first.unwrap_or(ends.len())..ends.len()).for_each(|at| ends[at] = true);
            }
            Element::One { ranges, is_in } => {
                let has = |byte: &u8| {
                    ranges
                        .iter()
                        .any(|(low, high)| (low..=high).contains(&byte))
                };
                let next = name.iter().zip(&ends);
                let next = next.map(|(byte, can_end)| *can_end && has(byte) == *is_in);
                ends = [false].into_iter().chain(next).collect();
            }
        }
    }
    ends.last() == Some(&true)
}
