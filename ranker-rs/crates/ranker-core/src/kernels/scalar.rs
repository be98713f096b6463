//! Plain Rust: the path of last resort and the meaning of the others.

use super::columns::column_kernels;
use super::{Kernels, LineF32, LineI8, row_of};

pub(super) static KERNELS: Kernels = Kernels {
    name: "scalar",
    scan_f32,
    scan_i8,
    scan_all_i8,
    read_f32,
    read_i8,
    columns: column_kernels!(),
};

/// Sixteen sums side by side, so that the compiler may use whatever registers the baseline has.
fn dot_f32(query: &[LineF32], row: &[LineF32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    for (q, r) in query.iter().zip(row) {
        for ((sum, q), r) in sums.iter_mut().zip(&q.0).zip(&r.0) {
            *sum += q * r;
        }
    }
    sums.iter().sum()
}

fn dot_i8(query: &[LineI8], row: &[LineI8]) -> i32 {
    let mut sum = 0;
    for (q, r) in query.iter().zip(row) {
        for (q, r) in q.0.iter().zip(&r.0) {
            sum += i32::from(*q) * i32::from(*r);
        }
    }
    sum
}

fn scan_f32(query: &[LineF32], block: &[LineF32], rows: &[u16], out: &mut [f32]) {
    for (row, out) in rows.iter().zip(out) {
        *out = dot_f32(query, row_of(block, *row, query.len()));
    }
}

fn scan_i8(query: &[LineI8], block: &[LineI8], rows: &[u16], out: &mut [i32]) {
    for (row, out) in rows.iter().zip(out) {
        *out = dot_i8(query, row_of(block, *row, query.len()));
    }
}

fn scan_all_i8(query: &[LineI8], block: &[LineI8], out: &mut [i32]) {
    for (row, out) in block.chunks_exact(query.len()).zip(out) {
        *out = dot_i8(query, row);
    }
}

pub(super) fn read_f32(block: &[LineF32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    for line in block {
        for (sum, value) in sums.iter_mut().zip(&line.0) {
            *sum += value;
        }
    }
    sums.iter().sum()
}

pub(super) fn read_i8(block: &[LineI8]) -> i64 {
    let mut sum = 0_i64;
    for line in block {
        for word in line.0.as_chunks::<8>().0 {
            sum = sum.wrapping_add(i64::from_le_bytes(word.map(i8::cast_unsigned)));
        }
    }
    sum
}
