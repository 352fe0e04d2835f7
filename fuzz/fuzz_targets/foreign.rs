//! `latency_user::hostile::foreign` with bytes that the fuzzer invents.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latency_user::hostile::foreign(bytes));
