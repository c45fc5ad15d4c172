//! The program `wirespeed-device`.

fn main() {}
