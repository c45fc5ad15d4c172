//! What can be changed: one type per knob, each of which reads, writes, says the same as a shell
//! command, and knows how it is made permanent.
//!
//! A [`Setting`] names one knob on one machine; its [`Value`] is plain JSON whose shape the knob
//! documents. Nothing here decides *whether* to change something: that is `wirespeed-tune`.
//!
//! Every call acts in the network namespace of the calling thread.
//!
//! What a knob is called and how it is kept is said in the language of the moment. Errors are English: they are what one
//! machine tells another.

mod egress_shaper;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod governor;
mod interrupt_cores;
mod link;
mod link_mtu;
mod link_offload;
mod netlink;
mod receive_ring;
mod route_congestion;
mod shell_word;
mod socket_receive_buffer;
mod sysctl;
mod threaded_napi;

pub use error::SettingError;
pub use shell_word::shell_word;

use serde::{Deserialize, Serialize};
use wirespeed_words::{Language, within};

/// The value of a setting; `null` = the kernel's default or "not set". Each knob documents its shape.
pub type Value = serde_json::Value;

/// One thing that can be changed on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "knob", rename_all = "kebab-case")]
pub enum Setting {
    /// MTU of a link, in bytes (number).
    LinkMtu {
        /// Interface name.
        interface: String,
    },
    /// Receive buffer of the UDP sockets of a userspace tunnel, in bytes as the kernel reports them
    /// (`SO_RCVBUF` of getsockopt; number). Changed in the running daemon through `pidfd_getfd(2)`: this
    /// socket and no other, no restart.
    SocketReceiveBuffer {
        /// Interface name of the tunnel.
        interface: String,
    },
    /// TCP congestion control of every route that leaves by the interface (text, or null = the
    /// namespace's default).
    RouteCongestion {
        /// Interface name.
        interface: String,
    },
    /// Egress rate limit of an interface, in bit/s (number; null = the queueing discipline the kernel gave).
    EgressShaper {
        /// Interface name.
        interface: String,
    },
    /// Length of a card's receive rings, in packets (number). Most drivers stop the card for the change.
    ReceiveRing {
        /// Interface name of the card.
        interface: String,
    },
    /// Cores that an interrupt may go to (text, `0-3,8`). Host-wide.
    InterruptCores {
        /// Its number, as in `/proc/interrupts`.
        interrupt: u32,
    },
    /// How the processor chooses its frequency (text; one per cluster where they differ). Host-wide.
    Governor,
    /// NAPI of a link in kernel threads (true or false).
    ThreadedNapi {
        /// Interface name.
        interface: String,
    },
    /// An offload feature of a link (true or false).
    LinkOffload {
        /// Interface name.
        interface: String,
        /// Its name in `ethtool -k`: `tx-udp-segmentation`.
        feature: String,
    },
    /// A sysctl by its dotted name (text).
    Sysctl {
        /// `net.ipv4.tcp_mtu_probing`.
        name: String,
    },
}

/// What became of a knob that was to be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Restored {
    /// It has its old value: put back now, or never changed.
    PutBack,
    /// Someone else changed it after us; left as it is.
    ChangedByOthers {
        /// What it has now, in words.
        now: String,
    },
}

impl Setting {
    /// The value it has now, in the shape its knob documents.
    pub fn read(&self) -> Result<Value, SettingError> {
        within(Language::English, || match self {
            Self::LinkMtu { interface } => link_mtu::read(interface),
            Self::SocketReceiveBuffer { interface } => socket_receive_buffer::read(interface),
            Self::RouteCongestion { interface } => route_congestion::read(interface),
            Self::EgressShaper { interface } => egress_shaper::read(interface),
            Self::ReceiveRing { interface } => receive_ring::read(interface),
            Self::InterruptCores { interrupt } => interrupt_cores::read(*interrupt),
            Self::Governor => governor::read(),
            Self::ThreadedNapi { interface } => threaded_napi::read(interface),
            Self::LinkOffload { interface, feature } => link_offload::read(interface, feature),
            Self::Sysctl { name } => sysctl::read(name),
        })
    }

    /// Gives it a value and checks by reading back. Anything [`Setting::read`] gave is taken.
    pub fn write(&self, value: &Value) -> Result<(), SettingError> {
        within(Language::English, || match self {
            Self::LinkMtu { interface } => link_mtu::write(interface, value),
            Self::SocketReceiveBuffer { interface } => {
                socket_receive_buffer::write(interface, value)
            }
            Self::RouteCongestion { interface } => route_congestion::write(interface, value),
            Self::EgressShaper { interface } => egress_shaper::write(interface, value),
            Self::ReceiveRing { interface } => receive_ring::write(interface, value),
            Self::InterruptCores { interrupt } => interrupt_cores::write(*interrupt, value),
            Self::Governor => governor::write(value),
            Self::ThreadedNapi { interface } => threaded_napi::write(interface, value),
            Self::LinkOffload { interface, feature } => {
                link_offload::write(interface, feature, value)
            }
            Self::Sysctl { name } => sysctl::write(name, value),
        })
    }

    /// Puts `before` back where one of `ours` (values we wrote or meant to write) still stands; what anybody
    /// else has set since wins. A knob of several parts (routes, sockets) is judged part by part.
    pub fn restore(&self, before: &Value, ours: &[Value]) -> Result<Restored, SettingError> {
        within(Language::English, || {
            let changed_by_others = match self {
                Self::SocketReceiveBuffer { interface } => {
                    socket_receive_buffer::restore(interface, before, ours)?
                }
                Self::RouteCongestion { interface } => {
                    route_congestion::restore(interface, before, ours)?
                }
                Self::LinkMtu { .. }
                | Self::EgressShaper { .. }
                | Self::ReceiveRing { .. }
                | Self::InterruptCores { .. }
                | Self::Governor
                | Self::ThreadedNapi { .. }
                | Self::LinkOffload { .. }
                | Self::Sysctl { .. } => {
                    let now = self.read()?;
                    if self.normal(&now) == self.normal(before) {
                        Vec::new()
                    } else if ours
                        .iter()
                        .any(|ours| self.normal(ours) == self.normal(&now))
                    {
                        self.write(before)?;
                        Vec::new()
                    } else {
                        vec![now.to_string()]
                    }
                }
            };
            Ok(if changed_by_others.is_empty() {
                Restored::PutBack
            } else {
                Restored::ChangedByOthers {
                    now: changed_by_others.join(", "),
                }
            })
        })
    }

    /// The commands a person could run instead of [`Setting::write`]; empty when the value makes no sense for it.
    pub fn shell(&self, value: &Value) -> Vec<String> {
        match self {
            Self::LinkMtu { interface } => link_mtu::shell(interface, value),
            Self::SocketReceiveBuffer { interface } => {
                socket_receive_buffer::shell(interface, value)
            }
            Self::RouteCongestion { interface } => route_congestion::shell(interface, value),
            Self::EgressShaper { interface } => egress_shaper::shell(interface, value),
            Self::ReceiveRing { interface } => receive_ring::shell(interface, value),
            Self::InterruptCores { interrupt } => interrupt_cores::shell(*interrupt, value),
            Self::Governor => governor::shell(value),
            Self::ThreadedNapi { interface } => threaded_napi::shell(interface, value),
            Self::LinkOffload { interface, feature } => {
                link_offload::shell(interface, feature, value)
            }
            Self::Sysctl { name } => sysctl::shell(name, value),
        }
    }

    /// The knob in a few words: `wg0 mtu`.
    pub fn describe(&self) -> String {
        match self {
            Self::LinkMtu { interface } => link_mtu::describe(interface),
            Self::SocketReceiveBuffer { interface } => socket_receive_buffer::describe(interface),
            Self::RouteCongestion { interface } => route_congestion::describe(interface),
            Self::EgressShaper { interface } => egress_shaper::describe(interface),
            Self::ReceiveRing { interface } => receive_ring::describe(interface),
            Self::InterruptCores { interrupt } => interrupt_cores::describe(*interrupt),
            Self::Governor => governor::describe(),
            Self::ThreadedNapi { interface } => threaded_napi::describe(interface),
            Self::LinkOffload { interface, feature } => link_offload::describe(interface, feature),
            Self::Sysctl { name } => sysctl::describe(name),
        }
    }

    /// Where to write the value so that it outlives a reboot.
    pub fn persistence(&self, value: &Value) -> String {
        match self {
            Self::LinkMtu { interface } => link_mtu::persistence(interface, value),
            Self::SocketReceiveBuffer { interface } => {
                socket_receive_buffer::persistence(interface, value)
            }
            Self::RouteCongestion { interface } => route_congestion::persistence(interface, value),
            Self::EgressShaper { interface } => egress_shaper::persistence(interface, value),
            Self::ReceiveRing { interface } => receive_ring::persistence(interface, value),
            Self::InterruptCores { interrupt } => interrupt_cores::persistence(*interrupt, value),
            Self::Governor => governor::persistence(value),
            Self::ThreadedNapi { interface } => threaded_napi::persistence(interface, value),
            Self::LinkOffload { interface, feature } => {
                link_offload::persistence(interface, feature, value)
            }
            Self::Sysctl { name } => sysctl::persistence(name, value),
        }
    }

    /// One form for values that mean the same.
    fn normal(&self, value: &Value) -> Value {
        match self {
            Self::EgressShaper { .. } => egress_shaper::normal(value),
            Self::InterruptCores { .. } => interrupt_cores::normal(value),
            Self::Sysctl { .. } => sysctl::normal(value),
            _ => value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_knob_is_told_in_the_persons_language_and_an_error_in_english() {
        let mtu = Setting::LinkMtu {
            interface: "wg0".to_owned(),
        };
        let told = || (mtu.describe(), mtu.persistence(&json!(12345)));
        let (name, kept) = told();
        assert_eq!(name, "wg0 mtu");
        assert!(kept.starts_with("`MTU = 12345` under [Interface] in /etc/wireguard/wg0.conf"));
        let (name, kept) = within(Language::French, told);
        assert_eq!(name, "MTU de wg0");
        assert!(kept.starts_with("`MTU = 12345` sous [Interface] dans /etc/wireguard/wg0.conf"));
        let error = within(Language::French, || mtu.write(&json!("much"))).unwrap_err();
        assert!(error.to_string().starts_with("wg0 mtu: "), "{error}");
    }
}
