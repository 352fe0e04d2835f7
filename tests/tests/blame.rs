//! Who ran while others waited: each culprit is named, with the right kind and share.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use latency_tests::{
    cgroup::Cgroup,
    check,
    load::{Load, workload_binary},
    observe::Observed,
    schedlat::Schedlat,
    truth,
    workload::set_affinity,
};

const SECONDS: Duration = Duration::from_secs(3);

/// Flips of the affinity in one recording.
const FLIPS: u64 = 100;

/// So many burners on CPU 1.
fn burners<const N: usize>(group: &Cgroup, kind: &str) -> Result<[Load; N]> {
    let line = format!("{kind} 20 --cpu 1");
    let loads = (0..N).map(|_| group.workload(&line));
    let loads = loads.collect::<Result<Vec<_>>>()?;
    loads.try_into().ok().context("as many as asked for")
}

#[test]
fn two_burners_blame_each_other() -> Result<()> {
    let group = Cgroup::preferred("two")?;
    for kind in ["burn", "burn-syscall"] {
        let loads: [Load; 2] = burners(&group, kind)?;
        let observed = Observed::of(&[&loads[0], &loads[1]], SECONDS)?;
        check::attribution_sound(&observed.report)?;
        check::blame_only_each_other(&observed)?;
        for (own, other) in [(&loads[0], &loads[1]), (&loads[1], &loads[0])] {
            let row = observed.report.task(own.pid())?;
            check::is_first_culprit(&row.stats, other.pid(), "same_cgroup")?;
        }
    }
    Ok(())
}

#[test]
fn three_burners_blame_both_others_about_equally() -> Result<()> {
    let group = Cgroup::preferred("three")?;
    let loads: [Load; 3] = burners(&group, "burn")?;
    let observed = Observed::of(&[&loads[0], &loads[1], &loads[2]], SECONDS)?;
    check::attribution_sound(&observed.report)?;
    check::blame_only_each_other(&observed)?;
    for victim in &loads {
        let attribution = &observed.report.task(victim.pid())?.stats.attribution;
        let others = loads.iter().filter(|load| load.pid() != victim.pid());
        let sums = others.map(|other| Ok(attribution.blamed_on_thread(other.pid())?.sum_ns));
        let sums = sums.collect::<Result<Vec<_>>>()?;
        let half = check::ratio(sums[0], sums.iter().sum());
        assert!((0.45..=0.55).contains(&half), "{sums:?}");
    }
    Ok(())
}

#[test]
fn a_thread_of_the_same_process_is_told_from_others() -> Result<()> {
    let group = Cgroup::preferred("threads")?;
    let load = group.workload("team 20 --threads 2 --cpu 1")?;
    let observed = Observed::of(&[&load], SECONDS)?;
    let report = &observed.report;
    check::attribution_sound(report)?;
    let [first, second] = load.tids[..] else {
        anyhow::bail!("not two threads: {:?}", load.tids);
    };
    for (tid, other) in [(first, second), (second, first)] {
        let row = report.task(tid)?;
        check::is_first_culprit(&row.stats, other, "same_process")?;
        check::blames_all_its_time(row, report.task(other)?)?;
    }
    Ok(())
}

#[test]
fn a_real_time_task_is_blamed_for_its_time_on_the_cpu() -> Result<()> {
    let burner = Load::workload("burn 20 --cpu 1 --nice -15")?;
    let line = "periodic 20 --interval-us 1000 --work-us 50 --cpu 1 --fifo 50 --name rt-periodic";
    let fifo = Load::workload(line)?;
    let observed = Observed::of(&[&burner, &fifo], SECONDS)?;
    let report = &observed.report;
    check::attribution_sound(report)?;
    let (victim, culprit) = (report.task(burner.pid())?, report.task(fifo.pid())?);
    let blamed = check::blames_all_its_time(victim, culprit)?;
    check::is_first_culprit(&victim.stats, fifo.pid(), "same_cgroup")?;
    check::is_ranked(&victim.stats.attribution.blame()?[0].culprit, 49, "rt")?;
    // The kernel charges it with its interrupts and with the switches to it too: microseconds each.
    let (_, truth) = observed.main_of(&fifo)?;
    let switches = 10_000 * blamed.count;
    check::near("blame", blamed.sum_ns, truth.exec_ns, 0.02, switches)
}

#[test]
fn a_ping_pong_is_named_by_the_burner_behind_it() -> Result<()> {
    let group = Cgroup::preferred("pair")?;
    let burner = group.workload("burn 20 --cpu 1 --name victim")?;
    let pair = group.workload("pipe 20 --cpu 1 --peer-cpu 1")?;
    let observed = Observed::of(&[&burner, &pair], SECONDS)?;
    let report = &observed.report;
    check::attribution_sound(report)?;
    let victim = report.task(burner.pid())?;
    // A wait of some milliseconds holds a thousand short stints of the two.
    let stints = report.totals.switches.voluntary;
    let waits = victim.stats.waits.count();
    assert!(stints > 100 * waits, "{stints} stints in {waits} waits");
    // Those beyond the thousand that a CPU remembers have no name, but none is lost; on a busy host a
    // wait lasts for two slices and spans twice as many.
    let (mut blamed, mut ran) = (0, 0);
    for tid in [pair.pid(), pair.tids[0]] {
        let row = report.task(tid)?;
        blamed += victim.stats.attribution.blamed_on_thread(tid)?.sum_ns;
        ran += row.stats.on_cpu_ns - row.stats.attribution.stolen()?.sum_ns();
    }
    let nameless = victim.stats.attribution.parts()?.unattributed.sum_ns;
    check::near("blamed on the two", blamed + nameless, ran, 0.02, 0)?;
    check::share("named", blamed, ran, 0.5)
}

#[test]
fn c102_a_helper_daemon_is_the_first_culprit_of_a_server() -> Result<()> {
    let group = Cgroup::preferred("server")?;
    let server = group.workload("burn 20 --cpu 1 --name dbserver")?;
    let line = "periodic 20 --interval-us 100000 --work-us 5000 --cpu 1 --nice -5 --name collector";
    let helper = group.workload(line)?;
    let observed = Observed::of(&[&server, &helper], Duration::from_secs(5))?;
    let report = &observed.report;
    check::attribution_sound(report)?;
    let (row, by) = (report.task(server.pid())?, report.task(helper.pid())?);
    check::is_first_culprit(&row.stats, helper.pid(), "same_cgroup")?;
    check::blames_all_its_time(row, by)?;
    let first = &row.stats.attribution.blame()?[0];
    assert_eq!(first.culprit.comm, "collector", "{first:?}");
    // Ten times a second it works for 5 ms; a slice may end in between.
    let activations = by.stats.waits.wakeup.count;
    let expected = report.window_ns() / 100_000_000;
    assert!(
        activations.abs_diff(expected) <= 2,
        "{activations} of {expected}"
    );
    assert!(
        (activations - 1..=3 * activations).contains(&first.count),
        "{activations} activations: {first:?}"
    );
    let share = check::ratio(first.sum_ns, report.window_ns());
    assert!((0.03..=0.06).contains(&share), "{share:.3} of the time");
    Ok(())
}

#[test]
fn c106_a_higher_priority_client_is_blamed_for_a_late_server() -> Result<()> {
    let line = "periodic 20 --interval-us 6000 --work-us 1000 --cpu 1 --fifo 50 --name server";
    let server = Load::workload(line)?;
    let line = "periodic 20 --interval-us 20000 --work-us 8000 --cpu 1 --fifo 80 --name client";
    let client = Load::workload(line)?;
    let observed = Observed::of(&[&server, &client], SECONDS)?;
    let report = &observed.report;
    check::attribution_sound(report)?;
    let row = report.task(server.pid())?;
    check::is_first_culprit(&row.stats, client.pid(), "same_cgroup")?;
    let blamed = row.stats.attribution.blamed_on_thread(client.pid())?;
    let all = row.stats.attribution.parts()?.other_tasks.sum_ns;
    // Real-time tasks wait for no other.
    check::share("blamed on the client", blamed.sum_ns, all, 0.95)?;
    // The client works for 8 ms, and a server that is woken just then waits for all of it.
    let longest = row.stats.waits.max_ns();
    assert!(longest >= 5_000_000, "{longest} ns is the longest wait");
    assert!(
        blamed.max_ns <= longest && blamed.max_ns * 10 >= longest * 9,
        "{blamed:?}"
    );
    check::is_ranked(&row.stats.attribution.blame()?[0].culprit, 19, "rt")?;
    let mut waits = report.longest()?.iter();
    let behind = format!("behind a real-time task: client[{}] (rt 80)", client.pid());
    assert!(
        waits.any(|wait| wait
            .hint
            .as_deref()
            .is_some_and(|hint| hint.starts_with(&behind))),
        "{:?}",
        report.longest()?
    );
    // The other way round there is nothing to blame: the client never waits for the server.
    let stats = &report.task(client.pid())?.stats;
    let back = stats.attribution.blamed_on_thread(server.pid())?;
    let switches = back.count * 50_000;
    assert!(back.sum_ns <= switches, "{back:?}: a switch takes no 50 us");
    Ok(())
}

#[test]
fn a_hog_of_another_cgroup_is_named_with_its_path() -> Result<()> {
    let groups = [Cgroup::preferred("tenant")?, Cgroup::preferred("noisy")?];
    let victim = groups[0].workload("burn 20 --cpu 1 --name victim")?;
    let hog = groups[1].workload("burn 20 --cpu 1 --name hog")?;
    let observed = Observed::of(&[&victim, &hog], SECONDS)?;
    let report = &observed.report;
    check::attribution_sound(report)?;
    check::blame_only_each_other(&observed)?;
    let row = report.task(victim.pid())?;
    check::is_first_culprit(&row.stats, hog.pid(), "foreign")?;
    let first = row.stats.attribution.blame()?.first();
    let culprit = &first.context("nobody is blamed")?.culprit;
    assert_eq!(culprit.comm, "hog");
    let path = culprit.cgroup.as_deref().context("no cgroup")?;
    let directory = groups[1].directory().to_string_lossy();
    assert!(
        path.len() > 1 && directory.ends_with(path.trim_start_matches('/')),
        "{path} is not {directory}"
    );
    Ok(())
}

#[test]
fn a_crowd_of_names_is_blamed_name_by_name() -> Result<()> {
    let group = Cgroup::preferred("crowd")?;
    let burner = group.workload("burn 20 --cpu 1 --name victim")?;
    let names: Vec<_> = (0..40).map(|number| format!("crowd-{number}")).collect();
    let line = "periodic 20 --interval-us 10000 --work-us 100 --cpu 1 --name";
    let crowd = names
        .iter()
        .map(|name| group.workload(&format!("{line} {name}")));
    let crowd = crowd.collect::<Result<Vec<_>>>()?;
    let report = Schedlat::record().lasting(SECONDS.as_secs_f64()).report()?;
    check::attribution_sound(&report)?;
    let victim = &report.task(burner.pid())?.stats;
    let parts = victim.attribution.parts()?;
    let nameless = check::ratio(parts.unattributed.sum_ns, victim.waited_ns);
    assert!(nameless <= 0.02, "{nameless:.3} of the waits has no name");
    let blame: u64 = victim
        .attribution
        .blame()?
        .iter()
        .map(|row| row.sum_ns)
        .sum();
    let open = victim.censored.open_at_end_ns;
    check::near("blame", blame, parts.other_tasks.sum_ns, 0.001, open)?;
    let (mut blamed, mut ran) = (0, 0);
    for (name, load) in names.iter().zip(&crowd) {
        let of_name = victim
            .attribution
            .blamed_on(|culprit| culprit.comm == *name)?;
        assert!(of_name.count > 0, "{name} is not blamed");
        let row = &report.task(load.pid())?.stats;
        blamed += of_name.sum_ns;
        ran += row.on_cpu_ns - row.attribution.stolen()?.sum_ns();
    }
    let all = blamed + parts.unattributed.sum_ns;
    check::near("blamed on the crowd", all, ran, 0.02, 0)
}

/// Run time of the kernel's workers so far, by thread.
fn workers() -> Result<BTreeMap<u32, u64>> {
    truth::run_times_of("kworker/")
}

#[test]
fn c043_kernel_workers_are_blamed_for_what_a_disk_makes_them_do() -> Result<()> {
    // A burner on each CPU: wherever a worker runs, one of them waits.
    let victims = [
        Load::workload("burn 20 --cpu 0 --name victim")?,
        Load::workload("burn 20 --cpu 1 --name victim")?,
    ];
    let binary = workload_binary()?;
    let directory = binary.parent().unwrap_or(Path::new("."));
    let _disk = Load::workload(&format!("dirty-pages 20 {}", directory.display()))?;
    let recording = Schedlat::record().start()?;
    let before = workers()?;
    thread::sleep(SECONDS + SECONDS);
    let after = workers()?;
    let report = recording.stop()?;
    check::attribution_sound(&report)?;
    let of = |tid: &u32| before.get(tid).copied().unwrap_or_default();
    let truth: u64 = after.iter().map(|(tid, ran)| ran - of(tid)).sum();
    assert!(truth > 100_000_000, "workers ran for {truth} ns only");
    let (mut blamed, mut nameless) = (0, 0);
    let mut works: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for victim in &victims {
        let attribution = &report.task(victim.pid())?.stats.attribution;
        for row in attribution.blame()? {
            if row.culprit.comm.starts_with("kworker/") {
                check::is_of_kind(&row.culprit, "kernel_thread")?;
                blamed += row.sum_ns;
                let of_worker = works.entry(&row.culprit.comm).or_default();
                of_worker.extend(row.culprit.work.as_deref());
            }
        }
        nameless += attribution.parts()?.unattributed.sum_ns;
    }
    let mut ran = 0;
    for row in &report.tasks {
        if row
            .comm
            .as_ref()
            .is_some_and(|comm| comm.starts_with("kworker/"))
        {
            ran += row.stats.on_cpu_ns - row.stats.attribution.stolen()?.sum_ns();
        }
    }
    assert!(
        blamed <= ran + ran / 50 && blamed + nameless >= ran - ran / 50,
        "{blamed} ns blamed on workers and {nameless} ns on nobody, they ran for {ran} ns"
    );
    assert!(
        works.values().any(|works| works.contains("wb_workfn"))
            && works.values().any(|works| works.len() > 1),
        "no worker writes back, or none has two functions: {works:?}"
    );
    // The kernel charges workers with the interrupts of the disk, and with switches to them.
    check::near("time of workers", ran, truth, 0.25, 0)
}

#[test]
fn c113_the_stopper_is_blamed_where_it_moves_a_task() -> Result<()> {
    let group = Cgroup::preferred("flips")?;
    for load in [
        Load::workload("burn 20 --fifo 20")?,
        group.workload("burn 20")?,
    ] {
        set_affinity(Some(load.pid()), &[1])?;
        let recording = Schedlat::record().pid(load.pid()).start()?;
        for flip in 0..FLIPS {
            set_affinity(Some(load.pid()), &[usize::from(flip % 2 == 1)])?;
            thread::sleep(Duration::from_millis(10));
        }
        let report = recording.stop()?;
        check::attribution_sound(&report)?;
        let attribution = &report.task(load.pid())?.stats.attribution;
        // Where there are more culprits than rows, as the normal burner may have on a busy host, those
        // that cost least lose theirs.
        let is_full = attribution.parts()?.unattributed.sum_ns > 0;
        for name in ["migration/0", "migration/1"] {
            let blamed = attribution.blamed_on(|culprit| culprit.comm == name)?;
            // Balancing uses the stopper as well.
            let least = if is_full { 0 } else { FLIPS / 2 - 5 };
            assert!(
                (least..=FLIPS / 2 + 15).contains(&blamed.count),
                "{name}: {:?}",
                attribution.blame()
            );
        }
        for row in attribution.blame()? {
            if row.culprit.comm.starts_with("migration/") {
                check::is_of_kind(&row.culprit, "kernel_thread")?;
            }
        }
    }
    Ok(())
}

#[test]
fn c110_a_wait_beside_an_idle_cpu_says_that_the_task_is_pinned() -> Result<()> {
    let group = Cgroup::preferred("pinned")?;
    let loads: [Load; 2] = burners(&group, "burn")?;
    let observed = Observed::of(&[&loads[0], &loads[1]], SECONDS)?;
    let mut waits = observed.report.longest()?.iter();
    let is_pinned = |hint: &str| hint.contains("pinned") || hint.contains("allowed");
    assert!(
        waits.any(|wait| wait.hint.as_deref().is_some_and(is_pinned)),
        "{:?}",
        observed.report.longest()?
    );
    Ok(())
}

#[test]
fn c112_a_burners_own_log_counts_the_stretches_of_its_rival() -> Result<()> {
    let group = Cgroup::preferred("gaps")?;
    let recording = Schedlat::record().comm("gap-logger").start()?;
    let rival = group.workload("burn 20 --cpu 1")?;
    let line = "gaps 4 --threshold-us 500 --cpu 1 --name gap-logger";
    let truth = group.workload(line)?.truth()?;
    let report = recording.stop()?;
    check::attribution_sound(&report)?;
    let stats = &report.task(truth.tid)?.stats;
    let blamed = stats.attribution.blamed_on_thread(rival.pid())?;
    let (gaps, missing_ns) = (truth.number("gaps")?, truth.number("sum_ns")?);
    // Each stretch of the rival is a gap, each gap is a wait; before and after its log it waits for a
    // slice or two more. Third parties run in gaps of their own or together with the rival.
    let (waits, slack) = (stats.waits.count(), 4 + gaps / 50);
    assert!(
        blamed.count <= gaps + slack && gaps <= waits + slack,
        "{blamed:?}, {gaps} gaps, {waits} waits"
    );
    check::near("their time", stats.waited_ns, missing_ns, 0.02, 16_000_000)
}
