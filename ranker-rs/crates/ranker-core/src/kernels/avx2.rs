//! AVX2 with FMA: two registers hold one cache line.

#![allow(clippy::wildcard_imports)] // the intrinsics' own convention

use std::arch::x86_64::*;

use super::columns::column_kernels;
use super::{Kernels, LineF32, LineI8, TILE, row_of, tile, tiles};

pub(super) static KERNELS: Kernels = Kernels {
    name: "avx2",
    scan_f32,
    scan_i8,
    scan_all_i8,
    read_f32,
    read_i8,
    columns: column_kernels!("avx2,fma"),
};

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_f32(line: &LineF32) -> [__m256; 2] {
    // SAFETY: a LineF32 is 64 readable bytes, aligned to 64; each load reads half of them.
    unsafe {
        [
            _mm256_load_ps(line.0.as_ptr()),
            _mm256_load_ps(line.0[8..].as_ptr()),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_i8(line: &LineI8) -> [__m256i; 2] {
    // SAFETY: a LineI8 is 64 readable bytes, aligned to 64; each load reads half of them.
    unsafe {
        [
            _mm256_load_si256(line.0.as_ptr().cast()),
            _mm256_load_si256(line.0[32..].as_ptr().cast()),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn sum_f32(values: __m256) -> f32 {
    let four = _mm_add_ps(
        _mm256_castps256_ps128(values),
        _mm256_extractf128_ps::<1>(values),
    );
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    let one = _mm_add_ss(two, _mm_shuffle_ps::<1>(two, two));
    _mm_cvtss_f32(one)
}

/// The sums of four registers, folded together: a fold of each alone costs as much as the dot
/// product of a short row.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn fold(sums: [__m256i; TILE]) -> [i32; TILE] {
    let [a, b, c, d] = sums.map(|sum| {
        let low = _mm256_castsi256_si128(sum);
        _mm_add_epi32(low, _mm256_extracti128_si256::<1>(sum))
    });
    let folded = _mm_hadd_epi32(_mm_hadd_epi32(a, b), _mm_hadd_epi32(c, d));
    let mut out = [0; TILE];
    // SAFETY: `out` is 16 writable bytes; this store wants no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), folded) };
    out
}

/// One row after the other, as in the AVX-512 path and for the same reason.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn dot_f32(query: &[LineF32], row: &[LineF32]) -> f32 {
    let mut sums = [_mm256_setzero_ps(); 4];
    let (query, query_rest) = query.as_chunks::<2>();
    let (row, row_rest) = row.as_chunks::<2>();
    for (q, r) in query.iter().zip(row) {
        for n in 0..2 {
            let (q, r) = (load_f32(&q[n]), load_f32(&r[n]));
            sums[2 * n] = _mm256_fmadd_ps(q[0], r[0], sums[2 * n]);
            sums[2 * n + 1] = _mm256_fmadd_ps(q[1], r[1], sums[2 * n + 1]);
        }
    }
    for (q, r) in query_rest.iter().zip(row_rest) {
        let (q, r) = (load_f32(q), load_f32(r));
        sums[0] = _mm256_fmadd_ps(q[0], r[0], sums[0]);
        sums[1] = _mm256_fmadd_ps(q[1], r[1], sums[1]);
    }
    let [a, b, c, d] = sums;
    sum_f32(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)))
}

#[target_feature(enable = "avx2,fma")]
fn scan_f32(query: &[LineF32], block: &[LineF32], rows: &[u16], out: &mut [f32]) {
    for (row, out) in rows.iter().zip(out) {
        *out = dot_f32(query, row_of(block, *row, query.len()));
    }
}

/// `maddubs` multiplies unsigned by signed bytes and adds pairs with saturation. With |q| as the
/// unsigned side and r with q's sign as the other, a pair is at most 2 x 127 x 127 = 32,258: it
/// never saturates because -128 never occurs.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn dot_i8(query: &[LineI8], rows: [&[LineI8]; TILE]) -> [i32; TILE] {
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_si256(); TILE];
    for (sum, row) in sums.iter_mut().zip(rows) {
        for (q, r) in query.iter().zip(row) {
            for (q, r) in load_i8(q).into_iter().zip(load_i8(r)) {
                let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(r, q));
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
            }
        }
    }
    fold(sums)
}

#[target_feature(enable = "avx2,fma")]
fn scan_i8(query: &[LineI8], block: &[LineI8], rows: &[u16], out: &mut [i32]) {
    for (rows, out) in rows.chunks(TILE).zip(out.chunks_mut(TILE)) {
        let dots = dot_i8(query, tile(block, rows, query.len()));
        out.copy_from_slice(&dots[..rows.len()]);
    }
}

#[target_feature(enable = "avx2,fma")]
fn scan_all_i8(query: &[LineI8], block: &[LineI8], out: &mut [i32]) {
    for (rows, out) in tiles(block, query.len()).zip(out.chunks_mut(TILE)) {
        let dots = dot_i8(query, rows);
        out.copy_from_slice(&dots[..out.len()]);
    }
}

#[target_feature(enable = "avx2,fma")]
fn read_f32(block: &[LineF32]) -> f32 {
    let mut sums = [_mm256_setzero_ps(); 4];
    let (pairs, rest) = block.as_chunks::<2>();
    for [first, second] in pairs {
        let (first, second) = (load_f32(first), load_f32(second));
        sums[0] = _mm256_add_ps(sums[0], first[0]);
        sums[1] = _mm256_add_ps(sums[1], first[1]);
        sums[2] = _mm256_add_ps(sums[2], second[0]);
        sums[3] = _mm256_add_ps(sums[3], second[1]);
    }
    for line in rest {
        let line = load_f32(line);
        sums[0] = _mm256_add_ps(sums[0], line[0]);
        sums[1] = _mm256_add_ps(sums[1], line[1]);
    }
    let [a, b, c, d] = sums;
    sum_f32(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)))
}

#[target_feature(enable = "avx2,fma")]
fn read_i8(block: &[LineI8]) -> i64 {
    let mut sums = [_mm256_setzero_si256(); 4];
    let (pairs, rest) = block.as_chunks::<2>();
    for [first, second] in pairs {
        let (first, second) = (load_i8(first), load_i8(second));
        sums[0] = _mm256_add_epi64(sums[0], first[0]);
        sums[1] = _mm256_add_epi64(sums[1], first[1]);
        sums[2] = _mm256_add_epi64(sums[2], second[0]);
        sums[3] = _mm256_add_epi64(sums[3], second[1]);
    }
    for line in rest {
        let line = load_i8(line);
        sums[0] = _mm256_add_epi64(sums[0], line[0]);
        sums[1] = _mm256_add_epi64(sums[1], line[1]);
    }
    let [a, b, c, d] = sums;
    let four = _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d));
    let two = _mm_add_epi64(
        _mm256_castsi256_si128(four),
        _mm256_extracti128_si256::<1>(four),
    );
    _mm_cvtsi128_si64(two).wrapping_add(_mm_extract_epi64::<1>(two))
}
