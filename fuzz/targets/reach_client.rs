//! What an agent, or something else in its place, writes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_reach::fuzzing::client(data);
});
