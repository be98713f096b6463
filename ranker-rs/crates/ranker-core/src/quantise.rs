//! Unit vectors, their int8 form, and the bound on what that form can be wrong by.
//!
//! A vector x is stored as x' = scale * n with n in -127..=127, and the norm of x - x' is kept.
//! For a query q with q' likewise,
//!
//! ```text
//! q.x - q'.x' = q'.(x - x') + (q - q').x
//! |q.x - q'.x'| <= |q'| |x - x'| + |q - q'| |x|            (Cauchy-Schwarz)
//! ```
//!
//! To the second term is added what float32 rounding can do to both dot products, so the bound
//! holds for the numbers that the kernels compute and not only for the real ones.

use crate::kernels::{LineF32, LineI8, lines_f32, lines_i8};

/// What is kept of a row's quantisation. A row without a vector has a scale of 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantisation {
    /// One step of the int8 values.
    pub scale: f32,
    /// The norm of what was rounded away, rounded up.
    pub residual: f32,
}

/// The largest float32 that is not below what `value` stands for.
fn round_up(value: f64) -> f32 {
    (value as f32).next_up()
}

/// The norm of finite values, or `None` where no direction can be told.
pub(crate) fn norm_of(values: &[f32]) -> Option<f64> {
    let squares = values.iter().map(|value| f64::from(*value).powi(2));
    let norm = squares.sum::<f64>().sqrt();
    (norm.is_finite() && norm > 0.0).then_some(norm)
}

/// Writes `values / norm` into `out`, whose padding stays zero.
pub(crate) fn write_unit(values: &[f32], norm: f64, out: &mut [LineF32]) {
    for (line, values) in out.iter_mut().zip(values.chunks(16)) {
        for (out, value) in line.0.iter_mut().zip(values) {
            *out = (f64::from(*value) / norm) as f32;
        }
    }
}

/// Added and taken off again, it rounds a float32 of up to 2^22 to a whole number.
const ROUNDING: f32 = 1.5 * (1 << 23) as f32;

/// Writes the int8 form of a unit vector into `out`.
pub(crate) fn write_quantised(unit: &[LineF32], out: &mut [LineI8]) -> Quantisation {
    let values = || unit.iter().flat_map(|line| line.0);
    let largest = values().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let scale = largest / 127.0;
    // Sixteen sums side by side; in which order they are added doesn't matter to `round_up`.
    let mut squares = [0.0_f64; 16];
    let quarters = out.iter_mut().flat_map(|line| line.0.as_chunks_mut().0);
    for (out, line) in quarters.zip(unit) {
        let out: &mut [i8; 16] = out;
        for ((out, value), square) in out.iter_mut().zip(line.0).zip(&mut squares) {
            let step = ((value / scale) + ROUNDING - ROUNDING).clamp(-127.0, 127.0);
            *out = step as i8;
            let rest = f64::from(value) - f64::from(scale) * f64::from(step);
            *square += rest * rest;
        }
    }
    Quantisation {
        scale,
        residual: round_up(squares.iter().sum::<f64>().sqrt()),
    }
}

/// A query, ready for both kinds of scan.
#[derive(Debug)]
pub(crate) struct Query {
    pub unit: Vec<LineF32>,
    pub quantised: Vec<LineI8>,
    /// One step of the int8 values.
    pub scale: f32,
    /// Upper bound on the norm of the quantised query.
    quantised_norm: f32,
    /// The part of the bound that is the same for every row.
    constant_error: f32,
    /// What float32 rounding can do to a dot product of unit vectors.
    rounding_error: f32,
}

impl Query {
    /// Normalises and quantises. `norm` is that of `values`.
    pub fn new(values: &[f32], norm_of_values: f64) -> Self {
        let mut unit = vec![LineF32::ZERO; lines_f32(values.len())];
        let mut quantised = vec![LineI8::ZERO; lines_i8(values.len())];
        write_unit(values, norm_of_values, &mut unit);
        let Quantisation { scale, residual } = write_quantised(&unit, &mut quantised);
        let steps = quantised.iter().flat_map(|line| line.0);
        let square: i32 = steps.map(|step| i32::from(step) * i32::from(step)).sum();
        let quantised_norm = f64::from(scale) * f64::from(square).sqrt();
        // A float32 dot product of n terms is off by at most n u |q||x| with u = 2^-24, in any
        // order of summation. 16 more roundings cover the norms (unit only up to rounding), the
        // conversion of the integer dot product and the arithmetic on the bound itself.
        let roundings = (16 * unit.len() + 16) as f64;
        let rounding_error = roundings * f64::from(f32::EPSILON / 2.0) * 1.001;
        Self {
            unit,
            quantised,
            scale,
            quantised_norm: round_up(quantised_norm),
            constant_error: round_up(f64::from(residual) * (1.0 + 1e-6) + rounding_error),
            rounding_error: round_up(rounding_error),
        }
    }

    /// Lower and upper bound of the float32 cosine, given the integer dot product with a row.
    #[inline]
    pub fn cosine_bounds(&self, dot: i32, row: Quantisation) -> (f32, f32) {
        let cosine = dot as f32 * (self.scale * row.scale);
        let error = self.error(row.residual);
        (cosine - error, cosine + error)
    }

    /// The most by which two float32 cosines of the same vectors can differ, each normalised and
    /// added up in an order of its own.
    #[inline]
    pub fn disagreement(&self) -> f32 {
        2.0 * self.rounding_error
    }

    /// What a cosine from int8 can be wrong by, given the row's residual or one that is larger.
    #[inline]
    pub fn error(&self, residual: f32) -> f32 {
        self.quantised_norm * residual + self.constant_error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::available;
    use proptest::prelude::*;

    fn vectors() -> impl Strategy<Value = (Vec<f32>, Vec<f32>)> {
        let value = prop_oneof![
            4 => -1.0_f32..1.0,
            1 => Just(0.0),
            1 => -1e-20_f32..1e-20,
            1 => -1e20_f32..1e20,
        ];
        (1_usize..200).prop_flat_map(move |dimension| {
            let vector = prop::collection::vec(value.clone(), dimension);
            (vector.clone(), vector)
        })
    }

    proptest! {
        /// The law that the exactness of search rests on, for every path.
        #[test]
        fn the_bound_holds((query, row) in vectors()) {
            let (Some(query_norm), Some(row_norm)) = (norm_of(&query), norm_of(&row)) else {
                return Ok(());
            };
            let query = Query::new(&query, query_norm);
            let mut unit = vec![LineF32::ZERO; lines_f32(row.len())];
            let mut steps = vec![LineI8::ZERO; lines_i8(row.len())];
            write_unit(&row, row_norm, &mut unit);
            let quantisation = write_quantised(&unit, &mut steps);
            for kernels in available() {
                let (mut exact, mut dot) = ([0.0], [0]);
                kernels.scan_f32(&query.unit, &unit, &[0], &mut exact);
                kernels.scan_i8(&query.quantised, &steps, &[0], &mut dot);
                let (low, high) = query.cosine_bounds(dot[0], quantisation);
                prop_assert!(low <= exact[0] && exact[0] <= high, "{}: {low} {exact:?} {high}", kernels.name());
            }
        }

        #[test]
        fn steps_avoid_the_value_that_kernels_cannot_take((row, _) in vectors()) {
            let Some(norm) = norm_of(&row) else { return Ok(()) };
            let mut unit = vec![LineF32::ZERO; lines_f32(row.len())];
            let mut steps = vec![LineI8::ZERO; lines_i8(row.len())];
            write_unit(&row, norm, &mut unit);
            let quantisation = write_quantised(&unit, &mut steps);
            prop_assert!(quantisation.scale > 0.0);
            prop_assert!(steps.iter().all(|line| line.0.iter().all(|step| *step != i8::MIN)));
        }
    }

    #[test]
    fn no_direction_no_norm() {
        assert_eq!(norm_of(&[0.0, 0.0]), None);
        assert_eq!(norm_of(&[f32::NAN, 1.0]), None);
        assert_eq!(norm_of(&[f32::INFINITY]), None);
        assert!(norm_of(&[f32::from_bits(1)]).is_some());
    }
}
