//! schbench: percentiles of wakeup latency, from before a batch of wakeups to after the wait.
//!
//! Samples of 0 µs are dropped, and the clock is that of the day. Each report covers all since the start;
//! the last one counts.

use super::{
    Malformed,
    number::{S, US, count, ns},
};
use crate::model::{ClaimedLatency, ClaimedSeries, Claims};

/// How its report of wakeups begins.
const TITLE: &str = "Wakeup Latencies percentiles (usec)";

/// What it says on its standard error.
pub(super) fn parse(text: &str) -> Result<Claims, Malformed> {
    let from = text.rfind(TITLE).ok_or_else(|| Malformed::missing(TITLE))?;
    let mut lines = text[from..].lines();
    let title = lines.next().unwrap_or_default();
    let number = |what: &str, found: Option<&str>| {
        let found = found.ok_or_else(|| Malformed::missing(what))?;
        count(found).ok_or_else(|| Malformed::text(what, found))
    };
    let samples = number("total samples", super::before(title, "total samples"))?;
    let duration_ns = super::after(title, "runtime").and_then(|seconds| ns(seconds, S));
    // Further reports begin at the first line that does not belong to this one.
    let lines: Vec<_> = lines.take_while(|line| is_of_report(line)).collect();
    let percentile = |name: &str| {
        let line = lines.iter().find_map(|line| super::after(line, name));
        line.and_then(|value| ns(value, US))
    };
    let bound = |name: &str| {
        let line = lines.iter().find(|line| line.contains("min="));
        let value = line.and_then(|line| super::after(line, name));
        value.and_then(|value| ns(value.trim_end_matches(','), US))
    };
    let latency = ClaimedLatency {
        count: Some(samples),
        min_ns: bound("min="),
        mean_ns: None,
        max_ns: bound("max="),
        p50_ns: percentile("50.0th:"),
        p90_ns: percentile("90.0th:"),
        p99_ns: percentile("99.0th:"),
        p999_ns: percentile("99.9th:"),
    };
    if latency.percentiles().next().is_none() {
        return Err(Malformed::missing("50.0th:"));
    }
    let series = ClaimedSeries {
        name: "wakeup".to_owned(),
        taken: Some(samples),
        latency,
        duration_ns,
        resolution_ns: US,
        ..ClaimedSeries::default()
    };
    Ok(Claims {
        series: vec![series],
        duration_ns,
        ..Claims::default()
    })
}

fn is_of_report(line: &str) -> bool {
    line.contains("th:") || line.contains("min=")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("fixtures/schbench.txt");

    #[test]
    fn last_report_of_wakeups_counts() {
        let claims = parse(TEXT).unwrap();
        let series = &claims.series[0];
        assert_eq!(series.taken, Some(209_403));
        assert_eq!(series.duration_ns, Some(30_000_000_000));
        let latency = series.latency;
        assert_eq!(
            (latency.min_ns, latency.max_ns),
            (Some(1_000), Some(8_400_000))
        );
        assert_eq!(
            (latency.p50_ns, latency.p99_ns),
            (Some(8_000), Some(20_000))
        );
        assert_eq!(latency.p999_ns, Some(775_000));
    }

    #[test]
    fn hostile_texts_are_refused_in_words() {
        let refused = [
            (String::new(), "is missing"),
            (
                format!("{TITLE} runtime 30 (s) (x total samples)"),
                "'total samples'",
            ),
            (
                format!("{TITLE} runtime 30 (s)"),
                "'total samples' is missing",
            ),
            (
                format!("{TITLE} (5 total samples)\nmin=1, max=2"),
                "'50.0th:' is missing",
            ),
        ];
        for (text, expected) in refused {
            let message = parse(&text).unwrap_err().to_string();
            assert!(message.contains(expected), "{expected}: {message}");
        }
        let huge = TEXT.replace("max=8400", &format!("max={}", "9".repeat(99)));
        assert_eq!(parse(&huge).unwrap().series[0].latency.max_ns, None);
    }
}
