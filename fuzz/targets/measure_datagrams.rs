//! Datagrams of sequence and segmentation probes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_measure::fuzzing::datagrams(data);
});
