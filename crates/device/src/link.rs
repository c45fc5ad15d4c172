//! What happens to the TUN's interface: up and down, its MTU, its name, its end; and to the routes of its tunnel.
//!
//! The kernel tells by rtnetlink. An interface may be moved to another network namespace while we stay; the socket hears of that one, too,
//! so the watch goes on there.

pub(crate) mod message;
pub(crate) mod socket;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use wirespeed_protocol::Prefix;

use self::message::{Content, Link, Message, Request, messages};
use self::socket::{DATAGRAM_BYTES, Netlink};

/// Something that happened to the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It can be used.
    Up,
    /// Nothing goes through until it is up again.
    Down,
    /// Its MTU, in bytes.
    Mtu(usize),
    /// It has another name.
    Renamed(String),
    /// It was deleted.
    Gone,
    /// A route to these addresses of other machines came, went or changed in our own network namespace.
    Route(Prefix),
    /// From now on the machine may forward packets of others, see [`limit_segments`](crate::tun::Tun::limit_segments). Told once.
    Forwards,
}

/// A watch on one interface.
pub struct Watch {
    netlink: Netlink,
    buffer: Box<[u8]>,
    /// What our own namespace is called if it has a number, which it rarely has.
    own_namespace: Option<i32>,
    followed: Followed,
    seen: Seen,
    forwards: bool,
}

/// Where the interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Followed {
    /// `None`: where we are.
    namespace: Option<i32>,
    index: u32,
}

/// What was told last.
#[derive(Default)]
struct Seen {
    up: Option<bool>,
    mtu: Option<usize>,
    name: Option<String>,
    gone: bool,
}

impl Watch {
    /// Watches the interface with this index in the calling thread's network namespace. The first [`events`](Self::events) tell how it is.
    pub fn open(index: u32) -> io::Result<Self> {
        let group = |number: u32| 1 << (number - 1);
        let mut netlink = Netlink::open(
            group(libc::RTNLGRP_LINK)
                | group(libc::RTNLGRP_IPV4_ROUTE)
                | group(libc::RTNLGRP_IPV6_ROUTE)
                | group(libc::RTNLGRP_IPV4_NETCONF)
                | group(libc::RTNLGRP_IPV6_NETCONF),
        )?;
        if let Err(error) = netlink.listen_to_all_namespaces() {
            log::debug!(
                "the interface will not be seen any more if it is moved to another network namespace: {error}"
            );
        }
        let mut once = Netlink::open(0)?;
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let own_namespace = match once.ask(Request::namespace_of(thread.cast_unsigned())) {
            Ok(answers) => answers.iter().find_map(|answer| match answer {
                Content::Namespace(number) if *number >= 0 => Some(*number),
                _ => None,
            }),
            Err(error) => {
                log::debug!("the number of our own network namespace is unknown: {error}");
                None
            }
        };
        let forwards = [libc::AF_INET, libc::AF_INET6].into_iter().any(|family| {
            match once.ask(Request::every_netconf(family as u8)) {
                Ok(all) => all.contains(&Content::Forwarding(true)),
                // Without IPv6 there is nothing to ask for. Not to know is no reason to take a risk.
                Err(error) => {
                    log::debug!("whether this machine forwards is unknown: {error}");
                    family == libc::AF_INET
                }
            }
        });
        netlink.send(Request::link(index))?;
        Ok(Self {
            netlink,
            buffer: vec![0; DATAGRAM_BYTES].into_boxed_slice(),
            own_namespace,
            followed: Followed {
                namespace: None,
                index,
            },
            seen: Seen::default(),
            forwards,
        })
    }

    /// Whether the machine forwards packets of others, so that their super-packets may come.
    pub fn forwards(&self) -> bool {
        self.forwards
    }

    /// Hands on what has happened, without waiting for more.
    pub fn events(&mut self, mut each: impl FnMut(Event)) -> io::Result<()> {
        loop {
            match self.netlink.receive(&mut self.buffer) {
                Ok((length, namespace)) => {
                    let namespace = namespace.filter(|number| Some(*number) != self.own_namespace);
                    let received: Vec<_> = messages(&self.buffer[..length]).collect();
                    for message in received {
                        self.take(message, namespace, &mut each)?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Something was lost; what matters is how it stands now.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    every_route().for_each(|route| each(Event::Route(route)));
                    self.ask_again()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn take(
        &mut self,
        message: Message,
        namespace: Option<i32>,
        each: &mut impl FnMut(Event),
    ) -> io::Result<()> {
        let is_followed = |link: &Link| {
            let namespace = link.namespace.or(namespace);
            self.followed
                == Followed {
                    namespace,
                    index: link.index,
                }
        };
        match message.content {
            Content::Link(link) if is_followed(&link) => self.seen.update(link, each),
            Content::LinkGone(link) if is_followed(&link) => {
                return self.follow(&link, each);
            }
            Content::Route(route) if namespace.is_none() => each(Event::Route(route)),
            Content::Forwarding(true) if namespace.is_none() && !self.forwards => {
                self.forwards = true;
                each(Event::Forwards);
            }
            // The answer to our question for an interface that is no more.
            Content::Ended(error)
                if error == -libc::ENODEV && self.followed.namespace.is_none() =>
            {
                self.seen.end(each);
            }
            _ => {}
        }
        Ok(())
    }

    /// The interface has left its namespace.
    fn follow(&mut self, link: &Link, each: &mut impl FnMut(Event)) -> io::Result<()> {
        let Some(to) = link.new_namespace.filter(|number| *number >= 0) else {
            self.seen.end(each);
            return Ok(());
        };
        if self.followed.namespace.is_some() {
            // The number is one of that namespace, which means nothing here.
            log::warn!("the interface was moved again and can't be seen any more; taken to be up");
            self.seen.set_up(true, each);
            return Ok(());
        }
        self.followed = Followed {
            namespace: Some(to).filter(|number| Some(*number) != self.own_namespace),
            index: link.new_index.unwrap_or(link.index),
        };
        self.seen.set_up(false, each);
        self.ask_again()
    }

    fn ask_again(&mut self) -> io::Result<()> {
        let mut request = Request::link(self.followed.index);
        if let Some(namespace) = self.followed.namespace {
            request = request.with(libc::IFLA_TARGET_NETNSID, &namespace.to_ne_bytes());
        }
        self.netlink.send(request)?;
        Ok(())
    }
}

/// All addresses of each family.
fn every_route() -> impl Iterator<Item = Prefix> {
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    any.into_iter()
        .filter_map(|address| Prefix::new(address, 0))
}

impl Seen {
    fn update(&mut self, link: Link, each: &mut impl FnMut(Event)) {
        if let Some(name) = link.name
            && self.name.as_ref() != Some(&name)
        {
            if self.name.is_some() {
                each(Event::Renamed(name.clone()));
            }
            self.name = Some(name);
        }
        let mtu = link.mtu.map(|mtu| mtu as usize);
        if let Some(mtu) = mtu
            && self.mtu != Some(mtu)
        {
            self.mtu = Some(mtu);
            each(Event::Mtu(mtu));
        }
        self.set_up(link.up, each);
    }

    fn set_up(&mut self, up: bool, each: &mut impl FnMut(Event)) {
        if self.up != Some(up) {
            self.up = Some(up);
            each(if up { Event::Up } else { Event::Down });
        }
    }

    fn end(&mut self, each: &mut impl FnMut(Event)) {
        if !self.gone {
            self.gone = true;
            each(Event::Gone);
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

#[cfg(test)]
mod tests;
