//! Dot products beside a bare read of the same bytes, on every path that this CPU has.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ranker_core::kernels::{LineF32, LineI8, available, lines_f32, lines_i8};
use std::hint::black_box;

const DIMENSION: usize = 384;
const ROWS: usize = 4096;

/// Numbers without a pattern that a compiler or a prefetcher could use.
fn noise(count: usize) -> impl Iterator<Item = u32> {
    (0..count as u32).map(|n| n.wrapping_mul(2_654_435_761).rotate_left(13))
}

fn vectors_f32(rows: usize) -> Vec<LineF32> {
    noise(rows * lines_f32(DIMENSION))
        .map(|seed| {
            LineF32(std::array::from_fn(|n| {
                (seed >> n) as f32 / u32::MAX as f32
            }))
        })
        .collect()
}

fn vectors_i8(rows: usize) -> Vec<LineI8> {
    noise(rows * lines_i8(DIMENSION))
        .map(|seed| {
            LineI8(std::array::from_fn(|n| {
                (seed.rotate_left(n as u32) % 255) as i8 | 1
            }))
        })
        .collect()
}

fn scans(criterion: &mut Criterion) {
    let rows: Vec<u16> = (0..ROWS as u16).collect();
    let (query_f32, block_f32) = (vectors_f32(1), vectors_f32(ROWS));
    let (query_i8, block_i8) = (vectors_i8(1), vectors_i8(ROWS));
    let (mut out_f32, mut out_i8) = (vec![0.0; ROWS], vec![0; ROWS]);

    let mut group = criterion.benchmark_group("float32");
    group.throughput(Throughput::Bytes(size_of_val(&block_f32[..]) as u64));
    for kernels in available() {
        group.bench_function(BenchmarkId::new("scan", kernels.name()), |bench| {
            bench.iter(|| kernels.scan_f32(&query_f32, black_box(&block_f32), &rows, &mut out_f32));
        });
        group.bench_function(BenchmarkId::new("read", kernels.name()), |bench| {
            bench.iter(|| kernels.read_f32(black_box(&block_f32)));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("int8");
    group.throughput(Throughput::Bytes(size_of_val(&block_i8[..]) as u64));
    for kernels in available() {
        group.bench_function(BenchmarkId::new("scan", kernels.name()), |bench| {
            bench.iter(|| kernels.scan_i8(&query_i8, black_box(&block_i8), &rows, &mut out_i8));
        });
        group.bench_function(BenchmarkId::new("read", kernels.name()), |bench| {
            bench.iter(|| kernels.read_i8(black_box(&block_i8)));
        });
    }
    group.finish();
}

criterion_group!(benches, scans);
criterion_main!(benches);
