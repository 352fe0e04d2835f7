//! Runs without and with an observer, in pairs of the same round.
//!
//! Promises: pure arithmetic; what was added is the difference within a pair, so that a drift between
//! rounds is in neither.

use serde_json::{Map, Value, json};

use super::outcome::Column;

/// Columns of what [`Pairs::row`] has, and of a ratio to the first row.
pub(super) const US_PER_OP: Column = Column {
    key: "us_per_op",
    title: "µs/op",
    digits: 3,
};
pub(super) const ADDED: Column = Column {
    key: "added_us",
    title: "added, µs/op",
    digits: 3,
};
pub(super) const QUARTILES: Column = Column {
    key: "quartiles",
    title: "quartiles",
    digits: 0,
};
pub(super) const OF_FIRST: Column = Column {
    key: "of_first",
    title: "of the first row",
    digits: 2,
};

/// Figures of the rounds of one point.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    bare: Vec<f64>,
    observed: Vec<f64>,
}

impl Pairs {
    /// Takes a round, in microseconds per round trip.
    pub(super) fn add(&mut self, bare: f64, observed: f64) {
        self.bare.push(bare);
        self.observed.push(observed);
    }

    /// The median of what was added, in units of what was added in others; none where that was nothing.
    pub(super) fn of(&self, others: Option<&Self>) -> Option<f64> {
        let unit = others.map(Self::added).filter(|&added| added > 0.0)?;
        Some(self.added() / unit)
    }

    fn added(&self) -> f64 {
        quantile(&self.differences(), 0.5)
    }

    /// What a row of a table shows of it, and what it was made from.
    pub(super) fn row(&self) -> Map<String, Value> {
        let added = self.differences();
        let [low, middle, high] = [0.25, 0.5, 0.75].map(|q| quantile(&added, q));
        let mut row = Map::new();
        row.insert("us_per_op".into(), json!(quantile(&self.observed, 0.5)));
        row.insert("added_us".into(), json!(middle));
        row.insert("quartiles".into(), json!(format!("{low:.3}..{high:.3}")));
        row.insert("bare_us_of_rounds".into(), json!(self.bare));
        row.insert("observed_us_of_rounds".into(), json!(self.observed));
        row
    }

    fn differences(&self) -> Vec<f64> {
        self.observed
            .iter()
            .zip(&self.bare)
            .map(|(observed, bare)| observed - bare)
            .collect()
    }
}

/// The value below which the share `q` of `values` lies, between neighbours if need be; 0 of none.
pub(super) fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    #[expect(clippy::cast_precision_loss, reason = "a few rounds")]
    let position = q * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to the last"
    )]
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let check = |values: &[f64], q: f64, expected: f64| {
            assert!(
                (quantile(values, q) - expected).abs() < 1e-9,
                "{values:?} at {q}"
            );
        };
        check(&[], 0.5, 0.0);
        check(&[3.0, 1.0, 2.0], 0.5, 2.0);
        check(&[1.0, 2.0], 0.5, 1.5);
        check(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25, 2.0);
    }

    #[test]
    fn drift_between_rounds_is_not_taken_for_cost() {
        let mut pairs = Pairs::default();
        for drift in [0.0, 5.0, 50.0] {
            pairs.add(4.0 + drift, 5.0 + drift);
        }
        assert!((pairs.added() - 1.0).abs() < 1e-9);
        assert_eq!(pairs.row()["quartiles"], "1.000..1.000");
    }
}
