//! Gaps of the busy probe by what the kernel saw in them.
//!
//! An event lies in the gap that contains its middle. A gap is an interruption as a whole: it has one
//! cause, which is what came first, unless the CPU went to another task.

mod series;

use latency_common::{
    class::WaitClass,
    interrupt::{InterruptKind, Source, Vector},
};

use crate::{
    model::{TraceEvent, TracedInterrupt, TracedWait},
    probe::busy::Gap,
};

pub use self::series::{RunFacts, series};

/// Time of a gap in no event that the way into the kernel and back may take, in a guest too.
const WAY_NS: u64 = 50_000;

/// What a gap was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapCause {
    /// The scheduler's tick or slice timer, with what came along.
    Tick,
    /// A device, or a timer other than the scheduler's.
    Irq,
    /// A softirq.
    Softirq,
    /// Another CPU asked for something.
    Ipi,
    /// Another task had the CPU.
    Preempted,
    /// Another task had the CPU although its class is lower: the limit of the real-time class, or the
    /// deadline server. For a fair task: it was out of quota.
    Throttled,
    /// No event, or none for the most of it: the hypervisor, the firmware, or a task whose switches the
    /// kernel does not show.
    Unexplained,
}

impl GapCause {
    /// Its key in `causes`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Irq => "irq",
            Self::Softirq => "softirq",
            Self::Ipi => "ipi",
            Self::Preempted => "preempted",
            Self::Throttled => "throttled",
            Self::Unexplained => "unexplained",
        }
    }
}

/// Who it was, as far as the kernel's events tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapCulprit {
    /// An interrupt, by the word of its source.
    Interrupt(u32),
    /// The task that had the CPU last; 0 for the idle one.
    Task(u32),
    /// Nobody was seen.
    Nobody,
}

/// A gap, explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainedGap {
    /// The gap.
    pub gap: Gap,
    /// What it was.
    pub cause: GapCause,
    /// Who.
    pub culprit: GapCulprit,
    /// Time of the kernel's events in it: interrupts and waits, none counted twice.
    pub kernel_ns: u64,
    /// A tick was in it.
    pub has_tick: bool,
    /// The kernel has an event in it.
    pub has_event: bool,
}

/// All gaps of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The gaps, in order.
    pub gaps: Vec<ExplainedGap>,
    /// Events of the run in no gap: shorter than the threshold, or in a gap that found no room.
    pub n_events_without_gap: u64,
    /// Ticks that asked for another task.
    pub n_asking_ticks: u64,
    /// Of those, the ones after which the same task went on.
    pub n_repicked_ticks: u64,
}

/// Explains `gaps`, which are in order, by the events of the same thread between two times.
#[must_use]
pub fn explain(gaps: &[Gap], window_ns: (u64, u64), events: &[TraceEvent]) -> Explanation {
    let mut events: Vec<_> = events
        .iter()
        .filter(|event| (window_ns.0..=window_ns.1).contains(&event.middle_ns()))
        .collect();
    events.sort_by_key(|event| event.middle_ns());
    let mut explanation = Explanation::default();
    let mut left = events.as_slice();
    for gap in gaps {
        let n_before = left.partition_point(|event| event.middle_ns() < gap.began_at_ns);
        let (before, rest) = left.split_at(n_before);
        let n_within = rest.partition_point(|event| event.middle_ns() <= gap.ended_at_ns());
        let (within, after) = rest.split_at(n_within);
        let explained = Contents::of(within).explain(*gap);
        explanation.count_ticks(before, None);
        explanation.count_ticks(within, Some(explained.cause));
        explanation.n_events_without_gap += before.len() as u64;
        explanation.gaps.push(explained);
        left = after;
    }
    explanation.count_ticks(left, None);
    explanation.n_events_without_gap += left.len() as u64;
    explanation
}

impl Explanation {
    /// Ticks among `events`, which are all of a gap with this cause, or of no gap.
    fn count_ticks(&mut self, events: &[&TraceEvent], cause: Option<GapCause>) {
        let asking = Contents::of(events).interrupts.into_iter();
        let n_asking: u64 = asking
            .filter(|interrupt| is_tick(interrupt) && interrupt.asked_for_switch)
            .map(|_| 1)
            .sum();
        self.n_asking_ticks += n_asking;
        // Of what is unexplained, it is not known who went on.
        let is_other = matches!(
            cause,
            Some(GapCause::Preempted | GapCause::Throttled | GapCause::Unexplained)
        );
        if !is_other {
            self.n_repicked_ticks += n_asking;
        }
    }
}

/// The events in a gap.
struct Contents<'a> {
    interrupts: Vec<&'a TracedInterrupt>,
    waits: Vec<&'a TracedWait>,
}

impl<'a> Contents<'a> {
    fn of(events: &[&'a TraceEvent]) -> Self {
        let (mut interrupts, mut waits) = (Vec::new(), Vec::new());
        for event in events {
            match event {
                TraceEvent::Interrupt(interrupt) => interrupts.push(interrupt),
                TraceEvent::Wait(wait) => waits.push(wait),
            }
        }
        Self { interrupts, waits }
    }

    fn explain(&self, gap: Gap) -> ExplainedGap {
        let in_interrupts: u64 = self.interrupts.iter().map(|event| event.own_ns).sum();
        let waited: u64 = self.waits.iter().map(|wait| wait.length_ns()).sum();
        let kernel_ns = in_interrupts + waited;
        let unseen_ns = gap.length_ns.saturating_sub(kernel_ns);
        let (cause, culprit) = if unseen_ns > WAY_NS && unseen_ns > gap.length_ns / 2 {
            (GapCause::Unexplained, GapCulprit::Nobody)
        } else {
            self.cause()
        };
        ExplainedGap {
            gap,
            cause,
            culprit,
            kernel_ns,
            has_tick: self.interrupts.iter().any(|interrupt| is_tick(interrupt)),
            has_event: !self.interrupts.is_empty() || !self.waits.is_empty(),
        }
    }

    fn cause(&self) -> (GapCause, GapCulprit) {
        if let Some(wait) = self.waits.iter().max_by_key(|wait| wait.length_ns()) {
            let cause = if wait.class == WaitClass::Throttled {
                GapCause::Throttled
            } else {
                GapCause::Preempted
            };
            return (cause, GapCulprit::Task(wait.previous_tid));
        }
        let Some(first) = self.interrupts.iter().min_by_key(|event| event.since_ns) else {
            return (GapCause::Unexplained, GapCulprit::Nobody);
        };
        let tick = self
            .interrupts
            .iter()
            .find(|event| is_tick(event) && event.since_ns < first.until_ns);
        let source = tick.unwrap_or(first).source;
        (cause_of(source), GapCulprit::Interrupt(source.0))
    }
}

fn cause_of(source: Source) -> GapCause {
    match source.kind() {
        Some(InterruptKind::Tick) => GapCause::Tick,
        Some(InterruptKind::Softirq) => GapCause::Softirq,
        Some(InterruptKind::Vector) if source.number() != Vector::LocalTimer as u32 => {
            GapCause::Ipi
        }
        _ => GapCause::Irq,
    }
}

fn is_tick(interrupt: &TracedInterrupt) -> bool {
    interrupt.source.kind() == Some(InterruptKind::Tick)
}

#[cfg(test)]
mod tests {
    use latency_common::attribution::N_PARTS;

    use super::*;

    const TICK: Source = Source::new(InterruptKind::Tick, 0);
    const LOCAL_TIMER: Source = Source::new(InterruptKind::Vector, Vector::LocalTimer as u32);
    const RESCHEDULE: Source = Source::new(InterruptKind::Vector, Vector::Reschedule as u32);
    const DEVICE: Source = Source::new(InterruptKind::HardIrq, 38);
    const NET_RX: Source = Source::new(InterruptKind::Softirq, 3);

    fn gap(began_at_ns: u64, length_ns: u64) -> Gap {
        Gap {
            began_at_ns,
            length_ns,
        }
    }

    fn interrupt(source: Source, since_ns: u64, until_ns: u64, own_ns: u64) -> TracedInterrupt {
        TracedInterrupt {
            tid: 7,
            cpu: 1,
            source,
            since_ns,
            until_ns,
            own_ns,
            asked_for_switch: false,
        }
    }

    fn within(source: Source, since_ns: u64, until_ns: u64) -> TraceEvent {
        TraceEvent::Interrupt(interrupt(source, since_ns, until_ns, until_ns - since_ns))
    }

    fn wait(class: WaitClass, queued_at_ns: u64, running_at_ns: u64) -> TraceEvent {
        TraceEvent::Wait(TracedWait {
            tid: 7,
            cpu: 1,
            class,
            waking_at_ns: None,
            queued_at_ns,
            running_at_ns,
            parts_ns: [0; N_PARTS],
            timer: None,
            previous_tid: 8,
        })
    }

    #[track_caller]
    fn check(events: &[TraceEvent], cause: GapCause, culprit: GapCulprit, kernel_ns: u64) {
        let explanation = explain(&[gap(1_000, 9_000)], (0, 20_000), events);
        let found = explanation.gaps[0];
        assert_eq!((found.cause, found.culprit), (cause, culprit));
        assert_eq!(found.kernel_ns, kernel_ns);
        assert_eq!(explanation.n_events_without_gap, 0);
    }

    fn by(source: Source) -> GapCulprit {
        GapCulprit::Interrupt(source.0)
    }

    #[test]
    fn first_interrupt_is_the_cause() {
        let device = [within(DEVICE, 2_000, 4_000), within(NET_RX, 4_100, 8_000)];
        check(&device, GapCause::Irq, by(DEVICE), 5_900);
        let softirq = [within(NET_RX, 4_100, 8_000)];
        check(&softirq, GapCause::Softirq, by(NET_RX), 3_900);
        let ipi = [
            within(RESCHEDULE, 2_000, 2_300),
            within(NET_RX, 2_400, 3_000),
        ];
        check(&ipi, GapCause::Ipi, by(RESCHEDULE), 900);
        check(&[], GapCause::Unexplained, GapCulprit::Nobody, 0);
    }

    // The inner one ends first, so it comes first, and the outer one's own time is without it.
    #[test]
    fn timer_interrupt_with_the_tick_in_it_is_a_tick() {
        let vector = TraceEvent::Interrupt(interrupt(LOCAL_TIMER, 2_000, 5_000, 1_000));
        let tick = within(TICK, 2_500, 4_500);
        let softirq = within(NET_RX, 5_100, 9_000);
        check(&[tick, vector, softirq], GapCause::Tick, by(TICK), 6_900);
        check(&[vector], GapCause::Irq, by(LOCAL_TIMER), 1_000);
    }

    #[test]
    fn device_that_comes_just_before_the_tick_is_the_cause_and_the_tick_is_known() {
        let events = [within(DEVICE, 2_000, 3_000), within(TICK, 4_000, 5_000)];
        let explanation = explain(&[gap(1_000, 9_000)], (0, 20_000), &events);
        assert_eq!(explanation.gaps[0].cause, GapCause::Irq);
        assert!(explanation.gaps[0].has_tick);
    }

    #[test]
    fn another_task_is_the_cause_whatever_came_along() {
        let tick = within(TICK, 1_500, 2_500);
        let preempted = [tick, wait(WaitClass::Tick, 3_000, 9_500)];
        check(&preempted, GapCause::Preempted, GapCulprit::Task(8), 7_500);
        let throttled = [tick, wait(WaitClass::Throttled, 3_000, 9_500)];
        check(&throttled, GapCause::Throttled, GapCulprit::Task(8), 7_500);
    }

    #[test]
    fn gap_whose_most_is_in_no_event_is_unexplained_and_its_tick_is_known() {
        let mut tick = interrupt(TICK, 2_000, 4_000, 2_000);
        tick.asked_for_switch = true;
        let events = [TraceEvent::Interrupt(tick)];
        let of = |length_ns| explain(&[gap(1_000, length_ns)], (0, 9_000_000), &events);
        let short = of(2_000 + WAY_NS);
        assert_eq!(short.gaps[0].cause, GapCause::Tick);
        assert_eq!((short.n_asking_ticks, short.n_repicked_ticks), (1, 1));
        let long = of(2_001 + WAY_NS);
        assert_eq!(long.gaps[0].cause, GapCause::Unexplained);
        assert!(long.gaps[0].has_tick && long.gaps[0].has_event);
        assert_eq!((long.n_asking_ticks, long.n_repicked_ticks), (1, 0));
    }

    #[test]
    fn events_belong_to_the_gap_around_them_and_to_no_other() {
        let gaps = [gap(1_000, 500), gap(3_000, 500), gap(5_000, 500)];
        let events = [
            within(DEVICE, 3_100, 3_300),
            within(DEVICE, 2_000, 2_100),
            within(DEVICE, 9_000, 9_100),
            within(DEVICE, 30_000, 31_000),
        ];
        let explanation = explain(&gaps, (0, 20_000), &events);
        let causes: Vec<_> = explanation.gaps.iter().map(|gap| gap.cause).collect();
        let expected = [GapCause::Unexplained, GapCause::Irq, GapCause::Unexplained];
        assert_eq!(causes, expected);
        assert_eq!(explanation.n_events_without_gap, 2);
    }

    #[test]
    fn tick_that_asks_and_changes_nothing_picked_the_same_task() {
        let asking = |at| {
            let mut tick = interrupt(TICK, at, at + 100, 100);
            tick.asked_for_switch = true;
            TraceEvent::Interrupt(tick)
        };
        let gaps = [gap(1_000, 1_000), gap(5_000, 3_000)];
        let events = [
            asking(1_200),
            asking(3_000),
            asking(5_200),
            wait(WaitClass::Tick, 5_500, 7_500),
        ];
        let explanation = explain(&gaps, (0, 20_000), &events);
        assert_eq!(explanation.n_asking_ticks, 3);
        assert_eq!(explanation.n_repicked_ticks, 2);
    }
}
