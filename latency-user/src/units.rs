//! Durations, counts and shares: how users type them and how people read them.
//!
//! The only place that knows µs and ms; everything else counts nanoseconds in `u64`.
//! A typed duration carries its unit, so that nobody can mean milliseconds and get microseconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Units that can be typed, with their length. `μ` (Greek) and `µ` (micro sign) look alike.
const TYPED_UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Units that are shown, shortest first; longer than seconds is harder to compare, not easier.
const SHOWN_UNITS: [(&str, u64); 4] = [
    ("ns", 1),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// A duration of at least one nanosecond, as typed by a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(u64);

impl Nanos {
    /// A duration in nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// In nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&duration(self.0))
    }
}

impl FromStr for Nanos {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        parse_duration(text)
    }
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A bare number.
    #[error("'{0}' has no unit; add one, e.g. {0}ms or {0}s")]
    MissingUnit(String),
    /// A unit that is not in the list.
    #[error("'{0}' is not a unit of time; use ns, us, ms, s, m or h")]
    UnknownUnit(String),
    /// No number in front.
    #[error("'{0}' is not a duration; write a number and a unit, e.g. 10s or 1.5ms")]
    NotANumber(String),
    /// Below zero.
    #[error("'{0}' is negative; a duration is longer than 0")]
    Negative(String),
    /// Zero.
    #[error("'{0}' is no time at all; a duration is longer than 0")]
    Zero(String),
    /// A fraction of a nanosecond.
    #[error("'{0}' is finer than a nanosecond")]
    TooFine(String),
    /// More than 584 years.
    #[error("'{0}' is too long")]
    TooLong(String),
}

/// Reads a duration such as `10s`, `250us` or `1.5 ms`.
pub fn parse_duration(text: &str) -> Result<Nanos, DurationError> {
    let typed = || text.to_owned();
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(DurationError::Negative(typed()));
    }
    let unit_at = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(unit_at);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err(DurationError::NotANumber(typed()));
    }
    let unit = unit.trim_start();
    if unit.is_empty() {
        return Err(DurationError::MissingUnit(typed()));
    }
    let (_, unit_ns) = TYPED_UNITS
        .into_iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| DurationError::UnknownUnit(unit.to_owned()))?;
    // A number that does not fit 128 bits, or has more decimals than that, is out of any range.
    let too_long = || DurationError::TooLong(typed());
    let digits: u128 = format!("{whole}{fraction}")
        .parse()
        .ok()
        .ok_or_else(too_long)?;
    let scale = u32::try_from(fraction.len())
        .ok()
        .and_then(|n| 10_u128.checked_pow(n));
    let scale = scale.ok_or_else(|| DurationError::TooFine(typed()))?;
    let scaled = digits
        .checked_mul(u128::from(unit_ns))
        .ok_or_else(too_long)?;
    if scaled == 0 {
        return Err(DurationError::Zero(typed()));
    }
    if scaled % scale != 0 {
        return Err(DurationError::TooFine(typed()));
    }
    u64::try_from(scaled / scale)
        .ok()
        .map(Nanos)
        .ok_or_else(too_long)
}

/// A duration with three significant digits and its unit, e.g. `4.10 µs`; nanoseconds are exact.
#[must_use]
pub fn duration(ns: u64) -> String {
    let last = SHOWN_UNITS.len() - 1;
    for (index, (name, unit_ns)) in SHOWN_UNITS.into_iter().enumerate() {
        let most_decimals = if unit_ns == 1 { 0 } else { 2 };
        for decimals in (0..=most_decimals).rev() {
            let scale = 10_u128.pow(decimals);
            let unit = u128::from(unit_ns);
            let digits = (u128::from(ns) * scale + unit / 2) / unit;
            if digits < 1000 {
                return decimal(digits, decimals) + " " + name;
            }
            if index == last && decimals == 0 {
                return grouped(&digits.to_string()) + " " + name;
            }
        }
    }
    // SANITY: the last unit without decimals always returns.
    String::new()
}

/// In microseconds without their name, for columns that are headed by it.
#[must_use]
pub fn micros(ns: u64) -> String {
    decimal((u128::from(ns) + 5) / 10, 2)
}

/// A count with thousands separators.
#[must_use]
pub fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// A percentage with two or three significant digits, e.g. `62 %`, `2.6 %`, `0.40 %`.
#[must_use]
pub fn percent(pct: f64) -> String {
    let decimals = match pct.abs() {
        0.0 => 0,
        below_one if below_one < 0.995 => 2,
        below_ten if below_ten < 9.95 => 1,
        _ => 0,
    };
    format!("{pct:.decimals$} %")
}

/// The share of a part; 0 of nothing.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "a share is read to a few digits; 2^53 ns are 104 days, and beyond that only rounded"
)]
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// A mean as a whole number; 0 where it is none that fits.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast of a float saturates, and a mean of counts is not negative"
)]
pub fn rounded(mean: f64) -> u64 {
    mean.round() as u64
}

/// `digits` with the point set before the last `decimals` of them.
fn decimal(digits: u128, decimals: u32) -> String {
    if decimals == 0 {
        return digits.to_string();
    }
    let scale = 10_u128.pow(decimals);
    format!(
        "{}.{:0width$}",
        digits / scale,
        digits % scale,
        width = decimals as usize
    )
}

/// Digits in groups of three.
fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn parses(text: &str, ns: u64) {
        assert_eq!(parse_duration(text), Ok(Nanos(ns)), "{text}");
    }

    #[track_caller]
    fn refused(text: &str, expected: DurationError) {
        assert_eq!(parse_duration(text), Err(expected), "{text}");
    }

    #[test]
    fn every_unit_is_read() {
        parses("7ns", 7);
        parses("250us", 250_000);
        parses("250µs", 250_000);
        parses("250μs", 250_000);
        parses("1ms", 1_000_000);
        parses("10s", 10_000_000_000);
        parses("2m", 120_000_000_000);
        parses("1h", 3_600_000_000_000);
    }

    #[test]
    fn fractions_are_exact() {
        parses("1.5s", 1_500_000_000);
        parses("0.001us", 1);
        parses(" 1.25 ms ", 1_250_000);
    }

    #[test]
    fn bare_number_is_refused_and_told_to_add_a_unit() {
        refused("10", DurationError::MissingUnit("10".into()));
        let message = parse_duration("10").unwrap_err().to_string();
        assert_eq!(message, "'10' has no unit; add one, e.g. 10ms or 10s");
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        refused("", DurationError::NotANumber(String::new()));
        refused("s", DurationError::NotANumber("s".into()));
        refused(".5s", DurationError::NotANumber(".5s".into()));
        refused("1.s", DurationError::NotANumber("1.s".into()));
        refused("1.2.3s", DurationError::NotANumber("1.2.3s".into()));
        refused("1e3s", DurationError::UnknownUnit("e3s".into()));
        refused("5 parsecs", DurationError::UnknownUnit("parsecs".into()));
        refused("-1s", DurationError::Negative("-1s".into()));
        refused("0s", DurationError::Zero("0s".into()));
        refused("0.00ms", DurationError::Zero("0.00ms".into()));
        refused("1.5ns", DurationError::TooFine("1.5ns".into()));
        refused("584y", DurationError::UnknownUnit("y".into()));
    }

    #[test]
    fn longest_duration_fits_and_one_more_does_not() {
        parses("18446744073709551615ns", u64::MAX);
        refused(
            "18446744073709551616ns",
            DurationError::TooLong("18446744073709551616ns".into()),
        );
        let huge = format!("{}s", "9".repeat(60));
        refused(&huge, DurationError::TooLong(huge.clone()));
    }

    #[test]
    fn three_significant_digits_are_shown() {
        let shown = [
            (0, "0 ns"),
            (842, "842 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (4_100, "4.10 µs"),
            (312_000, "312 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (2_900_000, "2.90 ms"),
            (9_996_000, "10.0 ms"),
            (12_000_000, "12.0 ms"),
            (31_100_000_000, "31.1 s"),
            (4_321_000_000_000, "4,321 s"),
            (u64::MAX, "18,446,744,074 s"),
        ];
        for (ns, expected) in shown {
            assert_eq!(duration(ns), expected);
        }
    }

    #[test]
    fn counts_and_shares_are_readable() {
        assert_eq!([0, 9_896, 966_870].map(micros), ["0.00", "9.90", "966.87"]);
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(168_220), "168,220");
        assert_eq!(count(12_874_080), "12,874,080");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.004), "0.00 %");
        assert_eq!(percent(0.4), "0.40 %");
        assert_eq!(percent(2.6), "2.6 %");
        assert_eq!(percent(9.97), "10 %");
        assert_eq!(percent(100.0), "100 %");
        assert!(ratio(1, 0).abs() < f64::EPSILON);
    }
}
