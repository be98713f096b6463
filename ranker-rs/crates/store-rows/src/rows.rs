//! Rows as a store keeps them, side by side in one buffer, and what is done to all of them.
//!
//! The shapes are those of `pillion_storage.lmdb.records` (a checksum before a version and a value)
//! and of `pillion_storage.sealed.envelope` (AES-256-GCM bound to the value's place).

use std::collections::HashMap;
use std::ops::Range;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::declined::{Declined, Result};

const CRC_BYTES: usize = 4;
const VERSION_BYTES: usize = 8;
const MAGIC: [u8; 4] = *b"\x02S\xff\xff";
const MAGIC_OUTER: [u8; 4] = *b"\x03S\xff\xff";
const KEY_ID_BYTES: usize = 8;
const HEAD_BYTES: usize = MAGIC.len() + KEY_ID_BYTES;
const NONCE_BYTES: usize = 12;
const BODY_AT: usize = HEAD_BYTES + NONCE_BYTES;

const TOO_SHORT: Declined = Declined("a sealed value is too short");

type KeyId = [u8; KEY_ID_BYTES];

/// A row as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its key within the partition.
    pub key: &'a [u8],
    /// The revision that wrote it.
    pub version: u64,
    /// Its value.
    pub value: &'a [u8],
}

#[derive(Debug, Clone)]
struct Span {
    key: Range<usize>,
    version: u64,
    value: Range<usize>,
}

/// Rows of one partition, in the order of their keys.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

/// Data keys by their ids; one that was destroyed is known to be gone.
#[derive(Debug, Default)]
pub struct OpenKeys(HashMap<KeyId, Option<LessSafeKey>>);

impl OpenKeys {
    /// Adds a key of 32 bytes; `None`: it was destroyed.
    ///
    /// # Errors
    /// [`Declined`] for an id or a key of another length.
    pub fn add(&mut self, key_id: &[u8], key: Option<&[u8]>) -> Result<()> {
        let key_id = key_id
            .try_into()
            .map_err(|_| Declined("a key's id has another length"))?;
        let key = key
            .map(|bytes| UnboundKey::new(&AES_256_GCM, bytes).map(LessSafeKey::new))
            .transpose()
            .map_err(|_| Declined("a key has another length"))?;
        self.0.insert(key_id, key);
        Ok(())
    }
}

/// Where values were sealed: what they are bound to besides their own key.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// What kind of value it is, and the partition's tag, one after another.
    pub prefix: &'a [u8],
    /// The last revision that may have written values in plain; 0: none may.
    pub plain_until: u64,
}

impl Rows {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The rows, in order.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Row<'_>> + ExactSizeIterator {
        self.spans.iter().map(|span| Row {
            key: &self.bytes[span.key.clone()],
            version: span.version,
            value: &self.bytes[span.value.clone()],
        })
    }

    /// Makes room for that many rows and bytes.
    #[must_use]
    pub fn with_capacity(rows: usize, bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            spans: Vec::with_capacity(rows),
        }
    }

    fn append(&mut self, part: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(part);
        start..self.bytes.len()
    }

    /// Adds a row that is whole.
    pub fn push(&mut self, row: Row<'_>) {
        let (key, value) = (self.append(row.key), self.append(row.value));
        self.spans.push(Span {
            key,
            version: row.version,
            value,
        });
    }

    /// Adds a row of the data file, after looking at its checksum.
    ///
    /// `seed` is the checksum of the database's number, `prefix_bytes` how many bytes of the key
    /// stand for the partition.
    ///
    /// # Errors
    /// [`Declined`]: it is damaged.
    pub fn push_record(
        &mut self,
        seed: u32,
        prefix_bytes: usize,
        key: &[u8],
        record: &[u8],
    ) -> Result<()> {
        let (checksum, content) = record
            .split_first_chunk::<CRC_BYTES>()
            .ok_or(Declined("a record is cut short"))?;
        let mut computed = crc32fast::Hasher::new_with_initial(seed);
        computed.update(key);
        computed.update(content);
        if computed.finalize().to_be_bytes() != *checksum {
            return Err(Declined("a checksum is wrong"));
        }
        let (version, value) = content
            .split_first_chunk::<VERSION_BYTES>()
            .ok_or(Declined("a record is cut short"))?;
        self.push(Row {
            key: key
                .get(prefix_bytes..)
                .ok_or(Declined("a key is too short"))?,
            version: u64::from_be_bytes(*version),
            value,
        });
        Ok(())
    }

    /// The ids of the keys that values are sealed with, each once.
    #[must_use]
    pub fn key_ids(&self) -> Vec<KeyId> {
        let mut ids: Vec<KeyId> = self
            .iter()
            .filter(|row| row.value.starts_with(&MAGIC))
            .filter_map(|row| row.value.get(MAGIC.len()..HEAD_BYTES)?.try_into().ok())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Opens every sealed value where it stands; rows whose key was destroyed leave.
    ///
    /// # Errors
    /// [`Declined`]: a value does not open, is in plain where none may be, or is sealed in another
    /// way. The rows are of no use then.
    pub fn open(&mut self, keys: &OpenKeys, place: &Place<'_>) -> Result<()> {
        let mut bound = Vec::new();
        let mut kept = Vec::with_capacity(self.spans.len());
        for mut span in std::mem::take(&mut self.spans) {
            let value = &self.bytes[span.value.clone()];
            if value.is_empty() {
                kept.push(span);
                continue;
            }
            if !value.starts_with(&MAGIC) {
                if value.starts_with(&MAGIC_OUTER) || span.version > place.plain_until {
                    return Err(Declined("a value is not sealed as it must be"));
                }
                kept.push(span);
                continue;
            }
            let head: [u8; HEAD_BYTES] = *value.first_chunk().ok_or(TOO_SHORT)?;
            let key_id: KeyId = *head.last_chunk().ok_or(TOO_SHORT)?;
            let Some(key) = keys.0.get(&key_id).ok_or(Declined("a key is unknown"))? else {
                continue;
            };
            let nonce = value.get(HEAD_BYTES..BODY_AT).ok_or(TOO_SHORT)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| TOO_SHORT)?;
            bound.clear();
            bound.extend_from_slice(&head);
            bound.extend_from_slice(place.prefix);
            bound.extend_from_slice(&self.bytes[span.key.clone()]);
            let body = span.value.start + BODY_AT..span.value.end;
            let plain = key
                .open_in_place(nonce, Aad::from(&bound), &mut self.bytes[body.clone()])
                .map_err(|_| Declined("a sealed value does not open"))?
                .len();
            span.value = body.start..body.start + plain;
            kept.push(span);
        }
        self.spans = kept;
        Ok(())
    }
}
