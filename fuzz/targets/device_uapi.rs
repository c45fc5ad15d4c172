//! A connection to the control socket of a device.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    wirespeed_device::fuzzing::uapi(data);
});
