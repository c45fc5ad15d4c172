use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

use rand::SeedableRng;
use rand::rngs::StdRng;
use wirespeed_protocol::{Incoming, Now, Options, Prefix, PrivateKey, Sealed, Tunnel};

use super::*;

const ALL_OFF: [Offload; 2] = [Offload::UdpGso, Offload::UdpGro];

fn loopback(port: u16) -> [SocketAddr; 2] {
    let v4 = (Ipv4Addr::LOCALHOST, port).into();
    let v6 = (Ipv6Addr::LOCALHOST, port).into();
    [v4, v6]
}

/// Super-packets, odd ones and single datagrams, in three traffic classes.
fn mixture() -> Vec<(usize, u8)> {
    let mut mixture = vec![(1452, 0); 44];
    mixture.push((660, 0));
    mixture.extend([
        (1452, 2),
        (1452, 2),
        (112, 2),
        (112, 3),
        (112, 3),
        (1300, 0),
    ]);
    mixture.extend([(96, 0); 64]);
    mixture.extend([(148, 0x88), (92, 0x88), (32, 0)]);
    mixture
}

#[test]
fn a_batch_arrives_whole_with_and_without_offloads() {
    let mixture = mixture();
    for without in [&[][..], &ALL_OFF[..1], &ALL_OFF[1..], &ALL_OFF] {
        let (sender, offloads) = sockets(without);
        let (receiver, _) = sockets(without);
        let ends = loopback(sender.port())
            .into_iter()
            .zip(loopback(receiver.port()));
        for (from, to) in ends {
            let sent = send(&sender, &mixture, to, None);
            let bytes = payload(&mixture).len() as u64;
            assert_eq!(
                (sent.datagrams as usize, sent.bytes),
                (mixture.len(), bytes)
            );
            assert_eq!(sent.failed, 0, "{sent:?}");
            let trains = offloads.on(Offload::UdpGso);
            assert_eq!(sent.trains < 10, trains, "{sent:?}");
            let (arrived, _) = receive(&receiver, mixture.len());
            assert_whole(&arrived, &mixture, from, to);
        }
        assert!(offloads.report().iter().all(|entry| entry.errors == 0));
    }
}

#[test]
fn a_train_is_one_call_out_and_one_message_in() {
    let (sender, offloads) = sockets(&[]);
    let (receiver, _) = sockets(&[]);
    if ALL_OFF.iter().any(|offload| !offloads.on(*offload)) {
        let name = "a_train_is_one_call_out_and_one_message_in";
        return skip(name, "this kernel has no working UDP GSO and GRO");
    }
    for train in [vec![(1452, 0); 45], vec![(96, 1); 64]] {
        let to = loopback(receiver.port())[0];
        let sent = send(&sender, &train, to, None);
        assert_eq!((sent.system_calls, sent.trains), (1, 1), "{sent:?}");
        let (arrived, messages) = receive(&receiver, train.len());
        assert_eq!((arrived.len(), messages), (train.len(), 1));
    }
}

#[test]
fn the_number_of_messages_asked_for_follows_what_comes() {
    let (sender, _) = sockets(&ALL_OFF[..1]);
    let (receiver, _) = sockets(&[]);
    let to = loopback(receiver.port())[0];
    let mut received = Received::new();
    let mut most = 0;
    send(&sender, &vec![(64, 0); 400], to, None);
    while sockets_have(&receiver, &mut received) {
        most = most.max(received.messages());
    }
    assert_eq!(most, 64, "short ones are taken many at once");
    assert!(received.drained());

    let (sender, offloads) = sockets(&[]);
    if !offloads.on(Offload::UdpGso) {
        return;
    }
    let mut last = 0;
    for _ in 0..2 {
        for _ in 0..6 {
            send(&sender, &[(1452, 0); 45], to, None);
        }
        last = 0;
        while sockets_have(&receiver, &mut received) {
            last = last.max(received.messages());
        }
    }
    assert_eq!(last, 2, "trains are taken few at once");
}

fn sockets_have(receiver: &Sockets, received: &mut Received) -> bool {
    receiver.receive(received).unwrap() > 0
}

#[test]
fn neither_socket_is_starved() {
    let (sender, _) = sockets(&ALL_OFF);
    let (receiver, _) = sockets(&ALL_OFF);
    let [v4, v6] = loopback(receiver.port());
    let mut received = Received::new();
    send(&sender, &[(100, 0); 400], v4, None);
    send(&sender, &[(100, 0); 1], v6, None);
    let mut calls = 0;
    loop {
        assert!(
            receiver.receive(&mut received).unwrap() > 0,
            "the IPv6 datagram never came"
        );
        if received
            .datagrams()
            .any(|datagram| datagram.source.is_ipv6())
        {
            break;
        }
        // Keep the queue filled.
        send(&sender, &[(100, 0); 100], v4, None);
        calls += 1;
        assert!(calls < 20);
    }
}

#[test]
fn empty_datagrams_are_passed_over() {
    let (receiver, _) = sockets(&[]);
    let to = loopback(receiver.port())[0];
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..5 {
        other.send_to(&[], to).unwrap();
    }
    other.send_to(b"here", to).unwrap();
    let (arrived, _) = receive(&receiver, 1);
    assert_eq!(arrived[0].bytes, b"here");
}

#[test]
fn the_longest_datagram_is_received() {
    let (receiver, _) = sockets(&[]);
    let to = loopback(receiver.port())[0];
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let longest = vec![7; 65_507];
    other.send_to(&longest, to).unwrap();
    let (arrived, _) = receive(&receiver, 1);
    assert_eq!(arrived[0].bytes, longest);
}

#[test]
fn a_port_where_nobody_listens_is_no_error() {
    let (sender, offloads) = sockets(&[]);
    let nobody = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for _ in 0..5 {
        let sent = send(&sender, &[(1452, 0); 45], nobody, None);
        assert_eq!((sent.datagrams, sent.failed), (45, 0), "{sent:?}");
        sender.send_one(&[1; 148], 0x88, nobody, None).unwrap();
        assert_eq!(sender.receive(&mut Received::new()).unwrap(), 0);
    }
    assert_eq!(offloads.errors(Offload::UdpGso), 0);
}

#[test]
fn what_is_too_long_for_udp_fails_alone() {
    let (sender, offloads) = sockets(&[]);
    let (receiver, _) = sockets(&[]);
    let to = loopback(receiver.port())[0];
    let datagrams = [(100, 0), (65_508, 0), (101, 0)];
    let sent = send(&sender, &datagrams, to, None);
    assert_eq!((sent.datagrams, sent.failed), (2, 1), "{sent:?}");
    assert_eq!(sent.error.unwrap().raw_os_error(), Some(libc::EMSGSIZE));
    assert_eq!(receive(&receiver, 2).0.len(), 2);
    assert!(sender.send_one(&vec![0; 65_508], 0, to, None).is_err());
    assert!(offloads.on(Offload::UdpGso));
}

#[test]
fn both_sockets_share_the_port() {
    let (first, offloads) = sockets(&[]);
    let ports: Vec<_> = first
        .descriptors()
        .map(|socket| {
            SocketAddr::try_from(rustix::net::getsockname(socket).unwrap())
                .unwrap()
                .port()
        })
        .collect();
    assert!(
        !ports.is_empty() && ports.iter().all(|port| *port == first.port()),
        "{ports:?}"
    );

    let same = BindOptions {
        port: first.port(),
        ..BindOptions::default()
    };
    let error = Sockets::bind(&same, &offloads).unwrap_err();
    assert!(
        matches!(&error, UdpError::PortTaken { port, .. } if *port == first.port()),
        "{error}"
    );
    assert_eq!(
        io::Error::from(error).raw_os_error(),
        Some(libc::EADDRINUSE)
    );

    let shared = BindOptions {
        share_port: true,
        ..BindOptions::default()
    };
    let first = Sockets::bind(&shared, &offloads).unwrap();
    let again = BindOptions {
        port: first.port(),
        ..shared
    };
    assert_eq!(
        Sockets::bind(&again, &offloads).unwrap().port(),
        first.port()
    );
}

#[test]
fn a_missing_family_is_an_error_for_its_destinations_only() {
    let (mut sender, _) = sockets(&[]);
    let (receiver, _) = sockets(&[]);
    sender.v6 = None;
    let [v4, v6] = loopback(receiver.port());
    let sent = send(&sender, &[(100, 0); 3], v6, None);
    assert_eq!((sent.datagrams, sent.failed), (0, 3));
    assert_eq!(sent.error.unwrap().raw_os_error(), Some(libc::EAFNOSUPPORT));
    sender.send_one(&[1], 0, v4, None).unwrap();
    assert_eq!(sender.receive(&mut Received::new()).unwrap(), 0);
    assert_eq!(receive(&receiver, 1).0.len(), 1);
}

#[test]
fn a_tunnels_batch_goes_through_the_sockets() {
    let mut rng = StdRng::seed_from_u64(1);
    let now = Now::default();
    let keys = [
        PrivateKey::from_bytes([1; 32]),
        PrivateKey::from_bytes([2; 32]),
    ];
    let [(near, _), (far, _)] = [sockets(&[]), sockets(&[])];
    let addresses = [&near, &far].map(|sockets| loopback(sockets.port())[0]);
    let tunnels = [0, 1].map(|own: usize| {
        let tunnel = Tunnel::new(now.instant, Options::default(), &mut rng);
        tunnel.set_private_key(Some(keys[own].clone()));
        let peer = tunnel.add_peer(keys[1 - own].public(), &mut rng).unwrap();
        tunnel.allow(
            &peer,
            Prefix::new([10, 0, 0, 2 - own as u8].into(), 32).unwrap(),
        );
        tunnel.set_endpoint(now, &peer, addresses[1 - own]);
        tunnel
    });
    let mut packet = vec![0; 1420];
    packet[..20].copy_from_slice(&[
        0x45, 2, 5, 140, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    let peer = tunnels[0].route([10, 0, 0, 2].into()).unwrap();
    let mut batch = Outgoing::new(1 << 17, 64);
    assert!(batch.push(&packet, 1420));
    assert_eq!(tunnels[0].seal(now, &peer, &mut batch), Sealed::Staged);
    tunnels[0].timers(now, &mut rng);

    // Initiation, response, and what waited.
    let all = [(0, &near, &far), (1, &far, &near), (0, &near, &far)];
    let mut delivered = 0;
    for (own, from, to) in all {
        let transmit = tunnels[own].poll_transmit().unwrap();
        let (bytes, class) = (&transmit.bytes, transmit.traffic_class);
        from.send_one(bytes, class, transmit.destination, None)
            .unwrap();
        for mut arrived in receive(to, 1).0 {
            assert_eq!(arrived.traffic_class, class);
            let source = arrived.source;
            let mut incoming = [Incoming::new(&mut arrived.bytes, source)];
            tunnels[1 - own].open(now, &mut incoming);
            if incoming[0].packet().is_some() {
                delivered += 1;
            } else {
                tunnels[1 - own]
                    .handshake(now, source, incoming[0].bytes, &mut rng)
                    .unwrap();
            }
        }
    }
    assert_eq!(delivered, 1);

    batch.clear();
    while batch.len() < 45 {
        assert!(batch.push(&packet, 1420));
    }
    let sealed = tunnels[0].seal(now, &peer, &mut batch);
    assert_eq!(sealed, Sealed::To(addresses[1]));
    let sent = near.send(&batch, addresses[1], None);
    assert_eq!((sent.datagrams, sent.failed), (45, 0), "{sent:?}");
    let (mut arrived, _) = receive(&far, 45);
    for datagram in &mut arrived {
        assert_eq!(datagram.traffic_class, 2, "ECN goes with it");
        let mut incoming = [Incoming::new(&mut datagram.bytes, datagram.source)];
        tunnels[1].open(now, &mut incoming);
        assert_eq!(incoming[0].packet(), Some(&packet[..]));
    }
    assert_eq!(arrived.len(), 45);
}

#[test]
fn what_nobody_fetches_is_counted() {
    let (receiver, _) = sockets(&ALL_OFF);
    for socket in receiver.descriptors() {
        sys::set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 1).unwrap();
    }
    assert_eq!(receiver.overflows(), 0);
    let (sender, _) = sockets(&ALL_OFF);
    let to = loopback(receiver.port())[0];
    send(&sender, &[(1000, 0); 50], to, None);
    let (arrived, _) = receive(&receiver, 1);
    assert_eq!(arrived.len() as u64 + receiver.overflows(), 50);
}

#[test]
fn trains_that_fail_without_a_reason_are_sent_no_more() {
    let (sender, offloads) = sockets(&[]);
    let (receiver, _) = sockets(&[]);
    if !offloads.on(Offload::UdpGso) {
        return skip(
            "trains_that_fail_without_a_reason_are_sent_no_more",
            "no UDP GSO",
        );
    }
    let to = loopback(receiver.port())[0];
    for (errno, stays) in [
        (libc::EMSGSIZE, true),
        (libc::EINVAL, false),
        (libc::EIO, false),
    ] {
        let error = io::Error::from_raw_os_error(errno);
        sender.sender(to, None).unwrap().blame(1452, &error);
        assert_eq!(offloads.on(Offload::UdpGso), stays, "{error}");
        let sent = send(&sender, &[(1452, 0); 45], to, None);
        assert_eq!(
            (sent.datagrams, sent.trains, sent.system_calls),
            (45, 45, 2),
            "{sent:?}"
        );
        assert_eq!(receive(&receiver, 45).0.len(), 45);
    }
    assert_eq!(offloads.errors(Offload::UdpGso), 3);
}
