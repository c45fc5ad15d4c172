//! What `ethtool -S` prints.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_facts::fuzzing::ethtool(data);
});
