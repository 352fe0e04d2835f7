//! What `bench` and `verify` have in common: the conditions that a command runs under, read before and after,
//! and the report of its recording.

use std::time::Duration;

use latency_common::config::Detail;

use crate::{
    Error,
    analysis::{self, Context},
    model::{GroupBy, Host, Observation, Report, RunConditions, probe::Clocksources},
    observe::{Session, SessionOptions},
    probe::{CpuList, conditions},
};

/// A process can be waited for before its last switch; by then it is through.
const LAST_SWITCHES: Duration = Duration::from_millis(20);

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

/// Everything since its start, when it has ended.
pub(super) async fn whole(session: &mut Session) -> Result<Observation, Error> {
    tokio::time::sleep(LAST_SWITCHES).await;
    session.last_snapshot()
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
