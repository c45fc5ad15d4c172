//! `wirespeed agent`: the far end of every measurement, on standard input and output.

use wirespeed_reach::{Operations, serve};

use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) fn run() -> Result<Exit, Failure> {
    serve(operations(), std::io::stdin(), std::io::stdout())?;
    Ok(Exit::Done)
}

/// Everything a machine can be asked to do.
fn operations() -> Operations {
    let mut operations = Operations::default();
    wirespeed_measure::register(&mut operations);
    wirespeed_tune::register(&mut operations);
    operations
}
