//! The certified search against the scoring of every slot, given an honest horizon.
//!
//! The oracle is `Table::score` of every slot, which knows nothing of horizons and blocks.

mod rows;

use proptest::prelude::*;
use ranker_core::kernels::available;
use ranker_core::limits::RESULTS_MAX;
use ranker_core::{
    Filter, FilterSpec, Hits, Profile, ProfileSpec, Proposal, RecencyAnchor, SearchRequest, Table,
};
use rows::{Rows, set_texts, text_of};

const NOW: i64 = 1_800_000_000_000_000;
const DAY: i64 = 86_400_000_000;
/// A chunk and a bit, with a last block that isn't full.
const ROWS: usize = 4_500;
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

/// What makes certification hard.
#[derive(Debug, Clone, Copy)]
enum Lie {
    /// No pattern at all.
    Random,
    /// The close are old and unimportant, the fresh and important far away.
    OldButClose,
    /// All the same: every score is a tie.
    Tied,
    /// Two ages, two importances, few directions: ties between seen and unseen.
    Coarse,
    /// Few have a vector.
    MostlyWithout,
}

fn rows(lie: Lie, query: &[f32; DIMENSION], seed: u64) -> Rows {
    let mut next = noise(seed);
    let mut rows = Rows::new(DIMENSION);
    for number in 0..ROWS {
        let (chance, age, other) = (next(), next(), next());
        let noisy = |amount: f32, next: &mut dyn FnMut() -> f32| -> [f32; DIMENSION] {
            std::array::from_fn(|n| query[n] + amount * (next() - 0.5))
        };
        let (vector, age_days, importance) = match lie {
            Lie::Random | Lie::MostlyWithout => (noisy(3.0, &mut next), age * 400.0, other),
            Lie::OldButClose if chance < 0.2 => (noisy(0.1, &mut next), 3000.0, 0.0),
            Lie::OldButClose => (
                noisy(4.0, &mut next).map(|x| -x),
                age * 3.0,
                0.5 + other / 2.0,
            ),
            Lie::Tied => (*query, 10.0, 0.5),
            Lie::Coarse => {
                let axis = (chance * 3.0) as usize;
                let vector = std::array::from_fn(|n| f32::from(u8::from(n == axis)));
                (vector, (age * 2.0).floor() * 30.0, (other * 2.0).floor())
            }
        };
        rows.push(id(number), &vector);
        rows.has_vector[number] = match lie {
            Lie::MostlyWithout => chance < 0.1,
            _ => chance < 0.97,
        };
        rows.valid_from[number] = NOW - (age_days * DAY as f32) as i64;
        rows.last_used[number] = rows.valid_from[number] + (other * 3.0) as i64 * DAY;
        rows.importance[number] = importance;
        rows.kind[number] = 1 + (next() * 4.9) as u8;
        rows.flags[number] = if next() > 0.9 { 8 } else { 0 };
        rows.subject[number] = (next() * 40.0) as u64;
        rows.attribute[number] = (next() * 12.0) as u64;
    }
    rows
}

fn lies() -> impl Strategy<Value = Lie> {
    prop_oneof![
        Just(Lie::Random),
        Just(Lie::OldButClose),
        Just(Lie::Tied),
        Just(Lie::Coarse),
        Just(Lie::MostlyWithout)
    ]
}

fn profiles() -> impl Strategy<Value = ProfileSpec> {
    let weight = || prop_oneof![Just(0.0_f32), Just(0.2), Just(0.6), Just(4.0)];
    let weights = (weight(), weight(), weight()).prop_filter("a sum above 0", |weights| {
        weights.0 + weights.1 + weights.2 > 0.0
    });
    let floor = prop_oneof![2 => Just(0.0_f32), 1 => Just(0.8), 1 => Just(-1.0)];
    let attributes = prop_oneof![
        2 => Just(vec![]),
        1 => Just(vec![(2, f64::INFINITY), (9, 1e6), (5, 9000.0 * DAY as f64)]),
    ];
    (weights, any::<bool>(), floor, attributes, 0.0_f32..=1.0).prop_map(
        |(weights, by_use, relevance_floor, attributes, consolidated_factor)| ProfileSpec {
            w_relevance: weights.0,
            w_recency: weights.1,
            w_importance: weights.2,
            attribute_half_life: attributes,
            recency_anchor: if by_use {
                RecencyAnchor::LastUsed
            } else {
                RecencyAnchor::ValidFrom
            },
            relevance_floor,
            consolidated_factor,
            ..ProfileSpec::default()
        },
    )
}

fn filters() -> impl Strategy<Value = FilterSpec> {
    let subjects = prop_oneof![2 => Just(vec![]), 1 => Just(vec![3]), 1 => Just(vec![3, 4, 9])];
    let least = || prop_oneof![3 => Just(0.0_f32), 1 => Just(0.5)];
    (subjects, least(), least()).prop_map(|(subjects, min_score, min_relevance)| FilterSpec {
        subjects,
        min_score,
        min_relevance,
        ..FilterSpec::default()
    })
}

/// The nearest slots, and the cosine of the last of them: what an index without a fault says.
/// With fewer vectors than asked for, all of them are named and nothing is left to bound.
fn nearest(table: &Table, query: &[f32], n: usize) -> (Vec<u32>, f32) {
    let profile = Profile::new(ProfileSpec {
        w_recency: 0.0,
        w_importance: 0.0,
        relevance_floor: -1.0,
        consolidated_factor: 1.0,
        ..ProfileSpec::default()
    })
    .unwrap();
    let filter = Filter::new(FilterSpec {
        statuses: 0,
        exclude_flags: 0,
        ..FilterSpec::default()
    })
    .unwrap();
    let request = SearchRequest {
        query: Some(query),
        text: None,
        now: NOW,
        profile: &profile,
        filter: &filter,
        k: RESULTS_MAX,
    };
    let with_vector = table.live_slots().unwrap();
    let mut hits = table.score(&request, &with_vector).unwrap().hits;
    hits.truncate(n);
    let horizon = hits.last().map_or(-1.0, |hit| hit.cosine);
    (hits.iter().map(|hit| hit.slot).collect(), horizon)
}

/// Whatever a search left out scores no higher than its bound, and hits are what they should be.
fn check_given_up(found: &Hits, everything: &Hits, bound: f32) {
    for hit in &everything.hits {
        assert!(
            found.hits.contains(hit) || hit.score <= bound,
            "{bound} {hit:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Certified is what brute force is: ids, order, every part of every score.
    #[test]
    fn a_certified_search_is_the_scoring_of_every_slot(
        lie in lies(),
        seed in any::<u64>(),
        asked in prop::collection::vec(
            (profiles(), filters(), 1_usize..40, prop_oneof![Just(1_usize), Just(20), Just(300)]),
            6,
        ),
        removed in (0..ROWS, 0_usize..1500),
    ) {
        let mut next = noise(!seed);
        let query: [f32; DIMENSION] = std::array::from_fn(|_| next() + 0.1);
        let rows = rows(lie, &query, seed);
        let removed: Vec<_> = (0..removed.1).map(|n| id((removed.0 + n) % ROWS)).collect();
        for kernels in available() {
            let table = Table::with_kernels(DIMENSION, kernels).unwrap();
            let slots = table.upsert(&rows.batch()).unwrap();
            set_texts(&table, &rows, seed);
            table.remove(&removed).unwrap();
            let touched: Vec<_> = (0..200).map(|n| id(20 * n)).collect();
            table.touch(&touched, &[NOW; 200]).unwrap();
            for (place, (profile, filter, k, n)) in asked.iter().enumerate() {
                let (mut near, horizon) = nearest(&table, &query, *n);
                // An index names the same slot twice, and slots of rows that are gone.
                near.extend([slots[0], slots[0], slots[ROWS - 1], 3_000_000]);
                let (profile, filter) = (
                    Profile::new(profile.clone()).unwrap(),
                    Filter::new(filter.clone()).unwrap(),
                );
                let request = SearchRequest {
                    query: Some(&query), now: NOW, profile: &profile, filter: &filter, k: *k,
                    text: text_of(seed.rotate_left(5 * place as u32)),
                };
                let expected = table.score(&request, &slots).unwrap();
                let mut proposal = Proposal { slots: &near, horizon, rows_max: usize::MAX };
                let found = table.certify(&request, &proposal).unwrap();
                prop_assert_eq!(&found.hits, &expected.hits, "{}", kernels.name());
                prop_assert_eq!(found.bound, None);
                prop_assert!(found.rescored <= found.admitted + found.examined);
                // As many as it needs are enough; with fewer it says what it may have missed.
                proposal.rows_max = found.examined;
                prop_assert_eq!(&table.certify(&request, &proposal).unwrap(), &found);
                proposal.rows_max = found.examined / 2;
                let gave_up = table.certify(&request, &proposal).unwrap();
                let everything = table
                    .score(&SearchRequest { k: RESULTS_MAX, ..request }, &slots)
                    .unwrap();
                if let Some(bound) = gave_up.bound {
                    check_given_up(&gave_up, &everything, bound);
                } else {
                    prop_assert_eq!(&gave_up.hits, &expected.hits);
                }
            }
        }
    }
}

fn plain(rows: &Rows) -> Table {
    let table = Table::new(DIMENSION).unwrap();
    table.upsert(&rows.batch()).unwrap();
    table
}

/// The memory that over-fetching misses: far away, but so fresh and important that it wins.
#[test]
fn a_fresh_memory_outside_the_nearest_is_found() {
    let query = [1.0, 0.0, 0.0, 0.0, 0.0];
    let mut rows = Rows::new(DIMENSION);
    for number in 0..1000 {
        rows.push(id(number), &query);
        rows.valid_from[number] = NOW - 3000 * DAY;
        rows.importance[number] = 0.0;
    }
    rows.push(id(1000), &[0.6, 0.8, 0.0, 0.0, 0.0]);
    rows.valid_from[1000] = NOW;
    rows.importance[1000] = 1.0;
    let table = plain(&rows);
    let (profile, filter) = (
        Profile::new(ProfileSpec::default()).unwrap(),
        Filter::new(FilterSpec::default()).unwrap(),
    );
    let request = SearchRequest {
        query: Some(&query),
        text: None,
        now: NOW,
        profile: &profile,
        filter: &filter,
        k: 3,
    };
    let near: Vec<u32> = (0..20).collect();
    let missed = table.score(&request, &near).unwrap();
    assert!(missed.hits.iter().all(|hit| hit.id != id(1000)));
    let proposal = Proposal {
        slots: &near,
        horizon: 1.0,
        rows_max: usize::MAX,
    };
    let found = table.certify(&request, &proposal).unwrap();
    assert_eq!(found.hits[0].id, id(1000));
    assert_eq!(found.hits, table.search(&request, true).unwrap().hits);
    // Of 981 others one could win; the old ones tie with what is there, and may win by their ids.
    let proposal = Proposal {
        horizon: 0.999,
        ..proposal
    };
    assert_eq!(table.certify(&request, &proposal).unwrap().examined, 1);
}

#[test]
fn what_cannot_be_certified_is_refused() {
    let table = plain(&Rows::new(DIMENSION));
    let (profile, filter) = (
        Profile::new(ProfileSpec::default()).unwrap(),
        Filter::new(FilterSpec::default()).unwrap(),
    );
    let mut request = SearchRequest {
        query: None,
        text: None,
        now: NOW,
        profile: &profile,
        filter: &filter,
        k: 3,
    };
    let mut proposal = Proposal {
        slots: &[],
        horizon: 0.5,
        rows_max: 10,
    };
    assert!(table.certify(&request, &proposal).is_err());
    request.query = Some(&[1.0; DIMENSION]);
    assert!(table.certify(&request, &proposal).unwrap().hits.is_empty());
    proposal.horizon = f32::NAN;
    assert!(table.certify(&request, &proposal).is_err());
}
