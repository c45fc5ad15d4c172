//! What a machine tells of its kernel.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_doctor::fuzzing::versions(data);
});
