//! The program `wirespeed-device`.

use std::process::ExitCode;

use wirespeed_device::options::Options;
use wirespeed_language::Language;

fn main() -> ExitCode {
    // Help and complaints are for people, who read them in their language; what is logged is English.
    wirespeed_language::speak(Language::of_environment(|name| std::env::var(name).ok()));
    let typed = std::env::args_os().collect();
    let options: Options =
        wirespeed_help::parse(typed).unwrap_or_else(|error| wirespeed_help::end(&error));
    if options.statistics {
        wirespeed_device::tell::run(&options.interface)
    } else {
        wirespeed_device::daemon::run(&options)
    }
}
