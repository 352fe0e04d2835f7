//! What the measurements of all rounds say: medians, their spread, and the budget.
//!
//! Promises: pure arithmetic on the rounds; no verdict from a reference that added nothing.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::Variant;

/// The observer that the budget is stated in.
pub(super) const REFERENCE: &str = "runqlat";

/// The rounds of all variants, in microseconds per round trip.
#[derive(Debug)]
pub(super) struct Comparison {
    bare: Vec<f64>,
    observed: Vec<Observed>,
}

#[derive(Debug)]
struct Observed {
    name: &'static str,
    budget: Option<f64>,
    micros: Vec<f64>,
    /// What it added to the bare run of the same round.
    added: Vec<f64>,
}

impl Comparison {
    pub(super) fn new(variants: &[Variant]) -> Self {
        let observed = variants.iter().map(|variant| Observed {
            name: variant.name,
            budget: variant.budget,
            micros: Vec::new(),
            added: Vec::new(),
        });
        Self {
            bare: Vec::new(),
            observed: observed.collect(),
        }
    }

    /// Takes a round: the bare run, and one run per variant in their order.
    pub(super) fn add_round(&mut self, bare: f64, micros: Vec<f64>) {
        self.bare.push(bare);
        for (observed, micros) in self.observed.iter_mut().zip(micros) {
            observed.micros.push(micros);
            observed.added.push(micros - bare);
        }
    }

    /// The table for people.
    pub(super) fn table(&self) -> String {
        let head = format!(
            "{:26} {:>8} {:>8} {:>16} {:>11} {:>7}",
            "observer", "us/op", "added", "quartiles", "of runqlat", "budget"
        );
        let bare = format!("{:26} {:8.3}", "nothing", quantile(&self.bare, 0.5));
        let rows = self.observed.iter().map(|observed| self.row(observed));
        let lines: Vec<_> = [head, bare].into_iter().chain(rows).collect();
        lines.join("\n") + "\n"
    }

    fn row(&self, observed: &Observed) -> String {
        let two_digits = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.2}"));
        let [low, added, high] = [0.25, 0.5, 0.75].map(|q| quantile(&observed.added, q));
        format!(
            "{:26} {:8.3} {added:8.3} {:>16} {:>11} {:>7}",
            observed.name,
            quantile(&observed.micros, 0.5),
            format!("{low:.3}..{high:.3}"),
            two_digits(self.ratio(observed)),
            two_digits(observed.budget),
        )
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        let observers = self.observed.iter().map(|observed| {
            json!({
                "name": observed.name,
                "us_per_op": observed.micros,
                "added_us": quantile(&observed.added, 0.5),
                "of_runqlat": self.ratio(observed),
                "budget": observed.budget,
            })
        });
        json!({
            "schema": "schedlat.overhead",
            "version": 1,
            "bare_us_per_op": self.bare,
            "observers": observers.collect::<Vec<_>>(),
            "ok": self.judge().is_ok(),
        })
    }

    /// Whether every variant with a budget keeps it.
    pub(super) fn judge(&self) -> Result<()> {
        for observed in &self.observed {
            let Some(budget) = observed.budget else {
                continue;
            };
            let Some(ratio) = self.ratio(observed) else {
                bail!(
                    "{REFERENCE} added nothing measurable: the machine is too noisy to judge\n\
                     help: cargo xtask overhead --rounds 21"
                );
            };
            if ratio > budget {
                bail!(
                    "{} adds {ratio:.2} of what {REFERENCE} adds, its budget is {budget:.2}\n\
                     help: cargo xtask overhead --rounds 21, on an idle machine",
                    observed.name
                );
            }
        }
        Ok(())
    }

    /// What a variant adds, in units of what the reference adds.
    fn ratio(&self, observed: &Observed) -> Option<f64> {
        let reference = self
            .observed
            .iter()
            .find(|observed| observed.name == REFERENCE)?;
        let unit = quantile(&reference.added, 0.5);
        (unit > 0.0).then(|| quantile(&observed.added, 0.5) / unit)
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

    fn reference_variant() -> Variant {
        Variant::new(REFERENCE, vec![])
    }

    /// `ours` and the reference over a bare run of 3 µs.
    fn check(ours: f64, reference: f64, is_within: bool) {
        let mut comparison = Comparison::new(&[
            Variant::new("ours", vec![]).within(0.5),
            reference_variant(),
        ]);
        comparison.add_round(3.0, vec![ours, reference]);
        assert_eq!(
            comparison.judge().is_ok(),
            is_within,
            "{}",
            comparison.table()
        );
        assert_eq!(comparison.json()["ok"], is_within);
    }

    #[test]
    fn half_of_what_the_reference_adds_is_within_a_budget_of_a_half() {
        check(4.0, 5.0, true);
    }

    #[test]
    fn more_is_not() {
        check(4.1, 5.0, false);
    }

    #[test]
    fn reference_that_adds_nothing_gives_no_verdict() {
        check(3.0, 3.0, false);
        check(2.9, 2.8, false);
    }

    #[test]
    fn one_outlier_does_not_move_the_median() {
        let mut comparison = Comparison::new(&[reference_variant()]);
        for added in [1.0, 1.0, 50.0] {
            comparison.add_round(3.0, vec![3.0 + added]);
        }
        assert_eq!(comparison.json()["observers"][0]["added_us"], 1.0);
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{left} {right}");
        close(quantile(&[4.0, 1.0, 2.0, 3.0], 0.5), 2.5);
        close(quantile(&[4.0, 1.0, 2.0, 3.0], 1.0), 4.0);
        close(quantile(&[7.0], 0.25), 7.0);
        close(quantile(&[], 0.5), 0.0);
    }
}
