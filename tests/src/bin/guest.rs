//! `/init` of the test VM.

fn main() {}
