//! Plain data: what was observed (`tally`, `observation`) and what is reported (`report`, `stats`, `audit`);
//! `attribution` is both.
//!
//! Nothing here does I/O or reads a clock. Field names of the reported types are the keys of the
//! JSON contract, so each carries its unit.

mod attribution;
mod audit;
mod autopsy;
mod bench;
mod flight;
mod host;
mod observation;
mod paths;
mod priority;
pub mod probe;
mod report;
mod run_conditions;
mod stats;
mod tally;
mod trace;
mod verify;

pub use attribution::{
    AttributionTally, BlameStats, CulpritIdent, CulpritTally, InterruptIdent, InterruptStats,
    InterruptTally, InterruptTotal, InterruptTotalStats, PartStats, Parts, PlacementStats,
    Placements, StageStats, StolenStats, SyncStats, WakePathStats, WakerIdent, WakerStats,
    WakerTally,
};
pub use audit::{AllSwitchAudit, Audit, AuditClass, Finding, SwitchAudit, TickAudit};
pub use autopsy::{Autopsy, OverStats, Span, Victim, WaitEvent};
pub use bench::{
    BenchCommand, BenchFigures, BenchReport, BenchRun, BenchSummary, DelayByCause, Reconciliation,
    Rusage, Statistic,
};
pub use flight::{
    ClockOffsets, DumpReason, Flight, FlightCpu, FlightDump, FlightDumpCpu, FlightRing,
    FlightThread,
};
pub use host::Host;
pub use observation::{
    CostSample, CpuTotals, IdleWhileRunnable, Losses, Observation, TaskIdent, TaskRow,
};
pub use paths::{
    ASLEEP, KernelNames, KernelPaths, LEAVING_KERNEL, MainPath, PathStats, StackStats, StackTally,
    USER_SPACE, WorkNames,
};
pub use priority::{SchedClass, rank};
pub use report::{Cost, DetailLevel, GroupBy, Report, Row, RowIdent, Window};
pub use run_conditions::RunConditions;
pub use stats::{CauseStats, Causes, Censored, PreemptorStats, Stats, Switches, WaitStats, Waits};
pub use tally::{Buckets, ClassTally, OpenWait, PreemptorTally, Tally};
pub use trace::{TimerFiring, TraceEvent, TracedInterrupt, TracedWait};
pub use verify::{
    Agreement, ClaimedLatency, ClaimedSeries, Claims, Reason, ReasonKind, SeenByKernel,
    SeenConditions, SeenInterruptions, SeenLatency, SeenThread, Verification, Watched,
};
