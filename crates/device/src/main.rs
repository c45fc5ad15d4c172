//! The program `wirespeed-device`.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    wirespeed_device::daemon::run(&wirespeed_device::options::Options::parse())
}
