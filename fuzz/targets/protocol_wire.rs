//! Any bytes as a message: what parses is written back the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_protocol::wire::{CookieReply, DataHeader, Initiation, Kind, Response, kind};

/// The two MACs behind an initiation or response, which these types leave out.
const MACS_BYTES: usize = 32;

fuzz_target!(|datagram: &[u8]| {
    let without_macs = datagram.len().saturating_sub(MACS_BYTES);
    match kind(datagram) {
        Some(Kind::Initiation) => {
            let written = Initiation::parse(datagram).unwrap().to_bytes();
            assert_eq!(written[..without_macs], datagram[..without_macs]);
        }
        Some(Kind::Response) => {
            let written = Response::parse(datagram).unwrap().to_bytes();
            assert_eq!(written[..without_macs], datagram[..without_macs]);
        }
        Some(Kind::CookieReply) => {
            assert_eq!(CookieReply::parse(datagram).unwrap().to_bytes(), datagram);
        }
        Some(Kind::Data) => {
            let header = DataHeader::parse(datagram).unwrap();
            assert_eq!(datagram[4..8], header.receiver.to_le_bytes());
            assert_eq!(datagram[8..16], header.counter.to_le_bytes());
        }
        None => {
            assert!(Initiation::parse(datagram).is_none() && Response::parse(datagram).is_none());
            assert!(
                CookieReply::parse(datagram).is_none() && DataHeader::parse(datagram).is_none()
            );
        }
    }
});
