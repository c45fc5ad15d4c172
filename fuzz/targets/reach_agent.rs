//! What a client sends an agent.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_reach::fuzzing::agent(data);
});
