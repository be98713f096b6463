//! Comparisons over columns, written once in plain Rust. Each instruction set compiles them with
//! its features (see `column_kernels`), and that is all the SIMD there is to them: loops without
//! branches, one byte per row, which the compiler turns into vector compares.

// Without it the loops would be compiled for the baseline and called, not inlined.
#![allow(clippy::inline_always)]

use super::{FadeReach, PriorColumns, PriorReach, Reach};

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

/// An upper bound of `2 ^ -halvings`; 1 where they are negative.
///
/// The cubic is `2 ^ x` on 0..=1 within -4e-5..=1.5e-4; its argument is off by the rounding of
/// three factors, at most 125 x 2e-7. Both are made good by the factor at the end.
#[inline(always)]
fn recency_high(halvings: f32) -> f32 {
    // Added and taken off again, it rounds to a whole number, which is then in its last bits: no
    // CPU has the conversion that saturates as Rust's does.
    const ROUNDING: f32 = 1.5 * (1 << 23) as f32;
    // Plain comparisons: `min` would look out for what is not a number.
    let halvings = if halvings > 0.0 { halvings } else { 0.0 };
    let halvings = if halvings < 125.0 { halvings } else { 125.0 };
    let shifted = halvings + ROUNDING;
    let whole = shifted.to_bits().wrapping_sub(ROUNDING.to_bits());
    let rest = 0.5 - (halvings - (shifted - ROUNDING));
    let power = 1.0 + rest * (0.695_833_5 + rest * (0.226_067_16 + rest * 0.078_024_52));
    let scale = f32::from_bits(127_u32.wrapping_sub(whole) << 23);
    let recency = power * scale * (std::f32::consts::FRAC_1_SQRT_2 * 1.0002);
    if recency < 1.0 { recency } else { 1.0 }
}

/// In parts, and step by step within a part: the compiler makes vector code of short loops that
/// each do one thing over references, and not of one that does all of it or takes arrays apart
/// (which takes three times as long).
#[inline(always)]
pub(super) fn hopeful(columns: &PriorColumns<'_>, reach: &PriorReach, mask: &mut [u8]) {
    const PART: usize = 64;
    // Times as large as `now` are rounded when they become float64.
    let now = reach.now - reach.now.abs() * f64::EPSILON;
    for (number, mask) in mask.chunks_mut(PART).enumerate() {
        let rows = number * PART..number * PART + mask.len();
        let (mut halvings, mut sums) = ([0.0_f32; PART], [0.0_f32; PART]);
        let valid_from = &columns.valid_from[rows.clone()];
        let last_used = &columns.last_used.unwrap_or(columns.valid_from)[rows.clone()];
        for ((age, from), used) in halvings.iter_mut().zip(valid_from).zip(last_used) {
            *age = (now - *from.max(used) as f64) as f32;
        }
        // Comparisons, because few CPUs look up in a table by lane.
        for (halvings, kind) in halvings.iter_mut().zip(&columns.kind[rows.clone()]) {
            let mut decay = 0;
            for known in 1..6 {
                let is_it = u32::from(*kind == known).wrapping_neg();
                decay |= reach.decay[usize::from(known)].to_bits() & is_it;
            }
            *halvings *= f32::from_bits(decay);
        }
        let importance = &columns.importance[rows.clone()];
        for ((sum, halvings), importance) in sums.iter_mut().zip(&halvings).zip(importance) {
            *sum = reach.w_recency * recency_high(*halvings) + reach.w_importance * importance;
        }
        for ((mask, sum), relevance) in mask.iter_mut().zip(&sums).zip(&columns.relevance[rows]) {
            *mask &= u8::from(reach.w_relevance * relevance + sum >= reach.least);
        }
    }
}

/// As `hopeful`, step by step within a part.
#[inline(always)]
pub(super) fn faded(columns: &PriorColumns<'_>, reach: &FadeReach, mask: &mut [u8]) {
    const PART: usize = 64;
    let now = reach.now - reach.now.abs() * f64::EPSILON;
    for (number, mask) in mask.chunks_mut(PART).enumerate() {
        let rows = number * PART..number * PART + mask.len();
        let (mut halvings, mut least) = ([0.0_f32; PART], [0_u32; PART]);
        let valid_from = &columns.valid_from[rows.clone()];
        let last_used = &columns.last_used.unwrap_or(columns.valid_from)[rows.clone()];
        for ((age, from), used) in halvings.iter_mut().zip(valid_from).zip(last_used) {
            *age = (now - *from.max(used) as f64) as f32;
        }
        let kinds = &columns.kind[rows.clone()];
        // Mostly few kinds fade at all.
        let mut decay = [0_u32; PART];
        for known in (1..6_u8).filter(|kind| reach.below[usize::from(*kind)] > 0.0) {
            let fades = reach.decay[usize::from(known)].to_bits();
            let below = reach.below[usize::from(known)].to_bits();
            for ((decay, least), kind) in decay.iter_mut().zip(&mut least).zip(kinds) {
                let is_it = u32::from(*kind == known).wrapping_neg();
                *decay |= fades & is_it;
                *least |= below & is_it;
            }
        }
        for (halvings, decay) in halvings.iter_mut().zip(&decay) {
            *halvings *= f32::from_bits(*decay);
        }
        let importance = &columns.importance[rows];
        for (((mask, halvings), least), importance) in
            mask.iter_mut().zip(&halvings).zip(&least).zip(importance)
        {
            *mask &=
                u8::from(recency_high(*halvings) * importance * 0.998 < f32::from_bits(*least));
        }
    }
}

/// The functions of `columns`, compiled with the features named (or the baseline's).
macro_rules! column_kernels {
    ($($features:literal)?) => {{
        use $crate::kernels::{Columns, FadeReach, PriorColumns, PriorReach, Reach, columns};
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
        $(#[target_feature(enable = $features)])?
        fn faded(of: &PriorColumns<'_>, reach: &FadeReach, mask: &mut [u8]) {
            columns::faded(of, reach, mask);
        }
        Columns {
            within_i64, within_u64, within_f32, among, members, masked, reach, hopeful, faded,
        }
    }};
}
pub(super) use column_kernels;
