//! Which bits of `thread_info.flags` ask for a reschedule.
//!
//! They are macros, so no type information holds them, and they have moved: the table of each machine
//! ([`arch`]) is keyed on what the types do show.

use super::{arch, btf::KernelTypes};

/// The bits of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReschedBits {
    /// Bit of `TIF_NEED_RESCHED`.
    pub urgent: u32,
    /// Bit of its lazy twin, where there is one.
    pub lazy: Option<u32>,
}

/// What the types show of a kernel, as far as the bits depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// Version, major and minor.
    #[cfg_attr(
        not(any(target_arch = "x86_64", test)),
        expect(dead_code, reason = "only the bits of x86 depend on it")
    )]
    pub(super) version: (u32, u32),
    /// `__resched_curr(rq, tif)`: lazy preemption is in the mainline code.
    pub(super) has_mainline_lazy: bool,
    /// `thread_info.preempt_lazy_count`: lazy preemption of the RT patch before it.
    pub(super) has_patch_lazy: bool,
}

impl ReschedBits {
    /// The bits of the running kernel.
    #[must_use]
    pub fn of(types: &KernelTypes, release: &str) -> Self {
        arch::resched_bits(Evidence {
            version: parse_version(release),
            has_mainline_lazy: types.has_function("__resched_curr"),
            has_patch_lazy: types
                .offset_of("thread_info", "preempt_lazy_count")
                .is_some(),
        })
    }

    /// The bits as a mask.
    #[must_use]
    pub fn mask(self) -> u64 {
        (1 << self.urgent) | self.lazy.map_or(0, |bit| 1 << bit)
    }
}

fn parse_version(release: &str) -> (u32, u32) {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_a_release() {
        assert_eq!(parse_version("6.12.117+deb13-cloud-amd64"), (6, 12));
        assert_eq!(parse_version("7.3.4+deb14-amd64"), (7, 3));
        assert_eq!(parse_version(""), (0, 0));
    }

    #[test]
    fn mask_has_both_bits() {
        let bits = ReschedBits {
            urgent: 4,
            lazy: Some(5),
        };
        assert_eq!(bits.mask(), 0x30);
    }
}
