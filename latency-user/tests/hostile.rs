//! Bytes and texts from others: whatever they hold is refused in words or fits, and is harmless.
//!
//! Random ones, and real outputs of tools with random bytes put in their places; a failure is made
//! small and shown. Runs leave no files behind.

use latency_user::{
    analysis::escape,
    cpus::CpuList,
    probe::policy::Policy,
    reconcile::foreign::{Output, Tool},
    units::Nanos,
};
use proptest::prelude::*;

const OUTPUTS: [&str; 8] = [
    include_str!("../src/reconcile/foreign/fixtures/cyclictest.json"),
    include_str!("../src/reconcile/foreign/fixtures/cyclictest_histogram.json"),
    include_str!("../src/reconcile/foreign/fixtures/cyclictest.txt"),
    include_str!("../src/reconcile/foreign/fixtures/oslat.json"),
    include_str!("../src/reconcile/foreign/fixtures/hackbench.txt"),
    include_str!("../src/reconcile/foreign/fixtures/perf_bench_pipe.txt"),
    include_str!("../src/reconcile/foreign/fixtures/stress_ng_cyclic.txt"),
    include_str!("../src/reconcile/foreign/fixtures/schbench.txt"),
];

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(512)
    }
}

/// Texts near what is expected: its own characters, more often than others.
fn near(characters: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => proptest::collection::vec(proptest::sample::select(characters.chars().collect::<Vec<_>>()), 0..24)
            .prop_map(|it| it.into_iter().collect()),
        1 => any::<String>(),
    ]
}

fn is_harmless(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// What every tool says of a text; messages are for a terminal.
fn read_by_all(text: &str) -> Result<(), TestCaseError> {
    for tool in Tool::ALL {
        if let Err(refusal) = tool.read(Output { json: text, text }) {
            let message = refusal.to_string();
            prop_assert!(is_harmless(&message), "{message:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn names_of_any_bytes_are_one_harmless_line(name in any::<[u8; 16]>()) {
        let shown = escape::bytes(&name);
        prop_assert!(is_harmless(&shown), "{shown:?}");
        let json = serde_json::to_string(&shown).unwrap();
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), shown);
    }

    #[test]
    fn paths_of_any_text_are_one_harmless_line(path in any::<String>()) {
        let shown = escape::text(&path);
        prop_assert!(is_harmless(&shown), "{shown:?}");
        // What was made printable once stays as it is.
        prop_assert_eq!(escape::text(&shown), shown);
    }

    #[test]
    fn outputs_of_tools_may_be_any_text(text in near("0123456789.:{}[]\",-eE \nTmaxmin")) {
        read_by_all(&text)?;
    }

    #[test]
    fn outputs_of_tools_may_be_changed_anywhere(
        index in 0..OUTPUTS.len(),
        at in any::<prop::sample::Index>(),
        length in 0_usize..12,
        new in near("0123456789.-eE\"{}\u{1b}\0"),
    ) {
        let output = OUTPUTS[index];
        let start = at.index(output.len());
        let end = (start + length).min(output.len());
        read_by_all(&format!("{}{new}{}", &output[..start], &output[end..]))?;
    }

    #[test]
    fn durations_of_any_text_are_refused_or_fit(text in near("0123456789.nuµmsh -+e")) {
        match text.parse::<Nanos>() {
            Ok(duration) => prop_assert!(duration.as_ns() > 0 && is_harmless(&duration.to_string())),
            Err(refusal) => prop_assert!(!refusal.to_string().is_empty()),
        }
    }

    #[test]
    fn cpus_of_any_text_are_refused_or_read_back(text in near("0123456789,- :")) {
        if let Ok(cpus) = text.parse::<CpuList>() {
            prop_assert!(cpus.as_slice().is_sorted());
            prop_assert_eq!(cpus.to_string().parse(), Ok(cpus));
        }
    }

    #[test]
    fn policies_of_any_text_are_refused_or_taken(text in near("fiorcthebadln:0123456789,-us")) {
        match text.parse::<Policy>() {
            Ok(policy) => prop_assert!(is_harmless(&policy.to_string())),
            Err(refusal) => prop_assert!(!refusal.to_string().is_empty()),
        }
    }
}
