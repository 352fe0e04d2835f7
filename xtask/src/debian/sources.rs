//! Which mirror this machine uses, read from apt's own source files in both of their formats.
//!
//! Promises: the base address of the Debian archive and of its security archive, with the keyring
//! that signs them, as the machine is configured; never an address of our own.
//! Leaves to others: which suite to ask that mirror for.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// One configured archive: an address, the suites taken from it, and how it is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) uri: String,
    suites: Vec<String>,
    pub(crate) signed_by: Option<String>,
    pub(crate) trusted: bool,
}

impl Source {
    /// The mirror that has `suite`: the security archive for `*-security`, else the main one.
    pub(crate) fn for_suite(suite: &str) -> Result<Self> {
        let sources = configured(Path::new("/etc/apt"))?;
        pick(&sources, suite).cloned().with_context(|| {
            format!(
                "no Debian mirror for suite {suite} in apt's sources\n\
                 help: add a Debian source to /etc/apt/sources.list.d and repeat"
            )
        })
    }
}

fn pick<'a>(sources: &'a [Source], suite: &str) -> Option<&'a Source> {
    let is_security = |source: &&Source| source.suites.iter().any(|s| s.contains("-security"));
    let main_archive = |source: &&Source| !is_security(source) && is_debian(source);
    if suite.ends_with("-security") {
        sources.iter().find(is_security)
    } else {
        sources.iter().find(main_archive)
    }
}

/// Third-party archives name their suites otherwise, so a Debian codename tells Debian's own.
fn is_debian(source: &Source) -> bool {
    const CODENAMES: [&str; 9] = [
        "bookworm",
        "trixie",
        "forky",
        "duke",
        "sid",
        "oldstable",
        "stable",
        "testing",
        "unstable",
    ];
    source.suites.iter().any(|suite| {
        let name = suite.split('-').next().unwrap_or_default();
        CODENAMES.contains(&name)
    }) && source.uri.contains("debian")
}

fn configured(etc: &Path) -> Result<Vec<Source>> {
    let mut files = vec![etc.join("sources.list")];
    if let Ok(entries) = fs::read_dir(etc.join("sources.list.d")) {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let mut sources = Vec::new();
    for file in files.iter().filter(|file| file.is_file()) {
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        sources.extend(parse(file, &text));
    }
    Ok(sources)
}

fn parse(file: &Path, text: &str) -> Vec<Source> {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("sources") => text.split("\n\n").filter_map(parse_stanza).collect(),
        Some("list") => text.lines().filter_map(parse_line).collect(),
        _ => Vec::new(),
    }
}

/// A stanza of a `.sources` file.
fn parse_stanza(stanza: &str) -> Option<Source> {
    let field = |name: &str| {
        stanza
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    };
    let has_packages = field("Types")?.split_whitespace().any(|kind| kind == "deb");
    let is_enabled = field("Enabled").as_deref() != Some("no");
    (has_packages && is_enabled).then_some(())?;
    Some(Source {
        uri: field("URIs")?.split_whitespace().next()?.to_owned(),
        suites: field("Suites")?
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        signed_by: field("Signed-By").filter(|keyring| keyring.starts_with('/')),
        trusted: field("Trusted").as_deref() == Some("yes"),
    })
}

/// A line of a `.list` file: `deb [option=value …] URI SUITE COMPONENT…`.
fn parse_line(line: &str) -> Option<Source> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => ("", rest),
    };
    let option = |name: &str| {
        options
            .split_whitespace()
            .filter_map(|option| option.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.to_owned())
    };
    let mut words = rest.split_whitespace();
    Some(Source {
        uri: words.next()?.to_owned(),
        suites: vec![words.next()?.to_owned()],
        signed_by: option("signed-by"),
        trusted: option("trusted").as_deref() == Some("yes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANZAS: &str = "\
# a comment: ignored
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
";
    const LINES: &str = "\
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 trusted=yes] http://tools.example/apt stable main
deb http://mirror.example/debian bookworm main
deb http://mirror.example/debian-security bookworm-security main
";

    fn check(file: &str, text: &str, suite: &str, expected: Option<&str>) {
        let sources = parse(Path::new(file), text);
        let uri = pick(&sources, suite).map(|source| source.uri.as_str());
        assert_eq!(uri, expected, "{suite} in {file}");
    }

    #[test]
    fn stanza_of_debian_serves_every_ordinary_suite() {
        check(
            "d.sources",
            STANZAS,
            "trixie-backports",
            Some("http://mirror.example/debian"),
        );
        check(
            "d.sources",
            STANZAS,
            "sid",
            Some("http://mirror.example/debian"),
        );
    }

    #[test]
    fn security_suite_comes_from_the_security_archive() {
        let security = Some("http://mirror.example/debian-security");
        check("d.sources", STANZAS, "trixie-security", security);
        check("d.list", LINES, "bookworm-security", security);
    }

    #[test]
    fn third_party_archive_is_not_taken_for_debian() {
        check("d.list", LINES, "sid", Some("http://mirror.example/debian"));
    }

    #[test]
    fn disabled_source_is_not_used() {
        let text = format!("Enabled: no\n{STANZAS}");
        check("d.sources", &text, "sid", None);
    }

    #[test]
    fn keyring_and_trust_are_carried_over() {
        let stanza = parse(Path::new("d.sources"), STANZAS);
        assert_eq!(
            stanza[0].signed_by.as_deref(),
            Some("/usr/share/keyrings/debian-archive-keyring.gpg")
        );
        assert!(parse(Path::new("d.list"), LINES)[0].trusted);
    }
}
