//! Every path that this CPU has, against plain arithmetic.

use proptest::prelude::*;
use ranker_core::kernels::{
    FadeReach, LineF32, LineI8, PriorColumns, PriorReach, Reach, available, lines_f32, lines_i8,
    named,
};

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

    /// Dimensions up to 1,200 have every number of lines that a path treats in a way of its own.
    #[test]
    fn int8_scans_of_whole_blocks_are_exact_on_every_path(
        (query, block) in (1_usize..1200, 0_usize..11).prop_flat_map(|(dimension, rows)| (
            prop::collection::vec(-127_i8..=127, dimension),
            prop::collection::vec(-127_i8..=127, dimension * rows),
        )),
    ) {
        let rows = block.chunks_exact(query.len());
        let dot = |row: &[i8]| -> i32 {
            query.iter().zip(row).map(|(q, r)| i32::from(*q) * i32::from(*r)).sum()
        };
        let expected: Vec<i32> = rows.map(dot).collect();
        let (query, block) = (pack_i8(&query, query.len()), pack_i8(&block, query.len()));
        for kernels in available() {
            let mut out = vec![0; expected.len()];
            kernels.scan_all_i8(&query, &block, &mut out);
            prop_assert_eq!(&out, &expected, "{}", kernels.name());
        }
    }

    #[test]
    fn column_comparisons_are_plain_ones_on_every_path(
        cells in prop::collection::vec((-3_i64..3, 0_u8..6, 0_u16..8, 0_u8..2), 0..150),
        (low, high) in (-3_i64..3, -3_i64..3),
        set in any::<u8>(),
        (bits, wanted) in (0_u16..8, 0_u16..8),
        values in prop::collection::vec(0_u64..4, 0..9),
    ) {
        let times: Vec<i64> = cells.iter().map(|cell| cell.0).collect();
        let hashes: Vec<u64> = times.iter().map(|time| time.cast_unsigned()).collect();
        let floats: Vec<f32> = times.iter().map(|time| *time as f32).collect();
        let numbers: Vec<i32> = times.iter().map(|time| *time as i32).collect();
        let kinds: Vec<u8> = cells.iter().map(|cell| cell.1).collect();
        let flags: Vec<u16> = cells.iter().map(|cell| cell.2).collect();
        let before: Vec<u8> = cells.iter().map(|cell| cell.3).collect();
        let within = |n: usize| low <= times[n] && times[n] <= high;
        for kernels in available() {
            let check = |call: &dyn Fn(&mut [u8]), holds: &dyn Fn(usize) -> bool| {
                let mut mask = before.clone();
                call(&mut mask);
                let expected: Vec<u8> = (0..before.len())
                    .map(|n| before[n] & u8::from(holds(n)))
                    .collect();
                assert_eq!(mask, expected, "{}", kernels.name());
            };
            check(&|mask| kernels.within_i64(&times, low, high, mask), &within);
            check(&|mask| kernels.within_f32(&floats, low as f32, high as f32, mask), &within);
            check(
                &|mask| kernels.within_u64(&hashes, low as u64, high as u64, mask),
                &|n| (low as u64..=high as u64).contains(&hashes[n]),
            );
            check(&|mask| kernels.among(&hashes, &values, mask), &|n| values.contains(&hashes[n]));
            check(&|mask| kernels.members(&kinds, set, mask), &|n| (set >> kinds[n]) & 1 == 1);
            check(
                &|mask| kernels.masked(&flags, bits, wanted, mask),
                &|n| flags[n] & bits == wanted,
            );
            let reach = Reach { step: 0.5, error: 0.25, above: low as f32 };
            let reaches = |n: usize| numbers[n] as f32 * (0.5 * floats[n]) + 0.25 > low as f32;
            check(
                &|mask| {
                    let any = kernels.reach(&numbers, &floats, reach, mask);
                    assert_eq!(any, mask.contains(&1));
                },
                &reaches,
            );
        }
    }

    /// What can reach stays, and of what can't little does.
    #[test]
    fn no_row_that_reaches_is_cleared(
        cells in prop::collection::vec(
            (
                prop_oneof![Just(i64::MIN), -2_000_000_000_000_000_i64..2_000_000_000_000_000],
                0_i64..1_000_000_000,
                1_u8..6,
                0.0_f32..=1.0,
                0.0_f32..=1.0,
            ),
            0..150,
        ),
        half_life in prop_oneof![Just(f64::INFINITY), 1.0_f64..1e16],
        weights in (0.0_f32..2.0, 0.0_f32..2.0, 0.0_f32..2.0),
        least in 0.0_f32..3.0,
        by_use in any::<bool>(),
        now in -1_000_000_000_000_000_i64..1_000_000_000_000_000,
    ) {
        let valid_from: Vec<i64> = cells.iter().map(|cell| cell.0).collect();
        let last_used: Vec<i64> = cells.iter().map(|cell| cell.0.saturating_add(cell.1)).collect();
        let kind: Vec<u8> = cells.iter().map(|cell| cell.2).collect();
        let importance: Vec<f32> = cells.iter().map(|cell| cell.3).collect();
        let relevance: Vec<f32> = cells.iter().map(|cell| cell.4).collect();
        let columns = PriorColumns {
            valid_from: &valid_from,
            last_used: by_use.then_some(&last_used),
            kind: &kind,
            importance: &importance,
            relevance: &relevance,
        };
        let mut decay = [0.0; 8];
        decay[2] = (1.0 / half_life) as f32;
        let reach = PriorReach {
            now: now as f64,
            decay,
            w_relevance: weights.0,
            w_recency: weights.1,
            w_importance: weights.2,
            least,
        };
        let sum = |n: usize| {
            let anchor = if by_use { last_used[n] } else { valid_from[n] };
            let age = now.saturating_sub(anchor).max(0) as f64;
            let half_life = if kind[n] == 2 { half_life } else { f64::INFINITY };
            let recency = (-(age / half_life)).exp2();
            f64::from(weights.0) * f64::from(relevance[n])
                + f64::from(weights.1) * recency
                + f64::from(weights.2) * f64::from(importance[n])
        };
        for kernels in available() {
            let mut mask = vec![1; cells.len()];
            kernels.hopeful(&columns, &reach, &mut mask);
            for (n, kept) in mask.iter().enumerate() {
                let reaches = sum(n) >= f64::from(least) + 1e-6;
                let falls_short = sum(n) < f64::from(least) - 2e-3;
                prop_assert!(*kept == 1 || !reaches, "{}: {} {least}", kernels.name(), sum(n));
                prop_assert!(*kept == 0 || !falls_short, "{}: {} {least}", kernels.name(), sum(n));
            }
        }
    }

    /// The kernel may keep a row a little above its threshold, and never clears one below it.
    #[test]
    fn no_faded_row_is_missed_on_any_path(
        cells in prop::collection::vec(
            (-1_000_000_i64..1_000_000, 0_i64..1_000_000, 0_u8..6, 0.0_f32..=1.0), 1..300
        ),
        now in -1_000_000_i64..3_000_000,
        half_lives in (1.0_f64..1e6, 1.0_f64..1e6),
        below in (0.0_f32..=1.0, 0.0_f32..=1.0),
        by_use in any::<bool>(),
    ) {
        let valid_from: Vec<i64> = cells.iter().map(|cell| cell.0).collect();
        let last_used: Vec<i64> = cells.iter().map(|cell| cell.0 + cell.1).collect();
        let kind: Vec<u8> = cells.iter().map(|cell| cell.2).collect();
        let importance: Vec<f32> = cells.iter().map(|cell| cell.3).collect();
        let columns = PriorColumns {
            valid_from: &valid_from,
            last_used: by_use.then_some(&last_used),
            kind: &kind,
            importance: &importance,
            relevance: &[],
        };
        let mut reach = FadeReach { now: now as f64, decay: [0.0; 8], below: [0.0; 8] };
        reach.decay[1] = (1.0 / half_lives.0) as f32;
        reach.decay[4] = (1.0 / half_lives.1) as f32;
        (reach.below[1], reach.below[3], reach.below[4]) = (below.0, below.1, below.1);
        let vitality = |n: usize| {
            let anchor = if by_use { last_used[n] } else { valid_from[n] };
            let half_life = match kind[n] {
                1 => half_lives.0,
                4 => half_lives.1,
                _ => f64::INFINITY,
            };
            let age = (now - anchor).max(0) as f64;
            (-(age / half_life)).exp2() * f64::from(importance[n])
        };
        for kernels in available() {
            let mut mask = vec![1; cells.len()];
            kernels.faded(&columns, &reach, &mut mask);
            for (n, kept) in mask.iter().enumerate() {
                let below = f64::from(reach.below[usize::from(kind[n])]);
                let (is_below, is_above) = (vitality(n) < below, vitality(n) > 1.01 * below + 1e-30);
                prop_assert!(*kept == 1 || !is_below, "{}: {}", kernels.name(), vitality(n));
                prop_assert!(*kept == 0 || !is_above, "{}: {}", kernels.name(), vitality(n));
            }
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
