//! Scheduling policies: as typed, as given to a thread, and as the kernel says that it has them.

use std::{fmt, io, str::FromStr};

use crate::units::{DurationError, Nanos, parse_duration};

/// The priority of a real-time policy that is typed without one: above interrupt threads' 50 there would
/// be more to disturb than to measure.
const USUAL_PRIORITY: u32 = 50;

/// A policy with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The fair class.
    Other,
    /// Real time, until it blocks or yields.
    Fifo(
        /// In 1..=99.
        u32,
    ),
    /// Real time, in turns with its equals.
    RoundRobin(
        /// In 1..=99.
        u32,
    ),
    /// A reservation.
    Deadline {
        /// How much in each period.
        runtime: Nanos,
        /// By when, from the period's start.
        deadline: Nanos,
        /// How often.
        period: Nanos,
    },
}

/// What the kernel says of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effective {
    /// `SCHED_…` by its number.
    pub policy: u32,
    /// Of real-time policies; 0 for others.
    pub priority: u32,
    /// Of the fair class.
    pub nice: i32,
}

/// Why a text is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// An unknown name, or parameters of another shape.
    #[error("'{0}' is no policy; use other, fifo:N, rr:N or deadline:RUNTIME/DEADLINE/PERIOD")]
    Unknown(String),
    /// A priority out of range.
    #[error("'{0}' is no real-time priority; use 1 to 99")]
    Priority(String),
    /// A parameter of `deadline` that is no duration.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// Parameters that the kernel takes in this order only.
    #[error("'{0}' is out of order; RUNTIME <= DEADLINE <= PERIOD is needed")]
    Order(String),
}

impl Policy {
    /// Whether it takes `CAP_SYS_NICE`, or a limit that allows it.
    #[must_use]
    pub const fn is_privileged(self) -> bool {
        !matches!(self, Self::Other)
    }

    /// Whether a thread of this policy may be bound to a CPU.
    #[must_use]
    pub const fn can_be_pinned(self) -> bool {
        !matches!(self, Self::Deadline { .. })
    }

    /// The name of the kernel's number for it, without parameters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Fifo(_) => "fifo",
            Self::RoundRobin(_) => "rr",
            Self::Deadline { .. } => "deadline",
        }
    }

    /// Gives it to the calling thread, which keeps its nice value.
    pub fn apply(self) -> io::Result<()> {
        self.apply_to(0)
    }

    /// Gives it to another thread of ours, with our nice value.
    pub fn apply_to(self, tid: u32) -> io::Result<()> {
        let mut attributes = self.attributes();
        attributes.sched_nice = Effective::read()?.nice;
        // SAFETY: the kernel reads `size` bytes of a structure that lives through the call.
        let status =
            unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) };
        if status == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    fn attributes(self) -> libc::sched_attr {
        let (policy, priority) = match self {
            Self::Other => (libc::SCHED_OTHER, 0),
            Self::Fifo(priority) => (libc::SCHED_FIFO, priority),
            Self::RoundRobin(priority) => (libc::SCHED_RR, priority),
            Self::Deadline { .. } => (libc::SCHED_DEADLINE, 0),
        };
        let mut attributes = empty_attributes();
        attributes.sched_policy = policy.cast_unsigned();
        attributes.sched_priority = priority;
        if let Self::Deadline {
            runtime,
            deadline,
            period,
        } = self
        {
            attributes.sched_runtime = runtime.as_ns();
            attributes.sched_deadline = deadline.as_ns();
            attributes.sched_period = period.as_ns();
        }
        attributes
    }
}

impl Effective {
    /// Of the calling thread.
    pub fn read() -> io::Result<Self> {
        let mut attributes = empty_attributes();
        // SAFETY: the kernel writes at most `size` bytes into a structure that lives through the call.
        let status = unsafe {
            libc::syscall(
                libc::SYS_sched_getattr,
                0,
                &raw mut attributes,
                attributes.size,
                0,
            )
        };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            policy: attributes.sched_policy,
            priority: attributes.sched_priority,
            nice: attributes.sched_nice,
        })
    }

    /// Whether it is what was asked for.
    #[must_use]
    pub fn is(self, asked: Policy) -> bool {
        let attributes = asked.attributes();
        (self.policy, self.priority) == (attributes.sched_policy, attributes.sched_priority)
    }

    /// The policy's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.policy.cast_signed() {
            libc::SCHED_OTHER => "other",
            libc::SCHED_FIFO => "fifo",
            libc::SCHED_RR => "rr",
            libc::SCHED_BATCH => "batch",
            libc::SCHED_IDLE => "idle",
            libc::SCHED_DEADLINE => "deadline",
            _ => "unknown",
        }
    }
}

/// All zero, with its size.
fn empty_attributes() -> libc::sched_attr {
    // SANITY: fourteen words.
    let size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0);
    libc::sched_attr {
        size,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => formatter.write_str("other"),
            Self::Fifo(priority) => write!(formatter, "fifo:{priority}"),
            Self::RoundRobin(priority) => write!(formatter, "rr:{priority}"),
            Self::Deadline {
                runtime,
                deadline,
                period,
            } => {
                let [runtime, deadline, period] = [runtime, deadline, period]
                    .map(|parameter| parameter.to_string().replace(' ', ""));
                write!(formatter, "deadline:{runtime}/{deadline}/{period}")
            }
        }
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let unknown = || PolicyError::Unknown(text.to_owned());
        match text.split_once(':') {
            None if text == "other" => Ok(Self::Other),
            None if text == "fifo" => Ok(Self::Fifo(USUAL_PRIORITY)),
            None if text == "rr" => Ok(Self::RoundRobin(USUAL_PRIORITY)),
            Some(("fifo", priority)) => Ok(Self::Fifo(parse_priority(priority)?)),
            Some(("rr", priority)) => Ok(Self::RoundRobin(parse_priority(priority)?)),
            Some(("deadline", parameters)) => parse_deadline(parameters, text),
            _ => Err(unknown()),
        }
    }
}

fn parse_priority(text: &str) -> Result<u32, PolicyError> {
    let priority = text.parse().ok().filter(|n| (1..=99).contains(n));
    priority.ok_or_else(|| PolicyError::Priority(text.to_owned()))
}

fn parse_deadline(parameters: &str, text: &str) -> Result<Policy, PolicyError> {
    let parameters: Vec<_> = parameters.split('/').collect();
    let [runtime, deadline, period] = parameters[..] else {
        return Err(PolicyError::Unknown(text.to_owned()));
    };
    let runtime = parse_duration(runtime)?;
    let deadline = parse_duration(deadline)?;
    let period = parse_duration(period)?;
    if runtime > deadline || deadline > period {
        return Err(PolicyError::Order(text.to_owned()));
    }
    Ok(Policy::Deadline {
        runtime,
        deadline,
        period,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for text in ["other", "fifo:80", "rr:1", "deadline:200us/1ms/1ms"] {
            let policy: Policy = text.parse().unwrap();
            let again: Policy = policy.to_string().parse().unwrap();
            assert_eq!(again, policy, "{text}");
        }
        assert_eq!("fifo:99".parse(), Ok(Policy::Fifo(99)));
        assert_eq!("rr".parse(), Ok(Policy::RoundRobin(50)));
    }

    #[test]
    fn what_is_no_policy_is_refused_with_a_reason() {
        for text in [
            "batch:1",
            "FIFO:1",
            "other:1",
            "deadline:1ms/2ms",
            "",
            "batch",
        ] {
            let unknown = PolicyError::Unknown(text.to_owned());
            assert_eq!(text.parse::<Policy>(), Err(unknown));
        }
        for priority in ["0", "100", "-1", "x", ""] {
            let expected = PolicyError::Priority(priority.to_owned());
            assert_eq!(format!("rr:{priority}").parse::<Policy>(), Err(expected));
        }
        let order = "deadline:2ms/1ms/1ms";
        let expected = PolicyError::Order(order.to_owned());
        assert_eq!(order.parse::<Policy>(), Err(expected));
        let no_unit = "deadline:2/3/4".parse::<Policy>();
        assert!(matches!(no_unit, Err(PolicyError::Duration(_))));
    }

    #[test]
    fn policy_of_a_thread_is_read_back() {
        let found = std::thread::spawn(|| {
            Policy::Other.apply().unwrap();
            Effective::read().unwrap()
        });
        let found = found.join().unwrap();
        assert!(found.is(Policy::Other) && !found.is(Policy::Fifo(1)));
        assert_eq!((found.name(), found.priority), ("other", 0));
    }
}
