//! Requests of short exchanges.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_measure::fuzzing::request(data);
});
