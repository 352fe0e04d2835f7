//! The verdict for people: what the tool says beside what the kernel saw, and why the verdict is so.

use crate::{
    model::{
        ClaimedLatency, ClaimedSeries, Reason, ReasonKind, SeenLatency, SeenThread, Verification,
    },
    report::{
        probe::text::told,
        text::{
            machine,
            table::{aligned, cells, known},
        },
    },
    units,
};

/// The whole report.
#[must_use]
pub fn render(verification: &Verification) -> String {
    let sections = [
        Some(header(verification)),
        threads(verification),
        latencies(verification),
        Some(verdict(verification)),
        Some(recorder(verification)),
    ];
    let sections: Vec<_> = sections.into_iter().flatten().collect();
    sections.join("\n")
}

fn header(verification: &Verification) -> String {
    let added = verification
        .added
        .as_ref()
        .map_or_else(String::new, |added| format!(" ({added})"));
    let kernel = &verification.kernel;
    format!(
        "{}\n{}{added}\n{} threads observed for {}: {} wakeups, {} switches, {} on a CPU, {} waited\n",
        machine(&verification.host),
        verification.command.join(" "),
        units::count(kernel.n_tasks),
        units::duration(kernel.elapsed_ns),
        units::count(kernel.wakeups),
        units::count(kernel.switches),
        units::duration(kernel.on_cpu_ns),
        units::duration(kernel.waited_ns),
    )
}

/// Each measuring thread and how it ran.
fn threads(verification: &Verification) -> Option<String> {
    let mut rows = vec![cells([
        "measured by",
        "thread",
        "policy",
        "on CPUs",
        "slack",
        "samples",
        "wakeups",
        "periods missed",
    ])];
    for thread in &verification.kernel.threads {
        let series = series_of(verification, thread);
        let conditions = thread.conditions.as_ref();
        rows.push(vec![
            thread.name.clone(),
            thread.tid.to_string(),
            policy(thread),
            known(conditions, |it| it.cpus_allowed.clone()),
            known(conditions.and_then(|it| it.timer_slack_ns), units::duration),
            known(series.and_then(|series| series.taken), units::count),
            units::count(thread.wakeup_latency.count),
            known(
                thread.missed_periods.zip(thread.periods),
                |(missed, periods)| {
                    format!("{} of {}", units::count(missed), units::count(periods))
                },
            ),
        ]);
    }
    (rows.len() > 1).then(|| aligned("<><>>>>>", &rows))
}

fn policy(thread: &SeenThread) -> String {
    known(thread.conditions.as_ref(), |it| match it.priority {
        0 => it.policy.to_owned(),
        priority => format!("{}:{priority}", it.policy),
    })
}

/// Both distributions of each series.
fn latencies(verification: &Verification) -> Option<String> {
    let mut rows = vec![cells([
        "", "min", "mean", "p50", "p90", "p99", "p99.9", "max",
    ])];
    for series in &verification.claims.series {
        rows.push(claimed(&series.name, &series.latency));
        let threads = &verification.kernel.threads;
        let thread = threads.iter().find(|thread| thread.name == series.name);
        rows.extend(thread.map(|thread| match verification.tool {
            "oslat" => without_cpu(thread),
            _ => seen(&thread.wakeup_latency),
        }));
    }
    (rows.len() > 1).then(|| aligned("<>>>>>>>", &rows))
}

fn claimed(name: &str, latency: &ClaimedLatency) -> Vec<String> {
    let figures = [
        latency.min_ns,
        latency.mean_ns,
        latency.p50_ns,
        latency.p90_ns,
        latency.p99_ns,
        latency.p999_ns,
        latency.max_ns,
    ];
    line(format!("{name}, as it says"), figures)
}

fn seen(latency: &SeenLatency) -> Vec<String> {
    let figures = [
        Some(latency.min_ns),
        Some(latency.mean_ns),
        latency.p50_ns,
        latency.p90_ns,
        latency.p99_ns,
        latency.p999_ns,
        Some(latency.max_ns),
    ];
    let figures = figures.map(|ns| ns.filter(|_| latency.count > 0));
    line("  from waking to running".to_owned(), figures)
}

/// What makes a turn of a busy loop long.
fn without_cpu(thread: &SeenThread) -> Vec<String> {
    let lost = thread.interruptions;
    let mean_ns = lost.lost_cpu_sum_ns.checked_div(lost.lost_cpu);
    let max_ns = mean_ns.map(|_| lost.lost_cpu_max_ns);
    let figures = [None, mean_ns, None, None, None, None, max_ns];
    line("  without the CPU".to_owned(), figures)
}

fn line(name: String, figures: [Option<u64>; 7]) -> Vec<String> {
    let shown = figures.map(|ns| known(ns, units::duration));
    std::iter::once(name).chain(shown).collect()
}

fn verdict(verification: &Verification) -> String {
    let verdict = verification.verdict.word();
    let lines = verification.reasons.iter().map(reason);
    std::iter::once(format!("verdict: {} {verdict}\n", verification.tool))
        .chain(lines)
        .collect()
}

fn reason(reason: &Reason) -> String {
    let kind = match reason.kind {
        ReasonKind::Note => "note",
        ReasonKind::Omission => "omission",
        ReasonKind::Contradiction => "contradiction",
    };
    let series = reason.series.as_ref();
    let series = series.map_or_else(String::new, |series| format!("{series}: "));
    format!("  {kind}: {series}{}\n", reason.text)
}

/// Whether the recorder's own figures can be trusted.
fn recorder(verification: &Verification) -> String {
    let audit = if verification.audit.ok {
        "ok"
    } else {
        "FAILED"
    };
    let missed = match verification.loss.missed_switches {
        0 => "no switch missed".to_owned(),
        n => format!("{} switches missed", units::count(n)),
    };
    let breaches = verification.audit.findings.iter().filter(|it| it.is_breach);
    let breaches = breaches.map(|breach| format!("  breach: {}\n", breach.text));
    let warnings = verification.warnings.iter().map(told);
    let audit = format!("the recorder's audit of these threads: {audit}, {missed}\n");
    std::iter::once(audit)
        .chain(breaches)
        .chain(warnings)
        .collect()
}

fn series_of<'a>(verification: &'a Verification, thread: &SeenThread) -> Option<&'a ClaimedSeries> {
    let series = &verification.claims.series;
    series.iter().find(|series| series.name == thread.name)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use crate::report::VERSION;

    #[test]
    fn claims_stand_beside_what_the_kernel_saw() {
        let text = super::render(&fixture::verification());
        insta::assert_snapshot!(text.replace(VERSION, "VERSION"));
    }
}
