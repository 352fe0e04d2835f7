//! The summary for people: where, what was seen, the waits, what they were made of, wakeups, who
//! waited, the longest, the audit, losses, cost.
//!
//! Each table line has its JSON twin. A column keeps its unit per value, three significant digits.
//! Nothing here depends on a terminal: no colour, no width.

pub(super) mod audit;
mod autopsy;
mod clock;
mod flight;
mod interval;
mod parts;
pub(super) mod table;
mod tasks;
mod waits;
mod wakeups;

pub use self::autopsy::autopsy;
pub use self::interval::interval_line;
use super::VERSION;
use crate::model::{Cost, DetailLevel, Host, Losses, Report};
use crate::units;

/// The whole report, with at most `top` rows of tasks or groups.
#[must_use]
pub fn render(report: &Report, top: usize) -> String {
    header(report) + "\n" + &body(report, top)
}

/// All but where it was recorded.
pub(super) fn body(report: &Report, top: usize) -> String {
    let mut sections = Vec::new();
    if has_samples(report) {
        sections.push(waits::render(&report.totals, report.detail));
        if report.detail == DetailLevel::Full {
            sections.push(parts::render(&report.totals, &report.stacks.main));
            sections.extend(wakeups::render(&report.totals));
        }
        sections.extend(tasks::render(report, top));
        sections.extend(longest(report));
    } else {
        sections.push(no_samples(report));
    }
    sections.push(audit::render(&report.audit, report.detail) + &closing(report));
    sections.join("\n")
}

/// Where it was recorded, and what.
fn header(report: &Report) -> String {
    format!(
        "{}\n{}: {} of {} observed for {}\n",
        machine(&report.host),
        report.target,
        plural(report.n_tasks, "thread", "threads"),
        plural(report.n_processes, "process", "processes"),
        units::duration(report.window.end_at_ns - report.window.start_at_ns)
    )
}

/// The machine in one line.
pub(super) fn machine(host: &Host) -> String {
    let hz = host
        .hz
        .map_or_else(|| "HZ unknown".to_owned(), |hz| format!("HZ {hz}"));
    let machine = match host.hypervisor.as_str() {
        "none" => "bare metal".to_owned(),
        "unknown" => "hypervisor unknown".to_owned(),
        hypervisor => format!("{hypervisor} guest"),
    };
    let facts = [
        format!("schedlat {VERSION}"),
        format!("Linux {} {}", host.kernel, host.arch),
        plural(host.n_cpus.into(), "CPU", "CPUs"),
        hz,
        format!("preempt {}", host.preemption),
        machine,
    ];
    facts.join(" · ")
}

/// The longest wait in words.
fn longest(report: &Report) -> Option<String> {
    let longest = report.longest.first()?;
    Some(format!("the longest: {}", autopsy(longest, &report.window)))
}

fn has_samples(report: &Report) -> bool {
    report.totals.waits.count() > 0 || report.totals.waited_ns > 0
}

fn no_samples(report: &Report) -> String {
    let why = if report.n_tasks == 0 {
        "no task matched"
    } else {
        "no task waited for a CPU"
    };
    format!("no samples: {why}\n")
}

/// Losses, cost, and what was degraded.
fn closing(report: &Report) -> String {
    let line_of = |ns, name, what| match ns {
        0 => String::new(),
        ns => format!("{name}: {} {what}\n", units::duration(ns)),
    };
    let steal = line_of(
        report.steal_ns,
        "steal",
        "kept from the CPUs by the hypervisor",
    );
    let suspended = line_of(
        report.window.suspended_ns,
        "suspended",
        "that are in no figure of ours",
    );
    let over = report.over.map_or_else(String::new, autopsy::over);
    let degraded = report
        .degraded
        .iter()
        .map(|feature| format!("degraded: {feature}\n"));
    let flight = flight::render(&report.flight);
    [
        over,
        losses(&report.loss),
        cost(&report.cost),
        steal,
        suspended,
        flight,
    ]
    .into_iter()
    .chain(degraded)
    .collect()
}

fn losses(losses: &Losses) -> String {
    let Losses {
        missed_switches,
        unmeasured_waits,
        untracked_tasks,
        untracked_switches,
        exit_records,
        folded_rows,
        task_histograms,
        clock_backwards,
        cgroup_names,
        wait_records,
        trace_records,
        blame_records,
        unpaired_interrupts,
        stacks,
        recursion_misses,
        malformed_records,
    } = *losses;
    let kinds = [
        (missed_switches, "missed switches"),
        (unmeasured_waits, "unmeasured waits"),
        (untracked_tasks, "untracked tasks"),
        (untracked_switches, "untracked switches"),
        (exit_records, "exit records"),
        (folded_rows, "rows of ended tasks"),
        (task_histograms, "task histograms"),
        (clock_backwards, "clock readings that ran backwards"),
        (cgroup_names, "cgroup names"),
        (wait_records, "stories of long waits"),
        (trace_records, "events of the probe's threads"),
        (blame_records, "names of culprits"),
        (unpaired_interrupts, "unpaired interrupts"),
        (stacks, "stacks"),
        (recursion_misses, "recursion misses"),
        (malformed_records, "malformed records"),
    ];
    let occurred = kinds.into_iter().filter(|(n, _)| *n > 0);
    let parts: Vec<_> = occurred
        .map(|(n, kind)| format!("{} {kind}", units::count(n)))
        .collect();
    if parts.is_empty() {
        "lost 0\n".to_owned()
    } else {
        format!("lost {}\n", parts.join(", "))
    }
}

/// The programs run at timers and wakeups too, so a figure per switch is one of all of them.
fn cost(cost: &Cost) -> String {
    let recorder = format!(
        "{}, attached within {}",
        units::percent(cost.recorder_cpu_pct),
        units::duration(cost.attach_ns)
    );
    let Some(pct) = cost.cpu_pct else {
        return format!(
            "cost: programs unknown (asking takes CAP_SYS_ADMIN); \
             the recorder's process {recorder}\n"
        );
    };
    let per_switch = cost.ns_per_switch.map_or_else(String::new, |ns| {
        format!("{ns:.0} ns per switch for all programs, ")
    });
    format!(
        "cost: {per_switch}{} of one CPU (counted by the kernel over {}, which adds to it); \
         the recorder's process {recorder}\n",
        units::percent(pct),
        units::duration(cost.sampled_ns)
    )
}

fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", units::count(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AuditClass, DetailLevel};
    use crate::report::fixture;

    #[track_caller]
    fn text_of(report: &Report, top: usize) -> String {
        let text = render(report, top);
        // C035: no escape, no line that ends in spaces.
        assert!(!text.contains('\x1b') && !text.contains(" \n"), "{text}");
        text.replace(VERSION, "VERSION")
    }

    #[test]
    fn report_reads_as_the_manual_shows() {
        insta::assert_snapshot!(text_of(&fixture::report(), 10), @r"
        schedlat VERSION · Linux 6.18.44 x86_64 · 2 CPUs · HZ 250 · preempt none (dynamic) · KVM guest
        --comm 'postgres*': 2 threads of 1 process observed for 10.0 s

        waits for a CPU            count      p50      p90     p99    p99.9        max      sum   share
        after a wakeup               100  4.10 µs  18.0 µs  312 µs  2.90 ms    2.90 ms  5.00 ms  0.40 %
        after losing the CPU          12        –        –       –        –    12.0 ms  40.0 ms   3.2 %
          to the tick (slice end)     10                                       12.0 ms  39.9 ms   3.2 %  mostly pg_dump
          to a wakeup                  2                                       98.0 µs   100 µs  0.01 %  mostly (others)
        still waiting                  1                                     >= 1.20 s   1.20 s    96 %  not ended
        from waking to running       100  4.10 µs  18.0 µs  312 µs  2.90 ms    2.90 ms  5.00 ms

        what the waits were made of          times  longest      sum   share
        other tasks                                          39.0 ms   3.1 %
          pg_dump[991]                          11  7.40 ms  37.0 ms   3.0 %  of /backup.slice; 54 % in ext4_writepages[ext4]
          kworker/1:1H (blk_mq_run_work_fn)     11   400 µs  2.00 ms  0.16 %  kernel
        interrupts                                           1.00 ms  0.08 %
          virtio2-input.0                       50            900 µs  0.07 %
        softirqs                                             3.00 ms  0.24 %
          NET_RX                                40           3.00 ms  0.24 %
        the tick                                              500 µs  0.04 %
        out of quota (throttled)                              1.20 s    96 %
        idle exit                                             900 µs  0.07 %
        moved between CPUs                                    100 µs  0.01 %
        other tasks, names not kept                           300 µs  0.02 %
        unexplained                                           200 µs  0.02 %
        the parts sum to the time waited, 1.25 s
        while running, interrupted for 13.0 ms (0.14 % of the time on a CPU): 80 interrupts 2.00 ms, 70 softirqs 7.00 ms, 2,200 ticks 4.00 ms

        from waking to running       wakeups  share     mean  longest
        by softirq NET_RX                 60   60 %  33.3 µs
        by psql[77]                       30   30 %  30.0 µs
        to the waker's CPU                70   70 %  42.9 µs  1.50 ms
        to another CPU of its cache       20   20 %  75.0 µs  1.50 ms
        to a CPU of another cache         10   10 %  62.0 µs  1.50 ms
        sync                               8   40 %  20.0 µs           of 20 sampled; 75 % to the waker's CPU
        not sync                          12   60 %  60.0 µs           of 20 sampled; 75 % to the waker's CPU
          until queued                   100         1.20 µs  9.00 µs
          then until running             100         50.0 µs  2.90 ms
        12 % of the wakeups moved the task to another CPU than its last one

         tid  thread      process   waits  wakeup p50  wakeup p99  lost p99  longest   waited  share  on CPU
        4121  postgres    postgres    112     4.10 µs      312 µs         –  12.0 ms  45.0 ms  3.6 %  9.00 s
        4122  pg\x1b[31m  postgres      0           –           –         –        –   1.20 s   96 %    0 ns  >= 1.20 s, still waiting; ended

        the longest: 12.0 ms, postgres[4121] on CPU 1 at 14:13:23.113
          preempted by the tick; then pg_dump[991] 9.90 ms (kernel: ext4_writepages[ext4] ← do_writepages, in fsync),
          3 × irq virtio2-input.0 100 µs, kworker/1:1H (blk_mq_run_work_fn) 2.00 ms
          hint: pinned to CPU 1

        audit: ok                           waits     ours  the kernel's   apart
          after a wakeup                      100  5.00 ms       2.00 ms   150 %
          after the tick                       10  39.9 ms       39.9 ms  0.00 %
          after losing the CPU to a wakeup      2   100 µs       99.9 µs  0.10 %
          time on a CPU                             9.00 s        9.00 s  0.01 %
          of stints not seen                          0 ns       3.00 ms   100 %
          switches: voluntary 100 = 100, involuntary 12 = 12; all CPUs 349 + 12 missed, the kernel's 361 (± 2)
          ticks 5,000, slice timers 0, local timer interrupts of all causes 5,020
          note: the kernel's own account misses 3.00 ms of wakeup waits here
        lost 12 missed switches
        cost: 131 ns per switch for all programs, 0.42 % of one CPU (counted by the kernel over 500 ms, which adds to it); the recorder's process 0.30 %, attached within 250 ms
        degraded: hrtick: this kernel has none
        ");
    }

    /// C076: as many rows as asked for, as many as there are, or no table.
    #[test]
    fn top_limits_the_rows_and_nothing_else() {
        let report = fixture::report();
        assert_eq!(text_of(&report, usize::MAX), text_of(&report, 2));
        let one = text_of(&report, 1);
        assert!(one.contains("postgres") && !one.contains("4122"));
        assert!(one.contains("and 1 more (--top 2)\n"));
        let none = text_of(&report, 0);
        assert!(!none.contains("wakeup p50") && !none.contains("more"));
        assert!(none.contains("after losing the CPU"));
    }

    #[test]
    fn no_samples_are_said_to_be_none() {
        let nobody = Report {
            n_tasks: 0,
            ..Report::default()
        };
        assert!(text_of(&nobody, 10).contains("\nno samples: no task matched\n"));
        let idle = Report {
            n_tasks: 3,
            ..Report::default()
        };
        assert!(text_of(&idle, 10).contains("\nno samples: no task waited for a CPU\n"));
    }

    #[test]
    fn causes_are_not_shown_where_they_were_not_asked_for() {
        let mut report = fixture::report();
        report.detail = DetailLevel::Basic;
        report.totals.causes.unknown = report.totals.causes.tick;
        let accounts = &mut report.audit.by_cause;
        let same = accounts.remove("tick").unwrap();
        accounts.insert("unknown", same);
        accounts.insert("open_at_start", AuditClass::default());
        report.audit.on_cpu_ours_ns = 0;
        report.audit.on_cpu_kernel_ns = 0;
        report.audit.ticks = None;
        let text = text_of(&report, 10);
        assert!(text.contains("\n  after losing the CPU                 10  39.9 ms"));
        for absent in [
            "unknown cause",
            "to the tick",
            "made of",
            "by softirq",
            "on a CPU  ",
            "from before",
            "ticks",
        ] {
            assert!(!text.contains(absent), "{text}");
        }
    }

    #[test]
    fn failed_audit_and_its_breach_are_said() {
        let mut report = fixture::report();
        report.audit.ok = false;
        report.audit.findings[0].is_breach = true;
        let text = text_of(&report, 10);
        assert!(text.contains("\naudit: FAILED"));
        assert!(text.contains("\n  breach: the kernel's own account"));
    }

    #[test]
    fn nothing_lost_is_said_too() {
        assert_eq!(losses(&Losses::default()), "lost 0\n");
        let loss = Losses {
            exit_records: 1_500,
            clock_backwards: 2,
            ..Losses::default()
        };
        let expected = "lost 1,500 exit records, 2 clock readings that ran backwards\n";
        assert_eq!(losses(&loss), expected);
    }

    #[test]
    fn suspension_is_said_and_makes_the_end_later() {
        let mut report = fixture::report();
        assert!(!closing(&report).contains("suspended"));
        let end_wall_ns = clock::end_wall_ns(&report.window);
        report.window.suspended_ns = 2_500_000_000;
        let said = "suspended: 2.50 s that are in no figure of ours";
        assert!(closing(&report).lines().any(|line| line == said));
        assert_eq!(
            clock::end_wall_ns(&report.window),
            end_wall_ns + 2_500_000_000
        );
    }

    #[test]
    fn cost_that_may_not_be_asked_is_said_to_be_unknown() {
        let text = cost(&Cost {
            recorder_cpu_pct: 1.5,
            attach_ns: 180_000_000,
            ..Cost::default()
        });
        let expected = "cost: programs unknown (asking takes CAP_SYS_ADMIN); \
                        the recorder's process 1.5 %, attached within 180 ms\n";
        assert_eq!(text, expected);
    }
}
