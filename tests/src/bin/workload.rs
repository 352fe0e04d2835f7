//! The program of the known-answer workloads: `workload KIND … --help` lists them.
//!
//! Owns nothing but the command line; the workloads are in `latency_tests::workload`.

use anyhow::Result;
use clap::Parser as _;
use latency_tests::workload::Workload;

fn main() -> Result<()> {
    Workload::parse().run()
}
