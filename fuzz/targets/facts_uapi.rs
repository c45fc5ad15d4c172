//! The answer of a WireGuard daemon to `get=1`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_facts::fuzzing::uapi(data);
});
