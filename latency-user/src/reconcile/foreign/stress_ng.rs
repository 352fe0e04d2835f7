//! `stress-ng --cyclic`: how much longer a relative sleep took than it should, on the clock of the day.
//!
//! All its figures rest on the first samples only, 10,000 without `--cyclic-samples`; where it took more,
//! a note says so.

use super::{
    Malformed,
    number::{count, ns},
};
use crate::model::{ClaimedLatency, ClaimedSeries, Claims};

/// What it says on its standard error.
pub(super) fn parse(text: &str) -> Result<Claims, Malformed> {
    let lines = || {
        text.lines()
            .filter_map(|line| Some(line.split_once("] cyclic:")?.1))
    };
    let part = |name: &str| lines().find_map(|line| super::after(line, name));
    let figure = |name: &str| {
        let number = part(name).ok_or_else(|| Malformed::missing(name))?;
        ns(number, 1).ok_or_else(|| Malformed::text(name, number))
    };
    let percentile = |name: &str| part(name).and_then(|number| ns(number, 1));
    let kept = lines()
        .find_map(|line| super::before(line, "samples"))
        .and_then(count);
    let taken = part("--cyclic-samples needed to be ")
        .and_then(count)
        .or(kept);
    let latency = ClaimedLatency {
        count: kept,
        min_ns: Some(figure("min:")?),
        mean_ns: Some(figure("mean:")?),
        max_ns: Some(figure("max:")?),
        // Without it the text was cut short.
        p50_ns: Some(figure("50.00%:")?),
        p90_ns: percentile("90.00%:"),
        p99_ns: percentile("99.00%:"),
        p999_ns: percentile("99.90%:"),
    };
    let series = ClaimedSeries {
        name: "cyclic".to_owned(),
        taken,
        latency,
        resolution_ns: 1,
        ..ClaimedSeries::default()
    };
    Ok(Claims {
        series: vec![series],
        ..Claims::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("fixtures/stress_ng_cyclic.txt");

    #[test]
    fn figures_are_of_the_first_samples() {
        let claims = parse(TEXT).unwrap();
        let series = &claims.series[0];
        assert_eq!(series.taken, Some(16_605));
        let latency = series.latency;
        assert_eq!(latency.count, Some(10_000));
        assert_eq!(latency.mean_ns, Some(17_400));
        assert_eq!(
            (latency.min_ns, latency.max_ns),
            (Some(8_501), Some(1_368_962))
        );
        assert_eq!(
            (latency.p50_ns, latency.p999_ns),
            (Some(15_211), Some(324_921))
        );
    }

    #[test]
    fn short_run_rests_on_all_samples() {
        let lines: Vec<_> = TEXT.lines().filter(|line| !line.contains("Note")).collect();
        let text = lines.join("\n").replace("10000 samples", "8019 samples");
        let series = &parse(&text).unwrap().series[0];
        assert_eq!(
            (series.taken, series.latency.count),
            (Some(8_019), Some(8_019))
        );
    }

    #[test]
    fn hostile_texts_are_refused_in_words() {
        let refused = [
            (String::new(), "'min:' is missing"),
            (TEXT.replace("mean:", "mood:"), "'mean:' is missing"),
            (TEXT.replace("max: 1368962", "max: 1e99"), "'max:'"),
            (
                TEXT.replace("min: 8501", &format!("min: {}", "8".repeat(99))),
                "'min:'",
            ),
            (TEXT[..TEXT.len() / 3].to_owned(), "is missing"),
        ];
        for (text, expected) in refused {
            let message = parse(&text).unwrap_err().to_string();
            assert!(message.contains(expected), "{expected}: {message}");
        }
    }
}
