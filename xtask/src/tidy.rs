//! Rules of the project that no other tool checks, as tests over its own files.
//!
//! Promises: a failure names every offending file, and the line where there is one.
//! Leaves to others: formatting and lints (`cargo xtask check`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::project;

const MAX_LINES: usize = 400;

/// What tells of the place where something was written rather than of the project.
const FOREIGN: [&str; 2] = [concat!("/wo", "rk/"), concat!("/tmp", "/w/")];

/// A test that is skipped or expected to fail hides something.
const HIDING: [&str; 2] = [concat!("#[", "ignore"), concat!("#[", "should_panic")];

/// Folders without texts of ours: what was built, and bytes for the fuzzer.
const NO_TEXTS: [&str; 6] = ["target", ".git", "seeds", "artifacts", "corpus", "coverage"];

/// A text file of the project.
struct Text {
    name: String,
    content: String,
}

impl Text {
    fn is_rust(&self) -> bool {
        Path::new(&self.name)
            .extension()
            .is_some_and(|extension| extension == "rs")
    }
}

fn texts() -> Vec<Text> {
    let mut paths = Vec::new();
    collect(project::root(), &mut paths);
    paths.sort();
    let text = |path: PathBuf| {
        let name = path
            .strip_prefix(project::root())
            .unwrap()
            .display()
            .to_string();
        fs::read_to_string(&path)
            .ok()
            .map(|content| Text { name, content })
    };
    paths.into_iter().filter_map(text).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if path.is_file() && entry.file_name() != ".git" {
            paths.push(path);
        } else if path.is_dir() && !NO_TEXTS.iter().any(|name| entry.file_name() == *name) {
            collect(&path, paths);
        }
    }
}

/// Fails with everything that `complaints` finds in the texts.
fn check<Complaints: IntoIterator<Item = String>>(complaints: impl Fn(&Text) -> Complaints) {
    let found: Vec<_> = texts().iter().flat_map(complaints).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// Complains about each line of `text` for which `is_bad` holds.
fn bad_lines(text: &Text, is_bad: impl Fn(&str) -> bool) -> Vec<String> {
    let bad = text
        .content
        .lines()
        .enumerate()
        .filter(|(_, line)| is_bad(line));
    bad.map(|(index, line)| format!("{}:{}: {line}", text.name, index + 1))
        .collect()
}

#[test]
fn files_say_what_they_are() {
    check(|text| {
        let is_silent = text.is_rust() && !text.content.starts_with("//! ");
        is_silent.then(|| format!("{} does not begin with a //! comment", text.name))
    });
}

#[test]
fn files_are_short() {
    check(|text| {
        let n_lines = text.content.lines().count();
        let is_long = text.is_rust() && n_lines > MAX_LINES;
        is_long.then(|| format!("{} has {n_lines} lines, more than {MAX_LINES}", text.name))
    });
}

#[test]
fn no_test_is_hidden() {
    check(|text| {
        bad_lines(text, |line| {
            text.is_rust() && HIDING.iter().any(|hiding| line.contains(hiding))
        })
    });
}

#[test]
fn no_line_ends_in_blanks() {
    check(|text| bad_lines(text, |line| line.ends_with([' ', '\t', '\r'])));
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    check(|text| {
        bad_lines(text, |line| {
            FOREIGN.iter().any(|foreign| line.contains(foreign))
        })
    });
}

#[test]
fn cases_are_indexed_once() {
    let index = fs::read_to_string(project::root().join("tests/CASES.md")).unwrap_or_default();
    let mut rows = BTreeMap::<&str, usize>::new();
    for id in index.lines().filter_map(case_of_row) {
        *rows.entry(id).or_default() += 1;
    }
    rows.retain(|_, count| *count > 1);
    assert!(
        rows.is_empty(),
        "tests/CASES.md indexes these more than once: {rows:?}"
    );
}

/// The first cell of a table row, when it is a case's number such as `K12`.
fn case_of_row(line: &str) -> Option<&str> {
    let cell = line
        .strip_prefix('|')?
        .split('|')
        .next()?
        .trim()
        .trim_matches('`');
    let digits = cell.strip_prefix(|c: char| c.is_ascii_uppercase())?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(cell)
}
