//! Globs on task names, compiled for the kernel side: characters, `*`, `?`, `[abc]`, `[a-z]`, `[!a]`, `\x`.

use latency_common::select::{GLOB_ELEMENTS, Glob};

use crate::Error;

/// Compiles a glob.
pub(crate) fn compile(pattern: &str) -> Result<Glob, Error> {
    let bad = |reason: &str| Error::BadGlob {
        glob: pattern.to_owned(),
        reason: reason.to_owned(),
    };
    let mut glob = Glob {
        accepts: [0; 256],
        stars: 0,
        accept_state: 0,
    };
    let mut n_elements = 0;
    let mut bytes = pattern.bytes();
    if pattern.is_empty() {
        return Err(bad("it is empty and would match nothing"));
    }
    while let Some(byte) = bytes.next() {
        if byte == b'*' {
            glob.stars |= 1 << n_elements;
            continue;
        }
        if n_elements == GLOB_ELEMENTS {
            return Err(bad("it is longer than any task name"));
        }
        let accepted = match byte {
            b'?' => [true; 256],
            b'[' => class(&mut bytes).ok_or_else(|| bad("'[' has no closing ']'"))?,
            b'\\' => one(bytes
                .next()
                .ok_or_else(|| bad("nothing follows the last '\\'"))?),
            byte => one(byte),
        };
        for (mask, is_accepted) in glob.accepts.iter_mut().zip(accepted) {
            *mask |= u64::from(is_accepted) << n_elements;
        }
        n_elements += 1;
    }
    glob.accept_state = 1 << n_elements;
    Ok(glob)
}

fn one(byte: u8) -> [bool; 256] {
    let mut accepted = [false; 256];
    accepted[usize::from(byte)] = true;
    accepted
}

/// The rest of a class after `[`; `None` without its end.
fn class(bytes: &mut std::str::Bytes<'_>) -> Option<[bool; 256]> {
    let mut accepted = [false; 256];
    let mut rest = bytes.clone().peekable();
    let is_negated = rest.next_if(|byte| matches!(byte, b'!' | b'^')).is_some();
    let mut is_first = true;
    loop {
        let mut low = rest.next()?;
        // A `]` right after the opening belongs to the class.
        if low == b']' && !is_first {
            break;
        }
        if low == b'\\' {
            low = rest.next()?;
        }
        is_first = false;
        let mut high = low;
        let mut ahead = rest.clone();
        if ahead.next() == Some(b'-') && ahead.peek().is_some_and(|byte| *byte != b']') {
            high = ahead.next()?;
            rest = ahead;
        }
        for byte in low..=high {
            accepted[usize::from(byte)] = true;
        }
    }
    let n_left = rest.count();
    bytes.nth(bytes.len() - n_left - 1);
    Some(if is_negated {
        accepted.map(|is_accepted| !is_accepted)
    } else {
        accepted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel side does it.
    fn matches(pattern: &str, name: &str) -> bool {
        let glob = compile(pattern).unwrap();
        let last = name
            .bytes()
            .fold(Glob::START, |state, byte| glob.step(state, byte));
        last & glob.accept_state != 0
    }

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        for name in matching {
            assert!(matches(pattern, name), "'{pattern}' should match '{name}'");
        }
        for name in others {
            assert!(
                !matches(pattern, name),
                "'{pattern}' should not match '{name}'"
            );
        }
    }

    #[test]
    fn plain_name_matches_itself_only() {
        check("bash", &["bash"], &["", "bas", "bash2", "xbash"]);
    }

    #[test]
    fn star_matches_any_run_even_an_empty_one() {
        check(
            "postgres*",
            &["postgres", "postgres: walwr"],
            &["postgre", "xpostgres"],
        );
        check("*worker*", &["kworker/0:1", "worker"], &["work"]);
        check("a*b*c", &["abc", "axxbxxc", "abcbc"], &["ab", "acb"]);
        check("*", &["", "anything"], &[]);
    }

    #[test]
    fn question_mark_matches_one_byte() {
        check("cpu?", &["cpu0", "cpu1"], &["cpu", "cpu10"]);
    }

    #[test]
    fn classes_take_ranges_and_negation() {
        check("[a-c]x", &["ax", "cx"], &["dx", "x"]);
        check("[!a-c]x", &["dx"], &["ax"]);
        check("[]a]", &["]", "a"], &["b"]);
        check("[a-]", &["a", "-"], &["b"]);
        check("kworker/[0-9]*", &["kworker/0:1"], &["kworker/u8:2"]);
    }

    #[test]
    fn backslash_takes_the_next_byte_as_it_is() {
        check(r"\*", &["*"], &["a"]);
    }

    #[test]
    fn open_class_and_empty_glob_are_errors() {
        assert!(compile("[a").is_err());
        assert!(compile("").is_err());
        assert!(compile("\\").is_err());
        assert!(compile(&"a".repeat(64)).is_err());
    }
}
