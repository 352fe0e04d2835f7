//! Addresses of kernel functions, from `/proc/kallsyms`.
//!
//! They read as 0 without `CAP_SYSLOG` (or with `kptr_restrict` 2): then the tick cannot be recognised.

use std::io::{BufRead, BufReader};

/// Callbacks of the scheduler's timers; 0 where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerCallbacks {
    /// The tick's.
    pub tick: u64,
    /// The slice timer's.
    pub hrtick: u64,
}

impl TimerCallbacks {
    /// Reads them. `tick_name` is the callback's name on this kernel.
    #[must_use]
    pub fn read(tick_name: &str) -> Self {
        std::fs::File::open("/proc/kallsyms")
            .map(|file| Self::parse(BufReader::new(file), tick_name))
            .unwrap_or_default()
    }

    fn parse(symbols: impl BufRead, tick_name: &str) -> Self {
        let mut callbacks = Self::default();
        for line in symbols.lines().map_while(Result::ok) {
            let mut words = line.split_ascii_whitespace();
            let (address, name) = (words.next(), words.nth(1));
            // Functions of modules, which have a fourth word, may share a name.
            if words.next().is_some() {
                continue;
            }
            let address = address
                .and_then(|hex| u64::from_str_radix(hex, 16).ok())
                .unwrap_or(0);
            match name {
                Some(name) if name == tick_name => callbacks.tick = address,
                Some("hrtick") => callbacks.hrtick = address,
                _ => {}
            }
            if callbacks.tick != 0 && callbacks.hrtick != 0 {
                break;
            }
        }
        callbacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_and_modules_skipped() {
        let text = "ffffffff813aec00 t hrtick\n\
                    ffffffffc0000000 t tick_nohz_handler\t[mod]\n\
                    ffffffff81442220 t tick_nohz_handler\n";
        let callbacks = TimerCallbacks::parse(text.as_bytes(), "tick_nohz_handler");
        assert_eq!(callbacks.hrtick, 0xffff_ffff_813a_ec00);
        assert_eq!(callbacks.tick, 0xffff_ffff_8144_2220);
    }

    #[test]
    fn hidden_addresses_read_as_zero() {
        let text = "0000000000000000 t hrtick\n0000000000000000 t tick_sched_timer\n";
        let callbacks = TimerCallbacks::parse(text.as_bytes(), "tick_sched_timer");
        assert_eq!(callbacks, TimerCallbacks::default());
    }
}
