//! Names from the kernel made printable: any bytes in, one line of harmless UTF-8 out.
//!
//! A task can call itself `\x1b[31m` or end a JSON line; every name passes here once, on its way
//! into a report, so no format has to think of it again. What is printable stays as it is, a
//! backslash too (systemd's cgroups are full of them): a name is for people, identity is the ids.

use std::fmt::Write as _;

/// A task's name: the bytes up to the first NUL, control characters and invalid UTF-8 as `\xNN`.
#[must_use]
pub fn bytes(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in up_to_nul(name).utf8_chunks() {
        push_printable(&mut out, chunk.valid());
        push_hex(&mut out, chunk.invalid());
    }
    out
}

/// A text that may hold control characters, e.g. the path of a cgroup.
#[must_use]
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_printable(&mut out, text);
    out
}

/// The bytes of a name without its padding.
#[must_use]
pub fn up_to_nul(name: &[u8]) -> &[u8] {
    let end = name
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(name.len());
    &name[..end]
}

fn push_printable(out: &mut String, text: &str) {
    for character in text.chars() {
        if character.is_control() || reorders_line(character) {
            push_hex(out, character.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            out.push(character);
        }
    }
}

/// Whether a terminal would break or reorder the line at this character.
const fn reorders_line(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // SANITY: writing to a String cannot fail.
        write!(out, "\\x{byte:02x}").expect("a String takes any text");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &[u8], expected: &str) {
        assert_eq!(bytes(name), expected);
    }

    #[test]
    fn plain_name_stays_and_padding_goes() {
        check(b"kworker/1:1H\0\0\0\0", "kworker/1:1H");
        check("größe\0junk".as_bytes(), "größe");
        check(b"", "");
    }

    /// C035 of the case collection.
    #[test]
    fn hostile_name_is_escaped_and_recognisable() {
        check(
            b"\xff\xfe\";|\n\x1b[31mA\0",
            "\\xff\\xfe\";|\\x0a\\x1b[31mA",
        );
    }

    #[test]
    fn name_cut_within_a_character_keeps_its_front() {
        check(b"caf\xc3", "caf\\xc3");
    }

    #[test]
    fn text_that_reorders_the_line_is_escaped() {
        assert_eq!(text("/a\u{202e}b\u{85}c"), "/a\\xe2\\x80\\xaeb\\xc2\\x85c");
        assert_eq!(text("a\u{61c}b"), "a\\xd8\\x9cb");
    }

    #[test]
    fn backslash_of_a_systemd_path_stays() {
        assert_eq!(
            text("/system-serial\\x2dgetty.slice"),
            "/system-serial\\x2dgetty.slice"
        );
    }
}
