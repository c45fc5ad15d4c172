//! Records of `test`, `doctor`, `doctor --hop` and `tune`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_report::fuzzing::record(data);
});

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    wirespeed_fuzz::mutate_json(data, size, max_size, seed)
});
