//! Wakeups: by whom, where the task was queued, and how long each stage took.

use super::{autopsy::name_of_waker, table, waits::share};
use crate::model::{PlacementStats, StageStats, Stats, SyncStats, WakerStats};
use crate::units;

/// Wakers that are named.
const N_NAMES: usize = 5;

/// The table of wakeups; none without wakeups.
pub(super) fn render(stats: &Stats) -> Option<String> {
    let path = &stats.wake_path;
    let whole = path.waking_to_queued.count;
    if whole == 0 {
        return None;
    }
    let columns = [
        "from waking to running",
        "wakeups",
        "share",
        "mean",
        "longest",
        "",
    ];
    let mut rows = vec![table::cells(columns)];
    rows.extend(wakers(&stats.wakers, whole));
    let places = [
        ("to the waker's CPU", path.placements.same_cpu),
        ("to another CPU of its cache", path.placements.same_cache),
        ("to a CPU of another cache", path.placements.other_cache),
    ];
    rows.extend(places.into_iter().filter_map(|(name, place)| {
        let PlacementStats {
            count,
            latency_sum_ns,
            latency_max_ns,
        } = place;
        row(name, count, whole, latency_sum_ns, Some(latency_max_ns))
    }));
    rows.extend(sync_rows("sync", &path.sync, path.sampled));
    rows.extend(sync_rows("not sync", &path.not_sync, path.sampled));
    rows.extend(stage("  until queued", path.waking_to_queued));
    rows.extend(stage("  then until running", path.queued_to_running));
    let moved = path.moved_pct.filter(|pct| *pct > 0.0);
    let moved = moved.map_or_else(String::new, |pct| {
        let pct = units::percent(pct);
        format!("{pct} of the wakeups moved the task to another CPU than its last one\n")
    });
    Some(table::aligned("<>>>><", &rows) + &moved)
}

fn row(
    name: &str,
    count: u64,
    whole: u64,
    sum_ns: u64,
    longest_ns: Option<u64>,
) -> Option<Vec<String>> {
    let mean_ns = sum_ns.checked_div(count)?;
    Some(vec![
        name.to_owned(),
        units::count(count),
        share(count, whole),
        units::duration(mean_ns),
        longest_ns.map_or_else(String::new, units::duration),
        String::new(),
    ])
}

fn wakers(wakers: &[WakerStats], whole: u64) -> Vec<Vec<String>> {
    let (others, named): (Vec<_>, Vec<_>) = wakers
        .iter()
        .partition(|waker| waker.ident.kind == "others");
    let shown = named.iter().take(N_NAMES).filter_map(|waker| {
        let name = format!("by {}", name_of_waker(&waker.ident));
        row(&name, waker.count, whole, waker.latency_sum_ns, None)
    });
    let mut rows: Vec<_> = shown.collect();
    let others = || named.iter().skip(N_NAMES).chain(&others);
    let count = others().map(|waker| waker.count).sum();
    let sum_ns = others().map(|waker| waker.latency_sum_ns).sum();
    rows.extend(row("by others", count, whole, sum_ns, None));
    rows
}

fn stage(name: &str, stage: StageStats) -> Option<Vec<String>> {
    let mut cells = row(name, stage.count, 1, stage.sum_ns, Some(stage.max_ns))?;
    cells[2] = String::new();
    Some(cells)
}

/// Of the sample, what kind of wakeups there were.
fn sync_rows(name: &str, sync: &SyncStats, sampled: u64) -> Option<Vec<String>> {
    let mean_ns = sync.latency_mean_ns?;
    let mut cells = row(name, sync.count, sampled, mean_ns * sync.count, None)?;
    cells[5] = format!(
        "of {} sampled; {} to the waker's CPU",
        units::count(sampled),
        units::percent(sync.same_cpu_pct.unwrap_or_default())
    );
    Some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{WakePathStats, WakerIdent};

    #[test]
    fn wakers_beyond_the_first_are_the_others() {
        let waker = |kind, tid, count| WakerStats {
            ident: WakerIdent {
                kind,
                comm: Some("a".into()),
                tid: Some(tid),
                ..WakerIdent::default()
            },
            count,
            latency_sum_ns: 10 * count,
        };
        let mut rows: Vec<_> = (1..=6).map(|tid| waker("task", tid, 10)).collect();
        rows.insert(0, waker("others", 0, 40));
        let shown: Vec<_> = wakers(&rows, 100)
            .into_iter()
            .map(|row| format!("{} {}", row[0], row[1]))
            .collect();
        assert_eq!(shown.len(), 6);
        assert_eq!((&*shown[0], &*shown[5]), ("by a[1] 10", "by others 50"));
    }

    #[test]
    fn recording_without_wakeups_has_no_such_table() {
        let stats = Stats {
            wake_path: WakePathStats::default(),
            ..Stats::default()
        };
        assert_eq!(render(&stats), None);
    }
}
