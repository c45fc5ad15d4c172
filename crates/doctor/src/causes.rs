//! The causes the doctor knows: one file each, named by its code, one line here.

mod accept_queue;
mod allowed_ips_overlap;
mod backlog_overflow;
mod bufferbloat;
mod cloud_limit;
mod collapse_above_rate;
mod congestion_control;
mod conntrack_cost;
mod conntrack_full;
mod conntrack_invalid;
mod cpu_saturated;
mod cpu_throttled;
mod crypto_slow;
mod firewall_cost;
mod forward_gro;
mod icmp_black_hole;
mod irq_placement;
mod mss_unclamped;
mod mtu_below_path;
mod mtu_exceeds_path;
mod napi_convergence;
mod napi_threaded_stall;
mod nat_timeout;
mod nested_tunnel;
mod numa_remote;
mod offload_broken;
mod offload_off;
mod old_kernel;
mod one_core_bound;
mod path_loss;
mod path_reorder;
mod path_slow;
mod ring_overflow;
mod socket_overflow;
mod softirq_budget;
mod udp_shaped;
mod userspace_by_accident;
mod window_limited;

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
    mss_unclamped::CHECK,
    congestion_control::CHECK,
    bufferbloat::CHECK,
    collapse_above_rate::CHECK,
    window_limited::CHECK,
    path_slow::CHECK,
    path_loss::CHECK,
    path_reorder::CHECK,
    udp_shaped::CHECK,
    socket_overflow::CHECK,
    userspace_by_accident::CHECK,
    crypto_slow::CHECK,
    cpu_saturated::CHECK,
    napi_convergence::CHECK,
    napi_threaded_stall::CHECK,
    one_core_bound::CHECK,
    nat_timeout::CHECK,
    allowed_ips_overlap::CHECK,
    nested_tunnel::CHECK,
    offload_off::CHECK,
    offload_broken::CHECK,
    accept_queue::CHECK,
    conntrack_cost::CHECK,
    conntrack_full::CHECK,
    conntrack_invalid::CHECK,
    firewall_cost::CHECK,
    forward_gro::CHECK,
    old_kernel::CHECK,
    backlog_overflow::CHECK,
    softirq_budget::CHECK,
    ring_overflow::CHECK,
    numa_remote::CHECK,
    irq_placement::CHECK,
    cpu_throttled::CHECK,
    cloud_limit::CHECK,
];

/// Is `effect` only what `cause` brings about?
pub(crate) fn explains(evidence: &Evidence, cause: &Finding, effect: &Finding) -> bool {
    let by_code = |code: &str| CHECKS.iter().find(|check| check.code == code);
    by_code(&cause.code).is_some_and(|check| (check.brings)(evidence, cause, effect))
        || by_code(&effect.code).is_some_and(|check| (check.follows_from)(evidence, cause, effect))
}

/// Is something already known that explains a slow tunnel in this direction: MTU, a full socket, a busy processor? Must
/// not be asked from within a `slows`.
fn explained(evidence: &Evidence, direction: Direction) -> bool {
    CHECKS
        .iter()
        .any(|check| (check.slows)(evidence, direction))
}

/// Is the effect in a direction the cause is about?
fn same_direction(cause: &Finding, effect: &Finding) -> bool {
    cause.direction.is_none() || cause.direction == effect.direction
}

/// Does the trouble of a machine also concern this one: the same, or another namespace of the same kernel?
fn names_host(evidence: &Evidence, cause: &Finding, host: &str) -> bool {
    cause.host == host || evidence.one_kernel()
}

/// What a machine without processor time to spare brings about: datagrams that wait too long in its socket are lost, and
/// queues fill up behind it.
fn starves(evidence: &Evidence, cause: &Finding, effect: &Finding) -> bool {
    match effect.code.as_str() {
        socket_overflow::CODE => {
            (same_direction(cause, effect) || effect.direction.is_none())
                && names_host(evidence, cause, &effect.host)
        }
        bufferbloat::CODE => {
            same_direction(cause, effect)
                && effect
                    .direction
                    .is_some_and(|direction| !bufferbloat::on_the_road(evidence, direction))
        }
        _ => false,
    }
}
