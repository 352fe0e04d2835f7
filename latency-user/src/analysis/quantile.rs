//! Percentiles from the kernel's buckets, by way of `hdrhistogram`.
//!
//! Error: a sample is taken as the middle of its bucket, at most 1/64 of its value off (and not at
//! all below 64 ns); hdrhistogram with three significant digits adds at most 1/1000. So a shown
//! percentile is within 1.7 % of the exact one of the same samples, and never outside the exact
//! minimum and maximum. Samples beyond the last bucket (34 s) count as the exact maximum.

use hdrhistogram::Histogram;
use latency_common::hist::{bucket_high_ns, bucket_low_ns};

use crate::model::{Buckets, ClassTally};

/// Digits hdrhistogram keeps: an error well below that of the buckets.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Samples by which a histogram may differ from its count, beyond a hundredth of them: counters
/// and histograms of a task that runs are read one after the other. More means samples are missing.
const READING_SKEW: u64 = 2;

/// The quantiles that are reported.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// p50, p90, p99 and p99.9, in ns, of the samples that `exact` counts; none without samples, or where some are missing
/// from `buckets`.
pub(super) fn percentiles(buckets: &Buckets, exact: &ClassTally) -> Option<[u64; 4]> {
    if exact.count == 1 {
        return Some([exact.max_ns; QUANTILES.len()]);
    }
    let in_buckets: u64 = buckets.counts.iter().map(|(_, count)| count).sum();
    let samples = in_buckets + buckets.overflow;
    let is_complete = samples.abs_diff(exact.count) <= exact.count / 100 + READING_SKEW;
    if exact.count == 0 || samples == 0 || !is_complete {
        return None;
    }
    let histogram = folded(buckets, exact.max_ns);
    Some(QUANTILES.map(|quantile| {
        let ns = histogram.value_at_quantile(quantile);
        ns.max(exact.min_ns).min(exact.max_ns)
    }))
}

/// `buckets` as an hdrhistogram that reaches up to `max_ns`.
fn folded(buckets: &Buckets, max_ns: u64) -> Histogram<u64> {
    // SANITY: 1 as the lowest, at least 2 as the highest value, and 3 digits are always accepted.
    let mut histogram = Histogram::new_with_bounds(1, max_ns.max(2), SIGNIFICANT_DIGITS)
        .expect("bounds are in order");
    for &(bucket, count) in &buckets.counts {
        histogram.saturating_record_n(middle_ns(usize::from(bucket)), count);
    }
    histogram.saturating_record_n(max_ns, buckets.overflow);
    histogram
}

fn middle_ns(bucket: usize) -> u64 {
    u64::midpoint(bucket_low_ns(bucket), bucket_high_ns(bucket))
}

#[cfg(test)]
mod tests {
    use latency_common::class::WaitClass;
    use latency_common::hist::{HistKind, OVERFLOW_NS};

    use super::*;
    use crate::analysis::fixture::{Random, tally_of};

    /// Percentiles of `samples`, each checked against the sorted samples.
    #[track_caller]
    fn check(samples: &[u64], seed: u64) -> [u64; 4] {
        let tally = tally_of(WaitClass::Wakeup, samples);
        let found = percentiles(
            &tally.hists[HistKind::Wakeup as usize],
            tally.class(WaitClass::Wakeup),
        )
        .expect("there are samples");
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        for (shown, per_mille) in found.into_iter().zip([500, 900, 990, 999]) {
            let rank = (sorted.len() * per_mille).div_ceil(1000).max(1);
            let exact = sorted[rank - 1];
            let allowed = exact / 64 + exact / 1000 + 1;
            assert!(
                shown.abs_diff(exact) <= allowed,
                "p{per_mille}: {shown}, exactly {exact}, seed {seed:#x}"
            );
            assert!((sorted[0]..=sorted[sorted.len() - 1]).contains(&shown));
        }
        found
    }

    #[test]
    fn percentiles_agree_with_sorted_samples() {
        let seed = 0x5eed_0002;
        let mut random = Random::new(seed);
        for _ in 0..40 {
            let n_samples = 1 + random.below(3000);
            check(&random.durations(n_samples), seed);
        }
    }

    #[test]
    fn one_sample_is_every_percentile() {
        assert_eq!(check(&[123_457], 0), [123_457; 4]);
        assert_eq!(check(&[0], 0), [0; 4]);
    }

    #[test]
    fn equal_samples_give_exact_percentiles() {
        assert_eq!(check(&[1_000_003; 500], 0), [1_000_003; 4]);
    }

    #[test]
    fn samples_beyond_the_last_bucket_count_as_the_maximum() {
        let longest = OVERFLOW_NS * 3;
        let found = check(&[10, 10, 10, longest], 0);
        assert_eq!(found, [10, longest, longest, longest]);
    }

    #[test]
    fn no_samples_have_no_percentiles() {
        assert_eq!(
            percentiles(&Buckets::default(), &ClassTally::default()),
            None
        );
    }

    #[test]
    fn missing_samples_leave_no_percentiles() {
        let tally = tally_of(WaitClass::Wakeup, &[5; 10]);
        let mut exact = *tally.class(WaitClass::Wakeup);
        let buckets = &tally.hists[HistKind::Wakeup as usize];
        exact.count += READING_SKEW;
        assert!(percentiles(buckets, &exact).is_some());
        exact.count += 1;
        assert!(percentiles(buckets, &exact).is_none());
        assert!(percentiles(&Buckets::default(), &exact).is_none());
    }
}
