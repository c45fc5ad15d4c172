//! An agent that can measure and nothing else: what the tests of this crate open machines with.

fn main() -> Result<(), wirespeed_reach::ReachError> {
    let mut operations = wirespeed_reach::Operations::default();
    wirespeed_measure::register(&mut operations);
    wirespeed_reach::serve(operations, std::io::stdin(), std::io::stdout())
}
