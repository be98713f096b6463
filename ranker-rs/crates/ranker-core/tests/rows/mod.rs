//! Owned columns to make batches of, with plain values that a test then changes.

use ranker_core::limits::TIME_OPEN;
use ranker_core::{Id, RowBatch};

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
    zeros: Vec<i64>,
    open: Vec<i64>,
    ones: Vec<f32>,
    stated: Vec<u8>,
    hashes: Vec<u64>,
    label_offsets: Vec<u32>,
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
            zeros: Vec::new(),
            open: Vec::new(),
            ones: Vec::new(),
            stated: Vec::new(),
            hashes: Vec::new(),
            label_offsets: vec![0],
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
        self.zeros.push(0);
        self.open.push(TIME_OPEN);
        self.ones.push(1.0);
        self.stated.push(2);
        self.hashes.push(0);
        self.label_offsets.push(0);
    }

    pub fn batch(&self) -> RowBatch<'_> {
        RowBatch {
            ids: &self.ids,
            created: &self.zeros,
            last_used: &self.last_used,
            valid_from: &self.valid_from,
            valid_to: &self.open,
            recorded: &self.zeros,
            expires: &self.open,
            importance: &self.importance,
            confidence: &self.ones,
            kind: &self.kind,
            status: &self.stated,
            flags: &self.flags,
            subject: &self.hashes,
            context: &self.hashes,
            attribute: &self.hashes,
            label_offsets: &self.label_offsets,
            label_hashes: &[],
            has_vector: &self.has_vector,
            vectors: &self.vectors,
        }
    }
}
