//! Any bytes as an inner packet: never longer than they are, and ECN changes nothing else.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wirespeed_protocol::{InnerHeader, carry_ecn_in, outer_traffic_class};

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (outer, mut packet) = input;
    let before = InnerHeader::parse(&packet);
    if let Some(header) = before {
        assert!(header.length <= packet.len());
    }
    assert!(outer_traffic_class(&packet) < 3);
    let length = packet.len();
    carry_ecn_in(outer, &mut packet);
    assert_eq!(packet.len(), length);
    assert_eq!(InnerHeader::parse(&packet), before);
});
