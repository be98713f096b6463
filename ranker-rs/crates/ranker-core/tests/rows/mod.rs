//! Owned columns to make batches of, with plain values that a test then changes.

use ranker_core::lexical::TextPart;
use ranker_core::limits::TIME_OPEN;
use ranker_core::{Id, RowBatch, Table};

#[derive(Debug, Clone)]
pub struct Rows {
    dimension: usize,
    pub ids: Vec<Id>,
    pub valid_from: Vec<i64>,
    pub last_used: Vec<i64>,
    pub importance: Vec<f32>,
    pub kind: Vec<u8>,
    pub flags: Vec<u16>,
    pub has_vector: Vec<bool>,
    vectors: Vec<f32>,
    pub created: Vec<i64>,
    pub recorded: Vec<i64>,
    pub valid_to: Vec<i64>,
    pub expires: Vec<i64>,
    pub confidence: Vec<f32>,
    pub status: Vec<u8>,
    pub subject: Vec<u64>,
    pub context: Vec<u64>,
    pub attribute: Vec<u64>,
    pub label_offsets: Vec<u32>,
    pub label_hashes: Vec<u64>,
}

impl Rows {
    pub fn new(dimension: usize) -> Self {
        Self {
            dimension,
            ids: Vec::new(),
            valid_from: Vec::new(),
            last_used: Vec::new(),
            importance: Vec::new(),
            kind: Vec::new(),
            flags: Vec::new(),
            has_vector: Vec::new(),
            vectors: Vec::new(),
            created: Vec::new(),
            recorded: Vec::new(),
            valid_to: Vec::new(),
            expires: Vec::new(),
            confidence: Vec::new(),
            status: Vec::new(),
            subject: Vec::new(),
            context: Vec::new(),
            attribute: Vec::new(),
            label_offsets: vec![0],
            label_hashes: Vec::new(),
        }
    }

    /// Adds a row; one of all zeros has no vector.
    pub fn push(&mut self, id: Id, vector: &[f32]) {
        assert_eq!(vector.len(), self.dimension);
        self.ids.push(id);
        self.valid_from.push(0);
        self.last_used.push(0);
        self.importance.push(0.5);
        self.kind.push(1);
        self.flags.push(0);
        self.has_vector
            .push(vector.iter().any(|value| *value != 0.0));
        self.vectors.extend_from_slice(vector);
        self.created.push(0);
        self.recorded.push(0);
        self.valid_to.push(TIME_OPEN);
        self.expires.push(TIME_OPEN);
        self.confidence.push(1.0);
        self.status.push(2);
        self.subject.push(0);
        self.context.push(0);
        self.attribute.push(0);
        self.label_offsets.push(self.label_hashes.len() as u32);
    }

    pub fn batch(&self) -> RowBatch<'_> {
        RowBatch {
            ids: &self.ids,
            created: &self.created,
            last_used: &self.last_used,
            valid_from: &self.valid_from,
            valid_to: &self.valid_to,
            recorded: &self.recorded,
            expires: &self.expires,
            importance: &self.importance,
            confidence: &self.confidence,
            kind: &self.kind,
            status: &self.status,
            flags: &self.flags,
            subject: &self.subject,
            context: &self.context,
            attribute: &self.attribute,
            label_offsets: &self.label_offsets,
            label_hashes: &self.label_hashes,
            has_vector: &self.has_vector,
            vectors: &self.vectors,
        }
    }
}

/// Words of which rows have few: some in most rows, some in hardly any.
pub const WORDS: [&str; 6] = ["apple", "pear", "plum", "quince", "ORD-7", "medlar"];

/// Gives rows texts that follow from their numbers: none, one word or several, said once or often.
/// Of two tables that were filled alike the scores are alike.
#[allow(dead_code)] // not every test crate has texts
pub fn set_texts(table: &Table, rows: &Rows, seed: u64) {
    let mut state = seed | 1;
    let mut next = move |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) % end
    };
    let texts: Vec<String> = (0..rows.ids.len())
        .map(|_| {
            let count = next(6);
            let word = |n: u64| WORDS[(n * n / 30) as usize];
            let words = (0..count).map(|_| word(next(13)));
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let parts: Vec<Vec<TextPart<'_>>> = texts
        .iter()
        .map(|text| {
            vec![
                TextPart { text, weight: 8 },
                TextPart {
                    text: "pear",
                    weight: 1,
                },
            ]
        })
        .map(|mut parts| {
            parts.truncate(1 + parts[0].text.len() % 2);
            parts
        })
        .collect();
    table.set_texts(&rows.ids, &parts).unwrap();
}

/// A query's text: some have no words, some only rare ones.
#[allow(dead_code)]
pub fn text_of(seed: u64) -> Option<&'static str> {
    [
        None,
        Some("?!"),
        Some("medlar"),
        Some("apple"),
        Some("pear or an ORD-7"),
        Some("the plum, quince and banana"),
    ][(seed >> 40) as usize % 6]
}
