//! Raw events of the flight recorder: one cache line each, in a ring per CPU that overwrites itself.
//!
//! A CPU's ring is a power of two of records. The head of a ring counts every event that was given a
//! place; event `i` lies at `i` modulo the ring's length, and its `serial` is written last.

/// Bytes of a task's name.
pub const COMM_BYTES: usize = 16;

/// What a record tells, as `FlightRecord::kind`; after each what its fields mean.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightKind {
    /// A switch: `value` is the state of the task that leaves, `other` the task that enters.
    Switch = 1,
    /// A wakeup begins: `value` is the wakee's CPU, `other` the task that runs here.
    Waking = 2,
    /// A task was queued; fields as for `Waking`.
    Wakeup = 3,
    /// A new task was queued; fields as for `Waking`.
    WakeupNew = 4,
    /// A task is moved from CPU `value` to CPU `other_tid`.
    Migrate = 5,
    /// A handler of interrupt `value` begins; `tid` is what it interrupts.
    IrqEntry = 6,
    /// It ended with the result `other_tid`.
    IrqExit = 7,
    /// The softirq of number `value` begins; `tid` is what it interrupts.
    SoftirqEntry = 8,
    /// It ended.
    SoftirqExit = 9,
    /// The local timer's interrupt of vector `value` begins; `tid` is what it interrupts.
    TimerEntry = 10,
    /// It ended.
    TimerExit = 11,
}

impl FlightKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 11] = [
        Self::Switch,
        Self::Waking,
        Self::Wakeup,
        Self::WakeupNew,
        Self::Migrate,
        Self::IrqEntry,
        Self::IrqExit,
        Self::SoftirqEntry,
        Self::SoftirqExit,
        Self::TimerEntry,
        Self::TimerExit,
    ];

    /// The kind of a number.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        let index = usize::from(number).checked_sub(1)?;
        Self::ALL.get(index).copied()
    }
}

/// One event.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlightRecord {
    /// When, `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// The low half of the event's number on this CPU, plus one: a place never written holds 0.
    pub serial: u32,
    /// [`FlightKind`].
    pub kind: u8,
    /// For a switch: it came from inside the kernel.
    pub is_preempt: u8,
    /// The low byte of the priority, which is −1 (deadline) to 139.
    pub prio: u8,
    /// The other task's.
    pub other_prio: u8,
    /// The task this is about.
    pub tid: u32,
    /// Its process.
    pub tgid: u32,
    /// By kind.
    pub value: u32,
    /// By kind.
    pub other_tid: u32,
    /// Name of `tid`, for a switch and the wakeups.
    pub comm: [u8; COMM_BYTES],
    /// For a switch the name of the task that enters.
    pub other_comm: [u8; COMM_BYTES],
}

const _: () = assert!(size_of::<FlightRecord>() == 64);

/// The head of one CPU's ring, a cache line of its own.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct FlightHead {
    /// Events that were given a place so far.
    pub n_events: u64,
    /// 1 while a place is being given.
    pub is_taken: u64,
    /// Events that came at that very moment: they are lost.
    pub n_refused: u64,
    /// Fills the line.
    pub reserved: [u64; 5],
}

/// The priority whose low byte this is.
#[must_use]
pub const fn prio_of(byte: u8) -> i32 {
    match byte {
        0xff => -1,
        prio => prio as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_number() {
        for kind in FlightKind::ALL {
            assert_eq!(FlightKind::of(kind as u8), Some(kind));
        }
        assert_eq!(FlightKind::of(0), None);
        assert_eq!(FlightKind::of(12), None);
    }

    #[test]
    fn priorities_survive_their_byte() {
        for prio in [-1_i32, 0, 99, 120, 139] {
            assert_eq!(prio_of(prio.to_le_bytes()[0]), prio);
        }
    }
}
