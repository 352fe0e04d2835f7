//! Loads beside a probe: each really loads, by the kernel's own counters, and nothing of it is left,
//! however the probe ends.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use latency_tests::{
    interrupts::InterruptCounts,
    schedlat::{Recording, Schedlat, binary},
};
use procfs::{CurrentSI as _, KernelStats, process::Process};
use rustix::process::Signal;
use serde_json::Value;

/// In this time a load has done enough to be seen, though the probe's threads share its CPU and others
/// may share its disk.
const WORK_LIMIT: Duration = Duration::from_millis(1800);

/// Everything of a probe is gone after this time, on a busy machine too.
const GONE_LIMIT: Duration = Duration::from_secs(5);

const KINDS: [&str; 7] = ["cpu", "memory", "disk", "serial", "pipe", "fork", "net"];

/// A probe whose second half has a load. Its threads sleep on a futex in turns, on CPU 1.
fn probe(load: &[&str]) -> Schedlat {
    let line =
        "pingpong --format json --transport futex --placement same --cpu 1 --runs 1 --for 2s";
    let probe = Schedlat::command("probe").args(line);
    load.iter().fold(probe, Schedlat::arg)
}

/// What the kernel counted of a load's processes, and of what it asks of the kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    cpu_ticks: u64,
    page_faults: u64,
    written_to_disk: u64,
    written: u64,
    voluntary: u64,
    forks: u64,
    received: u64,
}

impl Work {
    fn of(pid: u32) -> Result<Self> {
        let process = Process::new(i32::try_from(pid)?)?;
        let (stat, io) = (process.stat()?, process.io()?);
        let mut voluntary = 0;
        for task in process.tasks()?.flatten() {
            voluntary += task.status()?.voluntary_ctxt_switches.unwrap_or(0);
        }
        Ok(Self {
            cpu_ticks: stat.utime + stat.stime,
            page_faults: stat.minflt,
            written_to_disk: io.write_bytes,
            written: io.wchar,
            voluntary,
            forks: KernelStats::current()?.processes,
            received: InterruptCounts::now()?.soft["NET_RX"],
        })
    }

    const fn since(self, earlier: Self) -> Self {
        Self {
            cpu_ticks: self.cpu_ticks - earlier.cpu_ticks,
            page_faults: self.page_faults - earlier.page_faults,
            written_to_disk: self.written_to_disk - earlier.written_to_disk,
            written: self.written - earlier.written,
            voluntary: self.voluntary - earlier.voluntary,
            forks: self.forks - earlier.forks,
            received: self.received - earlier.received,
        }
    }

    /// Far less than a load does on any machine, and far more than anything else.
    fn is_that_of(self, kind: &str) -> bool {
        match kind {
            "cpu" => self.cpu_ticks >= 10,
            "memory" => self.page_faults >= 2_000,
            // The second mebibyte waits for the first, and the disk for everybody.
            "disk" => self.written_to_disk >= 1 << 20,
            // A worker of the kernel carries each line over, as one of many on a busy machine.
            "serial" => self.written >= 10_000,
            "pipe" => self.voluntary >= 1_000,
            "fork" => self.forks >= 20,
            "net" => self.received >= 5_000,
            _ => false,
        }
    }
}

/// Waits until the load has done what one of its kind does.
fn check_loads(kind: &str, pid: u32) -> Result<()> {
    let began = Instant::now();
    // Its own counters began at 0 with the process, those of the machine did not.
    let Work {
        forks, received, ..
    } = Work::of(pid)?;
    let before = Work {
        forks,
        received,
        ..Work::default()
    };
    loop {
        thread::sleep(Duration::from_millis(50));
        let done = Work::of(pid)?.since(before);
        if done.is_that_of(kind) {
            return Ok(());
        }
        ensure!(began.elapsed() < WORK_LIMIT, "{kind}: {done:?}");
    }
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let lists = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let pids = lists.flat_map(|list| {
        let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        pids.collect::<Vec<_>>()
    });
    pids.collect()
}

/// A process and all that came of it.
fn family(pid: u32) -> BTreeSet<u32> {
    let mut all = BTreeSet::from([pid]);
    let mut next = vec![pid];
    while let Some(pid) = next.pop() {
        next.extend(children(pid).into_iter().filter(|child| all.insert(*child)));
    }
    all
}

/// Whether the threads of a probe have been made, which is after its loads were tried.
fn has_threads(probe: &Recording) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", probe.pid()));
    let mut names = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.any(|name| name.trim() == "ping")
}

/// The process that loads, once there is one.
fn companion(probe: &Recording) -> Result<u32> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_mins(1) {
        if has_threads(probe)
            && let Some(pid) = children(probe.pid()).pop()
        {
            return Ok(pid);
        }
        thread::sleep(Duration::from_millis(10));
    }
    anyhow::bail!("no load was started")
}

/// All companions of this binary.
fn companions() -> Result<Vec<u32>> {
    let binary = binary()?;
    let is_ours = |pid: &u32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == binary)
            && arguments.split(|&byte| byte == 0).nth(1) == Some(b"companion")
    };
    let pids = fs::read_dir("/proc")?.flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(pids.filter(is_ours).collect())
}

/// Requires that these processes, and all companions, are gone.
fn check_gone(what: &str, pids: &BTreeSet<u32>) -> Result<()> {
    let began = Instant::now();
    loop {
        let alive = pids
            .iter()
            .filter(|pid| Path::new(&format!("/proc/{pid}")).exists());
        let left: Vec<_> = alive.copied().chain(companions()?).collect();
        if left.is_empty() {
            return Ok(());
        }
        ensure!(began.elapsed() < GONE_LIMIT, "{what}: {left:?} are left");
        thread::sleep(Duration::from_millis(20));
    }
}

fn loads(document: &Value) -> Result<&Vec<Value>> {
    document["conditions"]["loads"]
        .as_array()
        .context("no loads among the conditions")
}

#[test]
fn each_load_loads_and_is_gone_after_ctrl_c() -> Result<()> {
    for kind in KINDS {
        let running = probe(&["--load", kind]).spawn()?;
        let pid = companion(&running)?;
        check_loads(kind, pid)?;
        let family = family(pid);
        let documents = running.interrupt()?.success()?.documents()?;
        check_gone(kind, &family)?;
        let load = loads(&documents[0])?
            .first()
            .context("no load is told of")?;
        ensure!(load["load"] == kind && load["failed"].is_null(), "{load}");
        let cpu_ns = load["cpu_ns"].as_u64().context("no CPU time")?;
        let n_turns = load["n_iterations"].as_u64().context("no turns")?;
        ensure!(cpu_ns > 0 && n_turns > 0, "{load}");
    }
    Ok(())
}

#[test]
fn each_load_is_gone_after_sigkill() -> Result<()> {
    for kind in KINDS {
        let running = probe(&["--load", kind]).spawn()?;
        let pid = companion(&running)?;
        thread::sleep(Duration::from_millis(200));
        let family = family(pid);
        running.signal(Signal::KILL)?;
        ensure!(running.finish()?.code() == 128 + 9);
        check_gone(kind, &family)?;
    }
    Ok(())
}

#[test]
fn a_command_ends_with_all_that_left_its_group() -> Result<()> {
    let script =
        "setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &) ; while :; do :; done";
    let command = format!("sh -c \"{script}\"");
    for signal in [Signal::INT, Signal::KILL] {
        let running = probe(&["--load-cmd", &command]).spawn()?;
        let pid = companion(&running)?;
        let began = Instant::now();
        let mut all = family(pid);
        // The companion, three shells and three sleeps, less a shell that ends at once.
        while all.len() < 6 {
            ensure!(began.elapsed() < WORK_LIMIT, "only {all:?} were started");
            thread::sleep(Duration::from_millis(20));
            all = family(pid);
        }
        running.signal(signal)?;
        running.finish()?;
        check_gone("a command", &all)?;
    }
    Ok(())
}

#[test]
fn a_load_that_does_nothing_is_a_warning_and_one_that_cannot_be_an_error() -> Result<()> {
    let documents = probe(&["--load-cmd", "sh -c 'exit 3'"])
        .run()?
        .success()?
        .documents()?;
    let warnings = documents[0]["warnings"].as_array().context("no warnings")?;
    let told = warnings.iter().find(|it| it["kind"] == "load_failed");
    let told = told.with_context(|| format!("not told of: {warnings:?}"))?;
    ensure!(
        told["message"]
            .as_str()
            .is_some_and(|text| text.contains("exit status: 3")),
        "{told}"
    );
    probe(&["--load-cmd", "no-such-program"])
        .run()?
        .fails_with(1, &["no-such-program"])?;
    probe(&["--load", "serial:/dev/null"])
        .run()?
        .fails_with(1, &["/dev/null", "no terminal"])?;
    let wrong = probe(&["--load", "gpu"]).run()?;
    ensure!(
        wrong.code() == 2 && wrong.messages.contains("memory"),
        "{}",
        wrong.messages
    );
    Ok(())
}

#[test]
fn the_preemption_model_is_put_back_when_whoever_asked_is_gone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let control = folder.path().join("preempt");
    fs::write(&control, "none (voluntary) full\n")?;
    let (mut keeper, _) = keep_preemption(&control)?;
    ensure!(fs::read_to_string(&control)? == "full");
    // As when whoever holds it open is killed.
    drop(keeper.stdin.take());
    keeper.wait()?;
    ensure!(fs::read_to_string(&control)? == "voluntary");
    Ok(())
}

#[test]
fn a_preemption_model_that_cannot_be_put_back_is_told() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let control = folder.path().join("preempt");
    fs::write(&control, "none (voluntary) full\n")?;
    let (mut keeper, mut output) = keep_preemption(&control)?;
    folder.close()?;
    drop(keeper.stdin.take());
    let mut line = String::new();
    output.read_line(&mut line)?;
    keeper.wait()?;
    let said: Value = serde_json::from_str(&line)?;
    let why = said["done"]["failed"].as_str();
    ensure!(
        why.is_some_and(|why| why.contains("No such file")),
        "it said {line}"
    );
    Ok(())
}

/// The companion that keeps a model up, once it does, and what else it says.
fn keep_preemption(control: &Path) -> Result<(Child, BufReader<ChildStdout>)> {
    let mut keeper = Command::new(binary()?)
        .args(["companion", "preemption", "full", "--control"])
        .arg(control)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let mut output = BufReader::new(keeper.stdout.take().context("no output")?);
    output.read_line(&mut line)?;
    ensure!(line.trim() == "\"ready\"", "it said {line}");
    Ok((keeper, output))
}

#[test]
fn a_kernel_whose_preemption_cannot_be_switched_says_why() -> Result<()> {
    let locked = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let is_locked = ["[integrity]", "[confidentiality]"]
        .iter()
        .any(|word| locked.contains(word));
    let control = "/sys/kernel/debug/sched/preempt";
    if is_locked {
        probe(&["--preempt", "full"])
            .run()?
            .fails_with(1, &["locked down"])
    } else if Path::new(control).exists() {
        let before = fs::read_to_string(control)?;
        probe(&["--preempt", "full"]).run()?.success()?;
        ensure!(fs::read_to_string(control)? == before);
        Ok(())
    } else {
        probe(&["--preempt", "full"])
            .run()?
            .fails_with(1, &[control])
    }
}
