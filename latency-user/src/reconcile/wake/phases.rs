//! What one lateness is made of.

use latency_common::attribution::Part;

use crate::{
    analysis::Distribution,
    model::{
        TracedWait,
        probe::{Disagreement, WakePhases},
    },
    probe::wake::WakeSample,
};

/// A sample taken apart.
#[expect(clippy::struct_field_names, reason = "durations carry their unit")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Phases {
    pub(super) slack_ns: i64,
    pub(super) expiry_lateness_ns: i64,
    pub(super) timer_handler_ns: i64,
    pub(super) placement_ns: i64,
    pub(super) ipi_idle_exit_ns: i64,
    pub(super) queue_wait_ns: i64,
    pub(super) switch_return_ns: i64,
    pub(super) unaccounted_ns: i64,
}

impl Phases {
    /// Of the wait that its timer ended, and of those after it; none where no timer did.
    pub(super) fn of(sample: &WakeSample, wait: &TracedWait, later: &[TracedWait]) -> Option<Self> {
        let timer = wait.timer?;
        // The slack was used until the timer fired, or all of it.
        let allowed_ns = timer
            .expires_ns
            .min(timer.fired_at_ns)
            .max(timer.programmed_ns);
        let (until_woken, unseen_ns) = match wait.waking_at_ns {
            Some(waking_at_ns) => (waking_at_ns, 0),
            None => (
                wait.queued_at_ns,
                span(timer.fired_at_ns, wait.queued_at_ns),
            ),
        };
        let mut phases = Self {
            slack_ns: span(timer.programmed_ns, allowed_ns),
            expiry_lateness_ns: span(allowed_ns, timer.fired_at_ns),
            timer_handler_ns: span(timer.fired_at_ns, until_woken) - unseen_ns,
            placement_ns: span(until_woken, wait.queued_at_ns),
            switch_return_ns: span(wait.running_at_ns, sample.woke_at_ns),
            unaccounted_ns: unseen_ns,
            ..Self::default()
        };
        phases.add_parts(wait);
        for wait in later {
            phases.add_parts(wait);
            phases.switch_return_ns -= span(wait.queued_at_ns, wait.running_at_ns);
        }
        Some(phases)
    }

    fn add_parts(&mut self, wait: &TracedWait) {
        for part in Part::ALL {
            let ns = wait.parts_ns[part as usize].cast_signed();
            let phase = match part {
                Part::IdleExit => &mut self.ipi_idle_exit_ns,
                Part::Unexplained => &mut self.unaccounted_ns,
                _ => &mut self.queue_wait_ns,
            };
            *phase += ns;
        }
    }

    /// Their sum, without the slack.
    pub(super) const fn sum_ns(&self) -> i64 {
        self.expiry_lateness_ns
            + self.timer_handler_ns
            + self.placement_ns
            + self.ipi_idle_exit_ns
            + self.queue_wait_ns
            + self.switch_return_ns
            + self.unaccounted_ns
    }
}

/// From one time to another; negative where they are the other way round.
pub(super) const fn span(from_ns: u64, until_ns: u64) -> i64 {
    until_ns.wrapping_sub(from_ns).cast_signed()
}

/// The phases of many samples.
#[derive(Debug, Default)]
pub(super) struct PhaseTotals {
    expiry_lateness: Distribution,
    timer_handler: Distribution,
    placement: Distribution,
    ipi_idle_exit: Distribution,
    queue_wait: Distribution,
    switch_return: Distribution,
    unaccounted: Distribution,
    disagreement: Disagreement,
}

impl PhaseTotals {
    /// Adds a sample of this lateness.
    pub(super) fn add(&mut self, phases: &Phases, lateness_ns: i64) {
        self.expiry_lateness.record(phases.expiry_lateness_ns);
        self.timer_handler.record(phases.timer_handler_ns);
        self.placement.record(phases.placement_ns);
        self.ipi_idle_exit.record(phases.ipi_idle_exit_ns);
        self.queue_wait.record(phases.queue_wait_ns);
        self.switch_return.record(phases.switch_return_ns);
        self.unaccounted.record(phases.unaccounted_ns);
        let apart_ns = lateness_ns - phases.sum_ns();
        let disagreement = &mut self.disagreement;
        disagreement.sum_ns += apart_ns;
        disagreement.max_ns = disagreement.max_ns.max(apart_ns.unsigned_abs());
    }

    /// Their figures.
    pub(super) fn figures(&self) -> (WakePhases, Disagreement) {
        let phases = WakePhases {
            expiry_lateness: self.expiry_lateness.figures(),
            timer_handler: self.timer_handler.figures(),
            placement: self.placement.figures(),
            ipi_idle_exit: self.ipi_idle_exit.figures(),
            queue_wait: self.queue_wait.figures(),
            switch_return: self.switch_return.figures(),
            unaccounted: self.unaccounted.figures(),
        };
        (phases, self.disagreement)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{preemption, timer_wait};
    use super::*;

    fn sample(lateness_ns: u64) -> WakeSample {
        WakeSample {
            programmed_ns: 10_000,
            woke_at_ns: 10_000 + lateness_ns,
        }
    }

    #[test]
    fn phases_of_a_plain_wakeup_are_its_stages() {
        let phases = Phases::of(&sample(1_250), &timer_wait(10_000), &[]).unwrap();
        let expected = Phases {
            slack_ns: 0,
            expiry_lateness_ns: 100,
            timer_handler_ns: 200,
            placement_ns: 100,
            ipi_idle_exit_ns: 500,
            queue_wait_ns: 100,
            switch_return_ns: 250,
            unaccounted_ns: 0,
        };
        assert_eq!((phases, phases.sum_ns()), (expected, 1_250));
    }

    #[test]
    fn slack_is_apart_whether_the_timer_used_all_of_it_or_not() {
        let mut wait = timer_wait(10_000);
        let mut slack_of = |expires_ns| {
            wait.timer.as_mut().unwrap().expires_ns = expires_ns;
            let phases = Phases::of(&sample(1_250), &wait, &[]).unwrap();
            assert_eq!(phases.slack_ns + phases.sum_ns(), 1_250);
            (phases.slack_ns, phases.expiry_lateness_ns)
        };
        assert_eq!(slack_of(10_060), (60, 40));
        // Another timer's interrupt found it within its slack.
        assert_eq!(slack_of(60_000), (100, 0));
    }

    #[test]
    fn losing_the_cpu_on_the_way_to_user_space_is_waiting() {
        let later = [preemption(11_100, 2_000)];
        let phases = Phases::of(&sample(3_250), &timer_wait(10_000), &later).unwrap();
        assert_eq!(
            (phases.queue_wait_ns, phases.switch_return_ns),
            (2_100, 250)
        );
        assert_eq!(phases.sum_ns(), 3_250);
    }

    #[test]
    fn what_was_not_seen_is_unaccounted() {
        let mut wait = timer_wait(10_000);
        wait.waking_at_ns = None;
        wait.parts_ns[Part::Unexplained as usize] = 60;
        wait.parts_ns[Part::OtherTasks as usize] = 40;
        let phases = Phases::of(&sample(1_250), &wait, &[]).unwrap();
        assert_eq!((phases.timer_handler_ns, phases.placement_ns), (0, 0));
        assert_eq!(phases.unaccounted_ns, 360);
        assert_eq!(phases.sum_ns(), 1_250);
    }

    #[test]
    fn parts_that_do_not_make_the_wait_are_disagreement() {
        let mut wait = timer_wait(10_000);
        wait.parts_ns[Part::IdleExit as usize] -= 30;
        let phases = Phases::of(&sample(1_250), &wait, &[]).unwrap();
        let mut totals = PhaseTotals::default();
        totals.add(&phases, 1_250);
        let (figures, disagreement) = totals.figures();
        assert_eq!((disagreement.max_ns, disagreement.sum_ns), (30, 30));
        assert_eq!(figures.ipi_idle_exit.sum_ns, 470);
    }

    #[test]
    fn timer_that_fired_early_is_negative_lateness() {
        let mut wait = timer_wait(10_000);
        wait.timer.as_mut().unwrap().fired_at_ns = 9_990;
        let phases = Phases::of(&sample(1_250), &wait, &[]).unwrap();
        assert_eq!((phases.slack_ns, phases.expiry_lateness_ns), (0, -10));
        assert_eq!(phases.sum_ns(), 1_250);
    }
}
