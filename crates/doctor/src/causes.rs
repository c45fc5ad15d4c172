//! The causes the doctor knows: one file each, named by its code, one line here, in the group it belongs to. Their checks run
//! in this order, which decides between findings of the same weight.

// Sizes.
mod icmp_black_hole;
mod mss_unclamped;
mod mtu_below_path;
mod mtu_exceeds_path;
mod nested_tunnel;

// TCP, and the queues it fills.
mod bufferbloat;
mod collapse_above_rate;
mod congestion_control;
mod window_limited;

// The road.
mod path_loss;
mod path_reorder;
mod path_slow;
mod udp_shaped;

// The WireGuard device and its peers.
mod allowed_ips_overlap;
mod nat_timeout;
mod socket_overflow;
mod userspace_by_accident;

// Processors.
mod cpu_saturated;
mod cpu_throttled;
mod crypto_slow;
mod irq_placement;
mod napi_convergence;
mod napi_threaded_stall;
mod numa_remote;
mod one_core_bound;

// Packets on their way through the machine.
mod backlog_overflow;
mod forward_gro;
mod offload_broken;
mod offload_off;
mod ring_overflow;
mod softirq_budget;

// Firewall, connection tracking, and programs that listen.
mod accept_queue;
mod conntrack_cost;
mod conntrack_full;
mod conntrack_invalid;
mod firewall_cost;

// Versions and providers.
mod cloud_limit;
mod old_kernel;

pub(crate) use bufferbloat::{in_direction as bloated, soaked};
pub(crate) use congestion_control::{sender_uses, suspected as congestion_suspected};
pub(crate) use nat_timeout::handshake_due;
use wirespeed_measure::Direction;

use crate::finding::Check;
use crate::{Evidence, Finding};

/// Every check, in the order of the modules above.
pub(crate) const CHECKS: &[Check] = include!(concat!(env!("OUT_DIR"), "/checks.rs"));

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
