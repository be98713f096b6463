//! Every path that this CPU has, against plain arithmetic.

use proptest::prelude::*;
use ranker_core::kernels::{LineF32, LineI8, available, lines_f32, lines_i8, named};

fn pack_f32(values: &[f32], dimension: usize) -> Vec<LineF32> {
    let pack = |row: &[f32]| {
        let mut lines = vec![LineF32::ZERO; lines_f32(dimension)];
        for (n, value) in row.iter().enumerate() {
            lines[n / 16].0[n % 16] = *value;
        }
        lines
    };
    values.chunks(dimension).flat_map(pack).collect()
}

fn pack_i8(values: &[i8], dimension: usize) -> Vec<LineI8> {
    let pack = |row: &[i8]| {
        let mut lines = vec![LineI8::ZERO; lines_i8(dimension)];
        for (n, value) in row.iter().enumerate() {
            lines[n / 64].0[n % 64] = *value;
        }
        lines
    };
    values.chunks(dimension).flat_map(pack).collect()
}

/// A query, some rows of its length, and which of them to scan in which order.
fn problem<T: std::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = (Vec<T>, Vec<T>, Vec<u16>)> {
    (1_usize..300, 1_usize..20).prop_flat_map(move |(dimension, rows)| {
        (
            prop::collection::vec(value.clone(), dimension),
            prop::collection::vec(value.clone(), dimension * rows),
            prop::collection::vec(0..rows as u16, 0..40),
        )
    })
}

proptest! {
    #[test]
    fn int8_dot_products_are_exact_on_every_path(
        (query, block, rows) in problem(prop_oneof![-127_i8..=127, Just(127), Just(-127)]),
    ) {
        let dimension = query.len();
        let exact = |row: &u16| -> i32 {
            let row = &block[usize::from(*row) * dimension..][..dimension];
            query.iter().zip(row).map(|(q, r)| i32::from(*q) * i32::from(*r)).sum()
        };
        let expected: Vec<i32> = rows.iter().map(exact).collect();
        let (query, block) = (pack_i8(&query, dimension), pack_i8(&block, dimension));
        for kernels in available() {
            let mut out = vec![0; rows.len()];
            kernels.scan_i8(&query, &block, &rows, &mut out);
            prop_assert_eq!(&out, &expected, "{}", kernels.name());
        }
    }

    #[test]
    fn float32_dot_products_agree_on_every_path(
        (query, block, rows) in problem(-1.0_f32..1.0),
    ) {
        let dimension = query.len();
        let (packed_query, packed) = (pack_f32(&query, dimension), pack_f32(&block, dimension));
        for kernels in available() {
            let mut out = vec![0.0; rows.len()];
            kernels.scan_f32(&packed_query, &packed, &rows, &mut out);
            for (row, dot) in rows.iter().zip(&out) {
                let values = &block[usize::from(*row) * dimension..][..dimension];
                let products = query.iter().zip(values).map(|(q, r)| f64::from(*q) * f64::from(*r));
                let size: f64 = products.clone().map(f64::abs).sum();
                let error = (products.sum::<f64>() - f64::from(*dot)).abs();
                prop_assert!(error <= 1e-6 * size, "{}: {error} of {size}", kernels.name());

                // The same bits when the row is scanned alone.
                let mut alone = [0.0];
                kernels.scan_f32(&packed_query, &packed, &[*row], &mut alone);
                prop_assert_eq!(alone[0].to_bits(), dot.to_bits(), "{}", kernels.name());
            }
        }
    }

    #[test]
    fn bare_reads_agree_on_every_path(values in prop::collection::vec(-100_i8..100, 1..2000)) {
        let bytes = pack_i8(&values, values.len());
        let floats: Vec<f32> = values.iter().map(|value| f32::from(*value)).collect();
        let lines = pack_f32(&floats, floats.len());
        // Whole numbers of this size add up exactly in float32, in any order.
        let sum: i32 = values.iter().map(|value| i32::from(*value)).sum();
        let words = available().last().expect("scalar is always there").read_i8(&bytes);
        for kernels in available() {
            prop_assert_eq!(kernels.read_f32(&lines), sum as f32, "{}", kernels.name());
            prop_assert_eq!(kernels.read_i8(&bytes), words, "{}", kernels.name());
        }
    }
}

#[test]
fn the_largest_products_fit_at_the_largest_dimension() {
    let dimension = ranker_core::limits::DIMENSION_MAX;
    for (q, r) in [(127_i8, 127_i8), (-127, 127), (127, -127), (-127, -127)] {
        let query = pack_i8(&vec![q; dimension], dimension);
        let block = pack_i8(&vec![r; dimension], dimension);
        let expected = dimension as i32 * i32::from(q) * i32::from(r);
        for kernels in available() {
            let mut out = [0];
            kernels.scan_i8(&query, &block, &[0], &mut out);
            assert_eq!(out[0], expected, "{}", kernels.name());
        }
    }
}

#[test]
#[should_panic(expected = "out of range")]
fn a_row_outside_the_block_panics() {
    let lines = [LineF32::ZERO; 2];
    let kernels = available()[0];
    kernels.scan_f32(&lines, &lines, &[1], &mut [0.0]);
}

#[test]
fn paths_are_found_by_name() {
    for kernels in available() {
        assert_eq!(named(kernels.name()).unwrap().name(), kernels.name());
    }
    let refusal = named("fastest").unwrap_err().to_string();
    assert!(refusal.contains("unknown path \"fastest\""), "{refusal}");
    assert!(refusal.contains("scalar"), "{refusal}");
}
