//! `perf bench sched pipe` and `messaging`: a total, and for pipes the time of a round trip.
//!
//! With `--format simple` it is the total in seconds alone.
//! Forking is within the time of `messaging`.

use super::{
    Malformed,
    number::{S, US, count, ns},
};
use crate::model::Claims;

/// What it says on its standard output.
pub(super) fn parse(text: &str) -> Result<Claims, Malformed> {
    let total = match super::after(text, "Total time:") {
        Some(total) => total,
        None => simple(text).ok_or_else(|| Malformed::missing("Total time:"))?,
    };
    let duration_ns = ns(total, S).ok_or_else(|| Malformed::text("Total time", total))?;
    let ns_per_operation = super::before(text, "usecs/op").and_then(|text| ns(text, US));
    Ok(Claims {
        duration_ns: Some(duration_ns),
        operations: super::after(text, "# Executed ").and_then(count),
        ns_per_operation,
        tasks: super::after(text, "groups == ").and_then(count),
        ..Claims::default()
    })
}

/// The only word of the text, when it begins like a number.
fn simple(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let only = words.next().filter(|word| {
        word.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    });
    only.filter(|_| words.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIPE: &str = include_str!("fixtures/perf_bench_pipe.txt");
    const MESSAGING: &str = include_str!("fixtures/perf_bench_messaging.txt");

    #[test]
    fn pipe_has_round_trips_and_their_time() {
        let claims = parse(PIPE).unwrap();
        assert_eq!(claims.duration_ns, Some(103_000_000));
        assert_eq!(claims.operations, Some(20_000));
        assert_eq!(claims.ns_per_operation, Some(5_183));
    }

    #[test]
    fn messaging_has_tasks() {
        let claims = parse(MESSAGING).unwrap();
        assert_eq!(claims.duration_ns, Some(87_000_000));
        assert_eq!((claims.tasks, claims.operations), (Some(80), None));
    }

    #[test]
    fn simple_format_is_the_total_alone() {
        assert_eq!(parse("0.127\n").unwrap().duration_ns, Some(127_000_000));
        assert!(parse("0.127 0.2\n").is_err());
    }

    #[test]
    fn hostile_texts_are_refused_in_words() {
        let refused = [
            ("", "'Total time:' is missing"),
            ("Segmentation fault", "'Total time:' is missing"),
            ("Total time: 1e9 [sec]", "'Total time'"),
            ("1.2.3", "'Total time'"),
        ];
        for (text, expected) in refused {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{expected}: {message}");
        }
        let odd = PIPE.replace("5.183100", "-5");
        assert_eq!(parse(&odd).unwrap().ns_per_operation, None);
    }
}
