//! What happens when the kernel says no.

use std::io::IoSlice;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use super::world::{Namespace, possible, read_one};
use crate::offloads::{Offload, OffloadState, Offloads};
use crate::split::packets::{Recipe, payload};
use crate::tun::vnet::{PLAIN, VNET_HEADER_BYTES, VnetHeader};
use crate::tun::{is_down, is_gone};

/// Datagrams for 10.7.1.2 or `fd77::102`, in one frame with a header the kernel takes, but for its length.
fn super_packet(recipe: &Recipe, header_length: usize) -> Vec<u8> {
    let mut frame = recipe.frame(1_000);
    let header = frame.first_chunk().unwrap();
    let mut header = VnetHeader::parse(header);
    header.header_length = header_length as u16;
    frame[..VNET_HEADER_BYTES].copy_from_slice(&header.to_bytes());
    frame
}

#[test]
fn a_refused_super_packet_arrives_in_pieces() {
    if !possible("a_refused_super_packet_arrives_in_pieces") {
        return;
    }
    for (v6, address) in [(false, "10.7.1.2"), (true, "fd77::102")] {
        let offloads = Arc::new(Offloads::new(&[]));
        let namespace = Namespace::new();
        let addresses = ["10.7.1.2/24", "fd77::102/64"];
        let tun = namespace.tun_with(&addresses, 1, &offloads);
        let recipe = Recipe::new(v6, true, payload(2_700, 8));
        let socket = namespace.run(|| UdpSocket::bind((address, 0x2001)).unwrap());
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let expect_datagrams = || {
            let mut buffer = [0; 2_000];
            for datagram in recipe.payload.chunks(1_000) {
                let length = socket.recv(&mut buffer).unwrap();
                assert_eq!(&buffer[..length], datagram);
            }
        };
        let write = |header_length| {
            let frame = super_packet(&recipe, header_length);
            tun.queues()[0].write(&[IoSlice::new(&frame)])
        };

        // As it should be.
        write(recipe.header_bytes()).unwrap();
        expect_datagrams();
        assert_eq!(offloads.errors(Offload::TunUso), 0);

        // With headers longer than the whole, which the kernel refuses (EINVAL).
        write(60_000).unwrap();
        expect_datagrams();
        assert_eq!(offloads.state(Offload::TunUso), OffloadState::Degraded);
        assert_eq!(offloads.errors(Offload::TunUso), 1);
        assert!(offloads.on(Offload::TunTso4) && offloads.on(Offload::TunTso6));
    }
}

#[test]
fn an_interface_that_is_down_is_no_reason_to_give_up() {
    if !possible("an_interface_that_is_down_is_no_reason_to_give_up") {
        return;
    }
    let offloads = Arc::new(Offloads::new(&[]));
    let namespace = Namespace::new();
    let tun = namespace.tun_with(&["10.7.1.2/24"], 1, &offloads);
    let queue = &tun.queues()[0];
    let recipe = Recipe::new(false, true, payload(2_700, 8));
    let frame = super_packet(&recipe, recipe.header_bytes());
    let single = recipe.with_payload(&[1]).bytes();
    for _ in 0..3 {
        namespace.ip("link set tun0 down");
        let refused = queue.write(&[IoSlice::new(&frame)]).unwrap_err();
        assert!(is_down(&refused), "{refused}");
        let parts = [IoSlice::new(&PLAIN), IoSlice::new(&single)];
        let refused = queue.write(&parts).unwrap_err();
        assert!(is_down(&refused), "{refused}");
        // What the kernel had to say while it was up may still be there.
        while queue.read(&mut [0; 100]).unwrap() > 0 {}
        namespace.ip("link set tun0 up");
        queue.write(&parts).unwrap();
        queue.write(&[IoSlice::new(&frame)]).unwrap();
    }
    // It comes up between the super-packet and its pieces.
    let late = queue.write_in_pieces(&[IoSlice::new(&frame)], Errno::IO);
    assert!(is_down(&late.unwrap_err()));
    assert_eq!(offloads.errors(Offload::TunUso), 0);
}

#[test]
fn a_deleted_interface_is_noticed() {
    if !possible("a_deleted_interface_is_noticed") {
        return;
    }
    let offloads = Arc::new(Offloads::new(&[]));
    let namespace = Namespace::new();
    for queues in [1, 2] {
        let tun = namespace.tun_with(&["10.7.1.2/24"], queues, &offloads);
        namespace.ip("link delete tun0");
        for queue in tun.queues() {
            let error = read_one(queue).unwrap_err();
            assert!(is_gone(&error), "{error}");
            let error = queue.write(&[IoSlice::new(&PLAIN)]).unwrap_err();
            assert!(is_gone(&error), "{error}");
        }
        assert_eq!(tun.name(), "tun0");
    }
}

#[test]
fn rubbish_is_refused_and_costs_no_offload() {
    if !possible("rubbish_is_refused_and_costs_no_offload") {
        return;
    }
    let offloads = Arc::new(Offloads::new(&[]));
    let namespace = Namespace::new();
    let tun = namespace.tun_with(&["10.7.1.2/24"], 1, &offloads);
    let queue = &tun.queues()[0];
    for rubbish in [&[][..], &[0; 5], &[0xff; 50], &[0; 30]] {
        let parts = [IoSlice::new(&PLAIN), IoSlice::new(rubbish)];
        // The kernel takes IP of any kind and looks at it later.
        let _ = queue.write(&parts);
    }
    // A super-packet that contradicts itself: neither it nor its pieces.
    let mut frame = Recipe::new(false, false, payload(3_000, 1)).frame(1_000);
    frame[1] = 4;
    frame[2..4].copy_from_slice(&60_000u16.to_le_bytes());
    assert!(queue.write(&[IoSlice::new(&frame)]).is_err());
    assert!(offloads.report().iter().all(|report| report.errors == 0));
}
