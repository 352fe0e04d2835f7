//! cyclictest: its JSON has the figures, its text the thread ids and intervals.
//!
//! A latency is the clock after waking minus the programmed expiry, cut to whole microseconds (with
//! `-N` to nanoseconds). A period that has passed already is skipped without a word.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Malformed, histogram,
    number::{US, count, count_at, field, ns, ns_at},
};
use crate::model::{ClaimedLatency, ClaimedSeries, Claims};

/// Lines that say that it holds `/dev/cpu_dma_latency`.
const HOLDS_CPU_LATENCY: &str = "# /dev/cpu_dma_latency set to";

/// Without `-i`.
const DEFAULT_INTERVAL_NS: u64 = 1_000_000;

/// What it says in its JSON file and on its standard output.
pub(super) fn parse(json: &str, text: &str) -> Result<Claims, Malformed> {
    let document = super::json(json)?;
    // 1 with `-N`; 0, wrongly, for microseconds.
    let unit_ns = match count_at(&document, "resolution_in_ns")? {
        1 => 1,
        _ => US,
    };
    let lines = thread_lines(text);
    let interval_ns = interval_of(document["cmdline:"].as_str().unwrap_or_default());
    let threads = super::numbered(field(&document, "thread")?)?;
    let series = threads.into_iter().map(|(index, thread)| {
        let series = series(thread, unit_ns)?;
        let line = lines.get(&index);
        Ok(ClaimedSeries {
            name: format!("thread {index}"),
            tid: line.and_then(|line| line.tid),
            // With a histogram it prints no such lines, and gives all threads one interval.
            interval_ns: match line {
                Some(line) => line.interval_ns,
                None if series.histogram.is_empty() => None,
                None => interval_ns,
            },
            ..series
        })
    });
    Ok(Claims {
        series: series.collect::<Result<_, _>>()?,
        holds_cpu_latency: text.lines().any(|line| line.starts_with(HOLDS_CPU_LATENCY)),
        ..Claims::default()
    })
}

fn series(thread: &Value, unit_ns: u64) -> Result<ClaimedSeries, Malformed> {
    let cycles = count_at(thread, "cycles")?;
    let histogram = histogram::read(field(thread, "histogram")?, unit_ns)?;
    let in_histogram = histogram::total(&histogram);
    if in_histogram > cycles {
        return Err(Malformed(format!(
            "its histogram holds {in_histogram} samples of {cycles} cycles"
        )));
    }
    let beyond = cycles - in_histogram;
    let is_measured = cycles > 0;
    let figure = |key| Ok(is_measured.then_some(ns_at(thread, key, unit_ns)?));
    let percentile = |per_mille| histogram::percentile(&histogram, cycles, per_mille);
    Ok(ClaimedSeries {
        cpu: count_at(thread, "cpu")
            .ok()
            .and_then(|cpu| u32::try_from(cpu).ok()),
        taken: Some(cycles),
        latency: ClaimedLatency {
            count: Some(cycles),
            min_ns: figure("min")?,
            mean_ns: figure("avg")?,
            max_ns: figure("max")?,
            p50_ns: percentile(500),
            p90_ns: percentile(900),
            p99_ns: percentile(990),
            p999_ns: percentile(999),
        },
        beyond_histogram: (in_histogram > 0).then_some(beyond),
        resolution_ns: unit_ns,
        histogram,
        ..ClaimedSeries::default()
    })
}

/// What a line such as `T: 0 (  553) P:80 I:1000 C:   2000 Min: …` tells beside the figures.
#[derive(Debug, Default, PartialEq, Eq)]
struct ThreadLine {
    tid: Option<u32>,
    interval_ns: Option<u64>,
}

/// The interval by its command line, which its JSON repeats; none where it cannot be told for sure.
fn interval_of(command_line: &str) -> Option<u64> {
    let mut interval_ns = Some(DEFAULT_INTERVAL_NS);
    let mut words = command_line.split_whitespace();
    while let Some(word) = words.next() {
        let interval = match word {
            "-i" | "--interval" => Some(words.next().unwrap_or_default()),
            _ if word.starts_with("--interval=") => word.strip_prefix("--interval="),
            _ if word.starts_with("-i") => word.strip_prefix("-i"),
            // Several short options in one word, of which this may be one.
            _ if word.starts_with('-') && !word.starts_with("--") && word.contains('i') => {
                Some("unknown")
            }
            _ => None,
        };
        if let Some(interval) = interval {
            interval_ns = ns(interval, US).filter(|ns| *ns > 0);
        }
    }
    interval_ns
}

/// The last such line of each thread.
fn thread_lines(text: &str) -> BTreeMap<u64, ThreadLine> {
    text.lines().filter_map(thread_line).collect()
}

fn thread_line(line: &str) -> Option<(u64, ThreadLine)> {
    let (index, rest) = line.strip_prefix("T:")?.split_once('(')?;
    let (tid, rest) = rest.split_once(')')?;
    let (_, interval) = rest.split_once("I:")?;
    let interval = interval.split_whitespace().next()?;
    let tid = tid.trim().parse().ok().filter(|tid| *tid != 0);
    let interval_ns = ns(interval, US).filter(|ns| *ns > 0);
    Some((count(index.trim())?, ThreadLine { tid, interval_ns }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = include_str!("fixtures/cyclictest.json");
    const PLAIN_TEXT: &str = include_str!("fixtures/cyclictest.txt");
    const HISTOGRAM: &str = include_str!("fixtures/cyclictest_histogram.json");
    const NANOSECONDS: &str = include_str!("fixtures/cyclictest_ns.json");

    #[test]
    fn threads_have_their_figures_ids_and_intervals() {
        let claims = parse(PLAIN, PLAIN_TEXT).unwrap();
        assert!(claims.holds_cpu_latency);
        let [first, second] = &claims.series[..] else {
            panic!("{claims:?}");
        };
        assert_eq!((first.tid, second.tid), (Some(5639), Some(5640)));
        assert_eq!(first.interval_ns, Some(1_000_000));
        assert_eq!(second.interval_ns, Some(1_500_000));
        assert_eq!((second.taken, second.cpu), (Some(142), Some(1)));
        let latency = second.latency;
        assert_eq!(latency.min_ns, Some(15_000));
        assert_eq!(latency.mean_ns, Some(29_460));
        assert_eq!(latency.max_ns, Some(40_000));
        assert_eq!(second.resolution_ns, 1_000);
        assert_eq!(
            (second.latency.p50_ns, second.beyond_histogram),
            (None, None)
        );
    }

    #[test]
    fn histogram_gives_percentiles_and_what_lies_beyond_it() {
        let claims = parse(HISTOGRAM, "").unwrap();
        let [first, second] = &claims.series[..] else {
            panic!("{claims:?}");
        };
        assert_eq!((first.tid, first.interval_ns), (None, Some(1_000_000)));
        assert_eq!((first.taken, first.beyond_histogram), (Some(1999), Some(8)));
        assert_eq!(first.latency.p50_ns, Some(31_000));
        assert!(first.latency.p99_ns.is_some());
        assert_eq!(second.beyond_histogram, Some(0));
        assert_eq!(second.latency.p999_ns, None, "two samples are above it");
    }

    #[test]
    fn nanoseconds_are_not_taken_for_microseconds() {
        let claims = parse(NANOSECONDS, "").unwrap();
        let series = &claims.series[0];
        assert_eq!(series.latency.max_ns, Some(61_060));
        assert_eq!(series.resolution_ns, 1);
        assert_eq!(series.beyond_histogram, None, "its histogram is empty");
    }

    #[test]
    fn thread_without_a_cycle_claims_no_latency() {
        let json = PLAIN.replace("\"cycles\": 142", "\"cycles\": 0");
        let claims = parse(&json, "").unwrap();
        assert_eq!(claims.series[1].latency.min_ns, None);
    }

    #[test]
    fn hostile_documents_are_refused_in_words() {
        let refused = [
            ("", "not JSON"),
            ("[]", "'resolution_in_ns' is missing"),
            (&PLAIN[..PLAIN.len() / 2], "not JSON"),
            (&PLAIN.replace("200,", "-1,"), "'cycles'"),
            (&PLAIN.replace("200,", "1e99,"), "'cycles'"),
            (&PLAIN.replace("27.39", "1e308"), "'avg'"),
            (
                &PLAIN.replace("\"thread\"", "\"threads\""),
                "'thread' is missing",
            ),
            (&PLAIN.replace("\"1\": {", "\"x\": {"), "'x'"),
            (
                &HISTOGRAM.replace("1999", "5"),
                "holds 1991 samples of 5 cycles",
            ),
        ];
        for (json, expected) in refused {
            let message = parse(json, "").unwrap_err().to_string();
            assert!(message.contains(expected), "{expected}: {message}");
        }
        let nested = "[".repeat(100_000);
        assert!(parse(&nested, "").is_err());
    }

    #[test]
    fn interval_is_told_by_the_command_line_or_not_at_all() {
        let interval = interval_of;
        assert_eq!(interval("cyclictest -q"), Some(1_000_000));
        for line in ["-i 200", "-i200", "--interval 200", "--interval=200"] {
            assert_eq!(
                interval(&format!("cyclictest -q {line} -D 2")),
                Some(200_000)
            );
        }
        for line in ["-qi 200", "-i", "-i 0", "-i -5", "--interval=9e9"] {
            assert_eq!(interval(line), None, "{line}");
        }
    }

    #[test]
    fn odd_lines_of_text_tell_nothing() {
        for line in [
            "T:",
            "T: 0",
            "T: 0 (",
            "T: x (1) I:5",
            "T: 0 (1) I:",
            "T: 0 ( 9) P: 0",
        ] {
            assert_eq!(thread_line(line), None, "{line}");
        }
        let (_, line) = thread_line("T: 0 (    0) P: 0 I:0 C: 0").unwrap();
        assert_eq!(line, ThreadLine::default());
    }
}
