//! What the flight recorder left: its files, and how far back each CPU reaches.

use crate::{
    model::{DumpReason, FlightDump, FlightDumpCpu},
    units,
};

/// A line for each dump.
pub(super) fn render(dumps: &[FlightDump]) -> String {
    dumps.iter().map(line).collect()
}

fn line(dump: &FlightDump) -> String {
    let n_events: u64 = dump.cpus.iter().map(|cpu| cpu.n_events).sum();
    let asked_ns = dump.at_ns - dump.from_ns;
    let cut: Vec<_> = dump
        .cpus
        .iter()
        .filter(|cpu| cpu.is_cut)
        .map(reach)
        .collect();
    let mut parts = vec![format!(
        "flight recorder: {} ({}): {} events of the last {}",
        dump.file,
        reason(dump.reason),
        units::count(n_events),
        units::duration(asked_ns)
    )];
    match dump.n_marked {
        0 => {}
        1 => parts.push("1 wait marked".to_owned()),
        n => parts.push(format!("{} waits marked", units::count(n))),
    }
    if !cut.is_empty() {
        parts.push(format!(
            "but {} (overwritten; a larger --flight-bytes reaches further)",
            cut.join(", ")
        ));
    }
    for (n, what) in [
        (
            dump.cpus.iter().map(|cpu| cpu.n_torn).sum::<u64>(),
            "incomplete",
        ),
        (dump.cpus.iter().map(|cpu| cpu.n_refused).sum(), "refused"),
    ] {
        if n > 0 {
            parts.push(format!("{} {what}", units::count(n)));
        }
    }
    parts.join(", ") + "\n"
}

fn reach(cpu: &FlightDumpCpu) -> String {
    format!(
        "only the last {} on CPU {}",
        units::duration(cpu.reaches_back_ns),
        cpu.cpu
    )
}

const fn reason(reason: DumpReason) -> &'static str {
    match reason {
        DumpReason::Wait => "at a wait",
        DumpReason::Signal => "at SIGUSR1",
        DumpReason::End => "at the end",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(cpu: u32, reaches_back_ns: u64) -> FlightDumpCpu {
        FlightDumpCpu {
            cpu,
            n_events: 1000,
            reaches_back_ns,
            is_cut: reaches_back_ns < 2_000_000_000,
            n_torn: 0,
            n_refused: 0,
        }
    }

    fn check(n_marked: u64, cpus: Vec<FlightDumpCpu>, expected: &str) {
        let dump = FlightDump {
            file: "a.pftrace".into(),
            reason: DumpReason::Signal,
            from_ns: 1_000_000_000,
            at_ns: 3_000_000_000,
            n_marked,
            cpus,
        };
        assert_eq!(render(&[dump]), expected);
    }

    #[test]
    fn whole_history_is_said_in_one_line() {
        check(
            0,
            vec![cpu(0, 2_000_000_000), cpu(1, 2_000_000_000)],
            "flight recorder: a.pftrace (at SIGUSR1): 2,000 events of the last 2.00 s\n",
        );
    }

    #[test]
    fn cpu_whose_history_is_shorter_is_named() {
        let torn = FlightDumpCpu {
            n_torn: 3,
            ..cpu(1, 310_000_000)
        };
        check(
            2,
            vec![cpu(0, 2_000_000_000), torn],
            "flight recorder: a.pftrace (at SIGUSR1): 2,000 events of the last 2.00 s, 2 waits marked, but \
             only the last 310 ms on CPU 1 (overwritten; a larger --flight-bytes reaches further), 3 incomplete\n",
        );
    }
}
