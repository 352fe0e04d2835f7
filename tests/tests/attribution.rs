//! What waits were made of: parts sum to the whole on every kind of load, also by interval.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use latency_tests::{
    cgroup::Cgroup,
    check,
    load::{Load, is_installed},
    observe::Observed,
    report::{Interval, Report, Stats},
    schedlat::Schedlat,
    truth::{self, Counters, nanos},
};

const SECONDS: Duration = Duration::from_secs(2);

/// Records the loads with intervals, and requires that all of it adds up.
fn check_sums(recorder: Schedlat) -> Result<Report> {
    let recording = recorder.args("--interval 500ms").start()?;
    thread::sleep(SECONDS);
    let outcome = recording.interrupt()?.success()?;
    let report = outcome.report()?;
    check::sound(&report)?;
    check::attribution_sound(&report)?;
    let intervals = Interval::among(&outcome.documents()?)?;
    for interval in &intervals {
        let totals = &interval.totals;
        check::parts_sum_to(totals.attribution.parts()?, totals.waited_ns)?;
    }
    check_intervals(&intervals, &report.totals)?;
    Ok(report)
}

/// Each part of the whole is the sum of that of the intervals, within a 1000th of all waiting.
///
/// Of a wait that goes on at the end of an interval it is not known yet who will find no room among the
/// culprits, so other tasks and those without a name are one here.
fn check_intervals(intervals: &[Interval], whole: &Stats) -> Result<()> {
    let by_name = |stats: &Stats| -> Result<Vec<(&'static str, u64)>> {
        let parts = stats.attribution.parts()?;
        let others = parts.other_tasks.sum_ns + parts.unattributed.sum_ns;
        let rest = parts.by_name().into_iter();
        let rest = rest.filter(|(name, _)| !["other_tasks", "unattributed"].contains(name));
        Ok(rest.chain([("others", others)]).collect())
    };
    for (index, (name, expected)) in by_name(whole)?.into_iter().enumerate() {
        let mut sum = 0;
        for interval in intervals {
            sum += by_name(&interval.totals)?[index].1;
        }
        check::near(name, sum, expected, 0.0, whole.waited_ns / 1000)?;
    }
    Ok(())
}

#[test]
fn parts_sum_to_the_waits_on_every_workload() -> Result<()> {
    for lines in [
        &["burn 20 --cpu 1", "burn 20 --cpu 1"][..],
        &["burn-syscall 20 --cpu 1", "burn-syscall 20 --cpu 1"],
        &["yield 20 --cpu 1", "yield 20 --cpu 1"],
        &["burn 20 --cpu 1", "periodic 20 --cpu 1 --fifo 50"],
        &["pipe 20 --cpu 1 --peer-cpu 1"],
        &["pipe 20 --cpu 0 --peer-cpu 1"],
        &["pipe 20"],
        &["futex-running 20"],
        &["wake 20000 --interval-us 100 --cpu 0 --peer-cpu 1"],
        &["team 20 --threads 5"],
        &["datagrams 20 --cpu 1", "burn 20 --cpu 1"],
        &["interrupted 20 --cpu 1 --peer-cpu 0", "burn 20 --cpu 1"],
    ] {
        let loads = lines.iter().map(|line| Load::workload(line));
        let loads = loads.collect::<Result<Vec<_>>>()?;
        let targets = |recorder: Schedlat, load: &Load| recorder.pid(load.pid());
        let mut recorder = loads.iter().fold(Schedlat::record(), targets);
        for tid in loads.iter().flat_map(|load| &load.tids) {
            recorder = recorder.args(&format!("--tid {tid}"));
        }
        check_sums(recorder).with_context(|| format!("{lines:?}"))?;
    }
    Ok(())
}

#[test]
fn parts_sum_to_the_waits_of_a_crowd() -> Result<()> {
    assert!(
        is_installed("hackbench"),
        "install hackbench: `cargo xtask test` does"
    );
    for threads in [&["-T"][..], &[]] {
        let line = [threads, &["-g", "2", "-l", "1000000"]].concat();
        let _crowd = Load::program("hackbench", &line)?;
        check_sums(Schedlat::record()).with_context(|| format!("{line:?}"))?;
        // By group the same waits are in other rows.
        check_sums(Schedlat::record().args("--by comm"))?;
    }
    Ok(())
}

#[test]
fn parts_sum_to_the_waits_of_short_lives() -> Result<()> {
    let recording = Schedlat::record().comm("brief").start()?;
    let truth = Load::workload("forks 2000 --burn-us 100 --name brief")?.truth()?;
    let report = recording.stop()?;
    check::sound(&report)?;
    check::attribution_sound(&report)?;
    // The first of them took its name after its first wait.
    check::every_new_task_waited_once(&report, truth.number("forks")?)
}

#[test]
fn an_idle_sleeper_waits_for_the_cpu_to_come_out_of_idle() -> Result<()> {
    let sleeper = Load::workload("periodic 20 --interval-us 5000 --work-us 50 --cpu 1 --fifo 80")?;
    let before = truth::idle_time(1)?;
    let report = check_sums(Schedlat::record().pid(sleeper.pid()))?;
    let idle = truth::idle_time(1)?.saturating_sub(before);
    let stats = &report.task(sleeper.pid())?.stats;
    let parts = stats.attribution.parts()?;
    assert_eq!(parts.throttled.sum_ns, 0, "{:?}", parts.by_name());
    // Where others let it, that CPU comes out of idle for each wakeup.
    let is_idle = idle > SECONDS / 2;
    assert!(
        !is_idle || parts.idle_exit.sum_ns > parts.other_tasks.sum_ns / 10,
        "idle for {idle:?}: {:?}",
        parts.by_name()
    );
    Ok(())
}

#[test]
fn c014_throttled_time_is_that_of_the_group() -> Result<()> {
    let group = Cgroup::with_cpu_controller("quota")?;
    // Two burners, one a CPU, share what is about a quarter of a CPU for each.
    group.limit(Duration::from_millis(50), Duration::from_millis(100))?;
    group.prefer()?;
    let recording = Schedlat::record().cgroup(group.directory()).start()?;
    let member = |cpu| group.workload(&format!("burn 6 --cpu {cpu} --name limited"));
    let members = [member(0)?, member(1)?];
    // They are born and end within the recording, and end on a CPU: no throttled time is cut.
    let truths = members.map(Load::truth);
    thread::sleep(Duration::from_millis(300));
    let of_kernel = group.throttling()?;
    let report = recording.stop()?;
    check::sound(&report)?;
    check::attribution_sound(&report)?;
    let mut throttled = 0;
    for truth in truths {
        let stats = &report.task(truth?.tid)?.stats;
        let parts = stats.attribution.parts()?;
        throttled += parts.throttled.sum_ns;
        // After the release it queues behind whoever else is there.
        check::share("throttled", parts.throttled.sum_ns, stats.waited_ns, 0.9)?;
    }
    // The kernel goes on counting where a task ends that is out of quota: a period at most for each.
    check::near("throttled", throttled, of_kernel.sum_ns, 0.02, 0)
}

#[test]
fn a_wait_for_the_cpu_is_no_throttling() -> Result<()> {
    let group = Cgroup::with_cpu_controller("enough")?;
    // More than it can use: it waits for its rival only.
    group.limit(Duration::from_millis(300), Duration::from_millis(100))?;
    let member = group.workload("burn 20 --cpu 1 --nice -15")?;
    let _rival = Load::workload("burn 20 --cpu 1 --nice -15")?;
    let report = check_sums(Schedlat::record().pid(member.pid()))?;
    let parts = report.task(member.pid())?.stats.attribution.parts()?;
    assert_eq!(parts.throttled.sum_ns, 0, "{:?}", parts.by_name());
    Ok(())
}

#[test]
fn moves_close_a_segment_and_lose_no_time() -> Result<()> {
    // Three on two CPUs are moved to and fro while they wait.
    let load = Load::workload("team 20 --threads 3 --nice -15")?;
    let report = check_sums(Schedlat::record().pid(load.pid()))?;
    assert!(report.totals.migrations > 0, "nobody was moved");
    for tid in &load.tids {
        let row = report.task(*tid)?;
        check::runs_or_waits_all_the_time(&report, row)?;
        let parts = row.stats.attribution.parts()?;
        check::share(
            "by others",
            parts.other_tasks.sum_ns,
            row.stats.waited_ns,
            0.9,
        )?;
    }
    Ok(())
}

#[test]
fn the_longest_wait_is_kept_with_its_parts() -> Result<()> {
    let group = Cgroup::preferred("longest")?;
    let line = "burn 20 --cpu 1";
    let loads = [group.workload(line)?, group.workload(line)?];
    let observed = Observed::of(&[&loads[0], &loads[1]], SECONDS)?;
    let report = &observed.report;
    check::attribution_sound(report)?;
    check::longest_are_possible(report)?;
    let longest = report.longest()?.iter().max_by_key(|wait| wait.wait_ns);
    let longest = longest.context("no longest wait")?;
    assert_eq!(longest.wait_ns, report.totals.waits.max_ns());
    assert_eq!(longest.cpu, 1);
    let tids = [loads[0].pid(), loads[1].pid()];
    let victim = longest.victim.tid;
    assert!(tids.contains(&victim), "{:?}", longest.victim);
    let own = report.task(victim)?.stats.waits.max_ns();
    assert_eq!(longest.wait_ns, own, "the victim's own longest wait");
    // Its time is in the window.
    assert!(longest.at_ns >= report.window.start_at_ns);
    assert!(longest.at_ns + longest.wait_ns <= report.window.start_at_ns + report.window_ns());
    // It waited for the other burner, and for a third party perhaps: no two slices make the longest.
    let other = tids.into_iter().find(|tid| *tid != victim);
    let spans = longest.spans.iter().filter(|span| span.tid == other);
    let by_other: u64 = spans.map(|span| span.ns).sum();
    check::share("by the other", by_other, longest.wait_ns, 0.25)
}

#[test]
fn a_wait_over_an_interval_is_split() -> Result<()> {
    let victim = Load::workload("burn 20 --cpu 1 --name victim")?;
    let hog = Load::workload("burn 20 --cpu 1 --fifo 50 --name rthog")?;
    // The real-time limit stops the hog for 50 ms a second: the victim waits through several
    // intervals in between.
    let recorder = Schedlat::record().pid(victim.pid());
    let recording = recorder.args("--interval 100ms").start()?;
    let (before, began) = (Counters::of(hog.pid())?, Instant::now());
    thread::sleep(SECONDS);
    let hog_ran = Counters::of(hog.pid())?.since(&before).exec_ns;
    let window_ns = nanos(began.elapsed());
    let outcome = recording.interrupt()?.success()?;
    check::share("of the CPU for the hog", hog_ran, window_ns, 0.8)?;
    let intervals = Interval::among(&outcome.documents()?)?;
    let mut behind_hog = 0;
    for interval in &intervals {
        let totals = &interval.totals;
        let parts = totals.attribution.parts()?;
        check::parts_sum_to(parts, totals.waited_ns)?;
        let window_ns = latency_tests::report::ns_of_seconds(interval.window.seconds);
        assert!(
            parts.sum_ns() <= window_ns + window_ns / 100,
            "{} ns of one task in {window_ns} ns",
            parts.sum_ns()
        );
        behind_hog += u32::from(parts.other_tasks.sum_ns > window_ns * 9 / 10);
    }
    // 19 of 20 windows of the hog's second, less those that a pause of it touches.
    assert!(behind_hog >= 14, "{behind_hog} of {}", intervals.len());
    check_intervals(&intervals, &outcome.report()?.totals)
}
