//! Interrupts: what can take a CPU from whatever runs there, and how each is numbered.

/// What kind of interrupt.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptKind {
    /// A device's handler; the number is the irq's.
    HardIrq = 1,
    /// A vector of the processor's own; the number is a [`Vector`].
    Vector = 2,
    /// A softirq; the number is its vector.
    Softirq = 3,
    /// A callback of the scheduler's timers: 0 the tick, 1 the slice timer.
    Tick = 4,
}

impl InterruptKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::HardIrq, Self::Vector, Self::Softirq, Self::Tick];
}

/// Interrupts that have no irq number.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector {
    /// The local timer; the tick within it is counted apart.
    LocalTimer = 0,
    /// Another CPU asks for a reschedule.
    Reschedule = 1,
    /// Another CPU asks all for a function call.
    CallFunction = 2,
    /// Another CPU asks this one for a function call.
    CallFunctionSingle = 3,
    /// Work that was queued in a context without locks.
    IrqWork = 4,
}

/// The three totals in which interrupts are summed up.
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Devices and vectors.
    HardIrq = 0,
    /// Softirqs.
    Softirq = 1,
    /// The scheduler's timers.
    Tick = 2,
}

/// Number of categories.
pub const N_CATEGORIES: usize = 3;

/// Kind and number of one interrupt, in one word; 0 is none.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source(pub u32);

impl Source {
    /// Stands for several that found no row of their own.
    pub const SEVERAL: Self = Self(u32::MAX);

    /// Numbers above 65,535 are all one.
    #[must_use]
    pub const fn new(kind: InterruptKind, number: u32) -> Self {
        let number = if number > 0xffff { 0xffff } else { number };
        Self((kind as u32) << 16 | number)
    }

    /// The number within its kind.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0 & 0xffff
    }

    /// The kind; none for 0 and for several.
    #[must_use]
    pub fn kind(self) -> Option<InterruptKind> {
        InterruptKind::ALL
            .into_iter()
            .find(|kind| *kind as u32 == self.0 >> 16)
    }

    /// In which total it counts.
    #[must_use]
    pub const fn category(self) -> Category {
        match self.0 >> 16 {
            kind if kind == InterruptKind::Softirq as u32 => Category::Softirq,
            kind if kind == InterruptKind::Tick as u32 => Category::Tick,
            _ => Category::HardIrq,
        }
    }

    /// Its row in the table of all interrupts; device irqs beyond the table share its last irq row.
    #[must_use]
    pub const fn row(self) -> u32 {
        let number = self.number();
        match self.0 >> 16 {
            kind if kind == InterruptKind::Vector as u32 => VECTORS + (number & 15),
            kind if kind == InterruptKind::Softirq as u32 => SOFTIRQS + (number & 15),
            kind if kind == InterruptKind::Tick as u32 => TICKS + (number & 1),
            _ if number < LAST_IRQ => number,
            _ => LAST_IRQ,
        }
    }

    /// The interrupt of a row, the reverse of [`Self::row`].
    #[must_use]
    pub const fn of_row(row: u32) -> Self {
        if row >= TICKS {
            Self::new(InterruptKind::Tick, row - TICKS)
        } else if row >= SOFTIRQS {
            Self::new(InterruptKind::Softirq, row - SOFTIRQS)
        } else if row >= VECTORS {
            Self::new(InterruptKind::Vector, row - VECTORS)
        } else {
            Self::new(InterruptKind::HardIrq, row)
        }
    }
}

/// The row of device irqs with this number or a larger one.
pub const LAST_IRQ: u32 = 1023;
const VECTORS: u32 = LAST_IRQ + 1;
const SOFTIRQS: u32 = VECTORS + 16;
const TICKS: u32 = SOFTIRQS + 16;

/// Rows of the table of all interrupts.
pub const N_SOURCES: u32 = TICKS + 2;

/// All runs of one interrupt on one CPU. Time is exclusive: what interrupted it counts elsewhere.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptCounters {
    /// Runs that began.
    pub count: u64,
    /// Their time.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_sources_are_one_to_one() {
        for row in 0..N_SOURCES {
            assert_eq!(Source::of_row(row).row(), row);
        }
        assert_eq!(Source::new(InterruptKind::HardIrq, 70_000).row(), LAST_IRQ);
    }

    #[test]
    fn kinds_are_found_again() {
        for kind in InterruptKind::ALL {
            assert_eq!(Source::new(kind, 3).kind(), Some(kind));
            assert_eq!(Source::new(kind, 3).number(), 3);
        }
        assert_eq!(Source::default().kind(), None);
        assert_eq!(Source::SEVERAL.kind(), None);
    }
}
