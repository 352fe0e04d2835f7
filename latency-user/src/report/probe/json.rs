//! The JSON documents of probes: `schema`, `version`, `host`, `conditions`, `warnings`, `series`, and in
//! `record` what `schedlat record` would have said of the probe's threads and of those alongside.

use serde::Serialize;

use super::super::{
    VERSION,
    json::{document, ended},
};
use crate::model::{
    Host,
    probe::{Conditions, ProbeReport, Warning},
};

#[derive(Serialize)]
struct Document<'a, S: Serialize, R: Serialize> {
    schema: String,
    version: &'static str,
    host: &'a Host,
    conditions: &'a Conditions,
    warnings: &'a [Warning],
    series: &'a [S],
    record: R,
}

/// The report of the probe of this name.
#[must_use]
pub fn render<S: Serialize>(probe: &str, report: &ProbeReport<S>) -> String {
    ended(serde_json::to_string_pretty(&Document {
        schema: format!("schedlat.probe.{probe}"),
        version: VERSION,
        host: &report.host,
        conditions: &report.conditions,
        warnings: &report.warnings,
        series: &report.series,
        record: document(&report.record),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::fixture;

    #[test]
    fn document_has_the_frame_of_every_probe() {
        let report = ProbeReport {
            host: fixture::report().host,
            conditions: Conditions::default(),
            warnings: vec![Warning::TopPriority],
            series: vec![[1, 2]],
            record: fixture::report(),
        };
        let text = render("wake", &report);
        let parsed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["schema"], "schedlat.probe.wake");
        assert_eq!(parsed["version"], VERSION);
        assert_eq!(parsed["host"]["n_cpus"], 2);
        assert_eq!(parsed["warnings"][0]["kind"], "top_priority");
        assert_eq!(parsed["series"][0][1], 2);
        assert_eq!(parsed["record"]["schema"], "schedlat.record");
        assert_eq!(parsed["record"]["tasks"][0]["tid"], 4121);
    }
}
