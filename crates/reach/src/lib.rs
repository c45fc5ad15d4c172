//! How to get to a machine: this one, a network namespace of it, or another one over ssh.
//!
//! There is one mechanism. The same program runs at the far end as `wirespeed agent`, a child process of this one
//! (directly, through `ip netns exec`, or through the system's OpenSSH), and the two talk JSON lines over its
//! standard input and output:
//!
//! ```text
//! agent → {"wirespeed":"0.1.0","protocol":1,"host":"nas","netns":null}   once, before anything else
//! here  → {"id":1,"call":"facts","params":{…}}                           as many at once as one likes
//! here  → {"id":1,"cancel":true}
//! agent → {"id":1,"ok":…}  or  {"id":1,"error":"…"}                      in the order they finish
//! here  → an empty line every ten seconds, so that the agent can tell silence from absence
//! ```
//!
//! [`Machine`] is this side, [`serve`] the other. Everything that can go wrong on the way is a [`ReachError`],
//! and arrives within the time limit of the call.

mod call;
mod child;
mod command;
mod connection;
mod early;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod machine;
mod operations;
mod options;
mod place;
mod replies;
mod running;
mod serve;
mod text;
mod wire;

pub use call::Call;
pub use error::{NotStartedReason, ReachError};
pub use machine::{Machine, Pending};
pub use operations::Operations;
pub use options::OpenOptions;
pub use place::{LONGEST_PLACE_PART, Place, PlaceError, PlacePart, PlaceReason, SshTarget};
pub use serve::serve;
