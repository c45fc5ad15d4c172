//! The program `wirespeed-device`.

use std::process::ExitCode;

use clap::Parser;
use wirespeed_device::options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    if options.statistics {
        wirespeed_device::tell::run(&options.interface)
    } else {
        wirespeed_device::daemon::run(&options)
    }
}
