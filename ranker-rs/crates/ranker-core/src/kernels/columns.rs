//! Comparisons over columns, written once in plain Rust. Each instruction set compiles them with
//! its features (see `column_kernels`), and that is all the SIMD there is to them: loops without
//! branches, one byte per row, which the compiler turns into vector compares.

// Without it the loops would be compiled for the baseline and called, not inlined.
#![allow(clippy::inline_always)]

use super::Reach;

#[inline(always)]
pub(super) fn within<T: PartialOrd>(column: &[T], low: &T, high: &T, mask: &mut [u8]) {
    for (mask, value) in mask.iter_mut().zip(column) {
        *mask &= u8::from(low <= value) & u8::from(value <= high);
    }
}

/// One pass per value: a block of the column stays in the nearest cache meanwhile.
#[inline(always)]
pub(super) fn among(column: &[u64], values: &[u64], mask: &mut [u8]) {
    let (masks, _) = mask.as_chunks_mut::<64>();
    let (columns, _) = column.as_chunks::<64>();
    let whole = 64 * masks.len().min(columns.len());
    for (mask, column) in masks.iter_mut().zip(columns) {
        let mut found = [0_u8; 64];
        for wanted in values {
            for (found, value) in found.iter_mut().zip(column) {
                *found |= u8::from(value == wanted);
            }
        }
        for (mask, found) in mask.iter_mut().zip(found) {
            *mask &= found;
        }
    }
    for (mask, value) in mask[whole..].iter_mut().zip(&column[whole..]) {
        *mask &= u8::from(values.contains(value));
    }
}

#[inline(always)]
pub(super) fn members(column: &[u8], set: u8, mask: &mut [u8]) {
    for (mask, value) in mask.iter_mut().zip(column) {
        // Eight comparisons at most, because few CPUs shift bytes by different amounts.
        let mut found = 0;
        for bit in 0..8 {
            found |= u8::from(*value == bit) & (set >> bit);
        }
        *mask &= found & 1;
    }
}

#[inline(always)]
pub(super) fn masked(column: &[u16], bits: u16, wanted: u16, mask: &mut [u8]) {
    for (mask, value) in mask.iter_mut().zip(column) {
        *mask &= u8::from(value & bits == wanted);
    }
}

#[inline(always)]
pub(super) fn reach(dots: &[i32], scales: &[f32], reach: Reach, mask: &mut [u8]) -> bool {
    let mut any = 0;
    for ((mask, dot), scale) in mask.iter_mut().zip(dots).zip(scales) {
        let cosine = *dot as f32 * (reach.step * scale) + reach.error;
        *mask &= u8::from(cosine > reach.above);
        any |= *mask;
    }
    any != 0
}

/// The functions of `columns`, compiled with the features named (or the baseline's).
macro_rules! column_kernels {
    ($($features:literal)?) => {{
        use $crate::kernels::{Columns, Reach, columns};
        $(#[target_feature(enable = $features)])?
        fn within_i64(column: &[i64], low: i64, high: i64, mask: &mut [u8]) {
            columns::within(column, &low, &high, mask);
        }
        $(#[target_feature(enable = $features)])?
        fn within_u64(column: &[u64], low: u64, high: u64, mask: &mut [u8]) {
            columns::within(column, &low, &high, mask);
        }
        $(#[target_feature(enable = $features)])?
        fn within_f32(column: &[f32], low: f32, high: f32, mask: &mut [u8]) {
            columns::within(column, &low, &high, mask);
        }
        $(#[target_feature(enable = $features)])?
        fn among(column: &[u64], values: &[u64], mask: &mut [u8]) {
            columns::among(column, values, mask);
        }
        $(#[target_feature(enable = $features)])?
        fn members(column: &[u8], set: u8, mask: &mut [u8]) {
            columns::members(column, set, mask);
        }
        $(#[target_feature(enable = $features)])?
        fn masked(column: &[u16], bits: u16, wanted: u16, mask: &mut [u8]) {
            columns::masked(column, bits, wanted, mask);
        }
        $(#[target_feature(enable = $features)])?
        fn reach(dots: &[i32], scales: &[f32], reach: Reach, mask: &mut [u8]) -> bool {
            columns::reach(dots, scales, reach, mask)
        }
        Columns { within_i64, within_u64, within_f32, among, members, masked, reach }
    }};
}
pub(super) use column_kernels;
