//! Searches over many blocks: those that are skipped hold no result.
//!
//! The oracle is `Table::score` of every slot, which knows nothing of blocks.

mod rows;

use proptest::prelude::*;
use ranker_core::kernels::available;
use ranker_core::{Filter, FilterSpec, Profile, ProfileSpec, RecencyAnchor, SearchRequest, Table};
use rows::Rows;

const NOW: i64 = 1_800_000_000_000_000;
const DAY: i64 = 86_400_000_000;
/// Two chunks and a bit, with a last block that isn't full.
const ROWS: usize = 9_000;
const DIMENSION: usize = 5;

fn id(number: usize) -> [u8; 16] {
    let mut id = [1; 16];
    id[..4].copy_from_slice(&(number as u32).wrapping_mul(2_654_435_761).to_be_bytes());
    id
}

/// Numbers without a pattern, 0..=1.
fn noise(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32
    }
}

/// How the rows' times and importance lie in the table.
#[derive(Debug, Clone, Copy)]
enum Lie {
    /// In the order of time, as memories are written.
    Sorted,
    Random,
    /// All the same, vectors too.
    Tied,
}

fn rows(lie: Lie, seed: u64) -> Rows {
    let mut next = noise(seed);
    let mut rows = Rows::new(DIMENSION);
    for number in 0..ROWS {
        let vector: [f32; DIMENSION] = std::array::from_fn(|_| next() - 0.3);
        let (age, chance) = (next(), next());
        rows.push(
            id(number),
            &if matches!(lie, Lie::Tied) {
                [1.0; DIMENSION]
            } else {
                vector
            },
        );
        match lie {
            Lie::Sorted => {
                rows.valid_from[number] = NOW - DAY * (ROWS - number) as i64 / 20;
                rows.importance[number] = number as f32 / ROWS as f32;
            }
            Lie::Random => {
                rows.valid_from[number] = NOW - (age * 400.0) as i64 * DAY;
                rows.importance[number] = chance;
                rows.kind[number] = 1 + (age * 4.9) as u8;
                rows.has_vector[number] = chance > 0.1;
                rows.flags[number] = if age > 0.9 { 8 } else { 0 };
            }
            Lie::Tied => rows.valid_from[number] = NOW - DAY,
        }
        rows.last_used[number] = rows.valid_from[number] + (chance * 3.0) as i64 * DAY;
        rows.subject[number] = (age * 30.0) as u64;
        rows.attribute[number] = (chance * 12.0) as u64;
        rows.valid_to[number] = if chance > 0.97 { NOW - 1 } else { i64::MAX };
    }
    rows
}

fn weights() -> impl Strategy<Value = ProfileSpec> {
    let weight = || prop_oneof![Just(0.0_f32), Just(0.2), Just(0.6), Just(4.0)];
    let weights = (weight(), weight(), weight()).prop_filter("a sum above 0", |weights| {
        weights.0 + weights.1 + weights.2 > 0.0
    });
    let anchor = prop_oneof![
        Just(RecencyAnchor::ValidFrom),
        Just(RecencyAnchor::LastUsed)
    ];
    // Shorter and longer than those of kinds, of attributes that rows have and that none has.
    let attributes = prop_oneof![
        2 => Just(vec![]),
        1 => Just(vec![(3, DAY as f64)]),
        1 => Just(vec![(400, 1.0), (2, f64::INFINITY), (9, 1e6), (5, 9000.0 * DAY as f64)]),
    ];
    (
        weights,
        anchor,
        prop_oneof![Just(0.0_f32), Just(0.5), Just(-1.0)],
        attributes,
        prop_oneof![2 => Just(0b11_1110_u8), 1 => Just(0b10)],
    )
        .prop_map(
            |(weights, recency_anchor, relevance_floor, attributes, attribute_kinds)| ProfileSpec {
                w_relevance: weights.0,
                w_recency: weights.1,
                w_importance: weights.2,
                attribute_half_life: attributes,
                attribute_kinds,
                recency_anchor,
                relevance_floor,
                ..ProfileSpec::default()
            },
        )
}

fn filters() -> impl Strategy<Value = FilterSpec> {
    let subjects = prop_oneof![Just(vec![]), Just(vec![3]), Just(vec![3, 4, 5, 9, 11, 12])];
    let least = || prop_oneof![3 => Just(0.0_f32), 1 => Just(0.5)];
    (subjects, prop::option::of(Just(NOW)), least(), least()).prop_map(
        |(subjects, valid_at, min_score, min_relevance)| FilterSpec {
            subjects,
            valid_at,
            min_score,
            min_relevance,
            ..FilterSpec::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_search_is_the_scoring_of_every_slot(
        lie in prop_oneof![2 => Just(Lie::Sorted), 2 => Just(Lie::Random), 1 => Just(Lie::Tied)],
        seed in any::<u64>(),
        asked in prop::collection::vec((weights(), filters(), 1_usize..60), 4),
        removed in (0..ROWS, 0_usize..3000),
    ) {
        let rows = rows(lie, seed);
        let mut next = noise(!seed);
        let query: [f32; DIMENSION] = std::array::from_fn(|_| next() - 0.3);
        let removed: Vec<_> = (0..removed.1).map(|n| id((removed.0 + n) % ROWS)).collect();
        for kernels in available() {
            let table = Table::with_kernels(DIMENSION, kernels).unwrap();
            let slots = table.upsert(&rows.batch()).unwrap();
            table.remove(&removed).unwrap();
            let touched: Vec<_> = (0..400).map(|n| id(20 * n)).collect();
            table.touch(&touched, &[NOW; 400]).unwrap();
            for (profile, filter, k) in &asked {
                let (profile, filter) = (
                    Profile::new(profile.clone()).unwrap(),
                    Filter::new(filter.clone()).unwrap(),
                );
                for query in [Some(&query[..]), None] {
                    let request = SearchRequest { query, text: None, now: NOW, profile: &profile, filter: &filter, k: *k };
                    let expected = table.score(&request, &slots).unwrap();
                    for exact_float in [false, true] {
                        let found = table.search(&request, exact_float).unwrap();
                        prop_assert_eq!(&found.hits, &expected.hits, "{}", kernels.name());
                        prop_assert_eq!(found.admitted, expected.admitted);
                        prop_assert_eq!(found.scanned, table.len().unwrap());
                    }
                }
            }
        }
    }
}
