//! oslat: a busy loop that sorts the time of each turn into buckets of a microsecond.
//!
//! Its last bucket holds everything longer, and its rate of the time stamp counter is a whole number
//! of megahertz.

use serde_json::Value;

use super::{
    Malformed, histogram,
    number::{S, US, count_at, field, ns_at},
};
use crate::model::{ClaimedLatency, ClaimedSeries, Claims};

/// What it says in its JSON file.
pub(super) fn parse(json: &str) -> Result<Claims, Malformed> {
    let document = super::json(json)?;
    let threads = super::numbered(field(&document, "thread")?)?;
    let series = threads.into_iter().map(|(index, thread)| {
        Ok(ClaimedSeries {
            name: format!("thread {index}"),
            ..series(thread)?
        })
    });
    Ok(Claims {
        series: series.collect::<Result<_, _>>()?,
        ..Claims::default()
    })
}

fn series(thread: &Value) -> Result<ClaimedSeries, Malformed> {
    let histogram = histogram::read(field(thread, "histogram")?, US)?;
    let turns = histogram::total(&histogram);
    let max_ns = ns_at(thread, "max", US)?;
    // The last bucket's samples are at least so long.
    let last = histogram.last().copied().unwrap_or_default();
    let beyond = if last.0 + US <= max_ns { last.1 } else { 0 };
    Ok(ClaimedSeries {
        cpu: u32::try_from(count_at(thread, "cpu")?).ok(),
        taken: Some(turns),
        latency: ClaimedLatency {
            count: Some(turns),
            min_ns: Some(ns_at(thread, "min", US)?),
            mean_ns: Some(ns_at(thread, "avg", US)?),
            max_ns: Some(max_ns),
            ..ClaimedLatency::default()
        },
        beyond_histogram: Some(beyond),
        duration_ns: Some(ns_at(thread, "duration", S)?),
        resolution_ns: US,
        histogram,
        ..ClaimedSeries::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = include_str!("fixtures/oslat.json");

    #[test]
    fn turns_of_each_cpu_are_read() {
        let claims = parse(JSON).unwrap();
        let [first, second] = &claims.series[..] else {
            panic!("{claims:?}");
        };
        assert_eq!((first.cpu, second.cpu), (Some(0), Some(1)));
        assert_eq!(first.duration_ns, Some(1_010_000_000));
        assert_eq!(first.latency.max_ns, Some(12_052_000));
        assert_eq!(first.beyond_histogram, Some(186));
        assert_eq!(first.taken, Some(18_930_045 + 178 + 36 + 24 + 3 + 186));
        assert_eq!(second.histogram.len(), 7);
    }

    #[test]
    fn hostile_documents_are_refused_in_words() {
        let refused = [
            ("{", "not JSON"),
            ("{\"thread\": 5}", "'thread'"),
            (
                &JSON.replace("\"duration\"", "\"d\""),
                "'duration' is missing",
            ),
            (&JSON.replace("12052", "1.0e40"), "'max'"),
            (&JSON.replace("\"178\"", "x"), ""),
        ];
        for (json, expected) in &refused[..4] {
            let message = parse(json).unwrap_err().to_string();
            assert!(message.contains(expected), "{expected}: {message}");
        }
    }
}
