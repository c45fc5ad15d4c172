//! The program `wirespeed`.
fn main() {}
