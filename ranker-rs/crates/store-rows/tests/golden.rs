//! The golden vectors of the stored format, which Python writes and reads too.

use std::collections::BTreeMap;

use ranker_core::limits::TIME_OPEN;
use store_rows::{ColumnHashes, decode_last_used, decode_memory};

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn records() -> BTreeMap<String, Vec<u8>> {
    let text = include_str!("../../../../tests/vectors/codec.json");
    let records: BTreeMap<String, String> = serde_json::from_str(text).expect("JSON");
    let records = records.into_iter();
    records.map(|(name, hex)| (name, bytes_of(&hex))).collect()
}

fn id(number: u8) -> [u8; 16] {
    let mut id = [0; 16];
    id[15] = number;
    id
}

#[test]
fn every_field_of_a_full_memory_is_read() {
    let records = records();
    let memory = decode_memory(&records["memory_full"]).expect("a memory");
    assert_eq!(memory.subject, ("user", "mira"));
    assert_eq!((memory.kind, memory.status, memory.end_reason), (2, 3, 2));
    assert_eq!(memory.text, "mira passport deadline (work): 2026-06-30");
    assert_eq!((memory.source_kind, memory.author), (1, "mira"));
    assert_eq!(memory.episodes, [id(8), id(14)]);
    assert_eq!(memory.valid_from, 1_780_480_800_000_000);
    assert_eq!(memory.created_at, 1_780_480_801_000_000);
    assert_eq!(memory.updated_at, 1_780_480_802_000_000);
    assert_eq!(memory.last_used_at, 1_780_480_803_000_000);
    assert_eq!(memory.valid_to, 1_780_580_800_000_000);
    assert_eq!(memory.expires_at, 1_780_680_800_000_000);
    assert_eq!(memory.expired_at, 1_780_680_800_000_001);
    assert_eq!(
        (memory.context, memory.attribute),
        ("work", "passport_deadline")
    );
    assert!((memory.importance - 0.75).abs() + (memory.confidence - 0.25).abs() < f64::EPSILON);
    assert!(memory.pinned && memory.consolidated);
    assert_eq!(memory.labels, ["travel", "urgent"]);
    assert_eq!(memory.session_id, "s1");
}

#[test]
fn what_is_left_out_has_its_default() {
    let records = records();
    let memory = decode_memory(&records["memory_bare"]).expect("a memory");
    assert_eq!((memory.kind, memory.status, memory.end_reason), (1, 2, 0));
    assert_eq!((memory.valid_from, memory.last_used_at), (-1, 0));
    assert_eq!(
        (memory.valid_to, memory.expires_at, memory.expired_at),
        (TIME_OPEN, TIME_OPEN, TIME_OPEN)
    );
    assert!((memory.importance - 0.5).abs() + (memory.confidence - 1.0).abs() < f64::EPSILON);
    assert!(!memory.pinned && !memory.consolidated);
    assert!(memory.episodes.is_empty() && memory.labels.is_empty());
    let confirmed = decode_memory(&records["memory_confirmed"]).expect("a memory");
    assert_eq!(confirmed.episodes, [id(16)]);
}

#[test]
fn of_values_only_subjects_are_read() {
    let records = records();
    let bare = decode_memory(&records["memory_bare"]).expect("a memory");
    let mut kinds = 0;
    for (name, data) in &records {
        if name.starts_with("memory_value_") {
            let mut memory = decode_memory(data).expect("a memory");
            let subject = memory.value_subject.take();
            let wanted = name.ends_with("SUBJECT").then_some(("account", "acme-7"));
            assert_eq!((&memory, subject), (&bare, wanted), "{name}");
            kinds += 1;
        }
    }
    assert_eq!(kinds, 7);
}

#[test]
fn an_access_says_when() {
    assert_eq!(
        decode_last_used(&records()["access"]),
        Ok(1_780_480_803_000_000)
    );
}

#[test]
fn no_prefix_of_a_record_and_no_record_of_another_kind_is_read_as_a_memory() {
    let records = records();
    let full = &records["memory_full"];
    for end in 0..full.len() {
        assert!(decode_memory(&full[..end]).is_err(), "{end} bytes");
    }
    for (name, data) in &records {
        if !name.starts_with("memory_") && name != "ending" {
            assert!(decode_memory(data).is_err(), "{name}");
        }
    }
}

#[test]
fn any_byte_may_be_another_and_nothing_worse_than_a_refusal_happens() {
    let full = records()["memory_full"].clone();
    for place in 0..full.len() {
        for value in 0..=u8::MAX {
            let mut changed = full.clone();
            changed[place] = value;
            let _ = decode_memory(&changed);
        }
    }
}

#[test]
fn names_have_the_hashes_that_the_keys_golden_vectors_say() {
    let text = include_str!("../../../../tests/vectors/keys.json");
    let vectors: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let secret = bytes_of(vectors["secret"].as_str().expect("a text"));
    let wanted = vectors["keys"]["column"].as_str().expect("a text");
    let mut hashes = ColumnHashes::new(&secret).expect("a secret");
    for _ in 0..2 {
        assert_eq!(format!("{:016x}", hashes.of(&COLUMN)), wanted);
        assert_eq!(format!("{:016x}", hashes.once(&COLUMN)), wanted);
    }
}

/// What `tests/unit/storage/test_keys.py` hashes for the vector `column`.
const COLUMN: [&str; 2] = ["label", "travel"];
