//! Where the two ends of a ping-pong run.

use std::{fmt, str::FromStr};

use crate::topology::CpuPlace;

/// How the CPUs of the two ends are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The scheduler chooses.
    Auto,
    /// One CPU for both.
    Same,
    /// Two CPUs of one core.
    Smt,
    /// Two cores that share their last-level cache.
    Llc,
    /// CPUs that share no cache.
    Cross,
}

/// A placement on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Which.
    pub placement: Placement,
    /// The CPUs of the ends; none where the scheduler chooses.
    pub cpus: Option<[u32; 2]>,
}

const NAMES: [(Placement, &str); 5] = [
    (Placement::Auto, "auto"),
    (Placement::Same, "same"),
    (Placement::Smt, "smt"),
    (Placement::Llc, "llc"),
    (Placement::Cross, "cross"),
];

impl Placement {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Same, Self::Smt, Self::Llc, Self::Cross];

    /// Its name, in JSON too.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = NAMES.into_iter().find(|(placement, _)| *placement == self);
        found.map_or("", |(_, name)| name)
    }

    /// Where it is on a machine; else why it is not.
    pub fn on(self, cpus: &[CpuPlace]) -> Result<Spot, &'static str> {
        let (relation, why): (fn(CpuPlace, CpuPlace) -> bool, _) = match self {
            Self::Auto => return Ok(self.spot(None)),
            Self::Same => {
                // The last one, because the first has most of a machine's interrupts.
                let cpu = cpus.last().ok_or("there is no CPU")?.cpu;
                return Ok(self.spot(Some([cpu, cpu])));
            }
            Self::Smt => (
                |one, other| one.core == other.core,
                "no two CPUs are of one core",
            ),
            Self::Llc => (
                |one, other| one.core != other.core && one.cache == other.cache,
                "no two cores share their last-level cache",
            ),
            Self::Cross => (
                |one, other| one.cache != other.cache,
                "all CPUs share their last-level cache",
            ),
        };
        let pairs = cpus.iter().enumerate().rev().flat_map(|(index, one)| {
            let before = cpus[..index].iter().rev();
            before.map(move |other| (*one, *other))
        });
        let mut related = pairs.filter(|(one, other)| relation(*one, *other));
        let (one, other) = related.next().ok_or(why)?;
        Ok(self.spot(Some([one.cpu, other.cpu])))
    }

    const fn spot(self, cpus: Option<[u32; 2]>) -> Spot {
        Spot {
            placement: self,
            cpus,
        }
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.into_iter().find(|(_, name)| *name == text);
        found
            .map(|(placement, _)| placement)
            .ok_or_else(|| "a placement is one of auto, same, smt, llc, cross".into())
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn place(cpu: u32, core: u32, cache: u32) -> CpuPlace {
        CpuPlace { cpu, core, cache }
    }

    #[track_caller]
    fn check(machine: &[CpuPlace], expected: [Option<[u32; 2]>; 4]) {
        let wanted = [
            Placement::Same,
            Placement::Smt,
            Placement::Llc,
            Placement::Cross,
        ];
        let found = wanted.map(|placement| placement.on(machine).ok()?.cpus);
        assert_eq!(found, expected);
        assert_eq!(Placement::Auto.on(machine).unwrap().cpus, None);
    }

    #[test]
    fn a_single_cpu_has_one_place() {
        check(&[place(0, 0, 0)], [Some([0, 0]), None, None, None]);
    }

    #[test]
    fn two_cores_of_a_cache_have_no_siblings_and_nothing_across() {
        let machine = [place(0, 0, 0), place(1, 1, 0)];
        check(&machine, [Some([1, 1]), None, Some([1, 0]), None]);
    }

    #[test]
    fn a_server_has_all_places() {
        // Four cores of two threads each, numbered as usual: siblings are four apart.
        let machine: Vec<_> = (0..8)
            .map(|cpu| place(cpu, cpu % 4, cpu % 4 / 2 * 2))
            .collect();
        let expected = [[7, 7], [7, 3], [7, 6], [7, 5]].map(Some);
        check(&machine, expected);
    }

    #[test]
    fn placements_are_read_as_they_are_shown() {
        for placement in Placement::ALL {
            assert_eq!(placement.to_string().parse(), Ok(placement));
        }
        assert!("numa".parse::<Placement>().is_err());
    }
}
