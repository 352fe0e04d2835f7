//! Priorities, as the kernel counts them and as trace events give them.

use serde::Serialize;

/// What a priority says of the order in which tasks get a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedClass {
    /// `SCHED_DEADLINE`: before all others.
    Deadline,
    /// `SCHED_FIFO` and `SCHED_RR`: by their priority.
    Rt,
    /// All others: by their share.
    #[default]
    Fair,
}

impl SchedClass {
    /// The class of this priority: below 0 deadline, below 100 real-time.
    #[must_use]
    pub const fn of(prio: i16) -> Self {
        match prio {
            ..0 => Self::Deadline,
            0..100 => Self::Rt,
            _ => Self::Fair,
        }
    }
}

/// What makes a task different from a fair one, with the priority that was asked for; none of those.
#[must_use]
pub fn rank(prio: i16) -> Option<String> {
    match SchedClass::of(prio) {
        SchedClass::Deadline => Some("deadline".to_owned()),
        SchedClass::Rt => Some(format!("rt {}", 99 - prio)),
        SchedClass::Fair => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(prio: i16, class: SchedClass, words: Option<&str>) {
        assert_eq!(
            (SchedClass::of(prio), rank(prio).as_deref()),
            (class, words)
        );
    }

    #[test]
    fn priority_is_the_one_that_was_asked_for() {
        check(-1, SchedClass::Deadline, Some("deadline"));
        check(0, SchedClass::Rt, Some("rt 99"));
        check(49, SchedClass::Rt, Some("rt 50"));
        check(99, SchedClass::Rt, Some("rt 0"));
        check(100, SchedClass::Fair, None);
        check(139, SchedClass::Fair, None);
    }
}
