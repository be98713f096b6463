//! The three ways to evaluate a predicate agree, after any history of changes.

use proptest::prelude::*;

use super::*;
use crate::batch::RowBatch;
use crate::kernels::available;
use crate::limits::BLOCK_ROWS;
use crate::signature::Signature;
use crate::store::Store;
use crate::summary::SummarisedRow;
use crate::{Filter, FilterSpec, Id};

/// Rows of three blocks at most, so that blocks are mixed, uniform, part full and part free.
const IDS: u16 = 3 * BLOCK_ROWS as u16 - 40;

#[derive(Debug, Clone)]
enum Change {
    /// Rows from the first to the second id, with small values made from the seed.
    Upsert(u16, u16, u64),
    Remove(u16, u16),
    Touch(u16, u16, i64),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let ids = (0..IDS, 0..IDS).prop_map(|(a, b)| (a.min(b), a.max(b) + 1));
    let change = prop_oneof![
        4 => (ids.clone(), any::<u64>()).prop_map(|((a, b), seed)| Change::Upsert(a, b, seed)),
        2 => ids.clone().prop_map(|(a, b)| Change::Remove(a, b)),
        1 => (ids, 0_i64..9).prop_map(|((a, b), time)| Change::Touch(a, b, time)),
    ];
    prop::collection::vec(change, 1..6)
}

fn ids(from: u16, to: u16) -> Vec<Id> {
    let id = |number: u16| {
        let mut id = [1; 16];
        id[..2].copy_from_slice(&number.to_be_bytes());
        id
    };
    (from..to).map(id).collect()
}

/// A third of all seeds give every row the same values, and a third all rows but a few.
fn upsert(store: &mut Store, ids: &[Id], seed: u64) {
    let count = ids.len();
    let cell = |row: usize, column: u64| {
        let varies = match seed % 3 {
            0 => 0,
            1 => u64::from(row.is_multiple_of(100)),
            _ => row as u64,
        };
        let mixed = (seed ^ (column << 32))
            .wrapping_add(varies)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed >> 61
    };
    let times = |column| {
        (0..count)
            .map(|row| cell(row, column) as i64)
            .collect::<Vec<_>>()
    };
    let shares = |column| {
        (0..count)
            .map(|row| cell(row, column) as f32 / 7.0)
            .collect::<Vec<_>>()
    };
    let hashes = |column| (0..count).map(|row| cell(row, column)).collect::<Vec<_>>();
    let bytes = |column, most| {
        (0..count)
            .map(|row| 1 + cell(row, column) as u8 % most)
            .collect::<Vec<_>>()
    };
    let flags: Vec<u16> = (0..count)
        .map(|row| cell(row, 11) as u16 * 3 % 32)
        .collect();
    let has_vector: Vec<bool> = (0..count).map(|row| cell(row, 12) > 2).collect();
    let vectors: Vec<f32> = (0..2 * count).map(|cell| 1.0 + (cell % 7) as f32).collect();
    store
        .upsert(&RowBatch {
            ids,
            created: &times(1),
            last_used: &times(2),
            valid_from: &times(3),
            valid_to: &times(4),
            recorded: &times(5),
            expires: &times(6),
            importance: &shares(7),
            confidence: &shares(8),
            kind: &bytes(9, 5),
            status: &bytes(10, 3),
            flags: &flags,
            subject: &hashes(13),
            context: &hashes(14),
            attribute: &hashes(15),
            label_offsets: &(0..=count as u32).collect::<Vec<_>>(),
            label_hashes: &hashes(16),
            has_vector: &has_vector,
            vectors: &vectors,
        })
        .unwrap();
}

/// Filters, some with others within.
fn filters() -> impl Strategy<Value = FilterSpec> {
    let nested =
        || prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(flat_filters(), 1..3)];
    (flat_filters(), nested(), nested(), any::<bool>()).prop_map(
        |(spec, any_of, none_of, deeper)| {
            let made = |specs: Vec<FilterSpec>| -> Vec<Filter> {
                specs
                    .into_iter()
                    .map(|one| Filter::new(one).unwrap())
                    .collect()
            };
            let spec = FilterSpec {
                any_of: made(any_of),
                none_of: made(none_of),
                ..spec
            };
            if deeper {
                FilterSpec {
                    none_of: made(vec![spec.clone()]),
                    any_of: made(vec![spec, FilterSpec::default()]),
                    ..FilterSpec::default()
                }
            } else {
                spec
            }
        },
    )
}

fn flat_filters() -> impl Strategy<Value = FilterSpec> {
    let times = || {
        (
            prop::option::weighted(0.3, -1_i64..9),
            prop::option::weighted(0.3, -1_i64..9),
        )
    };
    let extreme = prop_oneof![9 => -1_i64..9, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    let set = || prop_oneof![3 => Just(vec![]), 2 => prop::collection::vec(0_u64..9, 1..12)];
    let flags = (0_u16..32, 0_u16..32).prop_map(|(include, exclude)| (include & !exclude, exclude));
    let least = || prop_oneof![2 => Just(0.0_f32), 1 => 0.0_f32..1.0];
    (
        (times(), times(), prop::option::weighted(0.3, extreme)),
        (set(), set(), set()),
        (set(), set(), set()),
        prop_oneof![Just((0, 0)), flags],
        (0_u8..32, 0_u8..8, least(), least()),
        (
            times(),
            prop::collection::vec(prop::collection::vec(0_u64..9, 1..6), 0..3),
        ),
    )
        .prop_map(|(times, hashes, labels, flags, rest, more)| FilterSpec {
            valid_from_from: more.0.0,
            valid_from_to: more.0.1,
            labels_each: more.1,
            kinds: rest.0 << 1,
            statuses: rest.1 << 1,
            subjects: hashes.0,
            contexts: hashes.1,
            attributes: hashes.2,
            labels_all: labels.0.into_iter().take(1).collect(),
            labels_any: labels.1,
            labels_none: labels.2,
            valid_at: times.0.0,
            recorded_at: times.0.1,
            created_from: times.1.0,
            created_to: times.1.1,
            not_expired_at: times.2,
            min_importance: rest.2,
            min_confidence: rest.3,
            include_flags: flags.0,
            exclude_flags: flags.1,
            ..FilterSpec::default()
        })
}

/// Whether the summary is as wide as one that was made to cover this row too.
fn covers(summary: &Summary, row: &SummarisedRow) -> bool {
    let mut wider = *summary;
    wider.add(row);
    wider == *summary
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What the exactness of search rests on: no summary rules out a row that is admitted, none
    /// admits one that isn't, and none is narrower than its rows.
    #[test]
    fn summaries_columns_and_rows_agree(changes in changes(), specs in prop::collection::vec(filters(), 1..8)) {
        let mut store = Store::new(2);
        for change in changes {
            match change {
                Change::Upsert(from, to, seed) => upsert(&mut store, &ids(from, to), seed),
                Change::Remove(from, to) => {
                    store.remove(&ids(from, to));
                }
                Change::Touch(from, to, time) => {
                    store.change(&ids(from, to), |chunk, row, _| chunk.touch(row, time));
                }
            }
        }
        let filters: Vec<Filter> = specs.into_iter().map(|spec| Filter::new(spec).unwrap()).collect();
        for block in store.blocks() {
            prop_assert_ne!(*block.summary, Summary::UNKNOWN, "every change is summarised");
            for row in block.rows() {
                prop_assert!(covers(block.summary, &block.chunk.summarised(row)));
                for hash in block.chunk.hashes(row).filter(|_| block.chunk.is_live(row)) {
                    prop_assert!(block.signature.may_hold(hash));
                }
            }
            for filter in &filters {
                check(filter, &block);
            }
        }
    }
}

fn check(filter: &Filter, block: &Block<'_>) {
    let live: Vec<usize> = block
        .rows()
        .filter(|row| block.chunk.is_live(*row))
        .collect();
    for predicate in filter.predicates() {
        let held = live
            .iter()
            .filter(|row| predicate.holds(block.chunk, **row))
            .count();
        match predicate.judge(block) {
            Verdict::All => assert_eq!(held, live.len(), "{predicate:?}"),
            Verdict::None => assert_eq!(held, 0, "{predicate:?}"),
            Verdict::Some => {}
        }
    }
    let admitted: Vec<u8> = block
        .rows()
        .map(|row| u8::from(filter.admits(block.chunk, row)))
        .collect();
    let count = admitted.iter().copied().map(usize::from).sum::<usize>();
    // The same block as if nothing were known of it: columns alone decide.
    let unknown = Block {
        summary: &Summary::UNKNOWN,
        signature: &Signature::UNKNOWN,
        ..*block
    };
    for kernels in available() {
        for block in [block, &unknown] {
            let mut mask = [9; BLOCK_ROWS];
            assert_eq!(
                filter.admit(kernels, block, &mut mask),
                count,
                "{}",
                kernels.name()
            );
            assert!(
                count == 0 || mask[..block.len] == admitted,
                "{}",
                kernels.name()
            );
        }
    }
}

#[test]
fn uniform_blocks_are_judged_without_reading_them() {
    let mut store = Store::new(2);
    upsert(&mut store, &ids(0, IDS), 0);
    let block = store.blocks().next().unwrap();
    let summary = *block.summary;
    let verdict = |predicate: Predicate| predicate.judge(&block);
    let (kinds, subject, from) = (summary.kinds, summary.subject.low, summary.valid_from.low);
    assert_eq!(verdict(Predicate::Kinds(kinds)), Verdict::All);
    assert_eq!(verdict(Predicate::Kinds(!kinds)), Verdict::None);
    assert_eq!(
        verdict(Predicate::Hash(Hash::Subject, subject)),
        Verdict::All
    );
    assert_eq!(
        verdict(Predicate::Hash(Hash::Subject, subject + 1)),
        Verdict::None
    );
    let several = |values: &[u64]| Predicate::Hashes(Hash::Subject, Values::new(values));
    assert_eq!(verdict(several(&[subject + 1, subject])), Verdict::All);
    assert_eq!(verdict(several(&[subject + 1, subject + 2])), Verdict::None);
    let until = |high| {
        Predicate::Time(
            Time::ValidFrom,
            Range {
                low: i64::MIN,
                high,
            },
        )
    };
    assert_eq!(verdict(until(from)), Verdict::All);
    assert_eq!(verdict(until(from - 1)), Verdict::None);
}

#[test]
fn a_block_without_a_hash_is_told_by_its_signature() {
    let mut store = Store::new(2);
    upsert(&mut store, &ids(0, IDS), 2); // every row differs, so the ranges are wide
    let block = store.blocks().next().unwrap();
    let has = |label| (0..block.len).any(|row| block.chunk.labels[row].contains(&label));
    // Among so many that are absent some are told to be, or signatures were good for nothing.
    let told = |label: u64| {
        let verdict = Predicate::Labels(Labels::Any, Values::new(&[label])).judge(&block);
        assert!(verdict != Verdict::None || !has(label));
        verdict == Verdict::None
    };
    assert!((100..200).filter(|label| told(*label)).count() > 90);
    let without = Predicate::Labels(Labels::None, Values::new(&[100, 101]));
    assert_eq!(without.judge(&block), Verdict::All);
    let subject = Predicate::Hash(Hash::Subject, (block.summary.subject.low..).nth(1).unwrap());
    assert_ne!(subject.judge(&block), Verdict::All);
}

#[test]
fn filters_within_filters_have_limits() {
    let mut nested = Filter::new(FilterSpec::default()).unwrap();
    let deeper = |of: &Filter| {
        Filter::new(FilterSpec {
            none_of: vec![of.clone()],
            ..FilterSpec::default()
        })
    };
    for _ in 1..crate::limits::FILTER_DEPTH_MAX {
        nested = deeper(&nested).unwrap();
    }
    assert!(deeper(&nested).is_err());
    let many = FilterSpec {
        any_of: vec![Filter::new(FilterSpec::default()).unwrap(); crate::limits::FILTER_PARTS_MAX],
        ..FilterSpec::default()
    };
    assert!(Filter::new(many).is_err());
}
