//! UDP sockets by their local port, with buffers and drops, by sock_diag.

use std::net::SocketAddr;

use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_UDP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use crate::UdpSocket;
use crate::netlink::{Netlink, NetlinkError};

/// The UDP sockets, IPv4 and IPv6, whose local port is `port`; their holders are left open.
pub(crate) fn udp_sockets(port: u16) -> Result<Vec<UdpSocket>, NetlinkError> {
    let mut netlink = Netlink::open(NETLINK_SOCK_DIAG, "the UDP sockets")?;
    let mut sockets = Vec::new();
    for (family, mut socket_id) in [
        (AF_INET, SocketId::new_v4()),
        (AF_INET6, SocketId::new_v6()),
    ] {
        socket_id.source_port = port;
        let answers = netlink.dump(SockDiagMessage::InetRequest(InetRequest {
            family,
            protocol: IPPROTO_UDP,
            extensions: ExtensionFlags::SKMEMINFO,
            states: StateFlags::all(),
            socket_id,
        }))?;
        sockets.extend(answers.into_iter().filter_map(|answer| match answer {
            SockDiagMessage::InetResponse(socket) => udp_socket(&socket),
            _ => None,
        }));
    }
    // A socket table that changes while it is listed can show one socket twice.
    sockets.sort_by_key(|socket| (socket.inode, socket.local));
    sockets.dedup_by_key(|socket| (socket.inode, socket.local));
    sockets.retain(|socket| socket.local.port() == port);
    Ok(sockets)
}

pub(crate) fn udp_socket(response: &InetResponse) -> Option<UdpSocket> {
    let memory = response.nlas.iter().find_map(|attribute| match attribute {
        Nla::MemInfo(memory) => Some(memory),
        _ => None,
    })?;
    let id = &response.header.socket_id;
    Some(UdpSocket {
        local: SocketAddr::new(id.source_address, id.source_port),
        inode: response.header.inode,
        receive_buffer: memory.receive_queue_max,
        send_buffer: memory.send_queue_max,
        receive_queue: memory.receive_queue,
        drops: memory.drops,
        holder: None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as StdSocket;

    use super::*;

    #[test]
    fn drops_of_a_full_socket_are_counted() {
        let receiver = StdSocket::bind("127.0.0.1:0").unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&receiver, 4096).unwrap();
        let to = receiver.local_addr().unwrap();
        let sender = StdSocket::bind("127.0.0.1:0").unwrap();
        let before = udp_sockets(to.port()).unwrap();
        assert_eq!(before.len(), 1);
        assert_eq!(before[0].local, to);
        assert_eq!(before[0].drops, 0);
        for _ in 0..100 {
            sender.send_to(&[0; 1000], to).unwrap();
        }
        let after = udp_sockets(to.port()).unwrap();
        assert_eq!(after[0].inode, before[0].inode);
        assert!(after[0].drops > 50, "{after:?}");
        assert!(after[0].receive_queue > 0);
    }

    #[test]
    fn an_unused_port_has_no_socket() {
        let port = StdSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        assert_eq!(udp_sockets(port).unwrap(), []);
    }
}
