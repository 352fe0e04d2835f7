//! The document `schedlat.verify`.

use serde::Serialize;

use crate::{
    model::Verification,
    report::{VERSION, json::ended},
};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    version: &'static str,
    #[serde(flatten)]
    verification: &'a Verification,
}

/// One document.
#[must_use]
pub fn render(verification: &Verification) -> String {
    ended(serde_json::to_string_pretty(&Document {
        schema: "schedlat.verify",
        version: VERSION,
        verification,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::fixture;

    #[test]
    fn document_keeps_the_contract() {
        insta::assert_snapshot!(
            super::render(&fixture::verification()).replace(super::VERSION, "VERSION")
        );
    }
}
