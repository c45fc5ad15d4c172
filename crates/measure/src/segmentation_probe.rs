//! Does segmentation work on the way out? Trains and single datagrams between the ends.

use std::time::Duration;

use wirespeed_words::say;

use crate::datagram_way::Origin;
use crate::operations::{SEGMENTATION_RECEIVE, SEGMENTATION_SEND};
use crate::segmentation::{SegmentationEnd, TrainsArrived, TrainsSent};
use crate::sequence_probe::refused;
use crate::{Direction, Ends, MeasureError, SegmentationProbe, Via, sensible};

/// Fits every path that carries a tunnel.
const PAYLOAD: u16 = 1200;
/// 8 × 1200 bytes every 20 ms are 4 Mbit/s, in bursts that the queue of a slow line has room for.
const PER_TRAIN: u32 = 8;
const EVERY: f64 = 0.04;
const ROUNDS: u32 = 50;
/// How long all of it may take.
const WITHIN: Duration = Duration::from_secs(20);

impl Ends {
    /// Sends 400 datagrams of known content one by one, and 400 in trains of eight that the kernel or the card cuts up
    /// (`UDP_SEGMENT`), in turn, outside the tunnel. Takes two and a half seconds.
    ///
    /// # Errors
    /// As [`Ends::sequence_probe`].
    pub fn segmentation_probe(
        &self,
        direction: Direction,
    ) -> Result<SegmentationProbe, MeasureError> {
        let way = self.datagram_way(&what(), Via::Bare, direction, None)?;
        let end = |origin: &Origin| SegmentationEnd {
            token: way.token,
            origin: origin.clone(),
            payload: PAYLOAD,
            per_train: PER_TRAIN,
            rounds: ROUNDS,
            every: EVERY,
        };
        let receiving = way
            .receiver
            .start(SEGMENTATION_RECEIVE, &end(&way.receives))?;
        let sending = way.sender.start(SEGMENTATION_SEND, &end(&way.sends))?;
        let (sent, arrived): (TrainsSent, TrainsArrived) = self
            .wait_for_both(sending, receiving, WITHIN)
            .map_err(|error| refused(&what(), error))?;
        if !sent.heard || !arrived.heard {
            return Err(self.unheard(&what(), &way));
        }
        Ok(SegmentationProbe {
            direction,
            plain_sent: sent.plain,
            plain_received: arrived.plain,
            trains_sent: sent.in_trains,
            trains_received: arrived.in_trains,
            trains_mangled: arrived.mangled,
            refused: sent.refused.as_deref().map(sensible::text),
        })
    }
}

/// What is measured, in words.
fn what() -> String {
    say!("measure-what-segmentation")
}
