//! The steps of the data path, as plain functions over batches. An engine decides who calls them on which core.
//!
//! ```text
//! out:  Packer::pack: frame → packets in the open batch of their peer
//!       seal_and_send, or: begin · Sending::seal · send: batch → datagrams → UDP
//! in:   Received → collect → Tunnel::open, or: decrypt · accept → deliver: → inner packets → TUN
//! ```

mod inbound;
mod outbound;

pub(crate) use self::inbound::{Deliverer, Note, Opened, collect, recycled};
pub(crate) use self::outbound::{Packer, new_batch, seal_and_send, send};
