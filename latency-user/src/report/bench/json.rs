//! The document `schedlat.bench`.

use serde::Serialize;

use crate::{
    model::BenchReport,
    report::{VERSION, json::ended},
};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    version: &'static str,
    #[serde(flatten)]
    report: &'a BenchReport,
}

/// One document.
#[must_use]
pub fn render(report: &BenchReport) -> String {
    ended(serde_json::to_string_pretty(&Document {
        schema: "schedlat.bench",
        version: VERSION,
        report,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::fixture;

    #[test]
    fn document_keeps_the_contract() {
        insta::assert_snapshot!(
            super::render(&fixture::report()).replace(super::VERSION, "VERSION")
        );
    }
}
