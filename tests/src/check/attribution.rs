//! The insides of waits: parts that sum to the whole, blame that sums to its part.

use anyhow::{Context as _, Result, ensure};

use super::{near, ratio, share};
use crate::{
    observe::Observed,
    report::{Blamed, Culprit, Interrupt, LongWait, Parts, Report, Row, Stats},
};

/// Parts against the whole, and unexplained time, of a handful of waits: figures of a few
/// microseconds are made of roundings, and decide nothing.
const HANDFUL_NS: u64 = 100_000;

/// What a stint of a task of a hidden pid 1 lasts at most, in the mean: while it is current no event
/// fires, so that what ran is not known, and two switches are missed.
const HIDDEN_NS: u64 = 500_000;

/// The parts of all waits sum to the waits within 0.1 %, at most 2 % of them unexplained, and blame
/// sums to the part of other tasks.
fn waits_add_up(stats: &Stats, hidden_ns: u64) -> Result<()> {
    let parts = stats.attribution.parts()?;
    parts_sum_to(parts, stats.waited_ns)?;
    let unexplained = parts.unexplained.sum_ns;
    ensure!(
        unexplained <= HANDFUL_NS + hidden_ns || ratio(unexplained, stats.waited_ns) <= 0.02,
        "{unexplained} of {} ns are unexplained: {:?}",
        stats.waited_ns,
        parts.by_name()
    );
    blame_adds_up(stats, hidden_ns)
}

/// Parts that sum to the whole within 0.1 %.
pub fn parts_sum_to(parts: &Parts, whole_ns: u64) -> Result<()> {
    near("parts of waits", parts.sum_ns(), whole_ns, 0.001, 100)
        .with_context(|| format!("{:?}", parts.by_name()))
}

/// Blame sums to the part of other tasks, and interrupts to theirs, within 0.1 %; waits that are
/// still open are in the parts only. Of a wait whose end was hidden, what came before its last move
/// is in the blame only.
fn blame_adds_up(stats: &Stats, hidden_ns: u64) -> Result<()> {
    let attribution = &stats.attribution;
    let (parts, open) = (attribution.parts()?, stats.censored.open_at_end_ns);
    let blame: u64 = attribution.blame()?.iter().map(|row| row.sum_ns).sum();
    let interrupts = attribution.interrupts()?.iter().map(|row| row.sum_ns).sum();
    for (what, sum, part) in [
        ("blame", blame, parts.other_tasks.sum_ns),
        (
            "interrupts",
            interrupts,
            parts.hard_irq.sum_ns + parts.softirq.sum_ns + parts.tick.sum_ns,
        ),
    ] {
        let slack = part / 1000 + 100;
        ensure!(
            sum <= part + slack + hidden_ns && sum + open + slack >= part,
            "{what}: the rows sum to {sum} ns, the part is {part} ns, {open} ns are open"
        );
    }
    for row in attribution.blame()? {
        ensure!(
            row.count > 0 && row.max_ns <= row.sum_ns && row.sum_ns <= row.max_ns * row.count,
            "impossible blame: {row:?}"
        );
    }
    let sums: Vec<u64> = attribution.blame()?.iter().map(|row| row.sum_ns).collect();
    ensure!(
        sums.is_sorted_by(|a, b| a >= b),
        "the largest blame does not come first: {sums:?}"
    );
    Ok(())
}

/// Every row's waits add up, and the rows' parts sum to those of all.
pub fn attribution_sound(report: &Report) -> Result<()> {
    let hidden_ns = HIDDEN_NS * report.audit.switches.missed.div_ceil(2);
    // As many tasks may have waited for it.
    let n_tasks: u64 = rows_of(report).map(|row| row.n_tasks).sum();
    waits_add_up(&report.totals, hidden_ns * n_tasks)?;
    for row in rows_of(report) {
        let who = || format!("{:?} {:?}", row.comm, row.tid);
        waits_add_up(&row.stats, hidden_ns * row.n_tasks).with_context(who)?;
        wakers_add_up(&row.stats).with_context(who)?;
        takes_no_more_than_there_is(row)?;
    }
    let of_rows = rows_of(report)
        .map(|row| Ok(row.stats.attribution.parts()?.by_name()))
        .collect::<Result<Vec<_>>>()?;
    for (index, (name, total)) in report
        .totals
        .attribution
        .parts()?
        .by_name()
        .iter()
        .enumerate()
    {
        let sum: u64 = of_rows.iter().map(|parts| parts[index].1).sum();
        ensure!(
            sum == *total,
            "{name}: the rows sum to {sum} ns, the total is {total} ns"
        );
    }
    Ok(())
}

fn rows_of(report: &Report) -> impl Iterator<Item = &Row> {
    report.tasks.iter().chain(&report.groups)
}

/// The parts of each of the longest waits sum to it, and its spans are in order and inside.
pub fn longest_are_possible(report: &Report) -> Result<()> {
    for long in report.longest()? {
        long_wait_is_possible(long)?;
    }
    Ok(())
}

/// Every wakeup that ended in running has a waker, and no other wait has one.
fn wakers_add_up(stats: &Stats) -> Result<()> {
    let wakers = stats.attribution.wakers()?;
    let count: u64 = wakers.iter().map(|waker| waker.count).sum();
    let latency: u64 = wakers.iter().map(|waker| waker.latency_sum_ns).sum();
    let all = stats.wakeup_latency;
    ensure!(
        count == all.count && latency == all.sum_ns,
        "wakers: {count} wakeups of {latency} ns, the latencies are {} of {} ns",
        all.count,
        all.sum_ns
    );
    Ok(())
}

/// Interrupts took no more from a task than the time it had.
fn takes_no_more_than_there_is(row: &Row) -> Result<()> {
    let stolen = row.stats.attribution.stolen()?;
    ensure!(
        stolen.sum_ns() <= row.stats.on_cpu_ns,
        "{:?} was on a CPU for {} ns: {stolen:?}",
        row.comm,
        row.stats.on_cpu_ns
    );
    Ok(())
}

fn long_wait_is_possible(long: &LongWait) -> Result<()> {
    parts_sum_to(&long.parts, long.wait_ns)?;
    let end = long.at_ns + long.wait_ns;
    let mut last = long.at_ns;
    for span in &long.spans {
        ensure!(
            span.at_ns >= last && span.at_ns + span.ns <= end,
            "a span is out of order or outside of {}..{end}: {:?}",
            long.at_ns,
            long.spans
        );
        last = span.at_ns;
    }
    // Each span has its own time: an interrupt's is not that of the task it came upon.
    let sum: u64 = long.spans.iter().map(|span| span.ns).sum();
    ensure!(
        sum <= long.wait_ns + 100,
        "the spans sum to {sum} ns of {} ns: {:?}",
        long.wait_ns,
        long.spans
    );
    if !long.hidden_spans && long.parts.throttled.sum_ns + long.parts.moved.sum_ns == 0 {
        near("spans", sum, long.wait_ns, 0.001, 100)?;
    }
    Ok(())
}

/// A task that never sleeps, on one CPU with `other`: it waits whenever the other runs, so it blames
/// it for all its time on the CPU but what interrupts took of it, within 1 % and a microsecond for
/// each switch.
pub fn blames_all_its_time(victim: &Row, other: &Row) -> Result<Blamed> {
    let tid = other.tid.context("no thread id")?;
    let blamed = victim.stats.attribution.blamed_on_thread(tid)?;
    let stolen = other.stats.attribution.stolen()?.sum_ns();
    let ran = other.stats.on_cpu_ns - stolen;
    near(
        &format!("{:?} blamed for its time on the CPU", other.comm),
        blamed.sum_ns,
        ran,
        0.01,
        1_000 * blamed.count,
    )?;
    // A stretch is what lies between two switches of it.
    let switches = other.stats.switches.voluntary + other.stats.switches.involuntary;
    near("stretches", blamed.count, switches, 0.01, 5)?;
    Ok(blamed)
}

/// The one that a task waited for longest is this thread, and it is of this kind.
pub fn is_first_culprit(stats: &Stats, tid: u32, kind: &str) -> Result<()> {
    let blame = stats.attribution.blame()?;
    let first = blame.first().context("nobody is blamed")?;
    ensure!(
        first.culprit.tid == tid,
        "{tid} is not the first: {blame:?}"
    );
    for row in blame.iter().filter(|row| row.culprit.tid == tid) {
        is_of_kind(&row.culprit, kind)?;
    }
    Ok(())
}

/// Tasks that never sleep share a CPU: each blames the others for 99 % of its waits, not counting what
/// the kernel's account of them leaves of the CPU's time to third parties.
pub fn blame_only_each_other(observed: &Observed) -> Result<()> {
    let report = &observed.report;
    let pairs = observed.pairs()?;
    let of_all: u64 = pairs.iter().map(|(_, truth)| truth.exec_ns).sum();
    let of_others = report.window_ns().saturating_sub(of_all);
    for (victim, _) in &pairs {
        let attribution = &victim.stats.attribution;
        let mut blamed = 0;
        for (other, _) in &pairs {
            if other.tid != victim.tid {
                blamed += blames_all_its_time(victim, other)?.sum_ns;
            }
        }
        let all = attribution.parts()?.other_tasks.sum_ns;
        share("blamed on the others", blamed + of_others, all, 0.99)
            .with_context(|| format!("{:?}", attribution.blame().unwrap_or_default()))?;
    }
    Ok(())
}

/// A culprit is related to its victim in this way.
pub fn is_of_kind(culprit: &Culprit, kind: &str) -> Result<()> {
    ensure!(culprit.kind == kind, "not {kind}: {culprit:?}");
    Ok(())
}

/// A culprit has this priority and class.
pub fn is_ranked(culprit: &Culprit, prio: i16, class: &str) -> Result<()> {
    ensure!(
        (culprit.prio, &*culprit.sched_class) == (prio, class),
        "not {class} with {prio}: {culprit:?}"
    );
    Ok(())
}

/// Runs and time of the interrupts of one kind and name.
#[must_use]
pub fn runs_of(interrupts: &[Interrupt], kind: &str, name: &str) -> (u64, u64) {
    let named = interrupts
        .iter()
        .filter(|row| row.kind == kind && row.name == name);
    named.fold((0, 0), |(count, sum_ns), row| {
        (count + row.count, sum_ns + row.sum_ns)
    })
}
