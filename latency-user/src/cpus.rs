//! CPUs: lists as they are typed, those that are online, and binding a thread to one.

use std::{fmt, fs, io, str::FromStr};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Error;

/// CPUs in ascending order, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(Vec<u32>);

/// Why a text is no list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no list of CPUs; write numbers and ranges, e.g. 0,2-3")]
pub struct CpuListError(String);

impl CpuList {
    /// Those that are online; none where that cannot be read.
    #[must_use]
    pub fn online() -> Self {
        let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        list.trim_end().parse().unwrap_or_default()
    }

    /// Those the calling thread may run on.
    pub fn allowed() -> io::Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        Ok(Self(
            cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect(),
        ))
    }

    /// These, if all of them are online. A mask that was inherited forbids none of them.
    pub fn check_online(self) -> Result<Self, Error> {
        let online = Self::online();
        match self.0.iter().find(|cpu| !online.0.contains(cpu)) {
            Some(cpu) => Err(Error::NoCpu {
                cpu: *cpu,
                online: online.to_string(),
            }),
            None => Ok(self),
        }
    }

    /// One after the other.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }
}

/// That it is not known where a thread may run.
#[must_use]
pub fn unknown(source: io::Error) -> Error {
    Error::Read {
        what: "the CPUs that this process may run on".into(),
        source,
    }
}

/// Where the calling thread may run, which is put back when this is dropped.
#[derive(Debug)]
pub struct Affinity {
    before: CpuSet,
}

impl Affinity {
    /// As it is now.
    pub fn keep() -> io::Result<Self> {
        Ok(Self {
            before: sched_getaffinity(None)?,
        })
    }

    /// As it is now; until then the thread is kept off these CPUs, where it may use others.
    pub fn keep_off(cpus: &[u32]) -> io::Result<Self> {
        let this = Self::keep()?;
        let mut others = this.before;
        for cpu in cpus.iter().filter_map(|cpu| usize::try_from(*cpu).ok()) {
            others.unset(cpu);
        }
        if others.count() > 0 {
            sched_setaffinity(None, &others)?;
        }
        Ok(this)
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        // A CPU that went offline meanwhile is one less.
        sched_setaffinity(None, &self.before).unwrap_or_default();
    }
}

/// Binds the calling thread to a CPU.
pub fn pin(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    let cpu = usize::try_from(cpu).unwrap_or(usize::MAX);
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let error = || CpuListError(text.to_owned());
        let mut cpus = Vec::new();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let first: u32 = first.parse().ok().ok_or_else(error)?;
            let last: u32 = last.parse().ok().ok_or_else(error)?;
            let is_range =
                first <= last && usize::try_from(last).is_ok_and(|n| n < CpuSet::MAX_CPU);
            if !is_range {
                return Err(error());
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|cpu, next| cpu + 1 == *next);
        for (index, run) in runs.enumerate() {
            let separator = if index == 0 { "" } else { "," };
            match run {
                [only] => write!(formatter, "{separator}{only}")?,
                [first, .., last] => write!(formatter, "{separator}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, cpus: &[u32], shown: &str) {
        let list: CpuList = text.parse().unwrap();
        assert_eq!(
            (list.as_slice(), list.to_string().as_str()),
            (cpus, shown),
            "{text}"
        );
    }

    #[test]
    fn numbers_and_ranges_are_a_list_without_repetition() {
        check("0", &[0], "0");
        check("3,0-1", &[0, 1, 3], "0-1,3");
        check("2,2,1-2", &[1, 2], "1-2");
        check("1023", &[1023], "1023");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "a", "1,", "-1", "3-1", "0-", "1024", "0-4294967295"] {
            let refused = text.parse::<CpuList>();
            assert_eq!(refused, Err(CpuListError(text.to_owned())));
        }
    }

    #[test]
    fn thread_is_bound_where_it_was_told_to() {
        let cpus = CpuList::allowed().unwrap();
        let cpu = *cpus.as_slice().last().unwrap();
        let bound = std::thread::spawn(move || {
            pin(cpu).unwrap();
            CpuList::allowed().unwrap()
        });
        assert_eq!(bound.join().unwrap().as_slice(), [cpu]);
        assert!(pin(1_000_000).is_err());
    }

    #[test]
    fn thread_is_kept_off_where_there_are_others_and_comes_back() {
        let kept_off = std::thread::spawn(|| {
            let all = CpuList::allowed().unwrap();
            let (first, rest) = all.as_slice().split_first().unwrap();
            let kept_off = Affinity::keep_off(&[*first]).unwrap();
            let allowed = CpuList::allowed().unwrap();
            let expected = if rest.is_empty() {
                all.as_slice()
            } else {
                rest
            };
            assert_eq!(allowed.as_slice(), expected);
            drop(kept_off);
            assert_eq!(CpuList::allowed().unwrap(), all);
        });
        kept_off.join().unwrap();
    }

    #[test]
    fn cpu_that_is_not_online_is_refused_by_its_number() {
        let error = CpuList(vec![1023]).check_online().unwrap_err();
        assert!(error.to_string().contains("1023"), "{error}");
        let online = CpuList::online();
        assert_eq!(online.clone().check_online().unwrap(), online);
    }
}
