//! Which bits of `thread_info.flags` ask for a reschedule.
//!
//! They are macros, so no type information holds them, and they have moved: this table is keyed on
//! what the types do show. Sources: `arch/*/include/asm/thread_info.h` of the versions named.

use super::btf::KernelTypes;

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
struct Evidence {
    /// Version, major and minor.
    version: (u32, u32),
    /// `__resched_curr(rq, tif)`: lazy preemption is in the mainline code.
    has_mainline_lazy: bool,
    /// `thread_info.preempt_lazy_count`: lazy preemption of the RT patch before it.
    has_patch_lazy: bool,
}

impl ReschedBits {
    /// The bits of the running kernel.
    #[must_use]
    pub fn of(types: &KernelTypes, release: &str) -> Self {
        Self::choose(Evidence {
            version: parse_version(release),
            has_mainline_lazy: types.has_function("__resched_curr"),
            has_patch_lazy: types
                .offset_of("thread_info", "preempt_lazy_count")
                .is_some(),
        })
    }

    #[cfg(target_arch = "x86_64")]
    fn choose(evidence: Evidence) -> Self {
        match evidence {
            // 5.10-rt to 6.1-rt; 31 was the bit of 5.10-rt, 19 that of 6.1-rt.
            Evidence {
                has_patch_lazy: true,
                version,
                ..
            } => Self {
                urgent: 3,
                lazy: Some(if version < (5, 16) { 31 } else { 19 }),
            },
            // 6.18 took the bit list shared with other architectures.
            Evidence { version, .. } if version >= (6, 18) => Self {
                urgent: 4,
                lazy: Some(5),
            },
            // 6.13, and 6.12-rt, which carries the same patches.
            Evidence {
                has_mainline_lazy: true,
                ..
            } => Self {
                urgent: 3,
                lazy: Some(4),
            },
            _ => Self {
                urgent: 3,
                lazy: None,
            },
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn choose(evidence: Evidence) -> Self {
        match evidence {
            Evidence {
                has_patch_lazy: true,
                ..
            } => Self {
                urgent: 1,
                lazy: Some(8),
            },
            Evidence {
                has_mainline_lazy: true,
                ..
            } => Self {
                urgent: 1,
                lazy: Some(2),
            },
            _ => Self {
                urgent: 1,
                lazy: None,
            },
        }
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
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    fn check(release: &str, mainline_lazy: bool, patch_lazy: bool, expected: (u32, Option<u32>)) {
        let bits = ReschedBits::choose(Evidence {
            version: parse_version(release),
            has_mainline_lazy: mainline_lazy,
            has_patch_lazy: patch_lazy,
        });
        assert_eq!((bits.urgent, bits.lazy), expected, "{release}");
    }

    #[test]
    fn mainline_before_lazy() {
        check("6.1.0-18-amd64", false, false, (3, None));
        check("6.12.117+deb13-cloud-amd64", false, false, (3, None));
    }

    #[test]
    fn rt_patch_before_mainline_lazy() {
        check("5.10.0-30-rt-amd64", false, true, (3, Some(31)));
        check("6.1.0-18-rt-amd64", false, true, (3, Some(19)));
    }

    #[test]
    fn mainline_lazy() {
        check("6.12.117+deb13-rt-amd64", true, false, (3, Some(4)));
        check("6.17.13", true, false, (3, Some(4)));
    }

    #[test]
    fn shared_bit_list() {
        check("6.18.44", true, false, (4, Some(5)));
        check("7.3.4+deb14-amd64", true, false, (4, Some(5)));
    }

    #[test]
    fn mask_has_both_bits() {
        assert_eq!(
            ReschedBits {
                urgent: 4,
                lazy: Some(5)
            }
            .mask(),
            0x30
        );
    }
}
