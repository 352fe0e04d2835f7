//! The table of who waited: the rows with the most time waited, largest first.

use super::table;
use super::waits::{or_dash, share};
use crate::model::{GroupBy, Report, Row, RowIdent};
use crate::units;

/// At most `top` rows; no table when there would be none.
pub(super) fn render(report: &Report, top: usize) -> Option<String> {
    let n_shown = top.min(report.rows.len());
    if n_shown == 0 {
        return None;
    }
    let (names, alignment) = name_columns(report.by);
    let figures = [
        "waits",
        "wakeup p50",
        "wakeup p99",
        "lost p99",
        "longest",
        "waited",
        "share",
        "on CPU",
        "",
    ];
    let header = names
        .iter()
        .chain(&figures)
        .map(|column| (*column).to_owned())
        .collect();
    let mut rows: Vec<Vec<String>> = vec![header];
    let whole = report.totals.waited_ns;
    rows.extend(
        report
            .rows
            .iter()
            .take(n_shown)
            .map(|row| table_row(row, report.by, whole)),
    );
    let text = table::aligned(&format!("{alignment}>>>>>>>><"), &rows);
    Some(text + &not_shown(report.rows.len(), n_shown))
}

fn not_shown(n_rows: usize, n_shown: usize) -> String {
    match n_rows - n_shown {
        0 => String::new(),
        n_more => format!("and {n_more} more (--top {n_rows})\n"),
    }
}

fn name_columns(by: GroupBy) -> (&'static [&'static str], &'static str) {
    match by {
        GroupBy::Tid => (&["tid", "thread", "process"], "><<"),
        GroupBy::Pid => (&["pid", "process", "threads"], "><>"),
        GroupBy::Comm => (&["thread", "threads"], "<>"),
        GroupBy::Cgroup => (&["cgroup", "threads"], "<>"),
    }
}

fn table_row(row: &Row, by: GroupBy, whole: u64) -> Vec<String> {
    let stats = &row.stats;
    let n_waits = stats.waits.count();
    let longest = (n_waits > 0).then(|| stats.waits.max_ns());
    let mut cells = name_cells(&row.ident, by);
    cells.extend([
        units::count(n_waits),
        or_dash(stats.waits.wakeup.p50_ns),
        or_dash(stats.waits.wakeup.p99_ns),
        or_dash(stats.waits.preemption.p99_ns),
        or_dash(longest),
        units::duration(stats.waited_ns),
        share(stats.waited_ns, whole),
        units::duration(stats.on_cpu_ns),
        remarks(row),
    ]);
    cells
}

fn name_cells(ident: &RowIdent, by: GroupBy) -> Vec<String> {
    let number = |id: Option<u32>| id.map_or_else(String::new, |id| id.to_string());
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let n_tasks = units::count(ident.n_tasks);
    match by {
        GroupBy::Tid => vec![
            number(ident.tid),
            name(&ident.comm),
            name(&ident.process_comm),
        ],
        GroupBy::Pid => vec![number(ident.tgid), name(&ident.comm), n_tasks],
        GroupBy::Comm => vec![name(&ident.comm), n_tasks],
        GroupBy::Cgroup => vec![name(&ident.cgroup), n_tasks],
    }
}

fn remarks(row: &Row) -> String {
    let mut remarks = Vec::new();
    if row.stats.censored.open_at_end > 0 {
        let longest = units::duration(row.stats.censored.open_at_end_max_ns);
        remarks.push(format!(">= {longest}, still waiting"));
    }
    if row.ident.exited {
        remarks.push("ended".to_owned());
    }
    if row.ident.is_self {
        remarks.push("the recorder".to_owned());
    }
    if !row.audit.ok {
        remarks.push("audit failed".to_owned());
    }
    remarks.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[track_caller]
    fn first_line_of(by: GroupBy, ident: RowIdent) -> String {
        let row = Row {
            ident,
            ..fixture::report().rows[0].clone()
        };
        let report = Report {
            by,
            rows: vec![row],
            ..fixture::report()
        };
        let table = render(&report, 1).unwrap();
        let shown = table.lines().nth(1).unwrap();
        let mut cells = shown
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty());
        format!("{} {}", cells.next().unwrap(), cells.next().unwrap())
    }

    #[test]
    fn groups_are_named_by_what_they_share() {
        let group = RowIdent {
            n_tasks: 14,
            ..RowIdent::default()
        };
        let name = Some("postgres".to_owned());
        let process = RowIdent {
            tgid: Some(7),
            comm: name.clone(),
            ..group.clone()
        };
        assert_eq!(first_line_of(GroupBy::Pid, process), "7 postgres");
        let thread = RowIdent {
            comm: name,
            ..group.clone()
        };
        assert_eq!(first_line_of(GroupBy::Comm, thread), "postgres 14");
        let cgroup = RowIdent {
            cgroup: Some("/pg.slice".into()),
            ..group
        };
        assert_eq!(first_line_of(GroupBy::Cgroup, cgroup), "/pg.slice 14");
    }

    #[test]
    fn what_a_row_is_beside_its_figures_is_remarked() {
        let mut row = fixture::report().rows[1].clone();
        assert_eq!(remarks(&row), ">= 1.20 s, still waiting; ended");
        row.ident.exited = false;
        row.ident.is_self = true;
        row.audit.ok = false;
        assert_eq!(
            remarks(&row),
            ">= 1.20 s, still waiting; the recorder; audit failed"
        );
    }
}
