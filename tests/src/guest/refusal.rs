//! Kernels on which schedlat cannot work have to be refused: before anything is attached, with the
//! reason and what it would take.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::boot;
use crate::{probe, schedlat::Schedlat};

/// What `doctor` finds missing that a recording needs: the reason, and what it would take.
fn missing() -> Result<Vec<(String, String)>> {
    let outcome = Schedlat::command("doctor").args("--format json").run()?;
    ensure!(outcome.code() == 1, "exit code {}", outcome.code());
    let document = outcome.only_document()?;
    ensure!(document["can_record"] == false, "{document}");
    let features = document["features"].as_array().context("no features")?;
    let is_missing = |it: &&Value| it["is_required"] == true && it["availability"] == "missing";
    let words = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    let missing: Vec<_> = features
        .iter()
        .filter(is_missing)
        .map(|it| (words(it, "why"), words(it, "remedy")))
        .collect();
    ensure!(!missing.is_empty(), "nothing is missing: {features:?}");
    for (why, remedy) in &missing {
        ensure!(
            !why.is_empty() && remedy.contains("kernel"),
            "'{why}': '{remedy}'"
        );
    }
    Ok(missing)
}

pub(super) fn doctor() -> Result<String> {
    let text = Schedlat::command("doctor").run()?.output();
    super::say(&text);
    for (why, remedy) in missing()? {
        ensure!(
            text.contains(&why) && text.contains(&remedy),
            "not said: {why}: {remedy}"
        );
    }
    ensure!(text.contains("`schedlat record` does not work here."));
    Ok(format!("{:?}", missing()?))
}

/// A command that records ends before it begins.
fn refuses(command: Schedlat) -> Result<String> {
    let missing = missing()?;
    let (why, remedy) = missing.first().context("nothing is missing")?;
    let outcome = command.run()?;
    let release = boot::kernel_release();
    outcome.fails_with(1, &[&release, why, remedy, "schedlat doctor"])?;
    Ok(outcome.messages.trim_end().replace('\n', " / "))
}

pub(super) fn record() -> Result<String> {
    refuses(Schedlat::record().lasting(1.0))
}

pub(super) fn probe() -> Result<String> {
    refuses(probe::probe("wake --for 1s"))
}
