//! Opened memories and their vectors as a batch of table rows: what `pillion.service.table_rows`
//! makes of the same memories.

use std::iter::Peekable;

use ranker_core::{Id, RowBatch, flags};

use crate::declined::{Declined, Result};
use crate::hashes::ColumnHashes;
use crate::memory::{StoredMemory, decode_last_used, decode_memory};
use crate::rows::{Row, Rows};

/// Names of the kinds of sources by their numbers: they are hashed, so they never change.
const SOURCE_KINDS: [&str; 7] = [
    "",
    "USER_STATEMENT",
    "USER_CONFIRMATION",
    "TOOL_RESULT",
    "DOCUMENT",
    "INFERENCE",
    "CONSOLIDATION",
];
/// Ends that take a row off its timeline: CORRECTED and WITHDRAWN.
const OFF_TIMELINE: [u8; 2] = [4, 5];
const FLOAT_BYTES: usize = 4;

/// Rows for a table, column by column; see [`RowBatch`].
#[derive(Debug, Default)]
pub struct Batch {
    ids: Vec<Id>,
    created: Vec<i64>,
    last_used: Vec<i64>,
    valid_from: Vec<i64>,
    valid_to: Vec<i64>,
    recorded: Vec<i64>,
    expires: Vec<i64>,
    importance: Vec<f32>,
    confidence: Vec<f32>,
    kind: Vec<u8>,
    status: Vec<u8>,
    flags: Vec<u16>,
    subject: Vec<u64>,
    context: Vec<u64>,
    attribute: Vec<u64>,
    label_offsets: Vec<u32>,
    label_hashes: Vec<u64>,
    has_vector: Vec<bool>,
    vectors: Vec<f32>,
    /// The text of each memory.
    pub texts: Vec<String>,
    /// Vectors that were there and cannot be compared with others, of another length for example.
    pub unusable_vectors: usize,
}

/// Puts memories into columns, each with its vector and its last use where there is one. All rows
/// are in the order of their keys, across all of `vectors` and of `accesses` too.
///
/// # Errors
/// [`Declined`]: a memory or an access cannot be read.
pub fn batch_of(
    memories: &Rows,
    vectors: &[&Rows],
    accesses: &[&Rows],
    dimension: usize,
    hashes: &mut ColumnHashes,
) -> Result<Batch> {
    let mut batch = Batch::default();
    batch.vectors.reserve_exact(memories.len() * dimension);
    batch.label_offsets.push(0);
    let mut vectors = vectors.iter().flat_map(|rows| rows.iter()).peekable();
    let mut accesses = accesses.iter().flat_map(|rows| rows.iter()).peekable();
    for row in memories.iter() {
        let id = id_of(&row)?;
        batch.ids.push(id);
        let mut memory = decode_memory(row.value)?;
        if let Some(access) = value_of(&mut accesses, &id)? {
            memory.last_used_at = memory.last_used_at.max(decode_last_used(access)?);
        }
        batch.push(&memory, hashes)?;
        batch.texts.push(memory.text.to_owned());
        batch.push_vector(value_of(&mut vectors, &id)?, dimension);
    }
    Ok(batch)
}

/// The id that the key of a memory or a vector ends with, after its family.
fn id_of(row: &Row<'_>) -> Result<Id> {
    row.key
        .split_first()
        .and_then(|(_, id)| id.try_into().ok())
        .ok_or(Declined("a key has another length"))
}

/// The value of an id, past all those of ids before it.
fn value_of<'a>(
    rows: &mut Peekable<impl Iterator<Item = Row<'a>>>,
    id: &Id,
) -> Result<Option<&'a [u8]>> {
    while let Some(row) = rows.peek() {
        let its = id_of(row)?;
        if its > *id {
            return Ok(None);
        }
        let value = row.value;
        rows.next();
        if its == *id {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

impl Batch {
    /// The columns, for [`ranker_core::Table::upsert`].
    #[must_use]
    pub fn rows(&self) -> RowBatch<'_> {
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

    fn push(&mut self, memory: &StoredMemory<'_>, hashes: &mut ColumnHashes) -> Result<()> {
        let (subject_type, subject_id) = memory.subject;
        self.created.push(memory.created_at);
        self.last_used.push(memory.last_used_at);
        self.valid_from.push(memory.valid_from);
        self.valid_to.push(memory.valid_to);
        self.recorded.push(memory.updated_at);
        self.expires.push(memory.expires_at);
        self.importance.push(memory.importance as f32);
        self.confidence.push(memory.confidence as f32);
        self.kind.push(memory.kind);
        self.status.push(memory.status);
        self.flags.push(flags_of(memory));
        self.subject
            .push(hashes.of(&["subject", subject_type, subject_id]));
        self.context.push(hashes.of(&["context", memory.context]));
        self.attribute
            .push(hashes.of(&["attribute", memory.attribute]));
        for label in &memory.labels {
            self.label_hashes.push(hashes.of(&["label", label]));
        }
        let source = SOURCE_KINDS[usize::from(memory.source_kind)];
        self.label_hashes.push(hashes.of(&["source", source]));
        for episode in &memory.episodes {
            let name = hyphenated(episode);
            self.label_hashes.push(hashes.once(&["episode", &name]));
        }
        if !memory.session_id.is_empty() {
            self.label_hashes
                .push(hashes.of(&["session", memory.session_id]));
        }
        if !memory.attribute.is_empty() {
            self.label_hashes.push(hashes.of(&["fact"]));
        }
        if let Some((subject_type, subject_id)) = memory.value_subject {
            self.label_hashes.push(hashes.of(&["edge"]));
            let hash = hashes.of(&["value_subject", subject_type, subject_id]);
            self.label_hashes.push(hash);
        }
        let end = u32::try_from(self.label_hashes.len())
            .map_err(|_| Declined("there are too many labels"))?;
        self.label_offsets.push(end);
        Ok(())
    }

    fn push_vector(&mut self, stored: Option<&[u8]>, dimension: usize) {
        let start = self.vectors.len();
        let mut usable = false;
        if let Some(bytes) = stored.filter(|bytes| bytes.len() == FLOAT_BYTES * dimension) {
            let (values, _) = bytes.as_chunks::<FLOAT_BYTES>();
            self.vectors
                .extend(values.iter().map(|value| f32::from_le_bytes(*value)));
            usable = has_direction(&self.vectors[start..]);
        }
        if !usable {
            self.unusable_vectors += usize::from(stored.is_some());
            self.vectors.truncate(start);
            self.vectors.resize(start + dimension, 0.0);
        }
        self.has_vector.push(usable);
    }
}

/// Whether a vector is finite and not all zeros. Squares of finite float32 never overflow a
/// float64, nor do they vanish in it, so there is no need to add them up.
fn has_direction(values: &[f32]) -> bool {
    values.iter().all(|value| value.is_finite()) && values.iter().any(|value| *value != 0.0)
}

fn flags_of(memory: &StoredMemory<'_>) -> u16 {
    let mut flags = u16::from(memory.source_kind) << flags::SOURCE_SHIFT;
    for (holds, flag) in [
        (memory.pinned, flags::PINNED),
        (OFF_TIMELINE.contains(&memory.end_reason), flags::RETRACTED),
        (
            memory.expired_at != ranker_core::limits::TIME_OPEN,
            flags::EXPIRED,
        ),
        (memory.consolidated, flags::CONSOLIDATED),
    ] {
        if holds {
            flags |= flag;
        }
    }
    flags
}

/// An id as text: groups of 8, 4, 4, 4 and 12 digits.
fn hyphenated(id: &Id) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(36);
    for (place, byte) in id.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}
