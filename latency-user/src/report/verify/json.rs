//! The document `schedlat.verify`.

use crate::{model::Verification, report::json::versioned};

/// One document.
#[must_use]
pub fn render(verification: &Verification) -> String {
    versioned("schedlat.verify", verification)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use crate::report::VERSION;

    #[test]
    fn document_keeps_the_contract() {
        insta::assert_snapshot!(
            super::render(&fixture::verification()).replace(VERSION, "VERSION")
        );
    }
}
