//! `make book`: the user guide as HTML.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wirespeed_book::build;

fn main() -> ExitCode {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let to = std::env::args_os()
        .nth(1)
        .map_or_else(|| repository.join("target/book"), PathBuf::from);
    match build(&to) {
        Ok(warnings) if warnings.is_empty() => {
            println!("{}", to.join("index.html").display());
            ExitCode::SUCCESS
        }
        Ok(warnings) => {
            for warning in warnings {
                eprintln!("book: {warning}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("book: {error}");
            ExitCode::FAILURE
        }
    }
}
