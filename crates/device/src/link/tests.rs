use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::offloads::Offloads;
use crate::tun::tests::world::{Namespace, possible, wait_for};

/// Events until the wanted one, at most for two seconds.
fn until(watch: &mut Watch, wanted: &Event) -> Vec<Event> {
    let mut seen = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(2);
    while !seen.contains(wanted) {
        assert!(Instant::now() < deadline, "{wanted:?} not among {seen:?}");
        wait_for(&*watch, 100);
        watch
            .events(|event| {
                // Addresses of the kernel's own making bring routes of their own.
                if !matches!(event, Event::Route(_)) || matches!(wanted, Event::Route(_)) {
                    seen.push(event);
                }
            })
            .unwrap();
    }
    seen
}

#[test]
fn routes_to_other_machines_are_told() {
    if !possible("routes_to_other_machines_are_told") {
        return;
    }
    let (namespace, _tun, mut watch) = watched(1);
    namespace.ip("link set tun0 up");
    let route = |address: IpAddr, length| Event::Route(Prefix::new(address, length).unwrap());
    namespace.ip("addr add 192.0.2.1/24 dev tun0");
    until(&mut watch, &route([192, 0, 2, 0].into(), 24));
    namespace.ip("route add default via 192.0.2.2");
    until(&mut watch, &route([0; 4].into(), 0));
    namespace.ip("route del default");
    until(&mut watch, &route([0; 4].into(), 0));
    namespace.ip("-6 route add 2001:db8::/32 dev tun0");
    let seen = until(&mut watch, &route("2001:db8::".parse().unwrap(), 32));
    let own = route([192, 0, 2, 1].into(), 32);
    assert!(!seen.contains(&own), "{seen:?}");
}

fn watched(queues: usize) -> (Namespace, crate::tun::Tun, Watch) {
    let namespace = Namespace::new();
    let tun = namespace.tun("tun0", queues, &Arc::new(Offloads::new(&[])));
    let watch = namespace.run(|| Watch::open(tun.index()).unwrap());
    (namespace, tun, watch)
}

#[test]
fn the_first_events_tell_how_it_is() {
    if !possible("the_first_events_tell_how_it_is") {
        return;
    }
    let (_namespace, _tun, mut watch) = watched(1);
    let seen = until(&mut watch, &Event::Down);
    assert_eq!(seen, [Event::Mtu(1_420), Event::Down]);
}

#[test]
fn every_change_is_told_once() {
    if !possible("every_change_is_told_once") {
        return;
    }
    let (namespace, tun, mut watch) = watched(2);
    until(&mut watch, &Event::Down);
    namespace.ip("link set tun0 up");
    assert_eq!(until(&mut watch, &Event::Up), [Event::Up]);
    namespace.ip("link set tun0 mtu 1380");
    assert_eq!(until(&mut watch, &Event::Mtu(1_380)), [Event::Mtu(1_380)]);
    namespace.ip("link set tun0 txqueuelen 600");
    namespace.ip("link set tun0 down");
    assert_eq!(until(&mut watch, &Event::Down), [Event::Down]);
    namespace.ip("link set tun0 name other");
    let renamed = Event::Renamed("other".to_owned());
    assert_eq!(until(&mut watch, &renamed), std::slice::from_ref(&renamed));
    // What happens to others is nothing to us.
    namespace.ip("tuntap add tun0 mode tun");
    namespace.ip("link set tun0 mtu 1300 up");
    namespace.ip("link delete tun0");
    namespace.ip("link set other up");
    assert_eq!(until(&mut watch, &Event::Up), [Event::Up]);
    drop(tun);
    let seen = until(&mut watch, &Event::Gone);
    assert_eq!(seen.last(), Some(&Event::Gone));
}

#[test]
fn an_interface_that_is_gone_already() {
    if !possible("an_interface_that_is_gone_already") {
        return;
    }
    let namespace = Namespace::new();
    let mut watch = namespace.run(|| Watch::open(4_711).unwrap());
    assert_eq!(until(&mut watch, &Event::Gone), [Event::Gone]);
}

#[test]
fn it_is_followed_to_another_namespace() {
    if !possible("it_is_followed_to_another_namespace") {
        return;
    }
    let (namespace, tun, mut watch) = watched(1);
    namespace.ip("link set tun0 up");
    until(&mut watch, &Event::Up);
    // The other one has an interface of that name and index, too, and more.
    let other = Namespace::new();
    let decoy = other.tun("tun0", 1, &Arc::new(Offloads::new(&[])));
    assert_eq!(decoy.index(), tun.index());
    other.ip("link set tun0 name decoy mtu 1234");
    // A thread of that namespace, to be named as the goal.
    let (tell, told) = std::sync::mpsc::channel();
    let (end, wait) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let other = &other;
        scope.spawn(move || {
            other.run(move || {
                tell.send(rustix::thread::gettid()).unwrap();
                let _ = wait.recv();
            });
        });
        let thread = told.recv().unwrap().as_raw_nonzero();
        namespace.ip(&format!("link set tun0 netns {thread}"));
        drop(end);
    });
    let seen = until(&mut watch, &Event::Down);
    assert!(!seen.contains(&Event::Gone), "{seen:?}");
    // From here its index means nothing.
    assert!(tun.limit_segments(Some(45)).is_err());
    other.ip("link set decoy up");
    other.ip("link set tun0 mtu 1333 up");
    let seen = until(&mut watch, &Event::Up);
    assert!(seen.contains(&Event::Mtu(1_333)), "{seen:?}");
    assert!(!seen.contains(&Event::Mtu(1_234)), "{seen:?}");
    other.ip("link set decoy down");
    other.ip("link delete tun0");
    let seen = until(&mut watch, &Event::Gone);
    assert_eq!(seen, [Event::Down, Event::Gone]);
}

#[test]
fn forwarding_is_told_once() {
    if !possible("forwarding_is_told_once") {
        return;
    }
    for (file, again) in [
        ("ipv4/ip_forward", true),
        ("ipv6/conf/all/forwarding", false),
    ] {
        let (namespace, _tun, mut watch) = watched(1);
        assert!(!watch.forwards());
        // /proc/sys/net shows the namespace of whoever looks.
        let written = namespace.run(|| std::fs::write(format!("/proc/sys/net/{file}"), "1"));
        if let Err(error) = written {
            return crate::testing::skip("forwarding_is_told_once", &error.to_string());
        }
        until(&mut watch, &Event::Forwards);
        assert!(watch.forwards());
        if again {
            let watch = namespace.run(|| Watch::open(1).unwrap());
            assert!(watch.forwards());
        }
    }
}
