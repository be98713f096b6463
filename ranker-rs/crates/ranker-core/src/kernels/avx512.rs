//! AVX-512: one register holds one cache line. Int8 by VNNI where the CPU has it, else by
//! widening to 16 bits.

#![allow(clippy::wildcard_imports)] // the intrinsics' own convention

use std::arch::x86_64::*;
use std::sync::atomic::{Ordering, compiler_fence};

use super::columns::column_kernels;
use super::{Kernels, LineF32, LineI8, TILE, row_of, tile, tiles};

pub(super) static KERNELS: Kernels = Kernels {
    name: "avx512",
    scan_f32,
    scan_i8: scan_i8_widening,
    scan_all_i8: scan_all_i8_widening,
    read_f32,
    read_i8,
    columns: column_kernels!("avx512f,avx512bw,avx512dq,avx512vl"),
};

pub(super) static KERNELS_VNNI: Kernels = Kernels {
    name: "avx512vnni",
    scan_f32,
    scan_i8: scan_i8_vnni,
    scan_all_i8: scan_all_i8_vnni,
    read_f32,
    read_i8,
    columns: column_kernels!("avx512f,avx512bw,avx512dq,avx512vl"),
};

#[inline]
#[target_feature(enable = "avx512f")]
fn load_f32(line: &LineF32) -> __m512 {
    // SAFETY: a LineF32 is 64 readable bytes, aligned to 64.
    unsafe { _mm512_load_ps(line.0.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_i8(line: &LineI8) -> __m512i {
    // SAFETY: a LineI8 is 64 readable bytes, aligned to 64.
    unsafe { _mm512_load_si512(line.0.as_ptr().cast()) }
}

/// One row after the other, in the order of memory: rows side by side would share loads of the
/// query, but several streams defeat the prefetcher (measured: three times slower). Four sums hide
/// the latency of FMA.
#[inline]
#[target_feature(enable = "avx512f")]
fn dot_f32(query: &[LineF32], row: &[LineF32]) -> f32 {
    let mut sums = [_mm512_setzero_ps(); 4];
    let (query, query_rest) = query.as_chunks::<4>();
    let (row, row_rest) = row.as_chunks::<4>();
    for (q, r) in query.iter().zip(row) {
        for n in 0..4 {
            sums[n] = _mm512_fmadd_ps(load_f32(&q[n]), load_f32(&r[n]), sums[n]);
        }
    }
    for (n, (q, r)) in query_rest.iter().zip(row_rest).enumerate() {
        sums[n] = _mm512_fmadd_ps(load_f32(q), load_f32(r), sums[n]);
    }
    let [a, b, c, d] = sums;
    _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d)))
}

#[target_feature(enable = "avx512f")]
fn scan_f32(query: &[LineF32], block: &[LineF32], rows: &[u16], out: &mut [f32]) {
    for (row, out) in rows.iter().zip(out) {
        *out = dot_f32(query, row_of(block, *row, query.len()));
    }
}

/// The sums of four registers, folded together: a fold of each alone costs as much as the dot
/// product of a short row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn fold(sums: [__m512i; TILE]) -> [i32; TILE] {
    let [a, b, c, d] = sums.map(|sum| {
        let low = _mm512_castsi512_si256(sum);
        let half = _mm256_add_epi32(low, _mm512_extracti64x4_epi64::<1>(sum));
        let low = _mm256_castsi256_si128(half);
        _mm_add_epi32(low, _mm256_extracti128_si256::<1>(half))
    });
    let folded = _mm_hadd_epi32(_mm_hadd_epi32(a, b), _mm_hadd_epi32(c, d));
    let mut out = [0; TILE];
    // SAFETY: `out` is 16 writable bytes; this store wants no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), folded) };
    out
}

/// A query of `N` lines in registers, for VNNI, which multiplies unsigned by signed bytes: rows
/// are shifted by 128 to be unsigned, and 128 x sum(query) is taken off the result. `vpdpbusd`
/// doesn't saturate, so this is exact.
struct VnniQuery<const N: usize> {
    lines: [__m512i; N],
    shift: i32,
}

impl<const N: usize> VnniQuery<N> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn new(query: &[LineI8; N]) -> Self {
        let mut lines = [_mm512_setzero_si512(); N];
        for (line, q) in lines.iter_mut().zip(query) {
            *line = load_i8(q);
        }
        let shift = shift_of(query);
        Self { lines, shift }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn dots(&self, rows: [&[LineI8; N]; TILE]) -> [i32; TILE] {
        let sign = _mm512_set1_epi8(i8::MIN);
        let mut sums = [_mm512_setzero_si512(); TILE];
        for (sum, row) in sums.iter_mut().zip(rows) {
            for (q, r) in self.lines.iter().zip(row) {
                *sum = _mm512_dpbusd_epi32(*sum, _mm512_xor_si512(load_i8(r), sign), *q);
            }
            // Left alone, the compiler shuffles the loads of a tile, and the prefetcher takes
            // them for no stream at all (measured: from main memory half as fast).
            compiler_fence(Ordering::SeqCst);
        }
        fold(sums).map(|sum| sum - self.shift)
    }
}

/// What shifting rows by 128 adds to a dot product: that of the query with a row of 128s.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn shift_of(query: &[LineI8]) -> i32 {
    let row = _mm512_set1_epi8(i8::MIN);
    let mut sum = _mm512_setzero_si512();
    for q in query {
        sum = _mm512_dpbusd_epi32(sum, row, load_i8(q));
    }
    _mm512_reduce_add_epi32(sum)
}

/// As [`VnniQuery::dots`], for queries that don't fit in registers or have an unusual length.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dots_vnni(query: &[LineI8], rows: [&[LineI8]; TILE], shift: i32) -> [i32; TILE] {
    let sign = _mm512_set1_epi8(i8::MIN);
    let mut sums = [_mm512_setzero_si512(); TILE];
    for (sum, row) in sums.iter_mut().zip(rows) {
        for (q, r) in query.iter().zip(row) {
            let shifted = _mm512_xor_si512(load_i8(r), sign);
            *sum = _mm512_dpbusd_epi32(*sum, shifted, load_i8(q));
        }
    }
    fold(sums).map(|sum| sum - shift)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn scan_i8_vnni(query: &[LineI8], block: &[LineI8], rows: &[u16], out: &mut [i32]) {
    let shift = shift_of(query);
    for (rows, out) in rows.chunks(TILE).zip(out.chunks_mut(TILE)) {
        let dots = dots_vnni(query, tile(block, rows, query.len()), shift);
        out.copy_from_slice(&dots[..rows.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn scan_all_i8_in_registers<const N: usize>(
    query: &[LineI8; N],
    block: &[LineI8],
    out: &mut [i32],
) {
    let query = VnniQuery::new(query);
    let (rows, _) = block.as_chunks::<N>();
    let (tiles, rest) = rows.as_chunks::<TILE>();
    let (outs, out_rest) = out.as_chunks_mut::<TILE>();
    for (rows, out) in tiles.iter().zip(outs) {
        *out = query.dots(rows.each_ref());
    }
    if let Some(last) = rest.last() {
        let rows = std::array::from_fn(|n| rest.get(n).unwrap_or(last));
        out_rest.copy_from_slice(&query.dots(rows)[..rest.len()]);
    }
}

/// Dimensions 256, 384, 512, 768 and 1,024 are those that embedders have.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn scan_all_i8_vnni(query: &[LineI8], block: &[LineI8], out: &mut [i32]) {
    if let Ok(query) = <&[LineI8; 4]>::try_from(query) {
        scan_all_i8_in_registers(query, block, out);
    } else if let Ok(query) = <&[LineI8; 6]>::try_from(query) {
        scan_all_i8_in_registers(query, block, out);
    } else if let Ok(query) = <&[LineI8; 8]>::try_from(query) {
        scan_all_i8_in_registers(query, block, out);
    } else if let Ok(query) = <&[LineI8; 12]>::try_from(query) {
        scan_all_i8_in_registers(query, block, out);
    } else if let Ok(query) = <&[LineI8; 16]>::try_from(query) {
        scan_all_i8_in_registers(query, block, out);
    } else {
        let shift = shift_of(query);
        for (rows, out) in tiles(block, query.len()).zip(out.chunks_mut(TILE)) {
            let dots = dots_vnni(query, rows, shift);
            out.copy_from_slice(&dots[..out.len()]);
        }
    }
}

/// The two halves of a line, widened to 16 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn widen(line: &LineI8) -> [__m512i; 2] {
    let bytes = load_i8(line);
    [
        _mm512_cvtepi8_epi16(_mm512_castsi512_si256(bytes)),
        _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64::<1>(bytes)),
    ]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn dot_i8_widening(query: &[LineI8], rows: [&[LineI8]; TILE]) -> [i32; TILE] {
    let mut sums = [_mm512_setzero_si512(); TILE];
    for (sum, row) in sums.iter_mut().zip(rows) {
        for (q, r) in query.iter().zip(row) {
            let (q, r) = (widen(q), widen(r));
            *sum = _mm512_add_epi32(*sum, _mm512_madd_epi16(q[0], r[0]));
            *sum = _mm512_add_epi32(*sum, _mm512_madd_epi16(q[1], r[1]));
        }
    }
    fold(sums)
}

#[target_feature(enable = "avx512f,avx512bw")]
fn scan_i8_widening(query: &[LineI8], block: &[LineI8], rows: &[u16], out: &mut [i32]) {
    for (rows, out) in rows.chunks(TILE).zip(out.chunks_mut(TILE)) {
        let dots = dot_i8_widening(query, tile(block, rows, query.len()));
        out.copy_from_slice(&dots[..rows.len()]);
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn scan_all_i8_widening(query: &[LineI8], block: &[LineI8], out: &mut [i32]) {
    for (rows, out) in tiles(block, query.len()).zip(out.chunks_mut(TILE)) {
        let dots = dot_i8_widening(query, rows);
        out.copy_from_slice(&dots[..out.len()]);
    }
}

#[target_feature(enable = "avx512f")]
fn read_f32(block: &[LineF32]) -> f32 {
    let mut sums = [_mm512_setzero_ps(); TILE];
    let (tiles, rest) = block.as_chunks::<TILE>();
    for tile in tiles {
        for n in 0..TILE {
            sums[n] = _mm512_add_ps(sums[n], load_f32(&tile[n]));
        }
    }
    for line in rest {
        sums[0] = _mm512_add_ps(sums[0], load_f32(line));
    }
    let [a, b, c, d] = sums;
    _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d)))
}

#[target_feature(enable = "avx512f")]
fn read_i8(block: &[LineI8]) -> i64 {
    let mut sums = [_mm512_setzero_si512(); TILE];
    let (tiles, rest) = block.as_chunks::<TILE>();
    for tile in tiles {
        for n in 0..TILE {
            sums[n] = _mm512_add_epi64(sums[n], load_i8(&tile[n]));
        }
    }
    for line in rest {
        sums[0] = _mm512_add_epi64(sums[0], load_i8(line));
    }
    let [a, b, c, d] = sums;
    _mm512_reduce_add_epi64(_mm512_add_epi64(
        _mm512_add_epi64(a, b),
        _mm512_add_epi64(c, d),
    ))
}
