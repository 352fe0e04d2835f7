//! The command line of a foreign tool: which tool it is, and where its figures will be.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{Error, reconcile::foreign::Tool};

/// A JSON file of a tool that is longer than this is not one.
const LONGEST_JSON: u64 = 64 << 20;

/// How a tool names its JSON file.
const JSON_OPTION: &str = "--json";

/// A tool with its command line.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) tool: Tool,
    /// As it was typed.
    pub(super) typed: Vec<OsString>,
    /// As it is run.
    pub(super) command: Vec<OsString>,
    json: Option<PathBuf>,
    /// Where the JSON file is that we asked for; gone with it.
    directory: Option<TempDir>,
}

impl Invocation {
    /// Finds the tool in a command, behind others that start it, and asks it for a document where it can
    /// write one.
    pub(super) fn of(typed: &[OsString], tool: Option<Tool>) -> Result<Self, Error> {
        let mut command = typed.to_vec();
        let found = command
            .iter()
            .enumerate()
            .find_map(|(at, word)| Some((at, tool_of(word)?)))
            .filter(|(at, found)| does_measure(*found, &command[*at..]));
        let (at, tool) = match (found, tool) {
            (Some((at, found)), None) => (at, found),
            (Some((at, found)), Some(tool)) if found == tool => (at, tool),
            // A program of another name; its options follow it.
            (_, Some(tool)) => (0, tool),
            (None, None) => return Err(unknown(&command)),
        };
        let mut json = None;
        let mut directory = None;
        if tool.writes_json() {
            json = json_of(&command[at..]);
            if json.is_none() {
                let private = TempDir::with_prefix("schedlat-verify-")
                    .map_err(|error| Error::Setup(format!("a temporary directory: {error}")))?;
                let path = private.path().join("figures.json");
                let mut option = OsString::from(JSON_OPTION);
                option.push("=");
                option.push(&path);
                command.insert(at + 1, option);
                json = Some(path);
                directory = Some(private);
            }
        }
        Ok(Self {
            tool,
            typed: typed.to_vec(),
            command,
            json,
            directory,
        })
    }

    /// What was added to the command, in words.
    pub(super) fn added(&self) -> Option<String> {
        let added = format!("{JSON_OPTION}=FILE was added, to read its figures");
        self.directory.as_ref().map(|_| added)
    }

    /// The document that the tool wrote; empty for tools that write none.
    pub(super) fn read_json(&self) -> Result<String, String> {
        self.json.as_deref().map_or(Ok(String::new()), read)
    }
}

fn tool_of(word: &OsStr) -> Option<Tool> {
    Tool::of_program(Path::new(word).file_name()?.to_str()?)
}

/// Tools that do other things as well do what can be verified only with these words.
fn does_measure(tool: Tool, words: &[OsString]) -> bool {
    let has = |wanted: &str| {
        words
            .iter()
            .any(|word| word.to_str().is_some_and(|word| word.starts_with(wanted)))
    };
    match tool {
        Tool::PerfBench => has("bench") && has("sched"),
        Tool::StressNg => has("--cyclic"),
        _ => true,
    }
}

fn unknown(command: &[OsString]) -> Error {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    Error::UnknownTool(words.join(" "))
}

/// The file that the command line names itself.
fn json_of(words: &[OsString]) -> Option<PathBuf> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else {
            continue;
        };
        if text == JSON_OPTION {
            return words.next().map(PathBuf::from);
        }
        let value = text
            .strip_prefix(JSON_OPTION)
            .and_then(|rest| rest.strip_prefix('='));
        if let Some(value) = value {
            return Some(value.into());
        }
    }
    None
}

fn read(path: &Path) -> Result<String, String> {
    let failed = |error| format!("its file {}: {error}", path.display());
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(LONGEST_JSON + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > LONGEST_JSON {
        return Err(format!("its file {} is too long", path.display()));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn tool(line: &str) -> Option<Tool> {
        Invocation::of(&words(line), None).ok().map(|it| it.tool)
    }

    #[test]
    fn tool_is_found_behind_what_starts_it() {
        assert_eq!(tool("cyclictest -q"), Some(Tool::Cyclictest));
        assert_eq!(tool("/usr/bin/oslat -D 2"), Some(Tool::Oslat));
        assert_eq!(
            tool("taskset -c 1 chrt -f 5 hackbench"),
            Some(Tool::Hackbench)
        );
        assert_eq!(
            tool("perf bench --format=simple sched pipe"),
            Some(Tool::PerfBench)
        );
        assert_eq!(tool("stress-ng --cyclic 1 -t 2"), Some(Tool::StressNg));
        for line in [
            "true",
            "perf stat true",
            "perf bench mem",
            "stress-ng --cpu 1",
        ] {
            assert_eq!(tool(line), None, "{line}");
        }
    }

    #[test]
    fn document_is_asked_for_once_and_right_behind_the_name() {
        let added = Invocation::of(&words("taskset -c 1 cyclictest -q"), None).unwrap();
        let option = added.command[4].to_str().unwrap();
        assert!(option.starts_with("--json=/"), "{option}");
        assert_eq!(added.command[5], "-q");
        assert!(added.added().is_some());
        for line in ["cyclictest --json=a.json", "cyclictest --json a.json"] {
            let own = Invocation::of(&words(line), None).unwrap();
            assert_eq!(own.json.as_deref(), Some(Path::new("a.json")));
            assert_eq!((own.command, own.directory.is_none()), (words(line), true));
        }
        let none = Invocation::of(&words("hackbench -l 5"), None).unwrap();
        assert_eq!(none.command, words("hackbench -l 5"));
        assert_eq!(none.read_json(), Ok(String::new()));
    }

    #[test]
    fn named_tool_is_believed() {
        let line = words("./build/ct -q --json=x");
        let named = Invocation::of(&line, Some(Tool::Cyclictest)).unwrap();
        assert_eq!((named.tool, named.command), (Tool::Cyclictest, line));
    }

    #[test]
    fn document_that_is_not_there_is_an_error_in_words() {
        let missing = Invocation::of(&words("oslat --json=/nowhere/x.json"), None).unwrap();
        let message = missing.read_json().unwrap_err();
        assert!(message.contains("/nowhere/x.json"), "{message}");
    }
}
