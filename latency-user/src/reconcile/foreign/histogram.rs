//! Histograms of foreign tools: JSON objects from a value in display units to a count.

use serde_json::Value;

use super::{
    Malformed,
    number::{count, ns},
};

/// Reads one, in the order of its values: nanoseconds, and samples.
pub(super) fn read(object: &Value, unit_ns: u64) -> Result<Vec<(u64, u64)>, Malformed> {
    let object = object
        .as_object()
        .ok_or_else(|| Malformed("its histogram is no object".into()))?;
    let bucket = |(value, samples): (&String, &Value)| {
        let samples_n = samples.as_number().and_then(|n| count(&n.to_string()));
        ns(value, unit_ns)
            .zip(samples_n)
            .ok_or_else(|| Malformed::number(&format!("histogram {value}"), samples))
    };
    let mut buckets: Vec<_> = object.iter().map(bucket).collect::<Result<_, _>>()?;
    buckets.sort_unstable();
    Ok(buckets)
}

/// Samples in it.
pub(super) fn total(buckets: &[(u64, u64)]) -> u64 {
    buckets
        .iter()
        .fold(0, |sum, (_, n)| u64::saturating_add(sum, *n))
}

/// A percentile rests on at least so many samples above it, as all that are reported.
const N_ABOVE: u64 = 10;

/// The value below or at which `per_mille` thousandths of all `samples` lie; none where it lies beyond
/// the histogram, or rests on too few samples.
pub(super) fn percentile(buckets: &[(u64, u64)], samples: u64, per_mille: u64) -> Option<u64> {
    let n_above = u128::from(samples) * u128::from(1000_u64.saturating_sub(per_mille)) / 1000;
    if n_above < u128::from(N_ABOVE) {
        return None;
    }
    let rank = u128::from(samples) * u128::from(per_mille);
    let rank = rank.div_ceil(1000).max(1);
    let mut seen = 0_u128;
    buckets.iter().find_map(|(value, n)| {
        seen += u128::from(*n);
        (seen >= rank).then_some(*value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_samples() {
        let object = serde_json::json!({"10": 100, "2": 890, "100": 10});
        let buckets = read(&object, 1_000).unwrap();
        assert_eq!(buckets, [(2_000, 890), (10_000, 100), (100_000, 10)]);
        assert_eq!(total(&buckets), 1000);
        assert_eq!(percentile(&buckets, 1000, 500), Some(2_000));
        assert_eq!(percentile(&buckets, 1000, 900), Some(10_000));
        assert_eq!(percentile(&buckets, 1000, 990), Some(10_000));
        // Half of them lie beyond it.
        assert_eq!(percentile(&buckets, 2000, 990), None);
    }

    #[test]
    fn percentiles_that_rest_on_few_samples_are_withheld() {
        for (per_mille, least) in [(500, 20), (900, 100), (990, 1_000), (999, 10_000)] {
            let all_alike = [(7, least)];
            assert_eq!(percentile(&all_alike, least, per_mille), Some(7));
            assert_eq!(percentile(&all_alike, least - 1, per_mille), None);
        }
        assert_eq!(percentile(&[], 0, 500), None);
    }

    #[test]
    fn odd_buckets_are_refused() {
        for object in [
            serde_json::json!([1, 2]),
            serde_json::json!({"x": 1}),
            serde_json::json!({"1": -1}),
            serde_json::json!({"1": "many"}),
            serde_json::json!({"99999999999999999999999": 1}),
        ] {
            assert!(read(&object, 1_000).is_err(), "{object}");
        }
    }
}
