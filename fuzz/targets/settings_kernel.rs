//! Datagrams of the kernel, as the settings read them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_settings::fuzzing::kernel(data);
});
