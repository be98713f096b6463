//! NEON: four registers hold one cache line. The dot-product extension is left out because its
//! intrinsics aren't stable.

#![allow(clippy::wildcard_imports)] // the intrinsics' own convention

use std::arch::aarch64::*;

use super::columns::column_kernels;
use super::{Kernels, LineF32, LineI8, row_of, scalar};

pub(super) static KERNELS: Kernels = Kernels {
    name: "neon",
    scan_f32,
    scan_i8,
    scan_all_i8,
    // The compiler vectorises these for the baseline, which has NEON.
    read_f32: scalar::read_f32,
    read_i8: scalar::read_i8,
    columns: column_kernels!("neon"),
};

#[inline]
#[target_feature(enable = "neon")]
fn dot_f32(query: &[LineF32], row: &[LineF32]) -> f32 {
    let mut sums = [vdupq_n_f32(0.0); 4];
    for (q, r) in query.iter().zip(row) {
        for (n, sum) in sums.iter_mut().enumerate() {
            // SAFETY: a line is 16 readable float32; each of the four loads reads its four.
            let (q, r) = unsafe {
                (
                    vld1q_f32(q.0[4 * n..].as_ptr()),
                    vld1q_f32(r.0[4 * n..].as_ptr()),
                )
            };
            *sum = vfmaq_f32(*sum, q, r);
        }
    }
    let [a, b, c, d] = sums;
    vaddvq_f32(vaddq_f32(vaddq_f32(a, b), vaddq_f32(c, d)))
}

/// Two products of at most 127 x 127 are added in 16 bits (32,258 fits), then widened.
#[inline]
#[target_feature(enable = "neon")]
fn dot_i8(query: &[LineI8], row: &[LineI8]) -> i32 {
    let mut sums = [vdupq_n_s32(0); 4];
    for (q, r) in query.iter().zip(row) {
        for (n, sum) in sums.iter_mut().enumerate() {
            // SAFETY: a line is 64 readable bytes; each of the four loads reads its sixteen.
            let (q, r) = unsafe {
                (
                    vld1q_s8(q.0[16 * n..].as_ptr()),
                    vld1q_s8(r.0[16 * n..].as_ptr()),
                )
            };
            let low = vmull_s8(vget_low_s8(q), vget_low_s8(r));
            let both = vmlal_s8(low, vget_high_s8(q), vget_high_s8(r));
            *sum = vpadalq_s16(*sum, both);
        }
    }
    let [a, b, c, d] = sums;
    vaddvq_s32(vaddq_s32(vaddq_s32(a, b), vaddq_s32(c, d)))
}

#[target_feature(enable = "neon")]
fn scan_f32(query: &[LineF32], block: &[LineF32], rows: &[u16], out: &mut [f32]) {
    for (row, out) in rows.iter().zip(out) {
        *out = dot_f32(query, row_of(block, *row, query.len()));
    }
}

#[target_feature(enable = "neon")]
fn scan_i8(query: &[LineI8], block: &[LineI8], rows: &[u16], out: &mut [i32]) {
    for (row, out) in rows.iter().zip(out) {
        *out = dot_i8(query, row_of(block, *row, query.len()));
    }
}

#[target_feature(enable = "neon")]
fn scan_all_i8(query: &[LineI8], block: &[LineI8], out: &mut [i32]) {
    for (row, out) in block.chunks_exact(query.len()).zip(out) {
        *out = dot_i8(query, row);
    }
}
