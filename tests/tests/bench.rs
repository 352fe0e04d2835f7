//! `schedlat bench`: a real build whose figures add up, commands that take turns, and ends of all kinds.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use latency_tests::{
    check,
    load::workload_binary,
    report::{Bench, BenchRow},
    schedlat::Schedlat,
};
use rustix::process::Signal;
use tempfile::TempDir;

fn bench() -> Schedlat {
    Schedlat::command("bench").args("--format json")
}

/// Sources that take some tenths of a second each to compile, and a Makefile for them.
fn write_project(directory: &Path) -> Result<()> {
    let mut objects = String::new();
    for file in 0..6 {
        let mut source = "#include <stdio.h>\n".to_owned();
        for function in 0..150 {
            writeln!(
                source,
                "int f{file}_{function}(int x) {{ \
                 for (int i = 0; i < x; i++) x += printf(\"%d\", i); return x * {function}; }}"
            )?;
        }
        fs::write(directory.join(format!("f{file}.c")), source)?;
        write!(objects, " f{file}.o")?;
    }
    fs::write(directory.join("main.c"), "int main(void) { return 0; }\n")?;
    let makefile = format!(
        "program: main.o{objects}\n\tgcc -o $@ $^\n\
         %.o: %.c\n\tgcc -O1 -c -o $@ $<\n\
         clean:\n\trm -f *.o program\n"
    );
    fs::write(directory.join("Makefile"), makefile)?;
    Ok(())
}

#[test]
fn small_real_build_three_times_equals_the_kernels_account() -> Result<()> {
    let directory = TempDir::new()?;
    write_project(directory.path())?;
    let folder = directory.path().display();
    let outcome = bench()
        .args("-n 3 --warmup 1 --prepare")
        .arg(format!("make -C {folder} clean"))
        .running(&format!("make -C {folder} -j4"))
        .run()?
        .success()?;
    let found = Bench::of(&outcome)?;
    assert_eq!(found.runs.len(), 3);
    for run in &found.runs {
        let both = &run.reconciliation;
        let cpu_s = both.rusage.user_s + both.rusage.system_s;
        ensure!(cpu_s > 0.1, "a build takes CPU time: {cpu_s} s");
        // Who preempts by a wakeup is charged for the switch: on a busy machine that is somebody else.
        let n_preempted: u64 = ["wakeup", "higher_class", "stopper"]
            .iter()
            .map(|cause| run.audit.class(cause).count)
            .sum();
        // Of stints that fired no event only the kernel's account is known.
        let unseen_s = Duration::from_nanos(run.audit.on_cpu_unseen_kernel_ns).as_secs_f64();
        let allowed_s = 0.01 * cpu_s + 10e-6 * f64::from(u32::try_from(n_preempted)?);
        ensure!(
            (run.row.cpu_s + unseen_s - cpu_s).abs() <= allowed_s,
            "CPU: ours {} s, unseen {unseen_s} s, rusage {cpu_s} s, {n_preempted} preempted",
            run.row.cpu_s
        );
        // To the unit: none of its tasks lives on, so all that is apart are last switches.
        assert_eq!(both.left_running, 0);
        let apart = both.switches_apart;
        let (least, most) = (
            both.last_switches_of_threads.cast_signed() - both.missed_switches.cast_signed(),
            (both.last_switches_of_threads + both.last_switches_of_processes).cast_signed(),
        );
        ensure!(
            (least..=most).contains(&apart),
            "{apart} switches apart, not {least} to {most}"
        );
        ensure!(
            both.last_switches_of_processes >= 7 * 3,
            "make, gcc, cc1 and as: {both:?}"
        );
        assert!(both.is_cpu_equal && both.are_switches_equal && both.is_audit_ok);
        // Delay by cause, as a recording has it.
        ensure!(run.audit.ok, "{:?}", run.audit.findings);
        check::slices_agree(&run.audit)?;
        check::switches_agree(&run.audit, 0)?;
        columns_follow(&run.row)?;
    }
    let average = found.summary_of("make", "average")?;
    let mean = found.runs.iter().map(|run| run.row.real_s).sum::<f64>() / 3.0;
    ensure!((average.real_s - mean).abs() < 1e-9);
    for run in &found.runs {
        ensure!(found.summary_of("make", "minimum")?.cxsw <= run.row.cxsw);
        ensure!(found.summary_of("make", "maximum")?.delay_s >= run.row.delay_s);
    }
    Ok(())
}

/// What is computed from other columns, and what bounds them.
fn columns_follow(row: &BenchRow) -> Result<()> {
    let near = |what: &str, ours: f64, expected: f64| {
        let most = expected.abs() * 1e-6 + 1e-6;
        ensure!(
            (ours - expected).abs() <= most,
            "{what}: {ours}, not {expected}"
        );
        Ok(())
    };
    near("TPT", row.tpt_pct, 100.0 * row.cpu_s / row.real_s)?;
    near("waiters", row.waiters, row.delay_s / row.real_s)?;
    near("CXSW", row.cxsw, row.voluntary + row.involuntary)?;
    let per_switch = row.delay_s * 1e9 / row.cxsw;
    ensure!((row.delay_per_switch_ns - per_switch).abs() <= 1.0);
    ensure!((0.0..=100.0).contains(&row.sys_pct));
    ensure!(row.r#yield <= row.involuntary);
    let idle = row
        .idle_while_runnable_s
        .context("idle time was not measured")?;
    ensure!(
        (0.0..=row.delay_s).contains(&idle),
        "{idle} s idle, {} s waited",
        row.delay_s
    );
    Ok(())
}

#[test]
fn commands_take_turns_in_random_order_that_a_seed_repeats() -> Result<()> {
    let run = || -> Result<Vec<String>> {
        let outcome = bench()
            .args("-n 6 --warmup 0 --seed 11 --cmd a=true --cmd")
            .arg("b=sleep 0.01")
            .args("--label c")
            .running("true")
            .run()?
            .success()?;
        let found = Bench::of(&outcome)?;
        assert_eq!(found.seed, 11);
        for label in ["a", "b", "c"] {
            let numbers: Vec<_> = found.runs_of(label).map(|run| run.repetition).collect();
            assert_eq!(numbers, [1, 2, 3, 4, 5, 6], "{label}");
        }
        let places = found.runs.iter().map(|run| run.place);
        assert!(places.eq(1..=18));
        ensure!(found.summary_of("b", "minimum")?.real_s >= 0.01);
        Ok(found.runs.iter().map(|run| run.row.label.clone()).collect())
    };
    let labels = run()?;
    let mut orders = BTreeSet::new();
    for round in labels.chunks(3) {
        let all: BTreeSet<_> = round.iter().map(String::as_str).collect();
        assert_eq!(all.len(), 3, "a round has each command once: {round:?}");
        orders.insert(round.to_vec());
    }
    assert!(orders.len() > 1, "always the same order: {orders:?}");
    assert_eq!(run()?, labels);
    Ok(())
}

#[test]
fn yields_and_threads_are_counted_as_the_kernel_does() -> Result<()> {
    let workload = workload_binary()?;
    let two = format!(
        "w={0} yield 0.5 --cpu 1 & {0} yield 0.5 --cpu 1; wait",
        workload.display()
    );
    let outcome = bench()
        .args("-n 1 --warmup 0 --strict --cmd")
        .arg(two)
        .args("--cmd")
        .arg("t=hackbench -T -g 1 -l 100")
        .run()?
        .success()?;
    let found = Bench::of(&outcome)?;
    let yields = found.runs_of("w").next().context("no run")?;
    ensure!(yields.row.r#yield > 10_000.0, "{:?}", yields.row);
    let threads = found.runs_of("t").next().context("no run")?;
    let both = &threads.reconciliation;
    // The last switch of a thread is in no account of the kernel.
    assert_eq!(both.last_switches_of_threads, 40);
    let missed = both.missed_switches.cast_signed();
    let extra = both.last_switches_of_processes.cast_signed();
    assert!(
        (40 - missed..=40 + extra).contains(&both.switches_apart),
        "{both:?}"
    );
    Ok(())
}

#[test]
fn c104_switches_are_those_that_perf_counts() -> Result<()> {
    let directory = TempDir::new()?;
    let counts = directory.path().join("counts");
    let outcome = bench()
        .args("-n 1 --warmup 0")
        .running(&format!(
            "perf stat -x, -o {} -e sched:sched_switch -- stress-ng --pipe 2 -t 2",
            counts.display()
        ))
        .run()?
        .success()?;
    let found = Bench::of(&outcome)?;
    let text = fs::read_to_string(&counts)?;
    let counted = text.lines().find_map(|line| {
        let (count, rest) = line.split_once(',')?;
        rest.contains("sched:sched_switch")
            .then(|| count.parse::<f64>().ok())?
    });
    let counted = counted.with_context(|| format!("perf says: {text}"))?;
    let ours = found.runs[0].row.cxsw;
    ensure!(
        (ours / counted - 1.0).abs() < 0.01,
        "ours {ours}, perf's {counted}"
    );
    Ok(())
}

#[test]
fn c075_status_of_a_command_is_passed_on_behind_a_report() -> Result<()> {
    for (line, code) in [("exit 7", 7), ("kill -9 $$", 137)] {
        let outcome = bench()
            .args("-n 3 --warmup 0 --strict")
            .running_words(&["sh", "-c", line])
            .run()?;
        assert_eq!(outcome.code(), code, "{}", outcome.messages);
        let found = Bench::of(&outcome)?;
        assert_eq!(found.runs.len(), 1, "nothing follows a failure");
        assert_eq!(i32::from(found.runs[0].exit_code), code);
        assert_eq!(found.warnings[0].kind, "command_failed");
    }
    let missing = bench().running("/nowhere/at-all").run()?;
    missing.fails_with(127, &["cannot run '/nowhere/at-all'"])?;
    // Without a command there is nothing to measure.
    assert_eq!(bench().run()?.code(), 2);
    Ok(())
}

#[test]
fn output_of_commands_stays_off_the_report() -> Result<()> {
    let words = ["sh", "-c", "echo on the output; echo as an error >&2"];
    let quiet = bench().args("-n 1 --warmup 0").running_words(&words);
    let outcome = quiet.run()?.success()?;
    Bench::of(&outcome)?;
    ensure!(
        outcome.messages.contains("as an error"),
        "{}",
        outcome.messages
    );
    ensure!(
        !outcome.messages.contains("on the output"),
        "{}",
        outcome.messages
    );
    let shown = bench().args("-n 1 --warmup 0 --show-output");
    let outcome = shown.running_words(&words).run()?.success()?;
    Bench::of(&outcome)?;
    ensure!(
        outcome.messages.contains("on the output"),
        "{}",
        outcome.messages
    );
    Ok(())
}

#[test]
fn whole_repetitions_are_reported_when_a_signal_ends_it() -> Result<()> {
    let recording = bench()
        .args("-n 50 --warmup 0")
        .running("sleep 0.5")
        .spawn()?;
    thread::sleep(Duration::from_secs(5));
    recording.signal(Signal::TERM)?;
    let outcome = recording.finish()?;
    assert_eq!(outcome.code(), 143, "{}", outcome.messages);
    let found = Bench::of(&outcome)?;
    let n_runs = found.runs.len();
    ensure!(
        (1..=9).contains(&n_runs),
        "{n_runs} repetitions of 0.5 s in 5 s"
    );
    ensure!(
        found
            .runs
            .iter()
            .all(|run| run.row.real_s >= 0.5 && run.exit_code == 0)
    );
    assert_eq!(
        found.warnings.last().map(|it| it.kind.as_str()),
        Some("ended_early")
    );
    Ok(())
}
