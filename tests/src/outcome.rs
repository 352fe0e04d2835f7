//! What a finished run of the product left behind: its exit code, its output and its messages.

use std::{
    os::unix::process::ExitStatusExt as _,
    process::ExitStatus,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::report::Report;

/// What a finished run left behind.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: ExitStatus,
    /// Lines of the standard output and when each arrived.
    pub lines: Vec<(Instant, String)>,
    /// Everything on standard error.
    pub messages: String,
    /// From its start to its end.
    pub took: Duration,
}

impl Outcome {
    /// The exit code; 128 + n after signal n, as a shell says it.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or_default())
    }

    /// The whole standard output.
    #[must_use]
    pub fn output(&self) -> String {
        let mut output = String::new();
        for (_, line) in &self.lines {
            output.push_str(line);
            output.push('\n');
        }
        output
    }

    /// Requires exit code 0.
    pub fn success(self) -> Result<Self> {
        ensure!(
            self.code() == 0,
            "schedlat ended with {}: {}",
            self.code(),
            self.messages
        );
        Ok(self)
    }

    /// Requires an exit code and a message with all of `words` and a help line.
    pub fn fails_with(&self, code: i32, words: &[&str]) -> Result<()> {
        let Self { messages, .. } = self;
        ensure!(
            self.code() == code,
            "exit code {}, not {code}; it said: {messages}",
            self.code()
        );
        for word in words {
            ensure!(
                messages.contains(word),
                "no '{word}' in the message: {messages}"
            );
        }
        ensure!(messages.contains("error: "), "no error line: {messages}");
        ensure!(messages.contains("help: "), "no help line: {messages}");
        ensure!(
            self.lines.is_empty(),
            "an error printed results: {}",
            self.output()
        );
        Ok(())
    }

    /// The documents of the standard output: one of many lines, or one a line.
    pub fn documents(&self) -> Result<Vec<Value>> {
        let output = self.output();
        let documents = serde_json::Deserializer::from_str(&output).into_iter();
        documents
            .collect::<std::result::Result<Vec<Value>, _>>()
            .with_context(|| format!("the output is no JSON; messages: {}", self.messages))
    }

    /// The only document.
    pub fn only_document(&self) -> Result<Value> {
        let mut documents = self.documents()?;
        ensure!(
            documents.len() == 1,
            "{} documents; messages: {}",
            documents.len(),
            self.messages
        );
        Ok(documents.remove(0))
    }

    /// The final document.
    pub fn report(&self) -> Result<Report> {
        let documents = self.documents()?;
        let last = documents
            .last()
            .with_context(|| format!("no document: {}", self.messages))?;
        ensure!(
            last["schema"] == "schedlat.record",
            "no final document, but {}",
            last["schema"]
        );
        Report::parse(&last.to_string())
    }
}
