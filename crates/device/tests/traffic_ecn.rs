//! Marks of congestion: what the road says arrives inside.

use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use support::peers::{self, End, Outer, Program, Tunnel};

mod support {
    #[allow(dead_code, reason = "other tests use the rest")]
    pub(crate) mod peers;
}

const CE: u8 = 0b11;
const ECT_0: u8 = 0b10;
const ECT_1: u8 = 0b01;
const NOT_ECT: u8 = 0b00;

#[test]
fn congestion_on_the_road_is_seen_inside() {
    let name = "congestion_on_the_road_is_seen_inside";
    if let Some(reason) = peers::missing(&[Program::Wirespeed]) {
        return peers::skip(name, &reason);
    }
    let tunnel = Tunnel::up(Program::Wirespeed, Program::Wirespeed, Outer::V4);
    let (a, b) = (&tunnel.a, &tunnel.b);
    a.ping(b.inner(Outer::V4), "-c 1 -W 2").unwrap();
    for class in [NOT_ECT, ECT_0, ECT_1, CE, 0xb8] {
        assert_eq!(through(a, b, class), Some(class), "nothing on the road");
    }
    // What arrives of the tunnel's datagrams is marked, unless its sender couldn't understand that.
    b.nft("add table ip congested");
    b.nft("add chain ip congested in { type filter hook prerouting priority 0; }");
    b.nft("add rule ip congested in iifname road udp dport 51820 ip ecn ect0 ip ecn set ce");
    b.nft("add rule ip congested in iifname road udp dport 51820 ip ecn ect1 ip ecn set ce");
    for (sent, expected) in [
        (NOT_ECT, NOT_ECT),
        (ECT_0, CE),
        (ECT_1, CE),
        (CE, CE),
        (0xb8 | ECT_0, 0xb8 | CE),
    ] {
        assert_eq!(through(a, b, sent), Some(expected), "{sent:#x}");
    }
    // A road that marks what it must not: what can't carry the mark goes on without, as with the kernel's driver.
    b.nft("add rule ip congested in iifname road udp dport 51820 ip ecn set ce");
    assert_eq!(through(a, b, ECT_0), Some(CE));
    assert_eq!(through(a, b, NOT_ECT), Some(NOT_ECT));
}

/// Sends a datagram of this traffic class through the tunnel; the class it arrives with, if it does.
fn through(from: &End, to: &End, class: u8) -> Option<u8> {
    let receiver = to
        .inside({
            let address = to.inner(Outer::V4);
            move || UdpSocket::bind((address, 0)).unwrap()
        })
        .join()
        .unwrap();
    setsockopt(&receiver, sockopt::IpRecvTos, &true).unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(700)))
        .unwrap();
    let address = receiver.local_addr().unwrap();
    from.inside(move || {
        let sender = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
        setsockopt(&sender, sockopt::Ipv4Tos, &i32::from(class)).unwrap();
        sender.send_to(b"marked?", address).unwrap();
    })
    .join()
    .unwrap();
    let mut buffer = [0; 64];
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let mut space = nix::cmsg_space!(u8);
    let message = recvmsg::<()>(
        receiver.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::empty(),
    )
    .ok()?;
    message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4Tos(class) => Some(class),
        _ => None,
    })
}
