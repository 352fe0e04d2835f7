//! What tools of others print: numbers that fit, or a refusal in words that a terminal can show.

use serde_json::Value;

use super::is_harmless;
use crate::{
    model::{Claims, SeenByKernel, SeenThread},
    reconcile::foreign::{Output, Tool, judge},
};

/// No number of a tool is larger, nor what is made of it; so sums of them fit.
const MOST: u64 = 1 << 55;

/// The longest refusal: it may quote two times forty characters, each escaped.
const MOST_BYTES: usize = 2_000;

/// Gives the bytes to the readers of all tools, and what they read to the rules. A NUL stands between the
/// tool's file and its output; without one, both are the same.
///
/// # Panics
///
/// Where something that was read does not fit, or something that is said is not for a terminal.
pub fn foreign(bytes: &[u8]) {
    let all = String::from_utf8_lossy(bytes);
    let (json, text) = all.split_once('\0').unwrap_or((&all, &all));
    for tool in Tool::ALL {
        match tool.read(Output { json, text }) {
            Ok(claims) => {
                check_claims(&claims);
                check_reasons(tool, &claims);
            }
            Err(refusal) => {
                let said = refusal.to_string();
                assert!(is_harmless(&said) && said.len() < MOST_BYTES, "{said:?}");
            }
        }
    }
}

fn check_claims(claims: &Claims) {
    let document = serde_json::to_string(claims).expect("claims are JSON");
    check_value(&serde_json::from_str(&document).expect("JSON parses"));
    for series in &claims.series {
        let buckets = &series.histogram;
        assert!(buckets.is_sorted(), "{buckets:?}");
        assert!(buckets.iter().all(|(ns, n)| (*ns).max(*n) <= MOST));
    }
}

/// Every number fits, every text is harmless.
fn check_value(value: &Value) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => assert!(number.as_u64().is_some_and(|n| n <= MOST), "{number}"),
        Value::String(text) => assert!(is_harmless(text), "{text:?}"),
        Value::Array(values) => values.iter().for_each(check_value),
        Value::Object(members) => members.values().for_each(check_value),
    }
}

/// The rules find words for any claims, beside a kernel that saw little of these threads.
fn check_reasons(tool: Tool, claims: &Claims) {
    let threads = claims.series.iter().map(|series| SeenThread {
        name: series.name.clone(),
        alive_ns: series.duration_ns,
        periods: series.taken,
        missed_periods: Some(1),
        ..SeenThread::default()
    });
    let seen = SeenByKernel {
        elapsed_ns: 1_000_000_000,
        n_tasks: 2,
        wakeups: 1,
        threads: threads.collect(),
        ..SeenByKernel::default()
    };
    for kernel in [seen, SeenByKernel::default()] {
        for reason in judge(tool, claims, &kernel, 1) {
            assert!(is_harmless(&reason.text), "{:?}", reason.text);
        }
    }
}
