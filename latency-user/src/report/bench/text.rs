//! The table of old, with the columns that were missing from it, and whether it adds up.

use crate::{
    model::{BenchFigures, BenchReport, BenchRun, BenchSummary, DelayByCause, Statistic},
    report::{
        probe::text::told,
        text::{
            audit::apart,
            machine,
            table::{aligned, cells, known},
        },
    },
    units,
};

/// The whole report.
#[must_use]
pub fn render(report: &BenchReport) -> String {
    let mut sections = vec![header(report)];
    if report.runs.is_empty() {
        sections.push("no repetition came to its end\n".to_owned());
    } else {
        sections.push(table(report));
        sections.push(accounts(report));
        sections.push(delays(&report.delay_by_cause));
    }
    let warnings: String = report.warnings.iter().map(told).collect();
    sections.extend(Some(warnings).filter(|text| !text.is_empty()));
    sections.join("\n")
}

fn header(report: &BenchReport) -> String {
    let commands = report.commands.iter();
    let commands: Vec<_> = commands
        .map(|command| format!("{}: {}\n", command.label, command.command))
        .collect();
    let commands = commands.concat();
    let order = match report.commands.len() {
        1 => String::new(),
        n => format!(", {n} commands in turns (--seed {})", report.seed),
    };
    let n_runs = units::count(report.runs.len() as u64);
    format!(
        "{}\n{commands}{n_runs} repetitions{order}, on CPUs {}, clock source {}\n",
        machine(&report.host),
        report.conditions.cpus_allowed,
        report.conditions.clocksource.at_end
    )
}

fn table(report: &BenchReport) -> String {
    let mut rows = vec![cells([
        "",
        "",
        "real s",
        "CPU s",
        "SYS %",
        "TPT %",
        "delay s",
        "CXSW",
        "vol",
        "invol",
        "yield",
        "migr",
        "waiters",
        "delay/sw",
        "idle while runnable s",
    ])];
    for run in &report.runs {
        let figures = &run.figures;
        let number = run.repetition.to_string();
        let delay = units::duration(figures.delay_per_switch_ns);
        rows.push(line(
            &run.label,
            &number,
            figures,
            counts(figures).map(units::count),
            delay,
        ));
    }
    rows.extend(report.summary.iter().map(summary));
    aligned("<>>>>>>>>>>>>>>", &rows)
}

fn summary(row: &BenchSummary) -> Vec<String> {
    let name = match row.statistic {
        Statistic::Average => "average",
        Statistic::Minimum => "minimum",
        Statistic::Maximum => "maximum",
    };
    let figures = &row.figures;
    let delay = units::duration(units::rounded(figures.delay_per_switch_ns));
    let counts = counts(figures).map(|n| units::count(units::rounded(n)));
    line(&row.label, name, figures, counts, delay)
}

const fn counts<N: Copy>(figures: &BenchFigures<N>) -> [N; 5] {
    [
        figures.cxsw,
        figures.voluntary,
        figures.involuntary,
        figures.r#yield,
        figures.migrations,
    ]
}

fn line<N>(
    label: &str,
    which: &str,
    figures: &BenchFigures<N>,
    counts: [String; 5],
    delay_per_switch: String,
) -> Vec<String> {
    let mut cells = vec![label.to_owned(), which.to_owned()];
    cells.push(format!("{:.3}", figures.real_s));
    cells.push(format!("{:.3}", figures.cpu_s));
    cells.push(format!("{:.2}", figures.sys_pct));
    cells.push(format!("{:.1}", figures.tpt_pct));
    cells.push(format!("{:.3}", figures.delay_s));
    cells.extend(counts);
    cells.push(format!("{:.2}", figures.waiters));
    cells.push(delay_per_switch);
    let idle = figures.idle_while_runnable_s;
    cells.push(known(idle, |seconds| format!("{seconds:.3}")));
    cells
}

/// Ours beside the kernel's, by repetition.
fn accounts(report: &BenchReport) -> String {
    let mut rows = vec![cells([
        "ours and the kernel's",
        "",
        "CPU s",
        "rusage",
        "apart",
        "CXSW",
        "rusage",
        "apart",
        "last switches",
        "missed",
        "adds up",
    ])];
    rows.extend(report.runs.iter().map(account));
    aligned("<>>>>>>>>><", &rows) + &report.runs.iter().map(remarks).collect::<String>()
}

/// What does not add up in a repetition, and what is not meant to.
fn remarks(run: &BenchRun) -> String {
    let which = format!("{} {}", run.label, run.repetition);
    let breaches = run.audit.findings.iter().filter(|it| it.is_breach);
    let breaches = breaches.map(|breach| format!("  breach: {which}: {}\n", breach.text));
    let outlived = match run.reconciliation.left_running {
        0 => None,
        n => Some(format!(
            "  note: {which}: {} of its tasks outlived it, and are in no account of the kernel\n",
            units::count(n)
        )),
    };
    breaches.chain(outlived).collect()
}

fn account(run: &BenchRun) -> Vec<String> {
    let both = &run.reconciliation;
    let of_threads = both.last_switches_of_threads;
    let last = match both.last_switches_of_processes {
        0 => units::count(of_threads),
        n => format!(
            "{} to {}",
            units::count(of_threads),
            units::count(of_threads + n)
        ),
    };
    let adds_up = match (both.is_cpu_equal, both.are_switches_equal, both.is_audit_ok) {
        (true, true, true) => "yes",
        (false, _, _) => "CPU DOES NOT",
        (_, false, _) => "CXSW DOES NOT",
        (_, _, false) => "DELAY DOES NOT",
    };
    vec![
        run.label.clone(),
        run.repetition.to_string(),
        format!("{:.3}", both.cpu_ours_s),
        format!("{:.3}", both.rusage.user_s + both.rusage.system_s),
        units::percent(both.cpu_apart_pct),
        units::count(both.switches_ours),
        units::count(both.rusage.voluntary + both.rusage.involuntary),
        both.switches_apart.to_string(),
        last,
        units::count(both.missed_switches),
        adds_up.to_owned(),
    ]
}

/// Both accounts of all delays, by what they followed.
fn delays(causes: &[DelayByCause]) -> String {
    let mut rows = vec![cells([
        "delay by cause",
        "waits",
        "ours",
        "the kernel's",
        "apart",
    ])];
    for DelayByCause { cause, account } in causes {
        let (ours_ns, kernel_ns) = (account.ours_ns, account.kernel_ns);
        rows.push(vec![
            format!("  {}", cause.replace('_', " ")),
            units::count(account.count),
            units::duration(ours_ns),
            units::duration(kernel_ns),
            apart(ours_ns, kernel_ns),
        ]);
    }
    aligned("<>>>>", &rows)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use crate::report::VERSION;

    #[test]
    fn table_of_old_has_its_columns_and_adds_up() {
        let text = super::render(&fixture::report());
        insta::assert_snapshot!(text.replace(VERSION, "VERSION"));
    }

    #[test]
    fn nothing_measured_is_said() {
        let report = crate::model::BenchReport {
            runs: Vec::new(),
            ..fixture::report()
        };
        assert!(super::render(&report).contains("no repetition came to its end"));
    }
}
