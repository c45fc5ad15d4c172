//! The steps between TUN and tunnel: splitting a super-packet, joining packets, and the checksum both rest on.
//! Sealing, opening and the tables are measured in the protocol's own benchmarks.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wirespeed_device::checksum::Sum;
use wirespeed_device::join::Joiner;
use wirespeed_device::offloads::Offloads;
use wirespeed_device::split::Frame;

const VNET_BYTES: usize = 10;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const TCP_BYTES: usize = 20;

/// The tunnel's MTU.
const MTU: usize = 1420;

/// Packets of a full train.
const PACKETS: usize = 45;

const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;

fn checksum(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("checksum");
    for bytes in [64, 1_400, 65_535] {
        let data: Vec<u8> = (0..bytes).map(|at| (at * 31) as u8).collect();
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
            bencher.iter(|| Sum::of(black_box(&data)).checksum());
        });
    }
    group.finish();
}

fn split(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("split");
    for (name, frame) in frames() {
        let packets = Frame::parse(&frame).unwrap().packets();
        group.throughput(Throughput::Elements(packets as u64));
        let mut buffer = vec![0; packets * MTU];
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let frame = Frame::parse(black_box(&frame)).unwrap();
                for (at, place) in buffer.chunks_exact_mut(MTU).enumerate() {
                    frame.write_packet(at, &mut place[..frame.packet_length(at)]);
                }
            });
        });
    }
    group.finish();
}

fn join(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("join");
    let offloads = Offloads::new(&[]);
    for (name, frame) in frames() {
        let frame = Frame::parse(&frame).unwrap();
        let packets: Vec<Vec<u8>> = (0..frame.packets())
            .map(|at| {
                let mut packet = vec![0; frame.packet_length(at)];
                frame.write_packet(at, &mut packet);
                packet
            })
            .collect();
        group.throughput(Throughput::Elements(packets.len() as u64));
        let mut joiner = Joiner::new();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut writes = 0;
                let batch = packets.iter().map(Vec::as_slice);
                joiner.join(batch, &offloads, |parts, _| {
                    black_box(parts);
                    writes += 1;
                });
                assert_eq!(writes, 1, "all in one");
            });
        });
    }
    group.finish();
}

/// What the kernel hands over: a full super-packet of TCP in each family, and one packet by itself.
fn frames() -> [(&'static str, Vec<u8>); 3] {
    let v4 = IPV4_BYTES + TCP_BYTES;
    let v6 = IPV6_BYTES + TCP_BYTES;
    [
        ("tcp4-train", tcp(false, (MTU - v4) * PACKETS)),
        ("tcp6-train", tcp(true, (MTU - v6) * PACKETS)),
        ("tcp4-single", tcp(false, MTU - v4)),
    ]
}

fn tcp(v6: bool, payload_bytes: usize) -> Vec<u8> {
    let ip_bytes = if v6 { IPV6_BYTES } else { IPV4_BYTES };
    let mss = MTU - ip_bytes - TCP_BYTES;
    let length = ip_bytes + TCP_BYTES + payload_bytes;
    let mut packet: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
    let addresses = if v6 {
        packet[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, 6, 64]);
        put(&mut packet, 4, length - IPV6_BYTES);
        8..40
    } else {
        packet[..12].copy_from_slice(&[0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6, 0, 0]);
        put(&mut packet, 2, length);
        let header = Sum::of(&packet[..IPV4_BYTES]).checksum();
        packet[10..12].copy_from_slice(&header);
        12..20
    };
    let tcp = ip_bytes;
    packet[tcp + 12] = 0x50;
    packet[tcp + 13] = 0x10;
    packet[tcp + 18..tcp + 20].fill(0);
    let pseudo = Sum::of_pseudo_header(&packet[addresses], 6, length - ip_bytes).folded();
    packet[tcp + 16..tcp + 18].copy_from_slice(&pseudo);

    let mut frame = vec![0; VNET_BYTES];
    frame[0] = 1; // the checksum is ours to complete
    if payload_bytes > mss {
        frame[1] = if v6 { GSO_TCPV6 } else { GSO_TCPV4 };
        frame[4..6].copy_from_slice(&(mss as u16).to_le_bytes());
    }
    frame[2..4].copy_from_slice(&((ip_bytes + TCP_BYTES) as u16).to_le_bytes());
    frame[6..8].copy_from_slice(&(ip_bytes as u16).to_le_bytes());
    frame[8..10].copy_from_slice(&16u16.to_le_bytes());
    frame.extend(packet);
    frame
}

fn put(packet: &mut [u8], at: usize, value: usize) {
    packet[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

criterion_group!(benches, checksum, split, join);
criterion_main!(benches);
