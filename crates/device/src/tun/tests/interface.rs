//! Making an interface, and making it when it is already there.

use std::sync::Arc;

use super::world::{Namespace, possible};
use crate::offloads::{Offload, OffloadState, Offloads};
use crate::tun::{Tun, TunError};

fn create(namespace: &Namespace, name: &str, queues: usize) -> Result<Tun, TunError> {
    namespace.run(|| Tun::create(name, queues, 1_420, &Arc::new(Offloads::new(&[]))))
}

#[test]
fn a_new_interface_is_down_and_has_its_mtu() {
    if !possible("a_new_interface_is_down_and_has_its_mtu") {
        return;
    }
    let namespace = Namespace::new();
    for queues in [1, 2] {
        let tun = create(&namespace, "wg7", queues).unwrap();
        assert_eq!((tun.name().as_str(), tun.mtu()), ("wg7", 1_420));
        assert_eq!(tun.queues().len(), queues);
        let shown = namespace.ip("-d link show wg7");
        assert!(
            shown.starts_with(&format!("{}: wg7:", tun.index())),
            "{shown}"
        );
        assert!(shown.contains("mtu 1420"), "{shown}");
        assert!(!shown.contains("UP"), "{shown}");
        assert_eq!(shown.contains("multi_queue"), queues > 1, "{shown}");
        namespace.ip("link set wg7 name wg8");
        assert_eq!(tun.name(), "wg8");
        drop(tun);
        assert!(!namespace.ip("link show").contains("wg8"));
    }
}

#[test]
fn it_has_no_address_but_those_it_is_given() {
    if !possible("it_has_no_address_but_those_it_is_given") {
        return;
    }
    let namespace = Namespace::new();
    let _tun = create(&namespace, "wg7", 1).unwrap();
    namespace.ip("address add fd00::1/64 dev wg7 nodad");
    namespace.ip("link set wg7 up");
    let shown = namespace.ip("-6 -oneline address show dev wg7");
    assert_eq!(shown.lines().count(), 1, "{shown}");
}

#[test]
fn offloads_are_found_out_one_by_one() {
    if !possible("offloads_are_found_out_one_by_one") {
        return;
    }
    let namespace = Namespace::new();
    let offloads = Arc::new(Offloads::new(&[Offload::TunTso6]));
    let _tun = namespace.tun("tun0", 2, &offloads);
    let report = offloads.report();
    // These two every kernel since 2.6.27 has.
    assert!(offloads.on(Offload::TunChecksum), "{report:?}");
    assert!(offloads.on(Offload::TunTso4), "{report:?}");
    assert_eq!(offloads.state(Offload::TunTso6), OffloadState::Disabled);
    for offload in [Offload::TunUso, Offload::TunSteering] {
        assert!(
            matches!(
                offloads.state(offload),
                OffloadState::On | OffloadState::Unsupported
            ),
            "{report:?}"
        );
    }
    let without = Arc::new(Offloads::new(&[Offload::TunChecksum]));
    let _tun = namespace.tun("tun1", 1, &without);
    for offload in [Offload::TunTso4, Offload::TunTso6, Offload::TunUso] {
        assert_eq!(without.state(offload), OffloadState::Unsupported);
    }
}

#[test]
fn what_another_has_is_left_to_it() {
    if !possible("what_another_has_is_left_to_it") {
        return;
    }
    let namespace = Namespace::new();
    for (first, second) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let tun = create(&namespace, "wg0", first).unwrap();
        let refused = create(&namespace, "wg0", second).err();
        let expected = matches!(
            (second, &refused),
            (_, Some(TunError::InUse(_))) | (2, Some(TunError::SingleQueue(_)))
        );
        assert!(expected, "{first} and {second} queues: {refused:?}");
        // It goes on working for the first.
        namespace.ip("link set wg0 up");
        assert_eq!(tun.queues().len(), first);
    }
    assert!(matches!(
        create(&namespace, "lo", 1).err(),
        Some(TunError::NotTun(_))
    ));
    namespace.ip("tuntap add tap0 mode tap");
    assert!(matches!(
        create(&namespace, "tap0", 1).err(),
        Some(TunError::NotTun(_))
    ));
}

#[test]
fn a_persistent_one_is_taken_as_it_is() {
    if !possible("a_persistent_one_is_taken_as_it_is") {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("tuntap add single mode tun");
    namespace.ip("tuntap add many mode tun multi_queue");
    namespace.ip("link set single mtu 1300 up");
    let single = create(&namespace, "single", 1).unwrap();
    assert_eq!(single.mtu(), 1_300);
    single.limit_segments(Some(45)).unwrap();
    let limited = namespace.ip("-d link show single");
    assert!(limited.contains("gso_max_segs 45"), "{limited}");
    drop(single);
    let left = namespace.ip("-d link show single");
    assert!(left.contains("gso_max_segs 65535"), "{left}");
    assert!(matches!(
        create(&namespace, "single", 2).err(),
        Some(TunError::SingleQueue(_))
    ));
    for queues in [1, 3] {
        let many = create(&namespace, "many", queues).unwrap();
        assert_eq!(many.queues().len(), queues);
        for others in [1, 3] {
            assert!(matches!(
                create(&namespace, "many", others).err(),
                Some(TunError::InUse(_))
            ));
        }
    }
    // They outlive us.
    let left = namespace.ip("link show");
    assert!(left.contains("single") && left.contains("many"), "{left}");
}

#[test]
fn names_and_numbers_that_cannot_be() {
    let offloads = Arc::new(Offloads::new(&[]));
    for name in [
        "",
        "a/b",
        "wg 0",
        "wg%d",
        "..",
        "sixteen_letters_",
        "wg\u{fc}",
    ] {
        let refused = Tun::create(name, 1, 1_420, &offloads).err();
        assert!(matches!(refused, Some(TunError::BadName(_))), "{name}");
    }
    for queues in [0, 257] {
        let refused = Tun::create("wg0", queues, 1_420, &offloads).err();
        assert!(matches!(refused, Some(TunError::BadQueues(_))));
    }
}
