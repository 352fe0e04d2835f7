//! Kernel paths: what a culprit does in the kernel is named, with its system call and its share.

use anyhow::{Context as _, Result, ensure};
use latency_tests::{
    cgroup::Cgroup,
    check,
    load::Load,
    report::{Report, Stack},
    schedlat::Schedlat,
};

/// Both on CPU 1, the victim first.
fn victim_and(group: &Cgroup, culprit: &str) -> Result<[Load; 2]> {
    let culprit = group.workload(&format!("{culprit} --cpu 1 --name culprit"))?;
    let victim = group.workload("burn 20 --cpu 1 --name victim")?;
    Ok([victim, culprit])
}

/// The paths of the culprit by which most of its victim's waits are explained.
fn paths_of_culprit<'a>(
    report: &'a Report,
    victim: &Load,
    is_it: impl Fn(&Stack) -> bool,
) -> Result<Vec<&'a Stack>> {
    let stacks = report.stacks()?.iter();
    let paths: Vec<_> = stacks
        .filter(|stack| stack.comm == "culprit" && is_it(stack))
        .collect();
    let sum_ns = paths.iter().map(|stack| stack.sum_ns).sum();
    let share = check::ratio(sum_ns, report.task(victim.pid())?.stats.waited_ns);
    ensure!(share >= 0.8, "a share of {share}: {:#?}", report.stacks());
    Ok(paths)
}

/// The report of a victim that waits for a reader of /dev/zero.
fn recorded(args: &str) -> Result<(Report, [Load; 2])> {
    let group = Cgroup::preferred("paths")?;
    let loads = victim_and(&group, "burn-syscall 20")?;
    let recorder = Schedlat::record().pid(loads[0].pid()).args(args);
    Ok((recorder.lasting(3.0).report()?, loads))
}

#[test]
fn c034_a_long_system_call_is_the_path_that_was_waited_for() -> Result<()> {
    let (report, [victim, _]) = recorded("--stacks-over 100us")?;
    check::attribution_sound(&report)?;
    let paths = paths_of_culprit(&report, &victim, |stack| {
        stack.has("read_zero") && stack.syscall.as_deref() == Some("read")
    })?;
    for path in paths {
        // From the leaf to the root, without the interrupt that found it there.
        let root = path.frames.last().context("no frames")?;
        assert!(root.starts_with("entry_"), "{path:?}");
        let is_ours = |frame: &String| frame.contains("hrtimer") || frame.contains("bpf");
        assert!(!path.frames.iter().any(is_ours), "{path:?}");
        assert!(path.count > 0 && !path.kernel_thread, "{path:?}");
    }
    // What has no path is said, and little: that of short stretches.
    let coverage = report.paths.stacks_coverage_pct.context("no coverage")?;
    assert!((98.0..=100.0).contains(&coverage), "{coverage} %");
    assert_eq!(report.paths.stacks_over_ns, Some(100_000));
    assert_eq!(report.lost("stacks")?, 0);
    let sums: Vec<_> = report.stacks()?.iter().map(|stack| stack.sum_ns).collect();
    assert!(sums.is_sorted_by(|a, b| a >= b), "{sums:?}");
    let other_tasks_ns = report.totals.attribution.parts()?.other_tasks.sum_ns;
    assert!(sums.iter().sum::<u64>() <= other_tasks_ns + 1_000_000);
    Ok(())
}

#[test]
fn the_longest_waits_name_the_path_in_their_spans() -> Result<()> {
    // Without a threshold it follows the waits: they are a tick long and more.
    let (report, [_, culprit]) = recorded("")?;
    let threshold = report.paths.stacks_over_ns.context("no threshold")?;
    let p99 = report.totals.waits.preemption.p99_ns.context("no p99")?;
    check::near("threshold", threshold, p99, 0.1, 0)?;
    let spans = report.longest()?.iter().flat_map(|wait| &wait.spans);
    let reads = spans.filter(|span| {
        let is_read = span.syscall.as_deref() == Some("read");
        let functions = span.stack.as_deref().unwrap_or_default();
        span.tid == Some(culprit.pid()) && is_read && functions.iter().any(|it| it == "read_zero")
    });
    assert!(reads.count() > 0, "{:#?}", report.longest()?);
    Ok(())
}

#[test]
fn a_fork_of_a_large_process_is_waited_for_in_the_copy_of_its_tables() -> Result<()> {
    let group = Cgroup::preferred("fork")?;
    let [victim, _culprit] = victim_and(&group, "fork-large 20 --mib 256")?;
    let recorder = Schedlat::record().pid(victim.pid());
    let report = recorder.args("--stacks-over 100us").lasting(3.0).report()?;
    check::attribution_sound(&report)?;
    // A child's end costs about twice as much as its begin: its pages are freed, and cleared before.
    let paths = paths_of_culprit(&report, &victim, |stack| stack.syscall.is_some())?;
    let fork = |stack: &&&Stack| {
        let call = stack.syscall.as_deref().unwrap_or_default();
        let is_copy = stack.has("copy_page_range") || stack.has("dup_mmap");
        is_copy && ["fork", "vfork", "clone", "clone3"].contains(&call)
    };
    let fork_ns: u64 = paths.iter().filter(fork).map(|stack| stack.sum_ns).sum();
    let all_ns = paths.iter().map(|stack| stack.sum_ns).sum();
    let share = check::ratio(fork_ns, all_ns);
    assert!(share >= 0.01, "a share of {share}: {paths:#?}");
    Ok(())
}

#[test]
fn c034_folded_stacks_go_from_the_root_to_the_leaf() -> Result<()> {
    let group = Cgroup::preferred("folded")?;
    let [victim, _culprit] = victim_and(&group, "burn-syscall 20")?;
    let recorder = Schedlat::command("record").pid(victim.pid());
    let recorder = recorder.args("--format folded --stacks-over 100us");
    let output = recorder.lasting(2.0).run()?.success()?.output();
    let (mut all_ns, mut read_ns) = (0, 0);
    for line in output.lines() {
        let (stack, ns) = line.split_once(' ').context("no weight")?;
        let ns: u64 = ns.parse().with_context(|| format!("bad weight: {line}"))?;
        let frames: Vec<_> = stack.split(';').collect();
        ensure!(frames.len() >= 2 && !frames.contains(&""), "{line}");
        all_ns += ns;
        let is_read = frames[..2] == ["culprit", "read"] && frames[2].starts_with("entry_");
        if is_read && frames[3..].contains(&"read_zero") {
            read_ns += ns;
        }
    }
    let share = check::ratio(read_ns, all_ns);
    assert!(share >= 0.8, "a share of {share}: {output}");
    Ok(())
}

#[test]
fn c109_time_in_the_kernel_for_oneself_is_no_wait() -> Result<()> {
    let group = Cgroup::preferred("unmap")?;
    let load = group.workload("unmap 3 --mib 512 --cpu 1 --nice -15 --name unmapper")?;
    let recorder = Schedlat::record().pid(load.pid()).lasting(2.0);
    let report = recorder.report()?;
    let truth = load.truth()?;
    let stats = &report.task(truth.tid)?.stats;
    let longest_ns = truth.number("max_ns")?;
    assert!(longest_ns > 5_000_000, "too short: {longest_ns} ns");
    let share = check::ratio(stats.waited_ns, stats.on_cpu_ns);
    assert!(share < 0.1, "waited for a share of {share}");
    Ok(())
}
