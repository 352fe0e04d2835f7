//! What `bench` and `verify` have in common: the conditions that a command runs under, read before and after,
//! and the report of its recording.

use latency_common::config::Detail;

use crate::{
    analysis::{self, Context},
    cpus::CpuList,
    model::{GroupBy, Host, Observation, Report, RunConditions, probe::Clocksources},
    observe::{Session, SessionOptions},
    probe::conditions,
};

/// Before the first command.
pub(super) fn conditions() -> RunConditions {
    RunConditions {
        clocksource: Clocksources {
            at_start: conditions::clocksource(),
            ..Clocksources::default()
        },
        rt_limit: conditions::rt_limit(),
        cpus_allowed: CpuList::allowed().map_or_else(|_| String::new(), |cpus| cpus.to_string()),
        steal_ns: 0,
    }
}

/// After the last one.
pub(super) fn at_end(before: RunConditions, steal_ns: u64) -> RunConditions {
    RunConditions {
        clocksource: Clocksources {
            at_end: conditions::clocksource(),
            ..before.clocksource
        },
        steal_ns,
        ..before
    }
}

/// What was recorded of a command, thread by thread.
pub(super) fn report(
    session: &Session,
    options: &SessionOptions,
    host: &Host,
    whole: &Observation,
) -> Report {
    let context = Context {
        host,
        target: options.targets.description(),
        by: GroupBy::Tid,
        detail: Detail::Full,
        degraded: session.degraded(),
        flight: &[],
        over: None,
        recorder_cpu_pct: 0.0,
    };
    analysis::summarise(whole, &context)
}
