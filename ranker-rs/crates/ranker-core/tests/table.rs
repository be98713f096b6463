//! The table as its callers see it: pruned search against the float32 scan on every CPU path,
//! slots, and the golden scores that Python reads too.

mod rows;

use proptest::prelude::*;
use ranker_core::kernels::available;
use ranker_core::limits::{SLOT_ABSENT, TIME_OPEN};
use ranker_core::{Filter, FilterSpec, Profile, ProfileSpec, RecencyAnchor, SearchRequest, Table};
use rows::{Rows, set_texts, text_of};
use serde_json::Value;

const NOW: i64 = 1_800_000_000_000_000;

fn id(number: u16) -> [u8; 16] {
    let mut id = [1; 16];
    id[..2].copy_from_slice(&number.to_be_bytes());
    id
}

fn every_row() -> FilterSpec {
    FilterSpec {
        statuses: 0,
        exclude_flags: 0,
        ..FilterSpec::default()
    }
}

#[derive(Debug, Clone)]
struct Case {
    rows: Rows,
    removed: Vec<u16>,
    query: Vec<f32>,
    profile: ProfileSpec,
    filter: FilterSpec,
    k: usize,
    seed: u64,
}

/// Vectors in few directions and values from small sets make near and exact ties common.
fn cases() -> impl Strategy<Value = Case> {
    (1_usize..80, 0_usize..300).prop_flat_map(|(dimension, count)| {
        let value = prop_oneof![Just(0.0_f32), Just(1.0), -1.0_f32..1.0];
        let cell = (
            prop::collection::vec(value.clone(), dimension),
            1_u8..=5,
            0_u8..4,
            prop_oneof![Just(0_u16), Just(8), Just(2)],
            0_i64..100_000_000,
        );
        let profile = (
            prop_oneof![Just(0.0_f32), Just(0.6), Just(5.0)],
            prop_oneof![Just(0.0_f32), Just(0.9), Just(-1.0)],
            any::<bool>(),
        );
        let least = prop_oneof![3 => Just(0.0_f32), 1 => Just(0.4)];
        (
            prop::collection::vec(cell, count),
            prop::collection::vec(0_u16..300, 0..50),
            prop::collection::vec(0.1_f32..1.0, dimension),
            profile,
            (least.clone(), least, 0_u8..2),
            (1_usize..30, any::<u64>()),
        )
            .prop_map(move |(cells, removed, query, profile, filter, (k, seed))| {
                let mut rows = Rows::new(dimension);
                for (number, (vector, kind, importance, flags, age)) in
                    cells.into_iter().enumerate()
                {
                    rows.push(id(number as u16), &vector);
                    rows.kind[number] = kind;
                    rows.importance[number] = f32::from(importance) / 3.0;
                    rows.flags[number] = flags;
                    rows.valid_from[number] = NOW - age * 86_400;
                }
                Case {
                    rows,
                    removed,
                    query,
                    profile: ProfileSpec {
                        w_relevance: profile.0,
                        relevance_floor: profile.1,
                        recency_anchor: if profile.2 {
                            RecencyAnchor::LastUsed
                        } else {
                            RecencyAnchor::ValidFrom
                        },
                        ..ProfileSpec::default()
                    },
                    filter: FilterSpec {
                        min_score: filter.0,
                        min_relevance: filter.1,
                        exclude_flags: u16::from(filter.2) * 2,
                        ..FilterSpec::default()
                    },
                    k,
                    seed,
                }
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The promise of the crate: pruning changes nothing, on any path.
    #[test]
    fn a_pruned_search_is_the_float32_scan(case in cases()) {
        let profile = Profile::new(case.profile).unwrap();
        let filter = Filter::new(case.filter).unwrap();
        let removed: Vec<_> = case.removed.iter().map(|number| id(*number)).collect();
        for kernels in available() {
            let table = Table::with_kernels(case.query.len(), kernels).unwrap();
            let slots = table.upsert(&case.rows.batch()).unwrap();
            set_texts(&table, &case.rows, case.seed);
            table.remove(&removed).unwrap();
            let request = SearchRequest {
                query: (case.seed % 4 > 0).then_some(&case.query[..]),
                text: text_of(case.seed),
                now: NOW,
                profile: &profile,
                filter: &filter,
                k: case.k,
            };
            let exact = table.search(&request, true).unwrap();
            let pruned = table.search(&request, false).unwrap();
            let scored = table.score(&request, &slots).unwrap();
            prop_assert_eq!(&pruned.hits, &exact.hits, "{}", kernels.name());
            prop_assert_eq!(&scored.hits, &exact.hits, "{}", kernels.name());
            prop_assert_eq!(pruned.admitted, exact.admitted);
            prop_assert_eq!(pruned.admitted, table.count(&filter).unwrap());
            prop_assert!(exact.hits.is_sorted_by(|a, b| (b.score, a.id) < (a.score, b.id)));
        }
    }
}

#[test]
fn a_full_table_reuses_slots_and_keeps_living_ones() {
    let table = Table::new(3).unwrap();
    let mut rows = Rows::new(3);
    for number in 0..5000 {
        rows.push(id(number), &[1.0, f32::from(number), 0.0]);
    }
    let slots = table.upsert(&rows.batch()).unwrap();
    assert_eq!(slots, (0..5000).collect::<Vec<u32>>());
    assert_eq!(
        table.upsert(&rows.batch()).unwrap(),
        slots,
        "replaced in place"
    );

    assert_eq!(table.remove(&[id(7), id(4999), id(7)]).unwrap(), 2);
    assert_eq!(table.slots(&[id(7), id(8)]).unwrap(), [SLOT_ABSENT, 8]);
    assert!(table.ids_of(&[7]).is_err());

    let mut fresh = Rows::new(3);
    for number in 6000..6003 {
        fresh.push(id(number), &[0.0, 0.0, 1.0]);
    }
    assert_eq!(table.upsert(&fresh.batch()).unwrap(), [4999, 7, 5000]);
    assert_eq!(table.len().unwrap(), 5001);
    assert_eq!(table.vectors_of(&[7]).unwrap(), [0.0, 0.0, 1.0]);
}

#[test]
fn of_an_id_twice_in_a_batch_the_later_row_stays() {
    let table = Table::new(1).unwrap();
    let mut rows = Rows::new(1);
    rows.push(id(1), &[1.0]);
    rows.push(id(1), &[-1.0]);
    assert_eq!(table.upsert(&rows.batch()).unwrap(), [0, 0]);
    assert_eq!(table.len().unwrap(), 1);
    assert_eq!(table.vectors_of(&[0]).unwrap(), [-1.0]);
}

#[test]
fn a_refused_batch_changes_nothing() {
    let table = Table::new(1).unwrap();
    let mut rows = Rows::new(1);
    rows.push(id(1), &[1.0]);
    table.upsert(&rows.batch()).unwrap();
    rows.kind[0] = 2;
    rows.push(id(2), &[1.0]);
    rows.importance[1] = f32::NAN;
    let refusal = table.upsert(&rows.batch()).unwrap_err().to_string();
    assert_eq!(refusal, "row 1, column importance: NaN is not in 0..=1");
    assert_eq!(table.len().unwrap(), 1);
    let kinds = FilterSpec {
        kinds: 1 << 2,
        ..every_row()
    };
    assert_eq!(table.count(&Filter::new(kinds).unwrap()).unwrap(), 0);
}

#[test]
fn a_row_loses_its_vector_when_replaced_by_one_without() {
    let table = Table::new(1).unwrap();
    let mut rows = Rows::new(1);
    rows.push(id(1), &[1.0]);
    table.upsert(&rows.batch()).unwrap();
    assert_eq!(table.live_slots().unwrap(), [0]);
    rows.has_vector[0] = false;
    table.upsert(&rows.batch()).unwrap();
    assert!(table.live_slots().unwrap().is_empty());
    assert_eq!(table.set_vectors(&[id(1), id(9)], &[2.0, 2.0]).unwrap(), 1);
    assert_eq!(table.vectors_of(&[0]).unwrap(), [1.0]);
}

#[test]
fn golden_scores() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/vectors/ranker_scores.json"
    );
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() > 30);
    for case in cases {
        check_golden(
            case,
            &golden["profiles"][case["profile"].as_str().unwrap()],
            &golden["now"],
        );
    }
}

fn check_golden(case: &Value, profile: &Value, now: &Value) {
    let float = |value: &Value| value.as_f64().unwrap_or(f64::INFINITY);
    let half_lives = profile["half_life"].as_array().unwrap();
    let profile = Profile::new(ProfileSpec {
        w_relevance: float(&profile["w_relevance"]) as f32,
        w_recency: float(&profile["w_recency"]) as f32,
        w_importance: float(&profile["w_importance"]) as f32,
        half_life: std::array::from_fn(|kind| float(&half_lives[kind])),
        recency_anchor: match profile["recency_anchor"].as_u64().unwrap() {
            0 => RecencyAnchor::ValidFrom,
            _ => RecencyAnchor::LastUsed,
        },
        relevance_floor: float(&profile["relevance_floor"]) as f32,
        consolidated_factor: float(&profile["consolidated_factor"]) as f32,
        ..ProfileSpec::default()
    })
    .unwrap();
    let (row, expected) = (&case["row"], &case["expected"]);
    let cosine = case["cosine"].as_f64();
    let side = cosine.unwrap_or(0.0);
    let mut rows = Rows::new(2);
    rows.push(id(1), &[side as f32, (1.0 - side * side).sqrt() as f32]);
    rows.has_vector[0] = cosine.is_some();
    rows.kind[0] = row["kind"].as_u64().unwrap() as u8;
    rows.flags[0] = row["flags"].as_u64().unwrap() as u16;
    rows.importance[0] = float(&row["importance"]) as f32;
    rows.valid_from[0] = row["valid_from"].as_i64().unwrap();
    rows.last_used[0] = row["last_used"].as_i64().unwrap();
    for kernels in available() {
        let table = Table::with_kernels(2, kernels).unwrap();
        table.upsert(&rows.batch()).unwrap();
        let request = SearchRequest {
            query: Some(&[1.0, 0.0]),
            text: None,
            now: now.as_i64().unwrap(),
            profile: &profile,
            filter: &Filter::new(every_row()).unwrap(),
            k: 1,
        };
        let hit = table.search(&request, false).unwrap().hits[0];
        for (name, got) in [
            ("relevance", hit.relevance),
            ("recency", hit.recency),
            ("score", hit.score),
        ] {
            let error = (f64::from(got) - float(&expected[name])).abs();
            assert!(error < 1e-6, "{name} of {case}: {got}");
        }
    }
}

#[test]
fn open_times_are_admitted_for_ever() {
    let table = Table::new(1).unwrap();
    let mut rows = Rows::new(1);
    rows.push(id(1), &[1.0]);
    table.upsert(&rows.batch()).unwrap();
    let count = |spec: FilterSpec| table.count(&Filter::new(spec).unwrap()).unwrap();
    let last = TIME_OPEN - 1;
    assert_eq!(
        count(FilterSpec {
            valid_at: Some(last),
            ..every_row()
        }),
        1
    );
    assert_eq!(
        count(FilterSpec {
            not_expired_at: Some(last),
            ..every_row()
        }),
        1
    );
    assert_eq!(
        count(FilterSpec {
            valid_at: Some(-1),
            ..every_row()
        }),
        0
    );
}

/// One row with a distinct value in every column, and filters on either side of each edge.
#[test]
fn every_criterion_admits_exactly_what_it_says() {
    let mut rows = Rows::new(1);
    rows.push(id(1), &[1.0]);
    rows.created[0] = 100;
    rows.valid_from[0] = 200;
    rows.valid_to[0] = 300;
    rows.recorded[0] = 400;
    rows.expires[0] = 500;
    rows.importance[0] = 0.25;
    rows.confidence[0] = 0.75;
    rows.kind[0] = 3;
    rows.status[0] = 1;
    rows.flags[0] = 1 | 8;
    (rows.subject[0], rows.context[0], rows.attribute[0]) = (10, 20, 30);
    rows.label_hashes = vec![7, 8];
    rows.label_offsets[1] = 2;
    let table = Table::new(1).unwrap();
    table.upsert(&rows.batch()).unwrap();

    let many = |value: u64| (value..value + 20).collect::<Vec<_>>();
    let with = |change: &dyn Fn(&mut FilterSpec)| {
        let mut spec = every_row();
        change(&mut spec);
        spec
    };
    let cases: Vec<(bool, FilterSpec)> = vec![
        (true, every_row()),
        (false, FilterSpec::default()), // a candidate
        (true, with(&|spec| spec.statuses = 1 << 1)),
        (true, with(&|spec| spec.kinds = 1 << 3)),
        (false, with(&|spec| spec.kinds = 1 << 2)),
        (true, with(&|spec| spec.subjects = vec![10])),
        (false, with(&|spec| spec.subjects = vec![11])),
        (true, with(&|spec| spec.subjects = vec![11, 10])),
        (true, with(&|spec| spec.subjects = many(10))),
        (false, with(&|spec| spec.subjects = many(11))),
        (true, with(&|spec| spec.contexts = vec![20])),
        (false, with(&|spec| spec.contexts = vec![10, 30])),
        (true, with(&|spec| spec.attributes = vec![30])),
        (false, with(&|spec| spec.attributes = vec![10, 20])),
        (true, with(&|spec| spec.labels_all = vec![8, 7])),
        (false, with(&|spec| spec.labels_all = vec![8, 9])),
        (true, with(&|spec| spec.labels_any = vec![9, 8])),
        (false, with(&|spec| spec.labels_any = vec![9])),
        (true, with(&|spec| spec.labels_none = vec![9])),
        (false, with(&|spec| spec.labels_none = vec![9, 7])),
        (true, with(&|spec| spec.created_from = Some(100))),
        (false, with(&|spec| spec.created_from = Some(101))),
        (true, with(&|spec| spec.created_to = Some(101))),
        (false, with(&|spec| spec.created_to = Some(100))),
        (true, with(&|spec| spec.valid_at = Some(200))),
        (false, with(&|spec| spec.valid_at = Some(199))),
        (true, with(&|spec| spec.valid_at = Some(299))),
        (false, with(&|spec| spec.valid_at = Some(300))),
        (true, with(&|spec| spec.recorded_at = Some(400))),
        (false, with(&|spec| spec.recorded_at = Some(399))),
        (true, with(&|spec| spec.not_expired_at = Some(499))),
        (false, with(&|spec| spec.not_expired_at = Some(500))),
        (true, with(&|spec| spec.min_importance = 0.25)),
        (false, with(&|spec| spec.min_importance = 0.26)),
        (true, with(&|spec| spec.min_confidence = 0.75)),
        (false, with(&|spec| spec.min_confidence = 0.76)),
        (true, with(&|spec| spec.include_flags = 1 | 8)),
        (false, with(&|spec| spec.include_flags = 1 | 2)),
        (true, with(&|spec| spec.exclude_flags = 2 | 4)),
        (false, with(&|spec| spec.exclude_flags = 8)),
    ];
    let profile = Profile::new(ProfileSpec::default()).unwrap();
    for (admitted, spec) in cases {
        let filter = Filter::new(spec.clone()).unwrap();
        let request = SearchRequest {
            query: None,
            text: None,
            now: NOW,
            profile: &profile,
            filter: &filter,
            k: 1,
        };
        // Over a whole chunk and on a listed row.
        let expected = usize::from(admitted);
        assert_eq!(table.count(&filter).unwrap(), expected, "{spec:?}");
        assert_eq!(
            table.score(&request, &[0]).unwrap().hits.len(),
            expected,
            "{spec:?}"
        );
    }
}

#[test]
fn faded_rows_are_swept_by_kind_and_pinned_ones_are_not() {
    let day = 86_400_000_000;
    let mut rows = Rows::new(1);
    for number in [3, 1, 2] {
        rows.push(id(number), &[1.0]);
    }
    // 60 days are two half-lives of kind 1: vitality 0.25 x 0.5 = 0.125. Kind 3 never decays.
    rows.valid_from.fill(NOW - 60 * day);
    rows.push(id(4), &[1.0]);
    rows.push(id(5), &[1.0]);
    rows.valid_from[3] = NOW - 60 * day;
    rows.valid_from[4] = NOW - 60 * day;
    rows.flags[3] = 1;
    rows.kind[4] = 3;
    let table = Table::new(1).unwrap();
    table.upsert(&rows.batch()).unwrap();
    let profile = Profile::new(ProfileSpec::default()).unwrap();
    let filter = Filter::new(every_row()).unwrap();
    let sweep = |below: f32| table.vitality(NOW, &profile, &filter, &[below; 6]).unwrap();
    assert!(sweep(0.125).is_empty(), "strictly under");
    assert_eq!(sweep(0.126), [id(1), id(2), id(3)]);
    assert_eq!(sweep(0.51), [id(1), id(2), id(3), id(5)]);
    assert!(
        table
            .vitality(NOW, &profile, &filter, &[f32::NAN; 6])
            .is_err()
    );
}
