//! Kernel paths: stacks with names, and for each culprit where most of its time in the kernel went.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use latency_common::timeline::StackHandle;

use super::escape;
use crate::model::{
    ASLEEP, KernelPaths, LEAVING_KERNEL, MainPath, Observation, Parts, PathStats, StackStats,
    StackTally, USER_SPACE,
};
use crate::units;

/// Where a task was: its system call, and its functions, leaf first.
pub(super) type Path = (Option<String>, Vec<String>);

/// All paths of an observation whose other tasks took the time in `parts`.
pub(super) fn stacks(observation: &Observation, parts: &Parts) -> PathStats {
    let stacks = named(&observation.stacks, &observation.names.paths);
    let known_ns: u64 = stacks.iter().map(|row| row.sum_ns).sum();
    let whole_ns = parts.other_tasks.sum_ns + parts.unattributed.sum_ns;
    // The stacks are read a little later than the parts.
    let share = || 100.0 * units::ratio(known_ns.min(whole_ns), whole_ns);
    PathStats {
        main: main_paths(&stacks),
        stacks,
        stacks_coverage_pct: observation
            .stacks_over_ns
            .filter(|_| whole_ns > 0)
            .map(|_| share()),
        stacks_over_ns: observation.stacks_over_ns,
    }
}

/// The stacks that have names, largest sum first; those that read alike are one.
fn named(stacks: &[StackTally], paths: &KernelPaths) -> Vec<StackStats> {
    let mut rows: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for stack in stacks {
        let Some((syscall, frames)) = path(stack.stack, paths) else {
            continue;
        };
        let comm = escape::bytes(&stack.comm);
        let key = (comm, stack.is_kernel_thread, syscall, frames);
        let (sum_ns, count) = rows.entry(key).or_default();
        *sum_ns += stack.sum_ns;
        *count += stack.count;
    }
    let rows = rows.into_iter();
    let mut rows: Vec<_> = rows
        .map(
            |((comm, kernel_thread, syscall, frames), (sum_ns, count))| StackStats {
                comm,
                kernel_thread,
                syscall,
                frames,
                sum_ns,
                count,
            },
        )
        .collect();
    rows.sort_by_key(|row| Reverse(row.sum_ns));
    rows
}

/// Where a task was by its stack; none where that has no names.
pub(super) fn path(stack: StackHandle, paths: &KernelPaths) -> Option<Path> {
    let frames: Vec<_> = paths
        .get(&stack.id()?)?
        .iter()
        .map(|frame| escape::text(frame))
        .collect();
    if frames.is_empty() {
        return Some((None, vec![USER_SPACE.to_owned()]));
    }
    let syscall = stack.syscall();
    Some((syscall.map(|number| syscall_name(number, &frames)), frames))
}

/// The name of a system call. 32-bit programs have numbers of their own.
fn syscall_name(number: u32, frames: &[String]) -> String {
    if frames.iter().any(|frame| is_compat_entry(frame)) {
        return format!("32-bit syscall {number}");
    }
    let known = usize::try_from(number).ok().and_then(syscalls::Sysno::new);
    known.map_or_else(|| format!("syscall {number}"), |it| it.name().to_owned())
}

/// Where a 32-bit program enters the kernel.
fn is_compat_entry(frame: &str) -> bool {
    frame.starts_with("entry_") && frame.contains("compat")
        || frame.contains("int80")
        || matches!(frame, "do_fast_syscall_32" | "el0t_32_sync")
}

/// For each culprit, the innermost function in which most of its time in the kernel was spent.
fn main_paths(stacks: &[StackStats]) -> Vec<MainPath> {
    let mut by_culprit: BTreeMap<_, Vec<&StackStats>> = BTreeMap::new();
    for stack in stacks.iter().filter(|stack| is_in_kernel(stack)) {
        let culprit = (&stack.comm, stack.kernel_thread);
        by_culprit.entry(culprit).or_default().push(stack);
    }
    let culprits = by_culprit.into_iter();
    culprits
        .filter_map(|((comm, kernel_thread), stacks)| {
            let (function, sum_ns) = innermost(stacks)?;
            Some(MainPath {
                comm: comm.clone(),
                kernel_thread,
                function: function.to_owned(),
                sum_ns,
            })
        })
        .collect()
}

/// Whether it is known to have worked there.
fn is_in_kernel(stack: &StackStats) -> bool {
    stack.frames[0] != USER_SPACE && stack.frames[0] != ASLEEP
}

/// Descends from the root as long as one function has more than half of the time.
fn innermost(mut stacks: Vec<&StackStats>) -> Option<(&str, u64)> {
    let mut whole_ns: u64 = stacks.iter().map(|stack| stack.sum_ns).sum();
    let mut found = None;
    for depth in 0.. {
        let mut sums: HashMap<&str, u64> = HashMap::new();
        for stack in &stacks {
            if let Some(frame) = frame_at(stack, depth) {
                *sums.entry(frame).or_default() += stack.sum_ns;
            }
        }
        let most = sums
            .into_iter()
            .max_by_key(|(name, ns)| (*ns, Reverse(*name)));
        let Some((name, ns)) = most.filter(|(_, ns)| *ns > whole_ns / 2) else {
            break;
        };
        stacks.retain(|stack| frame_at(stack, depth) == Some(name));
        whole_ns = ns;
        if !is_entry(name) {
            found = Some((name, ns));
        }
    }
    found
}

/// The function at a depth from the root.
fn frame_at(stack: &StackStats, depth: usize) -> Option<&str> {
    let index = stack.frames.len().checked_sub(depth + 1)?;
    Some(&stack.frames[index])
}

/// Functions in which every task is that enters or leaves the kernel.
fn is_entry(name: &str) -> bool {
    const PREFIXES: [&str; 10] = [
        "entry_",
        "asm_",
        "do_syscall_64",
        "x64_sys_call",
        "ret_from_fork",
        "kthread",
        "el0",
        "invoke_syscall",
        "irqentry_exit",
        LEAVING_KERNEL,
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::comm;
    use crate::model::KernelNames;
    use crate::model::PartStats;

    const READ: i32 = 0;

    fn tally(name: &str, stack: StackHandle, sum_ns: u64) -> StackTally {
        StackTally {
            comm: comm(name),
            is_kernel_thread: false,
            stack,
            sum_ns,
            count: 1,
        }
    }

    fn paths(rows: &[(u32, &str)]) -> KernelPaths {
        let frames = |text: &str| text.split_whitespace().map(Into::into).collect();
        rows.iter().map(|(id, text)| (*id, frames(text))).collect()
    }

    fn observation(stacks: Vec<StackTally>, rows: &[(u32, &str)]) -> Observation {
        Observation {
            stacks,
            names: KernelNames {
                paths: paths(rows),
                ..KernelNames::default()
            },
            stacks_over_ns: Some(1_000_000),
            ..Observation::default()
        }
    }

    fn parts(other_tasks_ns: u64) -> Parts {
        Parts {
            other_tasks: PartStats {
                sum_ns: other_tasks_ns,
            },
            ..Parts::default()
        }
    }

    /// C034: number 0 is a stack like any other, and one without names leaves the others whole.
    #[test]
    fn stacks_that_read_alike_are_one_and_those_without_names_are_not_covered() {
        let stacks = vec![
            tally("cp", StackHandle::new(0, READ), 30),
            tally("cp", StackHandle::new(1, READ), 12),
            tally("cp", StackHandle::new(2, -1), 40),
            tally("cp", StackHandle::new(9, -1), 18),
        ];
        let rows = [
            (0, "read_zero vfs_read"),
            (1, "read_zero vfs_read"),
            (2, ""),
        ];
        let found = super::stacks(&observation(stacks, &rows), &parts(100));
        let shown = found.stacks.iter().map(|row| {
            (
                row.syscall.as_deref(),
                row.frames.join(" "),
                row.sum_ns,
                row.count,
            )
        });
        let shown: Vec<_> = shown.collect();
        let expected = [
            (Some("read"), "read_zero vfs_read".to_owned(), 42, 2),
            (None, USER_SPACE.to_owned(), 40, 1),
        ];
        assert_eq!(shown, expected);
        assert_eq!(found.stacks_coverage_pct, Some(82.0));
    }

    #[test]
    fn without_names_nothing_is_covered() {
        let stacks = vec![tally("cp", StackHandle::new(0, READ), 30)];
        let found = super::stacks(&observation(stacks, &[]), &parts(100));
        assert_eq!(
            (found.stacks.len(), found.stacks_coverage_pct),
            (0, Some(0.0))
        );
        let none = super::stacks(&observation(Vec::new(), &[]), &parts(0));
        assert_eq!(none.stacks_coverage_pct, None);
    }

    #[test]
    fn system_call_is_named_where_its_number_is_known() {
        let name = |number, frames: &[&str]| {
            let frames: Vec<_> = frames.iter().map(ToString::to_string).collect();
            syscall_name(number, &frames)
        };
        let native = ["ksys_read", "do_syscall_64"];
        assert_eq!(name(0, &native), syscalls::Sysno::new(0).unwrap().name());
        assert_eq!(name(5_000, &native), "syscall 5000");
        let compat = [
            "ksys_read",
            "do_fast_syscall_32",
            "entry_SYSENTER_compat_after_hwframe",
        ];
        assert_eq!(name(3, &compat), "32-bit syscall 3");
    }

    #[test]
    fn culprit_is_mostly_in_the_innermost_function_with_most_of_its_time() {
        let stacks = vec![
            tally("cp", StackHandle::new(0, READ), 30),
            tally("cp", StackHandle::new(1, READ), 25),
            tally("cp", StackHandle::new(2, READ), 20),
            tally("cp", StackHandle::new(3, -1), 500),
            tally("cp", StackHandle::new(4, READ), 600),
        ];
        let rows = [
            (0, "clear_page read_zero vfs_read do_syscall_64"),
            (1, "iov_iter_zero read_zero vfs_read do_syscall_64"),
            (2, "do_munmap do_syscall_64"),
            (3, ""),
            (4, "[sleep] pipe_read vfs_read do_syscall_64"),
        ];
        let found = super::stacks(&observation(stacks, &rows), &parts(600));
        let [main] = &found.main[..] else {
            panic!("{:?}", found.main);
        };
        assert_eq!((&*main.function, main.sum_ns), ("clear_page", 30));
    }
}
