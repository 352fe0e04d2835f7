//! The load `cpu`: arithmetic, without system calls.

use std::hint::black_box;

use super::worker::{Job, Meter};

/// Steps between two looks at the meter: about 100 µs.
const N_STEPS: u32 = 50_000;

pub(super) fn jobs() -> Vec<Job> {
    vec![Box::new(|meter: &Meter| {
        while meter.goes_on() {
            black_box(compute(black_box(1)));
            meter.count(0);
        }
        Ok(())
    })]
}

/// A chain of integer and floating-point operations, each of which needs the one before.
fn compute(seed: u64) -> u64 {
    let mut word = seed;
    let mut ratio = 1.5_f64;
    for _ in 0..N_STEPS {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        ratio = ratio.mul_add(0.5, 1.0);
    }
    word ^ ratio.to_bits()
}
