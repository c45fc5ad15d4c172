//! `struct tcp_info` of the kernel (`include/uapi/linux/tcp.h`). It only ever grew at its end: what a kernel lacks
//! is missing there.

use crate::TcpInfo;

/// As long as it was in the first kernels that had sock_diag.
const SHORTEST: usize = 104;
/// `TCP_INFINITE_SSTHRESH`.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// The figures of one connection; `None` when there are too few bytes.
pub(crate) fn tcp_info(bytes: &[u8]) -> Option<TcpInfo> {
    if bytes.len() < SHORTEST {
        return None;
    }
    let word = |offset: usize| {
        let word = bytes.get(offset..offset + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(word))
    };
    let long = |offset: usize| {
        let long = bytes.get(offset..offset + 8)?.try_into().ok()?;
        Some(u64::from_ne_bytes(long))
    };
    let microseconds = |offset: usize| Some(f64::from(word(offset)?) / 1e6);
    let milliseconds = |offset: usize| Some(f64::from(word(offset)?) / 1e3);
    let long_microseconds = |offset: usize| Some(long(offset)? as f64 / 1e6);
    let bits = |offset: usize| Some(long(offset)?.saturating_mul(8));
    Some(TcpInfo {
        timeouts: bytes[2].into(),
        delivery_app_limited: bytes[7] & 1 == 1,
        mss: word(16)?,
        unacked: word(24)?,
        lost: word(32)?,
        idle_sending: milliseconds(44)?,
        idle_receiving: milliseconds(52)?,
        pmtu: word(60)?,
        rtt: microseconds(68)?,
        rtt_deviation: microseconds(72)?,
        ssthresh: word(76).filter(|threshold| *threshold < NO_THRESHOLD),
        cwnd: word(80)?,
        reordering: word(88)?,
        receive_space: word(96)?,
        retransmits: word(100)?,
        pacing_rate: bits(104).filter(|_| long(104) != Some(u64::MAX)),
        bytes_acked: long(120),
        bytes_received: long(128),
        bytes_not_sent: word(144),
        min_rtt: microseconds(148).filter(|_| word(148) != Some(u32::MAX)),
        delivery_rate: bits(160),
        busy: long_microseconds(168),
        rwnd_limited: long_microseconds(176),
        sndbuf_limited: long_microseconds(184),
        delivered_ce: word(196),
        bytes_sent: long(200),
        bytes_retransmitted: long(208),
        duplicates: word(216),
        reorderings_seen: word(220),
        out_of_order: word(224),
        send_window: word(228),
        receive_window: word(232),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_stand_where_the_kernel_puts_them() {
        let mut bytes = vec![0; 248];
        let mut put = |offset: usize, value: &[u8]| {
            bytes[offset..offset + value.len()].copy_from_slice(value);
        };
        put(68, &25_000_u32.to_ne_bytes());
        put(76, &NO_THRESHOLD.to_ne_bytes());
        put(80, &10_u32.to_ne_bytes());
        put(104, &u64::MAX.to_ne_bytes());
        put(160, &125_000_u64.to_ne_bytes());
        put(176, &1_500_000_u64.to_ne_bytes());
        put(228, &65_535_u32.to_ne_bytes());
        let info = tcp_info(&bytes).unwrap();
        assert!((info.rtt - 0.025).abs() < 1e-9);
        assert_eq!((info.cwnd, info.ssthresh), (10, None));
        assert_eq!(info.pacing_rate, None);
        assert_eq!(info.delivery_rate, Some(1_000_000));
        assert_eq!(info.rwnd_limited, Some(1.5));
        assert_eq!(info.send_window, Some(65_535));
    }

    #[test]
    fn an_older_kernel_tells_less() {
        let info = tcp_info(&[0; 192]).unwrap();
        assert_eq!(info.sndbuf_limited, Some(0.0));
        assert_eq!((info.bytes_sent, info.send_window), (None, None));
        assert_eq!(tcp_info(&[0; 103]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(tcp_info(&bytes).is_some(), bytes.len() >= SHORTEST);
        }
    }
}
