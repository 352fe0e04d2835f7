//! Distributions of times that may be negative: an hdrhistogram for each sign, and exact sums.
//!
//! A percentile is at most 1/1000 off, never outside the exact minimum and maximum, and withheld where
//! fewer than ten samples are beyond it.

use hdrhistogram::Histogram;

use crate::model::probe::Figures;

/// Digits that hdrhistogram keeps.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Quantiles in thousandths, with the samples that each takes: ten beyond it.
const QUANTILES: [(u64, u64); 4] = [(500, 20), (900, 100), (990, 1_000), (999, 10_000)];

/// As many samples show all percentiles.
pub const N_FOR_ALL_PERCENTILES: u64 = QUANTILES[3].1;

/// Samples of one quantity.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Zero included.
    positive: Histogram<u64>,
    /// By their distance from zero.
    negative: Histogram<u64>,
    sum_ns: i128,
    /// The smallest and the largest.
    range: Option<(i64, i64)>,
}

impl Default for Distribution {
    fn default() -> Self {
        // SANITY: three digits are always accepted, and the histogram grows by itself.
        let empty = Histogram::new(SIGNIFICANT_DIGITS).expect("three digits");
        Self {
            negative: empty.clone(),
            positive: empty,
            sum_ns: 0,
            range: None,
        }
    }
}

impl Distribution {
    /// One that never allocates, for times of up to `max_ns`; of longer ones only the percentiles are off.
    #[must_use]
    pub(crate) fn with_room_for(max_ns: u64) -> Self {
        // SANITY: 1 as the lowest, at least 2 as the highest value, and three digits are always accepted.
        let positive = Histogram::new_with_bounds(1, max_ns.max(2), SIGNIFICANT_DIGITS)
            .expect("bounds are in order");
        Self {
            positive,
            ..Self::default()
        }
    }

    /// Counts a sample.
    pub fn record(&mut self, ns: i64) {
        let histogram = if ns < 0 {
            &mut self.negative
        } else {
            &mut self.positive
        };
        // One that grows takes everything; any other counts it as its largest.
        if histogram.record(ns.unsigned_abs()).is_err() {
            histogram.saturating_record(ns.unsigned_abs());
        }
        self.sum_ns += i128::from(ns);
        let (min, max) = self.range.unwrap_or((ns, ns));
        self.range = Some((min.min(ns), max.max(ns)));
    }

    /// Samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.positive.len() + self.negative.len()
    }

    /// Its figures.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let count = self.count();
        let percentiles = QUANTILES.map(|(per_mille, n_needed)| {
            let is_known = count >= n_needed;
            is_known.then(|| self.at_rank((count * per_mille).div_ceil(1_000)))
        });
        let mean_ns = (count > 0).then(|| {
            let count = i128::from(count);
            narrow((self.sum_ns * 2 + count).div_euclid(count * 2))
        });
        Figures {
            count,
            sum_ns: narrow(self.sum_ns),
            min_ns: self.range.map(|(min, _)| min),
            mean_ns,
            max_ns: self.range.map(|(_, max)| max),
            p50_ns: percentiles[0],
            p90_ns: percentiles[1],
            p99_ns: percentiles[2],
            p999_ns: percentiles[3],
        }
    }

    /// The sample that is the `rank`-th from below, from 1 on.
    fn at_rank(&self, rank: u64) -> i64 {
        let n_negative = self.negative.len();
        let found = if rank <= n_negative {
            // From the far end: the smallest is the furthest below zero.
            -of_rank(&self.negative, n_negative - rank + 1)
        } else {
            of_rank(&self.positive, rank - n_negative)
        };
        self.range.map_or(found, |(min, max)| found.clamp(min, max))
    }
}

/// The `rank`-th value of a histogram, from 1 on.
#[expect(
    clippy::cast_precision_loss,
    reason = "half a rank keeps the quotient away from its neighbours up to 2^52 samples"
)]
fn of_rank(histogram: &Histogram<u64>, rank: u64) -> i64 {
    let quantile = (rank as f64 - 0.5) / histogram.len() as f64;
    narrow(histogram.value_at_quantile(quantile).into())
}

/// Beyond 292 years all is one.
fn narrow(ns: i128) -> i64 {
    let limit = if ns < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(ns).unwrap_or(limit)
}

impl Extend<i64> for Distribution {
    fn extend<I: IntoIterator<Item = i64>>(&mut self, samples: I) {
        for ns in samples {
            self.record(ns);
        }
    }
}

impl FromIterator<i64> for Distribution {
    fn from_iter<I: IntoIterator<Item = i64>>(samples: I) -> Self {
        let mut distribution = Self::default();
        distribution.extend(samples);
        distribution
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::Random;

    #[track_caller]
    fn check(samples: &[i64]) {
        let figures = samples.iter().copied().collect::<Distribution>().figures();
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        assert_eq!(figures.sum_ns, samples.iter().sum::<i64>());
        assert_eq!(figures.min_ns, sorted.first().copied());
        assert_eq!(figures.max_ns, sorted.last().copied());
        let shown = [
            (500, figures.p50_ns),
            (900, figures.p90_ns),
            (990, figures.p99_ns),
            (999, figures.p999_ns),
        ];
        for (per_mille, shown) in shown {
            let n_beyond = sorted.len() * (1000 - per_mille) / 1000;
            assert_eq!(shown.is_some(), n_beyond >= 10, "p{per_mille}");
            if let Some(shown) = shown {
                let exact = sorted[(sorted.len() * per_mille).div_ceil(1000) - 1];
                let allowed = exact.unsigned_abs() / 1000 + 1;
                assert!(
                    shown.abs_diff(exact) <= allowed,
                    "p{per_mille}: {shown}, exactly {exact}"
                );
            }
        }
    }

    #[test]
    fn percentiles_of_both_signs_agree_with_sorted_samples() {
        let mut random = Random::new(0x5eed_0011);
        for (n_samples, shift) in [(25, 0), (150, 500), (3_000, 20_000), (12_000, 1_000_000)] {
            let samples = random.durations(n_samples);
            let samples: Vec<_> = samples.iter().map(|ns| ns.cast_signed() - shift).collect();
            check(&samples);
        }
        check(&[-5; 20_000]);
    }

    #[test]
    fn percentiles_are_withheld_until_ten_samples_are_beyond_them() {
        for n_samples in [19, 20, 99, 100, 999, 1_000, 9_999, 10_000] {
            check(&(0..n_samples).collect::<Vec<_>>());
        }
    }

    #[test]
    fn mean_is_rounded_and_nothing_is_made_of_nothing() {
        let mean = |samples: &[i64]| {
            samples
                .iter()
                .copied()
                .collect::<Distribution>()
                .figures()
                .mean_ns
        };
        assert_eq!(mean(&[1, 2]), Some(2));
        assert_eq!(mean(&[-1, -2, -2]), Some(-2));
        assert_eq!(Distribution::default().figures(), Figures::default());
    }
}
