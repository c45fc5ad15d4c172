//! Egress rate limit of an interface. Value: bit/s, a number; null = the queueing discipline the kernel gave.
//!
//! The best the kernel has: cake, else tbf with an `fq_codel` inside, else tbf with a queue of 20 ms. The shaper
//! carries a handle of its own, so that it is told from anybody else's; the kernel's default has the handle 0.
//! An administrator's qdisc is never replaced, since to put it back exactly could not be promised.

use wirespeed_words::say;

use crate::link::{check_name, link};
use crate::netlink::{
    Attributes, NLM_F_CREATE, NLM_F_REPLACE, Netlink, RTM_DELQDISC, RTM_GETQDISC, RTM_NEWQDISC,
    c_text, push_attribute, read_i32, read_u32, read_u64, text,
};
use crate::shell_word::shell_word;
use crate::{SettingError, Value};

/// Major number of our qdisc's handle (`WS` in ASCII).
const OWN_MAJOR: u32 = 0x5753;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_CAKE_BASE_RATE64: u16 = 2;
/// Queue behind tbf where there is no `fq_codel`: long enough for a burst of TCP, short enough for a call.
const QUEUE_MILLISECONDS: u64 = 20;
/// Two GSO packets: tbf splits larger ones, but a burst below one would never be sent.
const SMALLEST_BURST: u64 = 2 * 65536;
const SMALLEST_QUEUE: u64 = 20 * 1514;
const RATES: std::ops::RangeInclusive<u64> = 8_000..=400_000_000_000;

pub(crate) fn read(interface: &str) -> Result<Value, SettingError> {
    Ok(match root(interface, link(interface)?.index)? {
        Root::Default => Value::Null,
        Root::Own { rate } => rate.into(),
        Root::Administrators { kind } => serde_json::json!({ "administrators": kind }),
    })
}

pub(crate) fn write(interface: &str, value: &Value) -> Result<(), SettingError> {
    let wanted = rate(value).map_err(|()| SettingError::BadValue {
        setting: describe(interface),
        value: value.to_string(),
        expected: "bit/s, a number from 8000 to 400000000000, or null for none",
    })?;
    let index = link(interface)?.index;
    if let Root::Administrators { kind } = root(interface, index)? {
        return Err(SettingError::Refused {
            setting: describe(interface),
            why: format!(
                "{interface} already has a queueing discipline that someone chose ({kind}), and to put it back exactly could not be \
                 promised; change its rate by hand (`tc qdisc show dev {interface}`)"
            ),
        });
    }
    match wanted {
        Some(rate) => shape(interface, index, rate),
        None => remove(interface, index),
    }
}

pub(crate) fn shell(interface: &str, value: &Value) -> Vec<String> {
    if check_name(interface).is_err() {
        return Vec::new();
    }
    let interface = shell_word(interface);
    match rate(value) {
        Ok(Some(rate)) => vec![format!(
            "tc qdisc replace dev {interface} root handle {OWN_MAJOR:x}: tbf rate {rate}bit burst {} limit {}",
            burst(rate),
            queue(rate)
        )],
        Ok(None) => vec![format!("tc qdisc del dev {interface} root")],
        Err(()) => Vec::new(),
    }
}

pub(crate) fn describe(interface: &str) -> String {
    say!("settings-egress-shaper", interface = interface)
}

pub(crate) fn persistence(interface: &str, value: &Value) -> String {
    match shell(interface, value).first() {
        Some(command) => say!(
            "settings-egress-shaper-persistence",
            command = command,
            interface = interface
        ),
        None => say!("settings-nothing-to-keep"),
    }
}

pub(crate) enum Root {
    /// What the kernel gave (handle 0), or nothing.
    Default,
    /// Ours.
    Own { rate: u64 },
    /// Somebody's choice.
    Administrators { kind: String },
}

fn root(interface: &str, index: i32) -> Result<Root, SettingError> {
    let mut found = Root::Default;
    Netlink::open()?
        .dump(RTM_GETQDISC, &tcmsg(index, 0, 0), |body| {
            if read_i32(body, 4) == Some(index) && read_u32(body, 12) == Some(TC_H_ROOT) {
                found = parse_root(body);
            }
        })
        .map_err(|source| {
            SettingError::system(
                format!("asking for the queueing discipline of {interface}"),
                source,
            )
        })?;
    Ok(found)
}

pub(crate) fn parse_root(body: &[u8]) -> Root {
    let attributes = body.get(TCMSG..).unwrap_or_default();
    let handle = read_u32(body, 8).unwrap_or_default();
    let kind = Attributes(attributes)
        .find(TCA_KIND)
        .map(text)
        .unwrap_or_default();
    // A `noqueue` is "no queue", whoever put it there: replacing it loses nothing only when the kernel gave it.
    if handle == 0 {
        return Root::Default;
    }
    let options = Attributes(attributes).find(TCA_OPTIONS).unwrap_or_default();
    let bytes_per_second = match kind.as_str() {
        "tbf" => Attributes(options)
            .find(TCA_TBF_RATE64)
            .and_then(|rate| read_u64(rate, 0))
            .or_else(|| {
                Attributes(options)
                    .find(TCA_TBF_PARMS)
                    .and_then(|parameters| read_u32(parameters, 8))
                    .map(u64::from)
            }),
        "cake" => Attributes(options)
            .find(TCA_CAKE_BASE_RATE64)
            .and_then(|rate| read_u64(rate, 0)),
        _ => None,
    };
    match bytes_per_second {
        Some(bytes) if handle >> 16 == OWN_MAJOR => Root::Own {
            rate: bytes.saturating_mul(8),
        },
        _ => Root::Administrators { kind },
    }
}

fn shape(interface: &str, index: i32, rate: u64) -> Result<(), SettingError> {
    let tried = || format!("shaping {interface} to {rate} bit/s");
    let mut netlink = Netlink::open()?;
    let cake = qdisc(index, OWN_MAJOR << 16, TC_H_ROOT, "cake", |options| {
        push_attribute(options, TCA_CAKE_BASE_RATE64, &(rate / 8).to_ne_bytes());
    });
    let flags = NLM_F_CREATE | NLM_F_REPLACE;
    // A different kind under the same handle is not replaced by the kernel, so the old one goes first.
    if matches!(root(interface, index)?, Root::Own { .. }) {
        remove(interface, index)?;
    }
    // Any failure of the better kinds means "not in this kernel"; the answer that counts is tbf's.
    if netlink.change(RTM_NEWQDISC, flags, &cake).is_err() {
        let tbf = qdisc(index, OWN_MAJOR << 16, TC_H_ROOT, "tbf", |options| {
            tbf_options(options, rate);
        });
        netlink
            .change(RTM_NEWQDISC, flags, &tbf)
            .map_err(|source| SettingError::system(tried(), source))?;
        let inner = qdisc(index, 0, OWN_MAJOR << 16 | 1, "fq_codel", |_| {});
        let _without = netlink.change(RTM_NEWQDISC, flags, &inner);
    }
    match root(interface, index)? {
        Root::Own { rate: got } if got == rate / 8 * 8 => Ok(()),
        Root::Own { rate: got } => Err(not_taken(interface, rate, &got.to_string())),
        Root::Default => Err(not_taken(interface, rate, "none")),
        Root::Administrators { kind } => Err(not_taken(interface, rate, &kind)),
    }
}

fn remove(interface: &str, index: i32) -> Result<(), SettingError> {
    if matches!(root(interface, index)?, Root::Default) {
        return Ok(());
    }
    Netlink::open()?
        .change(RTM_DELQDISC, 0, &tcmsg(index, OWN_MAJOR << 16, TC_H_ROOT))
        .map_err(|source| {
            SettingError::system(format!("removing the shaper of {interface}"), source)
        })
}

fn not_taken(interface: &str, rate: u64, got: &str) -> SettingError {
    SettingError::NotTaken {
        setting: describe(interface),
        wanted: rate.to_string(),
        got: got.to_owned(),
    }
}

fn qdisc(
    index: i32,
    handle: u32,
    parent: u32,
    kind: &str,
    options: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut body = tcmsg(index, handle, parent);
    push_attribute(&mut body, TCA_KIND, &c_text(kind));
    let mut nested = Vec::new();
    options(&mut nested);
    if !nested.is_empty() {
        push_attribute(&mut body, TCA_OPTIONS, &nested);
    }
    body
}

/// `struct tcmsg`: family, index, handle, parent, info.
fn tcmsg(index: i32, handle: u32, parent: u32) -> Vec<u8> {
    let mut body = vec![0; TCMSG];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&handle.to_ne_bytes());
    body[12..16].copy_from_slice(&parent.to_ne_bytes());
    body
}

/// `struct tc_tbf_qopt`: rate (`tc_ratespec`: `cell_log`, linklayer, overhead, `cell_align`, mpu, rate), peak rate, limit,
/// buffer, mtu; the link layer is Ethernet (1), so no rate table is needed.
fn tbf_options(options: &mut Vec<u8>, rate: u64) {
    let bytes = rate / 8;
    let mut parameters = vec![0_u8; 36];
    parameters[1] = 1;
    parameters[8..12].copy_from_slice(&u32::try_from(bytes).unwrap_or(u32::MAX).to_ne_bytes());
    parameters[24..28]
        .copy_from_slice(&u32::try_from(queue(rate)).unwrap_or(u32::MAX).to_ne_bytes());
    push_attribute(options, TCA_TBF_PARMS, &parameters);
    if u32::try_from(bytes).is_err() {
        push_attribute(options, TCA_TBF_RATE64, &bytes.to_ne_bytes());
    }
    push_attribute(
        options,
        TCA_TBF_BURST,
        &u32::try_from(burst(rate)).unwrap_or(u32::MAX).to_ne_bytes(),
    );
}

/// Bytes that may be sent at once: one millisecond's worth.
fn burst(rate: u64) -> u64 {
    (rate / 8 / 1000).max(SMALLEST_BURST)
}

/// Bytes that may wait.
fn queue(rate: u64) -> u64 {
    (rate / 8 * QUEUE_MILLISECONDS / 1000).max(SMALLEST_QUEUE)
}

fn rate(value: &Value) -> Result<Option<u64>, ()> {
    match value {
        Value::Null => Ok(None),
        Value::Number(number) => {
            let rate = number
                .as_u64()
                .or_else(|| {
                    number
                        .as_f64()
                        .filter(|rate| rate.is_finite() && *rate >= 0.0)
                        .map(|rate| rate as u64)
                })
                .ok_or(())?;
            if RATES.contains(&rate) {
                Ok(Some(rate / 8 * 8))
            } else {
                Err(())
            }
        }
        _ => Err(()),
    }
}

/// The same number whatever it was written as.
pub(crate) fn normal(value: &Value) -> Value {
    match rate(value) {
        Ok(Some(rate)) => rate.into(),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rates_are_whole_bytes_per_second() {
        assert_eq!(rate(&json!(100_000_001)), Ok(Some(100_000_000)));
        assert_eq!(rate(&json!(1e8)), Ok(Some(100_000_000)));
        assert_eq!(rate(&json!(null)), Ok(None));
        for bad in [json!(1), json!(-5), json!("1mbit"), json!({}), json!(1e15)] {
            assert_eq!(rate(&bad), Err(()), "{bad}");
        }
    }

    #[test]
    fn the_queue_is_twenty_milliseconds() {
        assert_eq!(queue(100_000_000), 250_000);
        assert_eq!(queue(100_000), SMALLEST_QUEUE);
    }
}
