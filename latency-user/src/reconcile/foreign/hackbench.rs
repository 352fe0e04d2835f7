//! hackbench: groups of senders and receivers, and one figure, the time until all are done.
//!
//! The clock starts when all tasks are there: making them is outside of its time.

use super::{
    Malformed,
    number::{S, count, ns},
};
use crate::model::Claims;

/// What it says on its standard output.
pub(super) fn parse(text: &str) -> Result<Claims, Malformed> {
    let time = super::after(text, "Time:").ok_or_else(|| Malformed::missing("Time:"))?;
    let duration_ns = ns(time, S).ok_or_else(|| Malformed::text("Time", time))?;
    let groups = super::after(text, " mode with ").and_then(count);
    let fds = super::after(text, " groups using ").and_then(count);
    let loops = super::after(text, "Each sender will pass ").and_then(count);
    let operations = groups
        .zip(fds)
        .zip(loops)
        .and_then(|((groups, fds), loops)| messages(groups, fds, loops));
    Ok(Claims {
        duration_ns: Some(duration_ns),
        ns_per_operation: operations.and_then(|n| duration_ns.checked_div(n)),
        operations,
        tasks: super::after(text, "(== ").and_then(count),
        ..Claims::default()
    })
}

/// Each sender of a group writes to each of its receivers, which are as many.
fn messages(groups: u64, fds: u64, loops: u64) -> Option<u64> {
    let pairs = (fds / 2).checked_mul(fds / 2)?;
    let all = groups.checked_mul(pairs)?.checked_mul(loops)?;
    count(&all.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESSES: &str = include_str!("fixtures/hackbench.txt");

    #[test]
    fn time_tasks_and_messages_are_read() {
        let claims = parse(PROCESSES).unwrap();
        assert_eq!(claims.duration_ns, Some(542_000_000));
        assert_eq!(claims.tasks, Some(80));
        assert_eq!(claims.operations, Some(2 * 20 * 20 * 500));
        assert_eq!(claims.ns_per_operation, Some(1_355));
        let threads = PROCESSES
            .replace("process mode", "threaded mode")
            .replace("with 2 groups", "with 1 groups");
        assert_eq!(parse(&threads).unwrap().operations, Some(200_000));
    }

    #[test]
    fn hostile_texts_are_refused_in_words() {
        let long = format!("Time: {}", "9".repeat(500));
        let refused = [
            ("", "'Time:' is missing"),
            ("Time:", "'Time:' is missing"),
            ("Time: -5", "'Time'"),
            (&long, "'Time'"),
        ];
        for (text, expected) in refused {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{expected}: {message}");
        }
        let huge = PROCESSES.replace("500 messages", "9007199254740991 messages");
        assert_eq!(parse(&huge).unwrap().operations, None);
        assert_eq!(parse("Time: 0.5").unwrap().tasks, None);
    }
}
