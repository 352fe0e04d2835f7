//! Addresses of kernel functions, from `/proc/kallsyms`.
//!
//! They read as 0 without `CAP_SYSLOG` (or with `kptr_restrict` 2): then neither the tick nor a hint to
//! a wakeup can be recognised, and stacks have no names.

use std::{
    fs::File,
    io::{BufRead, BufReader},
};

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
    /// Whether addresses can be read at all.
    pub are_visible: bool,
}

/// A line of the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol<'a> {
    /// Its address; 0 where hidden.
    pub(super) address: u64,
    /// Its type, as `nm` prints it.
    pub(super) kind: u8,
    /// Its name.
    pub(super) name: &'a str,
    /// The module it belongs to, in brackets; none in the kernel itself.
    pub(super) module: Option<&'a str>,
}

/// Visits every symbol of the running kernel; nothing where they cannot be read.
pub(super) fn for_each_symbol(visit: impl FnMut(Symbol<'_>)) {
    if let Ok(file) = File::open("/proc/kallsyms") {
        for_each_of(BufReader::new(file), visit);
    }
}

/// Visits every symbol of a list.
pub(super) fn for_each_of(mut list: impl BufRead, mut visit: impl FnMut(Symbol<'_>)) {
    let mut line = String::new();
    while list.read_line(&mut line).is_ok_and(|length| length > 0) {
        if let Some(symbol) = parse(&line) {
            visit(symbol);
        }
        line.clear();
    }
}

fn parse(line: &str) -> Option<Symbol<'_>> {
    let mut words = line.split_ascii_whitespace();
    Some(Symbol {
        address: u64::from_str_radix(words.next()?, 16).ok()?,
        kind: *words.next()?.as_bytes().first()?,
        name: words.next()?,
        module: words.next(),
    })
}

impl Addresses {
    /// Reads them. `tick_name` is the name of the tick's callback on this kernel.
    #[must_use]
    pub fn read(tick_name: &str) -> Self {
        let mut search = Search::new(tick_name);
        for_each_symbol(|symbol| search.look_at(symbol));
        search.found
    }
}

/// A search that goes on.
struct Search<'a> {
    tick_name: &'a str,
    found: Addresses,
    /// The function whose end is the address of the next symbol: the list is sorted.
    open: Option<usize>,
}

impl<'a> Search<'a> {
    fn new(tick_name: &'a str) -> Self {
        Self {
            tick_name,
            found: Addresses::default(),
            open: None,
        }
    }

    fn look_at(&mut self, symbol: Symbol<'_>) {
        let Symbol { address, name, .. } = symbol;
        // Functions of modules may share a name.
        if symbol.module.is_some() {
            return;
        }
        let found = &mut self.found;
        found.are_visible |= address != 0;
        if let Some(function) = self.open.take() {
            found.sync_functions[function].1 = address;
        }
        if name == self.tick_name {
            found.tick = address;
        } else if name == "hrtick" {
            found.hrtick = address;
        } else if let Some(function) = SYNC_FUNCTIONS.iter().position(|sync| *sync == name) {
            found.sync_functions[function].0 = address;
            self.open = Some(function);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(text: &str, tick_name: &str) -> Addresses {
        let mut search = Search::new(tick_name);
        for_each_of(text.as_bytes(), |symbol| search.look_at(symbol));
        search.found
    }

    #[test]
    fn addresses_are_found_and_modules_skipped() {
        let text = "ffffffff813aec00 t hrtick\n\
                    ffffffffc0000000 t tick_nohz_handler\t[mod]\n\
                    ffffffff81442220 t tick_nohz_handler\n";
        let found = found_in(text, "tick_nohz_handler");
        assert_eq!(found.hrtick, 0xffff_ffff_813a_ec00);
        assert_eq!(found.tick, 0xffff_ffff_8144_2220);
    }

    #[test]
    fn a_function_ends_where_the_next_symbol_begins() {
        let text = "ffffffff813df330 T __wake_up_sync_key\n\
                    ffffffff813df3a0 T __pfx___wake_up_sync\n\
                    ffffffff813df3b0 T __wake_up_sync\n\
                    ffffffff813df400 T __wake_up_bit\n";
        let found = found_in(text, "tick_nohz_handler");
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
        let found = found_in(text, "tick_sched_timer");
        assert_eq!(found, Addresses::default());
    }
}
