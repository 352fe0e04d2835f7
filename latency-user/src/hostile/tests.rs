//! The seeds of the fuzz targets, and random bytes near what is expected; a failure is made small and shown.

use std::{
    fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
};

use clap::Parser as _;
use proptest::prelude::*;

use super::{arguments, foreign, is_harmless, names, rows};
use crate::{analysis::escape, cli::Cli};

/// A fuzz target: what it is called, and its body.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 4] = [
    ("foreign", foreign),
    ("arguments", arguments),
    ("names", names),
    ("rows", rows),
];

/// Options whose value is more than a number or a word of a list, each of a command that has it.
const OPTIONS: [[&str; 3]; 12] = [
    ["record", "", "--over"],
    ["record", "", "--interval"],
    ["record", "", "--stacks-over"],
    ["record", "", "--flight"],
    ["record", "", "--flight-bytes"],
    ["record", "", "--ring-bytes"],
    ["record", "", "--comm"],
    ["probe", "wake", "--cpu"],
    ["probe", "wake", "--policy"],
    ["probe", "wake", "--load"],
    ["probe", "wake", "--load-cmd"],
    ["probe", "pingpong", "--transport"],
];

fn config(n_cases: u32) -> ProptestConfig {
    // A run leaves no files behind.
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(n_cases)
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Real outputs of tools, which are seeds too.
fn fixtures() -> Vec<PathBuf> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/reconcile/foreign/fixtures"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Texts near what is expected: its own characters, more often than others.
fn near(characters: &'static str) -> impl Strategy<Value = String> {
    let characters: Vec<_> = characters.chars().collect();
    let own = proptest::collection::vec(proptest::sample::select(characters), 0..24);
    prop_oneof![
        3 => own.prop_map(|text| text.into_iter().collect()),
        1 => any::<String>(),
    ]
}

fn any_bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}

#[test]
fn every_seed_of_every_target_holds() {
    for (name, body) in TARGETS {
        let own = files(&root().join("fuzz/seeds").join(name));
        assert!(!own.is_empty(), "{name} has no seeds");
        let others = if name == "foreign" {
            fixtures()
        } else {
            Vec::new()
        };
        for seed in own.iter().chain(&others) {
            let bytes = fs::read(seed).unwrap();
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| body(&bytes)));
            assert!(outcome.is_ok(), "{name} breaks at {}", seed.display());
        }
    }
}

#[test]
fn every_target_is_one_of_the_fuzzers() {
    let found = files(&root().join("fuzz/fuzz_targets"));
    let mut expected = TARGETS.map(|(name, _)| format!("{name}.rs"));
    expected.sort();
    let found: Vec<_> = found
        .iter()
        .filter_map(|path| path.file_name()?.to_str())
        .collect();
    assert_eq!(found, expected);
    for (name, _) in TARGETS {
        let target =
            fs::read_to_string(root().join(format!("fuzz/fuzz_targets/{name}.rs"))).unwrap();
        assert!(
            target.contains(&format!("latency_user::hostile::{name}(bytes)")),
            "{name}"
        );
    }
}

// Each case is some twenty documents.
proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn names_and_paths_may_be_any_bytes(bytes in any_bytes(48)) {
        names(&bytes);
    }

    #[test]
    fn names_and_paths_may_be_any_text(name in near("a ;,\"'\\\n\r\t\u{1b}\u{202e}\u{2028}[]x"), path in any::<String>()) {
        let mut bytes = name.into_bytes();
        bytes.resize(16, 0);
        bytes.extend(path.into_bytes());
        names(&bytes);
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn what_was_made_printable_once_stays(path in any::<String>()) {
        let shown = escape::text(&path);
        prop_assert!(is_harmless(&shown), "{shown:?}");
    }

    #[test]
    fn outputs_of_tools_may_be_any_text(text in near("0123456789.:{}[]\",-eE \nTmaxmin")) {
        foreign(text.as_bytes());
    }

    #[test]
    fn outputs_of_tools_may_be_changed_anywhere(
        output in proptest::sample::select(fixtures()),
        at in any::<prop::sample::Index>(),
        length in 0_usize..12,
        new in near("0123456789.-eE\"{}\u{1b}\0"),
    ) {
        let mut output = fs::read(output).unwrap();
        let start = at.index(output.len());
        let end = (start + length).min(output.len());
        output.splice(start..end, new.into_bytes());
        foreign(&output);
    }

    #[test]
    fn durations_may_be_any_text(text in near("0123456789.nuµmsh -+e")) {
        arguments(text.as_bytes());
    }

    #[test]
    fn durations_of_any_length_are_shown_as_what_they_are(ns in 1_u64.., shift in 0_u32..64) {
        arguments(format!("{}ns", (ns >> shift).max(1)).as_bytes());
    }

    #[test]
    fn lists_of_cpus_may_be_any_text(text in near("0123456789,- :")) {
        arguments(text.as_bytes());
    }

    #[test]
    fn policies_may_be_any_text(text in near("fiorcthebadln:0123456789,-us/")) {
        arguments(text.as_bytes());
    }

    #[test]
    fn globs_may_be_any_text(pattern in near("ab*?[]!^-\\cz")) {
        arguments(pattern.as_bytes());
    }

    #[test]
    fn commands_of_loads_may_be_any_text(line in near("ab '\"\\\n$#~")) {
        arguments(line.as_bytes());
    }

    #[test]
    fn values_of_options_are_taken_or_refused_in_words(
        [command, probe, option] in proptest::sample::select(&OPTIONS[..]),
        value in near("0123456789,:smul-[/"),
    ) {
        let words = ["schedlat", command, probe, option, &value];
        let words = words.into_iter().enumerate().filter(|(index, word)| *index == 4 || !word.is_empty());
        if let Err(refusal) = Cli::try_parse_from(words.map(|(_, word)| word)) {
            prop_assert!(!refusal.to_string().is_empty() && refusal.exit_code() == 2);
        }
    }

    #[test]
    fn records_of_the_kernel_may_be_any_bytes(bytes in any_bytes(4_096)) {
        rows(&bytes);
    }
}
