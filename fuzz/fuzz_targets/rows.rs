//! `latency_user::hostile::rows` with bytes that the fuzzer invents.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latency_user::hostile::rows(bytes));
