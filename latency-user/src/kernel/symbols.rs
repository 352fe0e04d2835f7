//! Addresses of kernel functions, from `/proc/kallsyms`.
//!
//! They read as 0 without `CAP_SYSLOG` (or with `kptr_restrict` 2): then neither the tick nor a hint to
//! a wakeup can be recognised.

use std::io::{BufRead, BufReader};

use latency_common::attribution::N_SYNC_FUNCTIONS;

/// Functions that wake a task with the hint that the waker is about to sleep.
const SYNC_FUNCTIONS: [&str; N_SYNC_FUNCTIONS] = [
    "__wake_up_sync_key",
    "__wake_up_locked_sync_key",
    "__wake_up_sync",
];

/// Addresses that the programs compare with; 0 where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The tick's callback.
    pub tick: u64,
    /// The slice timer's callback.
    pub hrtick: u64,
    /// Where each of the functions that wake with a hint begins, and the next symbol.
    pub sync_functions: [(u64, u64); N_SYNC_FUNCTIONS],
}

impl Addresses {
    /// Reads them. `tick_name` is the name of the tick's callback on this kernel.
    #[must_use]
    pub fn read(tick_name: &str) -> Self {
        std::fs::File::open("/proc/kallsyms")
            .map(|file| Self::parse(BufReader::new(file), tick_name))
            .unwrap_or_default()
    }

    fn parse(symbols: impl BufRead, tick_name: &str) -> Self {
        let mut found = Self::default();
        // The function whose end is the address of the next symbol: the list is sorted.
        let mut open: Option<usize> = None;
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
            if let Some(function) = open.take() {
                found.sync_functions[function].1 = address;
            }
            let Some(name) = name else { continue };
            if name == tick_name {
                found.tick = address;
            } else if name == "hrtick" {
                found.hrtick = address;
            } else if let Some(function) = SYNC_FUNCTIONS.iter().position(|sync| *sync == name) {
                found.sync_functions[function].0 = address;
                open = Some(function);
            }
        }
        found
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
        let found = Addresses::parse(text.as_bytes(), "tick_nohz_handler");
        assert_eq!(found.hrtick, 0xffff_ffff_813a_ec00);
        assert_eq!(found.tick, 0xffff_ffff_8144_2220);
    }

    #[test]
    fn a_function_ends_where_the_next_symbol_begins() {
        let text = "ffffffff813df330 T __wake_up_sync_key\n\
                    ffffffff813df3a0 T __pfx___wake_up_sync\n\
                    ffffffff813df3b0 T __wake_up_sync\n\
                    ffffffff813df400 T __wake_up_bit\n";
        let found = Addresses::parse(text.as_bytes(), "tick_nohz_handler");
        assert_eq!(
            found.sync_functions,
            [
                (0xffff_ffff_813d_f330, 0xffff_ffff_813d_f3a0),
                (0, 0),
                (0xffff_ffff_813d_f3b0, 0xffff_ffff_813d_f400)
            ]
        );
    }

    #[test]
    fn hidden_addresses_read_as_zero() {
        let text = "0000000000000000 t hrtick\n0000000000000000 t tick_sched_timer\n";
        let found = Addresses::parse(text.as_bytes(), "tick_sched_timer");
        assert_eq!(found, Addresses::default());
    }
}
