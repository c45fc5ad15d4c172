//! The causes the doctor knows: one file each, named by its code, one line here.

mod allowed_ips_overlap;
mod bufferbloat;
mod congestion_control;
mod cpu_saturated;
mod icmp_black_hole;
mod mtu_below_path;
mod mtu_exceeds_path;
mod nat_timeout;
mod one_core_bound;
mod path_slow;
mod socket_overflow;

pub(crate) use bufferbloat::{in_direction as bloated, on_the_road as queue_on_the_road, soaked};
pub(crate) use congestion_control::{sender_uses, suspected as congestion_suspected};
use wirespeed_measure::Direction;

use crate::finding::Check;
use crate::{Evidence, Finding};

/// Every check, in the order of the guide.
pub(crate) const CHECKS: &[Check] = &[
    mtu_exceeds_path::CHECK,
    mtu_below_path::CHECK,
    icmp_black_hole::CHECK,
    congestion_control::CHECK,
    bufferbloat::CHECK,
    path_slow::CHECK,
    socket_overflow::CHECK,
    cpu_saturated::CHECK,
    one_core_bound::CHECK,
    nat_timeout::CHECK,
    allowed_ips_overlap::CHECK,
];

/// Is `effect` only what `cause` brings about?
pub(crate) fn explains(evidence: &Evidence, cause: &Finding, effect: &Finding) -> bool {
    let same_direction = cause.direction.is_none() || cause.direction == effect.direction;
    let starved = matches!(
        cause.code.as_str(),
        cpu_saturated::CODE | one_core_bound::CODE
    );
    match effect.code.as_str() {
        mtu_exceeds_path::CODE => cause.code == icmp_black_hole::CODE && same_direction,
        socket_overflow::CODE => {
            starved
                && (same_direction || effect.direction.is_none())
                && names_host(evidence, cause, &effect.host)
        }
        bufferbloat::CODE => {
            starved
                && same_direction
                && effect
                    .direction
                    .is_some_and(|direction| !bufferbloat::on_the_road(evidence, direction))
        }
        _ => false,
    }
}

/// Is something already known that explains a slow tunnel in this direction: MTU, a full socket, a busy processor?
fn explained(evidence: &Evidence, direction: Direction) -> Option<&'static str> {
    if crate::mtu::excess(evidence, direction).is_some() {
        return Some(mtu_exceeds_path::CODE);
    }
    if socket_overflow::in_direction(evidence, direction) {
        return Some(socket_overflow::CODE);
    }
    if one_core_bound::in_direction(evidence, direction) {
        return Some(one_core_bound::CODE);
    }
    if cpu_saturated::in_direction(evidence, direction) {
        return Some(cpu_saturated::CODE);
    }
    bufferbloat::in_direction(evidence, direction).then_some(bufferbloat::CODE)
}

/// Does the trouble of a machine also concern this one: the same, or another namespace of the same kernel?
fn names_host(evidence: &Evidence, cause: &Finding, host: &str) -> bool {
    cause.host == host || evidence.one_kernel()
}
