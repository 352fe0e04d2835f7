//! What a series found: rows, of which a table is made, and the budgets that were exceeded.
//!
//! Promises: the table and the JSON show the same numbers; Markdown that can be kept as it is.

use anyhow::{Result, bail};
use serde_json::{Value, json};

/// A column of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// The key in a row, with its unit.
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    /// Digits after the point.
    pub(super) digits: usize,
}

/// Rows as JSON objects, and what was wrong with them.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) columns: &'static [Column],
    pub(super) rows: Vec<Value>,
    /// Each budget that was exceeded, in words.
    pub(super) exceeded: Vec<String>,
}

impl Outcome {
    /// The table for people; what a row does not have is left empty.
    pub(super) fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let titles = self.columns.iter().map(|column| column.title.to_owned());
        let rule = self.columns.iter().map(|_| "---".to_owned());
        let rows = self.rows.iter().map(|row| {
            let cells = self
                .columns
                .iter()
                .map(|column| shown(&row[column.key], column.digits));
            line(cells.collect())
        });
        [line(titles.collect()), line(rule.collect())]
            .into_iter()
            .chain(rows)
            .collect()
    }

    /// The same for programs.
    pub(super) fn json(&self, series: &str) -> Value {
        json!({
            "schema": "schedlat.overhead",
            "version": 2,
            "series": series,
            "rows": self.rows,
            "exceeded": self.exceeded,
        })
    }

    /// Whether every budget was kept.
    pub(super) fn judge(&self) -> Result<()> {
        if !self.exceeded.is_empty() {
            bail!(
                "{}\nhelp: again with more rounds (-n), on an idle machine",
                self.exceeded.join("\n")
            );
        }
        Ok(())
    }
}

fn shown(value: &Value, digits: usize) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        number => number
            .as_f64()
            .map_or_else(|| number.to_string(), |number| format!("{number:.digits$}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column {
            key: "name",
            title: "observer",
            digits: 0,
        },
        Column {
            key: "added_us",
            title: "added, µs/op",
            digits: 2,
        },
    ];

    #[test]
    fn table_has_what_the_rows_have() {
        let rows = vec![
            json!({ "name": "nothing" }),
            json!({ "name": "runqlat", "added_us": 1.675 }),
        ];
        let outcome = Outcome {
            columns: COLUMNS,
            rows,
            exceeded: Vec::new(),
        };
        let expected =
            "| observer | added, µs/op |\n| --- | --- |\n| nothing |  |\n| runqlat | 1.68 |\n";
        assert_eq!(outcome.markdown(), expected);
        assert!(outcome.judge().is_ok());
    }

    #[test]
    fn exceeded_budget_fails() {
        let exceeded = vec!["too much".to_owned()];
        let outcome = Outcome {
            columns: COLUMNS,
            rows: Vec::new(),
            exceeded,
        };
        assert!(outcome.judge().is_err());
        assert_eq!(outcome.json("tasks")["exceeded"][0], "too much");
    }
}
