//! The document `schedlat.bench`.

use crate::{model::BenchReport, report::json::versioned};

/// One document.
#[must_use]
pub fn render(report: &BenchReport) -> String {
    versioned("schedlat.bench", report)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use crate::report::VERSION;

    #[test]
    fn document_keeps_the_contract() {
        insta::assert_snapshot!(super::render(&fixture::report()).replace(VERSION, "VERSION"));
    }
}
