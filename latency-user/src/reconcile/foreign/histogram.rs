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

/// The value below or at which `per_mille` thousandths of all `samples` lie; none where it lies beyond
/// the histogram.
pub(super) fn percentile(buckets: &[(u64, u64)], samples: u64, per_mille: u64) -> Option<u64> {
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
        let object = serde_json::json!({"10": 1, "2": 8, "100": 1});
        let buckets = read(&object, 1_000).unwrap();
        assert_eq!(buckets, [(2_000, 8), (10_000, 1), (100_000, 1)]);
        assert_eq!(total(&buckets), 10);
        assert_eq!(percentile(&buckets, 10, 500), Some(2_000));
        assert_eq!(percentile(&buckets, 10, 900), Some(10_000));
        assert_eq!(percentile(&buckets, 10, 990), Some(100_000));
        assert_eq!(percentile(&buckets, 1000, 990), None);
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
