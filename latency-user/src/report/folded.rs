//! Kernel paths for flame graphs: one line per path, weighted by the nanoseconds that tasks waited.
//!
//! `comm;system call;root;…;leaf N`, as `flamegraph.pl` and `inferno` read it. The system call is left
//! out where there was none.

use std::fmt::Write as _;

use crate::model::{Report, StackStats};

/// All paths, largest first.
#[must_use]
pub fn render(report: &Report) -> String {
    report.stacks.stacks.iter().map(line).collect()
}

fn line(stack: &StackStats) -> String {
    let frames = stack.frames.iter().rev();
    let names = [&stack.comm]
        .into_iter()
        .chain(&stack.syscall)
        .chain(frames);
    let names: Vec<_> = names.map(|name| escaped(name)).collect();
    format!("{} {}\n", names.join(";"), stack.sum_ns)
}

/// Without what separates frames and figures.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        if character == ';' || character.is_whitespace() {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                // SANITY: writing to a String cannot fail.
                write!(out, "\\x{byte:02x}").expect("a String takes any text");
            }
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PathStats;

    fn stack(comm: &str, syscall: Option<&str>, frames: &[&str]) -> StackStats {
        StackStats {
            comm: comm.into(),
            syscall: syscall.map(Into::into),
            frames: frames.iter().map(ToString::to_string).collect(),
            sum_ns: 1_234,
            ..StackStats::default()
        }
    }

    fn rendered(stacks: Vec<StackStats>) -> String {
        render(&Report {
            stacks: PathStats {
                stacks,
                ..PathStats::default()
            },
            ..Report::default()
        })
    }

    /// C034: from the root to the leaf.
    #[test]
    fn root_comes_first_and_the_weight_last() {
        let read = stack(
            "cp",
            Some("read"),
            &["read_zero", "vfs_read", "do_syscall_64"],
        );
        let user = stack("burn", None, &["[user]"]);
        let expected = "cp;read;do_syscall_64;vfs_read;read_zero 1234\nburn;[user] 1234\n";
        assert_eq!(rendered(vec![read, user]), expected);
        assert_eq!(rendered(Vec::new()), "");
    }

    #[test]
    fn names_cannot_break_a_line_or_a_frame() {
        let odd = stack("a; b 7\u{3000}", Some("syscall 500"), &["x"]);
        let expected = "a\\x3b\\x20b\\x207\\xe3\\x80\\x80;syscall\\x20500;x 1234\n";
        assert_eq!(rendered(vec![odd]), expected);
    }
}
