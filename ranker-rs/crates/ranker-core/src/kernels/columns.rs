//! Comparisons over columns, written once in plain Rust. Each instruction set compiles them with
//! its features (see `column_kernels`), and that is all the SIMD there is to them: loops without
//! branches, one byte per row, which the compiler turns into vector compares.

// Without it the loops would be compiled for the baseline and called, not inlined.
#![allow(clippy::inline_always)]

use super::{PriorColumns, PriorReach, Reach};

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

/// An upper bound of `2 ^ -halvings`, of halvings that are not negative.
///
/// The cubic is `2 ^ x` on 0..=1 within -4e-5..=1.5e-4; its argument is off by the rounding of
/// three factors, at most 125 x 2e-7. Both are made good by the factor at the end.
#[inline(always)]
fn recency_high(halvings: f32) -> f32 {
    let halvings = halvings.min(125.0);
    let whole = halvings as i32;
    let rest = 1.0 - (halvings - whole as f32);
    let power = 1.0 + rest * (0.695_833_5 + rest * (0.226_067_16 + rest * 0.078_024_52));
    let scale = f32::from_bits(((126 - whole) as u32) << 23);
    (power * scale * 1.0002).min(1.0)
}

#[inline(always)]
pub(super) fn hopeful(columns: &PriorColumns<'_>, reach: &PriorReach, mask: &mut [u8]) {
    let last_used = columns.last_used.unwrap_or(columns.valid_from);
    // Times as large as `now` are rounded when they become float64.
    let slack = reach.now.abs() * f64::EPSILON;
    let rows = mask.iter_mut().zip(columns.valid_from).zip(last_used);
    let rows = rows.zip(columns.kind).zip(columns.importance);
    for (((((mask, from), used), kind), importance), relevance) in rows.zip(columns.relevance) {
        let anchor = *from.max(used) as f64;
        let age = (reach.now - anchor - slack).max(0.0) as f32;
        // Comparisons, because few CPUs look up in a table by lane.
        let mut decay = 0.0;
        for known in 1..6 {
            decay += if *kind == known {
                reach.decay[known as usize]
            } else {
                0.0
            };
        }
        let recency = recency_high(age * decay);
        let prior = reach.w_recency * recency + reach.w_importance * importance;
        let sum = reach.w_relevance * relevance + prior;
        *mask &= u8::from(sum >= reach.least);
    }
}

/// The functions of `columns`, compiled with the features named (or the baseline's).
macro_rules! column_kernels {
    ($($features:literal)?) => {{
        use $crate::kernels::{Columns, PriorColumns, PriorReach, Reach, columns};
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
        $(#[target_feature(enable = $features)])?
        fn hopeful(of: &PriorColumns<'_>, reach: &PriorReach, mask: &mut [u8]) {
            columns::hopeful(of, reach, mask);
        }
        Columns { within_i64, within_u64, within_f32, among, members, masked, reach, hopeful }
    }};
}
pub(super) use column_kernels;
