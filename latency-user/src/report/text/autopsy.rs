//! A single wait in words: who, why, and what ran meanwhile, in order.

use super::{clock, parts};
use crate::model::{
    ASLEEP, Autopsy, LEAVING_KERNEL, OverStats, Span, USER_SPACE, WakerIdent, Window, rank,
};
use crate::units;

/// Columns of a line.
const WIDTH: usize = 100;

/// Spans that are named; the others, the shortest, are summed up.
const N_SPANS: usize = 12;

/// One wait; `window` tells the time of day.
#[must_use]
pub fn autopsy(autopsy: &Autopsy, window: &Window) -> String {
    let victim = &autopsy.victim;
    let at = clock::of_day_exact(clock::wall_ns(window, autopsy.at_ns));
    let hint = autopsy.hint.as_ref();
    let hint = hint.map_or_else(String::new, |hint| format!("  hint: {hint}\n"));
    format!(
        "{}, {}[{}] on CPU {} at {at}\n{}{hint}",
        units::duration(autopsy.wait_ns),
        victim.comm,
        victim.tid,
        autopsy.cpu,
        wrapped(&words(autopsy))
    )
}

/// Waits over the threshold, those included that were not shown.
pub(super) fn over(over: OverStats) -> String {
    let not_shown = match over.not_shown {
        0 => String::new(),
        n => format!(", of which {} were not shown", units::count(n)),
    };
    format!(
        "waits of at least {}: {}{not_shown}\n",
        units::duration(over.over_ns),
        units::count(over.count)
    )
}

/// Why it began, what ran then, and the sums where that is not all.
fn words(autopsy: &Autopsy) -> Vec<String> {
    let why = match (&autopsy.waker, autopsy.cause) {
        (Some(waker), _) => format!("woken by {}", name_of_waker(waker)),
        (None, cause) => began(cause).to_owned(),
    };
    let mut words = spans(&autopsy.spans);
    if words.is_empty() {
        words.push("nothing that was seen".to_owned());
    }
    let moved = match autopsy.here_at_ns.saturating_sub(autopsy.at_ns) {
        0 => String::new(),
        ns => format!("; moved here after {}", units::duration(ns)),
    };
    words[0] = format!("{why}{moved}; then {}", words[0]);
    let shown_ns: u64 = autopsy.spans.iter().map(|span| span.ns).sum();
    if autopsy.hidden_spans || shown_ns < autopsy.wait_ns / 100 * 99 {
        let all = autopsy.parts.list().into_iter().filter(|(_, ns)| *ns > 0);
        let before = words.len();
        words.extend(all.map(|(key, ns)| format!("{} {}", parts::name(key), units::duration(ns))));
        if let Some(first) = words.get_mut(before) {
            *first = format!("not all of it is known by name; in all {first}");
        }
    }
    words
}

/// Who or what woke a task.
pub(super) fn name_of_waker(waker: &WakerIdent) -> String {
    match (&waker.comm, waker.tid, &waker.name) {
        (Some(comm), Some(tid), _) => format!("{comm}[{tid}]"),
        (_, _, Some(name)) => name_of_interrupt(waker.kind, name),
        _ => waker.kind.to_owned(),
    }
}

/// An interrupt with its kind, where its name does not say it.
pub(super) fn name_of_interrupt(kind: &str, name: &str) -> String {
    match kind {
        "hard_irq" => format!("irq {name}"),
        "softirq" => format!("softirq {name}"),
        "vector" => format!("interrupt {name}"),
        "others" => "other interrupts".to_owned(),
        _ => name.to_owned(),
    }
}

fn began(cause: &str) -> &'static str {
    match cause {
        "after_wakeup" => "woken",
        "new_task" => "new",
        "tick" => "preempted by the tick",
        "hrtick" => "preempted by the slice timer",
        "wakeup" => "preempted by a wakeup",
        "higher_class" => "preempted by a higher class",
        "yield" => "gave it up (sched_yield)",
        "throttled" => "out of quota",
        "stopper" => "preempted by the stopper",
        _ => "lost the CPU for an unknown cause",
    }
}

/// The longest spans in their order, then the sum of the others.
fn spans(spans: &[Span]) -> Vec<String> {
    let mut lengths: Vec<_> = spans.iter().map(|span| span.ns).collect();
    lengths.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
    let least_ns = lengths.get(N_SPANS).map_or(0, |ns| ns + 1);
    let mut words: Vec<_> = spans
        .iter()
        .filter(|span| span.ns >= least_ns)
        .map(|span| {
            let (name, path) = (name_of_span(span), path(span));
            format!("{name} {}{path}", units::duration(span.ns))
        })
        .collect();
    let rest = spans.iter().filter(|span| span.ns < least_ns);
    let (n_rest, rest_ns) = rest.fold((0, 0), |(n, sum), span| (n + 1, sum + span.ns));
    if n_rest > 0 {
        words.push(format!(
            "{n_rest} shorter ones {}",
            units::duration(rest_ns)
        ));
    }
    words
}

/// Where in the kernel a task was: the function and its caller, and the system call.
fn path(span: &Span) -> String {
    let frames = span.stack.as_deref().unwrap_or_default();
    if frames.is_empty() || frames == [USER_SPACE] {
        return String::new();
    }
    match &span.syscall {
        Some(syscall) if frames[0] == LEAVING_KERNEL => format!(" (at the end of {syscall})"),
        syscall if frames[0] == ASLEEP => {
            let place = syscall.as_ref().or(frames.get(1));
            place.map_or_else(String::new, |place| format!(" (until it slept in {place})"))
        }
        syscall => {
            let leaf = frames[..frames.len().min(2)].join(" ← ");
            let syscall = syscall.as_ref();
            let syscall = syscall.map_or_else(String::new, |name| format!(", in {name}"));
            format!(" (kernel: {leaf}{syscall})")
        }
    }
}

fn name_of_span(span: &Span) -> String {
    match (&span.comm, span.tid, &span.name) {
        (Some(comm), Some(tid), _) if comm.is_empty() => format!("a task that has ended [{tid}]"),
        (Some(comm), Some(tid), _) => {
            let name = match &span.work {
                Some(work) => format!("{comm} ({work})"),
                None => format!("{comm}[{tid}]"),
            };
            let rank = span.prio.and_then(rank);
            rank.map_or(name.clone(), |rank| format!("{name} ({rank})"))
        }
        (_, _, Some(name)) => match span.count {
            None | Some(1) => name_of_interrupt(span.kind, name),
            Some(n) => format!("{n} × {}", name_of_interrupt(span.kind, name)),
        },
        _ => match span.kind {
            "idle" => "idle".to_owned(),
            "throttled" => "out of quota".to_owned(),
            _ => "something unseen".to_owned(),
        },
    }
}

/// Words with commas between them, in indented lines.
fn wrapped(words: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (index, word) in (1..).zip(words) {
        let comma = if index < words.len() { "," } else { "" };
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() + 2 <= WIDTH => {
                line.push_str(&[" ", word, comma].concat());
            }
            _ => lines.push(["  ", word, comma].concat()),
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    fn longest(index: usize) -> String {
        let report = fixture::report();
        autopsy(&report.longest[index], &report.window)
    }

    #[test]
    fn wait_is_told_in_order() {
        insta::assert_snapshot!(longest(0), @"
        12.0 ms, postgres[4121] on CPU 1 at 14:13:23.113
          preempted by the tick; then pg_dump[991] 9.90 ms (kernel: ext4_writepages[ext4] ← do_writepages, in fsync),
          3 × irq virtio2-input.0 100 µs, kworker/1:1H (blk_mq_run_work_fn) 2.00 ms
          hint: pinned to CPU 1
        ");
    }

    #[test]
    fn task_that_is_not_fair_is_marked() {
        let mut span = fixture::report().longest[0].spans[0].clone();
        assert_eq!(name_of_span(&span), "pg_dump[991]");
        span.prio = Some(49);
        assert_eq!(name_of_span(&span), "pg_dump[991] (rt 50)");
    }

    #[test]
    fn what_is_not_known_by_name_is_said_with_its_sums() {
        insta::assert_snapshot!(longest(1), @"
        2.90 ms, postgres[4121] on CPU 1 at 14:13:24.000
          woken by softirq NET_RX; moved here after 1.00 ms; then 3 × softirq NET_RX 900 µs,
          not all of it is known by name; in all softirqs 900 µs, other tasks, names not kept 2.00 ms
        ");
    }

    #[test]
    fn shortest_spans_are_summed_up() {
        let span = |ns| Span {
            kind: "softirq",
            name: Some("RCU".into()),
            ns,
            ..Span::default()
        };
        let many: Vec<_> = (1..=20).map(span).collect();
        let words = spans(&many);
        assert_eq!(words.len(), N_SPANS + 1);
        assert_eq!(
            (&*words[0], &*words[12]),
            ("softirq RCU 9 ns", "8 shorter ones 36 ns")
        );
        assert_eq!(spans(&many[..2]), ["softirq RCU 1 ns", "softirq RCU 2 ns"]);
    }

    #[track_caller]
    fn check_path(syscall: Option<&str>, frames: &[&str], expected: &str) {
        let frames = frames.iter().map(ToString::to_string).collect();
        let span = Span {
            syscall: syscall.map(Into::into),
            stack: Some(frames),
            ..Span::default()
        };
        assert_eq!(path(&span), expected);
    }

    #[test]
    fn path_is_the_function_its_caller_and_the_system_call() {
        check_path(Some("read"), &["a", "b", "c"], " (kernel: a ← b, in read)");
        check_path(None, &["worker_thread"], " (kernel: worker_thread)");
        check_path(
            Some("futex"),
            &[LEAVING_KERNEL, "b"],
            " (at the end of futex)",
        );
        let asleep = [ASLEEP, "worker_thread", "kthread"];
        check_path(None, &asleep, " (until it slept in worker_thread)");
        check_path(Some("read"), &asleep, " (until it slept in read)");
        check_path(None, &[USER_SPACE], "");
        assert_eq!(path(&Span::default()), "");
    }

    #[test]
    fn waits_that_were_not_shown_are_counted() {
        let over = |not_shown| {
            over(OverStats {
                over_ns: 1_000_000,
                count: 1_200,
                not_shown,
            })
        };
        assert_eq!(over(0), "waits of at least 1.00 ms: 1,200\n");
        assert_eq!(
            over(7),
            "waits of at least 1.00 ms: 1,200, of which 7 were not shown\n"
        );
    }
}
