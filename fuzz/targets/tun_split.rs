//! Frames of the TUN: each is cut into packets that make sense, or refused.
#![no_main]

use wirespeed_device::split::{FRAME_BYTES, Frame};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let data = &data[..data.len().min(FRAME_BYTES)];
    let Ok(frame) = Frame::parse(data) else {
        return;
    };
    let packets = frame.packets();
    assert!(packets >= 1);
    let single = packets == 1;
    // The first ones and the last are as good as all.
    for index in (0..packets.min(70)).chain([packets - 1]) {
        let mut packet = vec![0xee; frame.packet_length(index)];
        frame.write_packet(index, &mut packet);
        assert!(packet.len() <= 40 + 65_535);
        let again = [&[0; 10], &packet[..]].concat();
        let again = Frame::parse(&again).expect("a packet of a frame is a packet");
        assert_eq!(again.destination(), frame.destination());
        if single {
            continue;
        }
        let v4 = packet[0] >> 4 == 4;
        let length = usize::from(u16::from_be_bytes(if v4 {
            [packet[2], packet[3]]
        } else {
            [packet[4], packet[5]]
        }));
        assert_eq!(length + if v4 { 0 } else { 40 }, packet.len());
        if v4 {
            let header = usize::from(packet[0] & 0x0f) * 4;
            assert_eq!(sum(&packet[..header]), 0xffff, "the IPv4 header's checksum");
        }
    }
});

/// The one's complement sum of an even number of bytes.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks_exact(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair[1]]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
