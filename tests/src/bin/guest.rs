//! `/init` of the test VM. All it does is in `latency_tests::guest`.

use anyhow::Result;

fn main() -> Result<()> {
    latency_tests::guest::main()
}
