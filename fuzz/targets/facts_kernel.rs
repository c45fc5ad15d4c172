//! Datagrams of the kernel, as the facts read them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_facts::fuzzing::kernel(data);
});
