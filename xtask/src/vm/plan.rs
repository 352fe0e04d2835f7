//! What a machine of the matrix is, read from its name: `6.12-rt`, `newest`, `6.12-topology`, `6.12-arm64`.
//!
//! Promises: each machine's kernel, its CPUs, and which of the guest's lists of checks it runs.
//! Leaves to others: getting the kernel, and the checks.

use super::architecture::Architecture;

/// One machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan<'a> {
    /// As it is typed.
    pub(crate) name: &'a str,
    /// Series of the kernel, or `newest`.
    pub(crate) series: &'a str,
    /// Which build of it.
    pub(crate) build: Build,
    pub(crate) architecture: Architecture,
    /// Of the guest's checks, those whose name contains this; all, where it is none.
    pub(crate) only: Option<&'a str>,
    /// Its CPUs are on two sockets of two cores of two threads.
    has_topology: bool,
}

/// A build of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// For virtual machines, which is small.
    Cloud,
    /// With `PREEMPT_RT`.
    RealTime,
    /// None of Debian's, but built from its sources: with `PROVE_LOCKING`.
    Lockdep,
}

impl<'a> Plan<'a> {
    /// The machine of this name.
    pub(crate) fn of(name: &'a str, only: Option<&'a str>) -> Self {
        let (kernel, has_topology) = match name.strip_suffix("-topology") {
            Some(kernel) => (kernel, true),
            None => (name, false),
        };
        let arm64 = Architecture::Arm64;
        let (kernel, architecture) = match kernel.strip_suffix(arm64.suffix()) {
            Some(kernel) => (kernel, arm64),
            None => (kernel, Architecture::Amd64),
        };
        let builds = [Build::RealTime, Build::Lockdep];
        let named = builds.into_iter().find_map(|build| {
            let series = kernel.strip_suffix(build.ending())?;
            Some((series, build))
        });
        let (series, build) = named.unwrap_or((kernel, Build::Cloud));
        Self {
            name,
            series,
            build,
            architecture,
            only,
            has_topology,
        }
    }

    /// Whether the matrix may leave it out where what it needs cannot be had: a release past its support is
    /// on mirrors for some time only, and another architecture takes a Rust and a Debian that have it.
    pub(crate) fn is_optional(self) -> bool {
        self.series == "5.10" || self.architecture.target().is_some()
    }

    /// Whether schedlat has to refuse this kernel: 5.10 has no task storage for tracing, and real-time
    /// kernels before 6.4 must not allocate it at tracepoints.
    fn is_refused(self) -> bool {
        matches!(
            (self.series, self.build),
            ("5.10", _) | ("6.1", Build::RealTime)
        )
    }

    /// The guest's list of checks.
    pub(crate) fn checks(self) -> &'static str {
        if self.is_refused() {
            "refusal"
        } else if self.has_topology {
            "topology"
        } else if self.build == Build::Lockdep {
            "lockdep"
        } else {
            "all"
        }
    }

    /// The emulator's `-smp`.
    pub(crate) const fn cpus(self) -> &'static str {
        if self.has_topology {
            "8,sockets=2,cores=2,threads=2"
        } else {
            "2"
        }
    }
}

impl Build {
    /// As the names of machines and packages end, before the architecture.
    pub(crate) const fn ending(self) -> &'static str {
        match self {
            Self::Cloud => "-cloud",
            Self::RealTime => "-rt",
            Self::Lockdep => "-lockdep",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, series: &str, build: Build, checks: &str) {
        let plan = Plan::of(name, None);
        assert_eq!((plan.series, plan.build), (series, build), "{name}");
        assert_eq!(plan.checks(), checks, "{name}");
        assert_eq!(plan.cpus() == "2", checks != "topology", "{name}");
    }

    #[test]
    fn names_say_the_kernel_its_build_and_the_checks() {
        check("6.12", "6.12", Build::Cloud, "all");
        check("newest-rt", "newest", Build::RealTime, "all");
        check("6.12-topology", "6.12", Build::Cloud, "topology");
        check("6.12-lockdep", "6.12", Build::Lockdep, "lockdep");
    }

    #[test]
    fn architecture_is_the_builders_or_the_one_named() {
        let check = |name, expected| {
            let plan = Plan::of(name, None);
            assert_eq!((plan.build, plan.architecture), expected, "{name}");
            assert_eq!(plan.series, "6.12", "{name}");
        };
        check("6.12", (Build::Cloud, Architecture::Amd64));
        check("6.12-arm64", (Build::Cloud, Architecture::Arm64));
        check("6.12-rt-arm64", (Build::RealTime, Architecture::Arm64));
        check("6.12-arm64-topology", (Build::Cloud, Architecture::Arm64));
    }

    #[test]
    fn kernels_that_lack_what_is_needed_have_to_be_refused() {
        check("5.10", "5.10", Build::Cloud, "refusal");
        check("6.1-rt", "6.1", Build::RealTime, "refusal");
        check("6.1", "6.1", Build::Cloud, "all");
    }

    #[test]
    fn matrix_may_lack_a_past_release_and_another_architecture() {
        assert!(Plan::of("5.10", None).is_optional());
        assert!(Plan::of("6.12-arm64", None).is_optional());
        assert!(!Plan::of("6.1-rt", None).is_optional());
    }
}
