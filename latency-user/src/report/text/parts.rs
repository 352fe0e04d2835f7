//! What the waits were made of: who ran meanwhile, which interrupts did, and what else it was.
//!
//! The lines that are not indented are the parts: they make up the waited time, and the last line
//! says whether they do. Culprits of one name are one line, whatever their thread ids; workers of the
//! kernel are told apart by what they worked on.

use super::table;
use super::waits::share;
use crate::model::{BlameStats, InterruptStats, MainPath, Parts, Stats, rank};
use crate::units;

/// Culprits, or interrupts of a kind, that are named.
const N_NAMES: usize = 5;

/// What a part is called.
pub(super) fn name(key: &str) -> &'static str {
    match key {
        "other_tasks" => "other tasks",
        "hard_irq" => "interrupts",
        "softirq" => "softirqs",
        "tick" => "the tick",
        "throttled" => "out of quota (throttled)",
        "idle_exit" => "idle exit",
        "moved" => "moved between CPUs",
        "unattributed" => "other tasks, names not kept",
        _ => "unexplained",
    }
}

/// The parts that occur, with names, and what interrupts took from running tasks; `paths` says where in
/// the kernel culprits were.
pub(super) fn render(stats: &Stats, paths: &[MainPath]) -> String {
    let columns = [
        "what the waits were made of",
        "times",
        "longest",
        "sum",
        "share",
        "",
    ];
    let mut rows = vec![table::cells(columns)];
    let whole = stats.waited_ns;
    for (key, sum_ns) in stats.parts.list() {
        if sum_ns == 0 {
            continue;
        }
        rows.push(row(name(key), None, None, sum_ns, whole));
        match key {
            "other_tasks" => rows.extend(culprits(&stats.blame, paths, whole)),
            "hard_irq" => rows.extend(interrupts(stats, &["hard_irq", "vector"], whole)),
            "softirq" => rows.extend(interrupts(stats, &["softirq"], whole)),
            _ => {}
        }
    }
    table::aligned("<>>>><", &rows) + &residue(&stats.parts, whole) + &stolen(stats)
}

fn row(
    name: &str,
    count: Option<u64>,
    longest_ns: Option<u64>,
    sum_ns: u64,
    whole: u64,
) -> Vec<String> {
    vec![
        name.to_owned(),
        count.map_or_else(String::new, units::count),
        longest_ns.map_or_else(String::new, units::duration),
        units::duration(sum_ns),
        share(sum_ns, whole),
        String::new(),
    ]
}

/// Culprits of one name, function and kind.
struct Named<'a> {
    first: &'a BlameStats,
    n_rows: u64,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

fn culprits(blame: &[BlameStats], paths: &[MainPath], whole: u64) -> Vec<Vec<String>> {
    let mut named: Vec<Named<'_>> = Vec::new();
    for row in blame {
        let is_same = |known: &&mut Named<'_>| {
            let (known, culprit) = (&known.first.culprit, &row.culprit);
            (&known.comm, &known.work, known.kind) == (&culprit.comm, &culprit.work, culprit.kind)
        };
        match named.iter_mut().find(is_same) {
            Some(known) => {
                known.n_rows += 1;
                known.count += row.count;
                known.sum_ns += row.sum_ns;
                known.max_ns = known.max_ns.max(row.max_ns);
            }
            None => named.push(Named {
                first: row,
                n_rows: 1,
                count: row.count,
                sum_ns: row.sum_ns,
                max_ns: row.max_ns,
            }),
        }
    }
    named.sort_by_key(|named| std::cmp::Reverse(named.sum_ns));
    let mut rows: Vec<_> = named
        .iter()
        .take(N_NAMES)
        .map(|row| {
            let mut cells = culprit_row(row, whole);
            cells[5] += &in_kernel(row, &named, paths);
            cells
        })
        .collect();
    let others = named.get(N_NAMES..).unwrap_or_default();
    if !others.is_empty() {
        let name = format!("  {} other names", others.len());
        let count = others.iter().map(|named| named.count).sum();
        let longest_ns = others.iter().map(|named| named.max_ns).max();
        let sum_ns = others.iter().map(|named| named.sum_ns).sum();
        rows.push(row(&name, Some(count), longest_ns, sum_ns, whole));
    }
    rows
}

fn culprit_row(named: &Named<'_>, whole: u64) -> Vec<String> {
    let culprit = &named.first.culprit;
    let name = match (&culprit.work, culprit.tid) {
        (Some(work), _) => format!("  {} ({work})", culprit.comm),
        (_, tid) if tid != 0 && named.n_rows == 1 => format!("  {}[{tid}]", culprit.comm),
        _ => format!("  {}, several threads", culprit.comm),
    };
    let longest = Some(named.max_ns);
    let mut cells = row(&name, Some(named.count), longest, named.sum_ns, whole);
    cells[5] = match culprit.kind {
        "same_process" => "of the same process".to_owned(),
        "same_cgroup" => "of the same cgroup".to_owned(),
        "kernel_thread" => "kernel".to_owned(),
        _ => format!("of {}", culprit.cgroup),
    };
    if let Some(rank) = rank(culprit.prio) {
        cells[5] += &[", ", &rank].concat();
    }
    cells
}

/// Where in the kernel a culprit mostly was, if it was. Paths know names only, so that they say
/// nothing where a name has several kinds.
fn in_kernel(culprit: &Named<'_>, all: &[Named<'_>], paths: &[MainPath]) -> String {
    let comm_of = |named: &Named<'_>| {
        let culprit = &named.first.culprit;
        (culprit.comm.clone(), culprit.kind == "kernel_thread")
    };
    let comm = comm_of(culprit);
    let is_only = all.iter().filter(|named| comm_of(named) == comm).count() == 1;
    let path = paths
        .iter()
        .find(|path| (&path.comm, path.kernel_thread) == (&comm.0, comm.1))
        .filter(|path| is_only && path.sum_ns >= culprit.sum_ns / 100);
    path.map_or_else(String::new, |path| {
        let share = share(path.sum_ns.min(culprit.sum_ns), culprit.sum_ns);
        format!("; {share} in {}", path.function)
    })
}

fn interrupts(stats: &Stats, kinds: &[&str], whole: u64) -> Vec<Vec<String>> {
    let of_kind = |row: &&InterruptStats| kinds.contains(&row.ident.kind);
    let shown = stats.interrupts.iter().filter(of_kind).take(N_NAMES);
    shown
        .map(|interrupt| {
            let name = format!("  {}", interrupt.ident.name);
            row(&name, Some(interrupt.count), None, interrupt.sum_ns, whole)
        })
        .collect()
}

/// Whether the parts are the waited time.
fn residue(parts: &Parts, waited_ns: u64) -> String {
    let sum_ns = parts.sum_ns();
    if sum_ns == waited_ns {
        return format!(
            "the parts sum to the time waited, {}\n",
            units::duration(sum_ns)
        );
    }
    format!(
        "the parts sum to {}, {} apart from the time waited\n",
        units::duration(sum_ns),
        units::duration(sum_ns.abs_diff(waited_ns))
    )
}

/// What interrupts took from tasks that ran.
fn stolen(stats: &Stats) -> String {
    let stolen = &stats.stolen;
    let sum_ns = stolen.irq_ns + stolen.softirq_ns + stolen.tick_ns;
    if sum_ns == 0 {
        return String::new();
    }
    let piece = |name: &str, count, ns| {
        (ns > 0).then(|| format!("{} {name} {}", units::count(count), units::duration(ns)))
    };
    let pieces = [
        piece("interrupts", stolen.irqs, stolen.irq_ns),
        piece("softirqs", stolen.softirqs, stolen.softirq_ns),
        piece("ticks", stolen.ticks, stolen.tick_ns),
    ];
    let pieces: Vec<_> = pieces.into_iter().flatten().collect();
    format!(
        "while running, interrupted for {} ({} of the time on a CPU): {}\n",
        units::duration(sum_ns),
        share(sum_ns, stats.on_cpu_ns),
        pieces.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::PartStats, report::fixture};

    #[test]
    fn culprits_of_one_name_are_one_line() {
        let mut stats = fixture::report().totals;
        let first = stats.blame[0].clone();
        for tid in 1..=6 {
            let mut row = first.clone();
            row.culprit.tid = tid;
            row.sum_ns = 1_000;
            if tid > 1 {
                row.culprit.comm = format!("name{tid}");
            }
            stats.blame.push(row);
        }
        let names: Vec<_> = culprits(&stats.blame, &[], stats.waited_ns)
            .into_iter()
            .map(|row| format!("{}: {}", row[0].trim(), row[1]))
            .collect();
        let expected = [
            "pg_dump, several threads: 22",
            "kworker/1:1H (blk_mq_run_work_fn): 11",
            "name2[2]: 11",
            "name3[3]: 11",
            "name4[4]: 11",
            "2 other names: 22",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn culprit_that_is_not_fair_is_marked() {
        let mut blame = fixture::report().totals.blame;
        let remark = |blame: &[BlameStats]| culprits(blame, &[], 1)[0][5].clone();
        assert_eq!(remark(&blame), "of /backup.slice");
        blame[0].culprit.prio = 49;
        assert_eq!(remark(&blame), "of /backup.slice, rt 50");
    }

    #[test]
    fn path_is_said_of_the_only_culprit_of_its_name() {
        let report = fixture::report();
        let remark = |blame: &[BlameStats], sum_ns| {
            let mut path = report.stacks.main[0].clone();
            path.sum_ns = sum_ns;
            let row = &culprits(blame, &[path], 1)[0];
            row[5].split_once("; ").map(|(_, path)| path.to_owned())
        };
        let mut blame = report.totals.blame.clone();
        let half = remark(&blame, blame[0].sum_ns / 2);
        assert_eq!(half.as_deref(), Some("50 % in ext4_writepages[ext4]"));
        assert_eq!(remark(&blame, blame[0].sum_ns / 101), None);
        blame.push(blame[0].clone());
        blame[2].culprit.kind = "same_process";
        assert_eq!(remark(&blame, blame[0].sum_ns / 2), None);
    }

    #[test]
    fn parts_that_do_not_add_up_are_said_not_to() {
        let parts = Parts {
            moved: PartStats { sum_ns: 1_500 },
            ..Parts::default()
        };
        let apart = "the parts sum to 1.50 µs, 500 ns apart from the time waited\n";
        assert_eq!(residue(&parts, 2_000), apart);
        let equal = "the parts sum to the time waited, 1.50 µs\n";
        assert_eq!(residue(&parts, 1_500), equal);
    }

    #[test]
    fn nothing_stolen_is_not_said() {
        assert_eq!(stolen(&Stats::default()), "");
    }
}
