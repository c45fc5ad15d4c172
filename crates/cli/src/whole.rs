//! Progress of one part of a longer work, shown as progress of the whole.

use wirespeed_measure::Progress;

/// One part: it fills the share `from`–`to` of the whole and is followed by `after` seconds of other parts.
pub(crate) struct Part<'a> {
    pub(crate) whole: &'a dyn Progress,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) after: f64,
}

impl Progress for Part<'_> {
    fn step(&self, what: &str, done: f64, seconds_left: f64) {
        let share = self.from + (self.to - self.from) * done.clamp(0.0, 1.0);
        self.whole
            .step(what, share, seconds_left.max(0.0) + self.after);
    }
}
