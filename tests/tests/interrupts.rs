//! Interrupts, softirqs and ticks: as often as the kernel counts them, where they were waited for and
//! whom they interrupted.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result};
use latency_tests::{
    cgroup::Cgroup,
    check,
    interrupts::InterruptCounts,
    load::{Load, workload_binary},
    report::{Interrupt, Report},
    schedlat::Schedlat,
    truth,
};

const SECONDS: Duration = Duration::from_secs(4);

/// The lines of `/proc/interrupts` that have no number, and what the report calls them.
const VECTORS: [(&str, &str, &[&str]); 4] = [
    ("LOC", "vector", &["local timer"]),
    ("RES", "vector", &["reschedule"]),
    ("CAL", "vector", &["call function", "call function single"]),
    ("IWI", "vector", &["irq work"]),
];

/// A recording of all tasks, and the kernel's counts: read within it and around it.
struct Counted {
    report: Report,
    inner: InterruptCounts,
    outer: InterruptCounts,
    hidden_ns: u64,
}

impl Counted {
    fn during(duration: Duration) -> Result<Self> {
        let outer_before = InterruptCounts::now()?;
        let recording = Schedlat::record().start()?;
        let (inner_before, hidden_before) = (InterruptCounts::now()?, truth::hidden_run_time()?);
        thread::sleep(duration);
        let inner_after = InterruptCounts::now()?;
        let report = recording.stop()?;
        let (outer_after, hidden_after) = (InterruptCounts::now()?, truth::hidden_run_time()?);
        Ok(Self {
            report,
            inner: inner_after.since(&inner_before),
            outer: outer_after.since(&outer_before),
            hidden_ns: hidden_after - hidden_before,
        })
    }

    /// Ours lie between what the kernel counted within the recording and around it.
    ///
    /// While a task of a hidden pid 1 is current no event fires on that CPU: of interrupts that may
    /// be missing, one for every 2 µs it ran, as many as any load here makes.
    fn agrees(&self, what: &str, ours: u64, inner: u64, outer: u64) {
        let hidden = self.hidden_ns / 2_000;
        assert!(
            ours <= outer && ours + hidden >= inner,
            "{what}: ours {ours}, the kernel's {inner} within and {outer} around, {hidden} may be \
             hidden"
        );
    }
}

/// All kinds of interrupts at once.
fn noise() -> Result<Vec<Load>> {
    let binary = workload_binary()?;
    let directory = binary.parent().context("a binary in no directory")?;
    [
        "datagrams 30 --cpu 0 --nice -15",
        "interrupted 30 --cpu 1 --peer-cpu 0 --nice -15",
        "pipe 30 --cpu 0 --peer-cpu 1 --nice -15",
        &format!("dirty-pages 30 {} --nice -15", directory.display()),
    ]
    .into_iter()
    .map(Load::workload)
    .collect()
}

fn count_of(interrupts: &[Interrupt], kind: &str, names: &[&str]) -> u64 {
    let of = |name: &&str| check::runs_of(interrupts, kind, name).0;
    names.iter().map(of).sum()
}

#[test]
fn interrupts_and_softirqs_are_as_many_as_the_kernel_counts() -> Result<()> {
    let _noise = noise()?;
    let counted = Counted::during(SECONDS)?;
    let ours = counted.report.interrupts()?;
    let mut compared = 0;
    for (name, inner) in &counted.inner.soft {
        let outer = counted.outer.soft[name];
        counted.agrees(name, count_of(ours, "softirq", &[name]), *inner, outer);
        compared += inner;
    }
    for (line, kind, names) in VECTORS {
        let (inner, outer) = (counted.inner.hard[line], counted.outer.hard[line]);
        counted.agrees(line, count_of(ours, kind, names), inner, outer);
        compared += inner;
    }
    for (line, inner) in &counted.inner.hard {
        let Ok(number) = line.parse::<u32>() else {
            continue;
        };
        let own = ours
            .iter()
            .filter(|row| row.kind == "hard_irq" && row.number == Some(number));
        let outer = counted.outer.hard[line];
        counted.agrees(line, own.map(|row| row.count).sum(), *inner, outer);
    }
    assert!(compared > 100_000, "only {compared} interrupts");
    // Nothing is beyond the time there was.
    let time: u64 = ours.iter().map(|row| row.sum_ns).sum();
    assert!(
        time <= counted.report.window_ns() * truth::n_cpus()?,
        "{time} ns"
    );
    Ok(())
}

#[test]
fn c010_c030_softirqs_of_idle_cpus_are_counted_and_none_is_absurd() -> Result<()> {
    // Timers of a sleeper on a CPU that is idle otherwise, datagrams on the other.
    let _sleeper = Load::workload("periodic 30 --interval-us 1000 --work-us 10 --cpu 1")?;
    let _sender = Load::workload("wake 30000 --interval-us 100 --cpu 0 --peer-cpu 0")?;
    let _datagrams = Load::workload("datagrams 30 --cpu 0")?;
    let counted = Counted::during(SECONDS)?;
    let ours = counted.report.interrupts()?;
    for (name, inner) in &counted.inner.soft {
        let outer = counted.outer.soft[name];
        counted.agrees(name, count_of(ours, "softirq", &[name]), *inner, outer);
    }
    for row in ours {
        let longest = row.max_ns.context("no maximum")?;
        assert!(longest <= 20_000_000, "{row:?}");
        assert!(row.count > 0 && longest <= row.sum_ns, "{row:?}");
        assert!(row.sum_ns <= longest * row.count, "{row:?}");
    }
    Ok(())
}

#[test]
fn a_softirq_flood_is_named_where_it_is_waited_for() -> Result<()> {
    let group = Cgroup::preferred("flood")?;
    let victim = group.workload("burn 20 --cpu 1 --name victim")?;
    let sender = group.workload("datagrams 20 --cpu 1 --name sender")?;
    let recorder = Schedlat::record().pid(victim.pid()).pid(sender.pid());
    let report = recorder.lasting(3.0).report()?;
    check::sound(&report)?;
    check::attribution_sound(&report)?;
    let (row, by) = (report.task(victim.pid())?, report.task(sender.pid())?);
    let (runs, time) = check::runs_of(row.stats.attribution.interrupts()?, "softirq", "NET_RX");
    // Each datagram is a softirq in which the sender has the CPU and the victim waits.
    let stolen = by.stats.attribution.stolen()?;
    check::near("runs", runs, stolen.softirqs, 0.02, 10)?;
    check::near("time", time, stolen.softirq_ns, 0.02, 100_000)?;
    let parts = row.stats.attribution.parts()?;
    check::share("softirqs", parts.softirq.sum_ns, row.stats.waited_ns, 0.1)?;
    check::share("by datagrams", time, parts.softirq.sum_ns, 0.95)?;
    // The rest of the sender's time is its own.
    check::blames_all_its_time(row, by)?;
    Ok(())
}

#[test]
fn the_tick_steals_from_a_lone_burner_as_often_as_it_rings() -> Result<()> {
    let group = Cgroup::preferred("lone")?;
    let burner = group.workload("burn 20 --cpu 1")?;
    let recording = Schedlat::record().pid(burner.pid()).start()?;
    let before = InterruptCounts::of_cpu(1)?;
    thread::sleep(SECONDS);
    let report = recording.stop()?;
    let rung = InterruptCounts::of_cpu(1)?.since(&before).hard["LOC"];
    check::attribution_sound(&report)?;
    let row = report.task(burner.pid())?;
    let stolen = row.stats.attribution.stolen()?;
    // Each tick is an interrupt of the local timer, which has other causes too; the recording begins a
    // moment before the first count.
    assert!(
        stolen.ticks <= rung + 10,
        "{stolen:?}, the timer rang {rung} times"
    );
    if let Some(hz) = report.host.hz {
        let expected = row.stats.on_cpu_ns * hz / 1_000_000_000;
        // Whoever takes the CPU by a wakeup has it until a tick, which is then not the burner's. A
        // hypervisor that takes the CPU lets ticks fall out: then the timer rang less often too.
        let (switches, missed) = (row.stats.switches.involuntary, report.audit.switches.missed);
        let due = expected.min(rung);
        check::near("ticks", stolen.ticks, due, 0.01, 10 + switches + missed).with_context(
            || {
                let (ticks, loss) = (report.audit.ticks, &report.loss);
                format!("the timer rang {rung} times, for all CPUs {ticks}; {loss:?}, {stolen:?}")
            },
        )?;
    }
    let mean = stolen.tick_ns / stolen.ticks.max(1);
    assert!((200..200_000).contains(&mean), "{mean} ns a tick");
    Ok(())
}

#[test]
fn interrupts_steal_no_more_than_the_gaps_that_a_spinner_sees() -> Result<()> {
    let group = Cgroup::preferred("interrupted")?;
    let recording = Schedlat::record().comm("spinner").start()?;
    let line = "interrupted 3 --cpu 1 --peer-cpu 0 --name spinner";
    let truth = group.workload(line)?.truth()?;
    let report = recording.stop()?;
    check::sound(&report)?;
    check::attribution_sound(&report)?;
    let stats = &report.task(truth.tid)?.stats;
    let stolen = stats.attribution.stolen()?;
    // Each call of the other thread is an interrupt, unless somebody else had the CPU, or the stint was
    // not measured (its end was not seen); a few timers ring beside.
    let calls = truth.number("interrupts")?;
    let present = check::ratio(stats.on_cpu_ns, 3_000_000_000);
    let seen = check::ratio(stolen.irqs, calls);
    assert!(
        (0.9 * present..=1.1).contains(&seen),
        "{stolen:?}, {calls} calls, {present:.3} of the time on the CPU"
    );
    // A gap holds what enters and leaves an interrupt too, and whatever a hypervisor does for it,
    // which is most of it; gaps of less than a microsecond are not logged.
    let gaps = truth.number("sum_ns")?;
    let taken = stolen.sum_ns() + stats.waited_ns;
    assert!(
        taken <= gaps + gaps / 20,
        "{taken} ns were taken from a spinner that missed {gaps} ns"
    );
    check::share("seen of the gaps", taken, gaps, 0.02)
}

/// Received datagrams of loopback are handled by CPU 1 as long as this value lives.
struct Steered(String);

const STEERING: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus";

impl Steered {
    fn to_cpu_1() -> Result<Self> {
        let earlier =
            fs::read_to_string(STEERING).context("cannot read the steering of loopback")?;
        fs::write(STEERING, "2").context("cannot steer loopback")?;
        Ok(Self(earlier))
    }
}

impl Drop for Steered {
    fn drop(&mut self) {
        fs::write(STEERING, self.0.trim()).expect("steer loopback as before");
    }
}

#[test]
fn softirqs_steal_most_of_the_time_that_a_spinner_misses() -> Result<()> {
    let _steered = Steered::to_cpu_1()?;
    let group = Cgroup::preferred("steered")?;
    let _sender = group.workload("datagrams 30 --cpu 0")?;
    let recording = Schedlat::record().comm("spinner").start()?;
    let line = "gaps 3 --threshold-us 1 --cpu 1 --name spinner";
    let truth = group.workload(line)?.truth()?;
    let report = recording.stop()?;
    check::sound(&report)?;
    check::attribution_sound(&report)?;
    let stats = &report.task(truth.tid)?.stats;
    let stolen = stats.attribution.stolen()?;
    // What it missed and did not wait for was taken by interrupts, of which we see the handlers: not
    // how they were entered and left, nor what a hypervisor did.
    let missed = truth.number("sum_ns")?.saturating_sub(stats.waited_ns);
    assert!(
        stolen.sum_ns() <= missed + missed / 20,
        "{stolen:?} were taken from a spinner that missed {missed} ns"
    );
    let measured = check::ratio(stats.on_cpu_ns, 3_000_000_000);
    check::share("seen of the gaps", stolen.sum_ns(), missed, 0.3 * measured)?;
    assert!(stolen.softirqs > 10_000, "{stolen:?}");
    Ok(())
}
