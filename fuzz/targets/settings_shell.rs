//! Knobs and values as a journal or another machine names them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_settings::fuzzing::shell(data);
});

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    wirespeed_fuzz::mutate_json(data, size, max_size, seed)
});
