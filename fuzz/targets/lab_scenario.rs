//! Scenario files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_lab::fuzzing::scenario(data);
});
