//! What a table wants of a stored memory. The shape is that of `pillion_storage.codec`, which owns
//! it: an envelope byte and a map from field number to value; fields that are unknown, or of no
//! use to a table, are passed over.

use ranker_core::Id;
use ranker_core::limits::TIME_OPEN;

use crate::declined::{Declined, Result};
use crate::messagepack::Reader;

const PLAIN: u8 = 1;
const IMPORTANCE_DEFAULT: f64 = 0.5;
const CONFIDENCE_DEFAULT: f64 = 1.0;
const STATED: u8 = 2;
/// The kind of value that is a subject.
const SUBJECT: u8 = 6;
/// The fields that every memory has, 1 to 7, as bits.
const REQUIRED: u8 = 0b1111_1110;
/// A list of lengths beyond it is not set aside for in advance: the bytes may not be there.
const RESERVED_MAX: usize = 64;

/// The columns of a memory, borrowed from its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMemory<'a> {
    /// The subject's type and id.
    pub subject: (&'a str, &'a str),
    /// 1 to 5.
    pub kind: u8,
    /// What is searched and shown.
    pub text: &'a str,
    /// The kind of its source, 1 to 6.
    pub source_kind: u8,
    /// The author that its source names.
    pub author: &'a str,
    /// The episodes that it names, each once: of its source, of its confirmation, of its evidence.
    pub episodes: Vec<Id>,
    /// All times are microseconds since the Unix epoch.
    pub valid_from: i64,
    /// When it was created.
    pub created_at: i64,
    /// When it was last changed.
    pub updated_at: i64,
    /// The mode within the subject; empty: the main one.
    pub context: &'a str,
    /// The fact's attribute; empty: it is no fact.
    pub attribute: &'a str,
    /// The subject, type and id, that its value refers to.
    pub value_subject: Option<(&'a str, &'a str)>,
    /// 0 to 1.
    pub importance: f64,
    /// 0 to 1.
    pub confidence: f64,
    /// 1 to 3.
    pub status: u8,
    /// Kept by decay sweeps.
    pub pinned: bool,
    /// Labels, in their order.
    pub labels: Vec<&'a str>,
    /// It was folded into another.
    pub consolidated: bool,
    /// Until when it is so, exclusive.
    pub valid_to: i64,
    /// 0 to 5.
    pub end_reason: u8,
    /// When it was last used.
    pub last_used_at: i64,
    /// When it leaves recall by itself.
    pub expires_at: i64,
    /// When it was taken out of recall.
    pub expired_at: i64,
    /// The session it belongs to.
    pub session_id: &'a str,
}

struct Source<'a> {
    kind: u8,
    episode: Option<Id>,
    author: &'a str,
}

/// Decodes a memory.
///
/// # Errors
/// [`Declined`]: it is not as the writer of this format makes it.
pub fn decode_memory(data: &[u8]) -> Result<StoredMemory<'_>> {
    let (&PLAIN, body) = data.split_first().ok_or(Declined("a record is empty"))? else {
        return Err(Declined("a record has another envelope"));
    };
    let mut reader = Reader::new(body);
    let mut memory = StoredMemory {
        subject: ("", ""),
        kind: 0,
        text: "",
        source_kind: 0,
        author: "",
        episodes: Vec::new(),
        valid_from: 0,
        created_at: 0,
        updated_at: 0,
        context: "",
        attribute: "",
        value_subject: None,
        importance: IMPORTANCE_DEFAULT,
        confidence: CONFIDENCE_DEFAULT,
        status: STATED,
        pinned: false,
        labels: Vec::new(),
        consolidated: false,
        valid_to: TIME_OPEN,
        end_reason: 0,
        last_used_at: 0,
        expires_at: TIME_OPEN,
        expired_at: TIME_OPEN,
        session_id: "",
    };
    let (mut seen, mut stated, mut confirmed) = (0_u64, None, None);
    let mut evidence = Vec::new();
    for _ in 0..reader.map()? {
        let field = reader.integer()?;
        if let bit @ 0..64 = field {
            if seen & 1 << bit != 0 {
                return Err(Declined("a field is there twice"));
            }
            seen |= 1 << bit;
        }
        match field {
            1 => memory.subject = subject(&mut reader)?,
            2 => memory.kind = within(&mut reader, 1, 5)?,
            3 => memory.text = reader.text()?,
            4 => {
                let source = source(&mut reader)?;
                (memory.source_kind, memory.author) = (source.kind, source.author);
                stated = source.episode;
            }
            5 => memory.valid_from = reader.integer()?,
            6 => memory.created_at = reader.integer()?,
            7 => memory.updated_at = reader.integer()?,
            8 => memory.context = reader.text()?,
            9 => memory.attribute = reader.text()?,
            10 => memory.value_subject = value_subject(&mut reader)?,
            11 => memory.importance = reader.float()?,
            12 => memory.confidence = reader.float()?,
            13 => memory.status = within(&mut reader, 1, 3)?,
            14 => memory.pinned = reader.boolean()?,
            16 => memory.labels = texts(&mut reader)?,
            18 => {
                id(reader.bytes()?)?;
                memory.consolidated = true;
            }
            19 => memory.valid_to = reader.integer()?,
            20 => memory.end_reason = within(&mut reader, 0, 5)?,
            23 => memory.last_used_at = reader.integer()?,
            25 => evidence = recurrence(&mut reader)?,
            26 => memory.expires_at = reader.integer()?,
            27 => memory.expired_at = reader.integer()?,
            32 => memory.session_id = reader.text()?,
            33 => confirmed = source(&mut reader)?.episode,
            _ => reader.skip()?,
        }
    }
    if seen as u8 & REQUIRED != REQUIRED {
        return Err(Declined("a memory lacks a field"));
    }
    if !reader.is_at_end() {
        return Err(Declined("a record goes on after its end"));
    }
    for episode in stated.into_iter().chain(confirmed).chain(evidence) {
        if !memory.episodes.contains(&episode) {
            memory.episodes.push(episode);
        }
    }
    Ok(memory)
}

/// Decodes when a memory was last used: of the record beside it, which counts its uses.
///
/// # Errors
/// [`Declined`]: it is not as the writer of this format makes it.
pub fn decode_last_used(data: &[u8]) -> Result<i64> {
    let (&PLAIN, body) = data.split_first().ok_or(Declined("a record is empty"))? else {
        return Err(Declined("a record has another envelope"));
    };
    let mut reader = Reader::new(body);
    if reader.list()? < 2 {
        return Err(Declined("an access has two parts"));
    }
    reader.integer()?; // how often
    reader.integer()
}

fn within(reader: &mut Reader<'_>, low: u8, high: u8) -> Result<u8> {
    u8::try_from(reader.integer()?)
        .ok()
        .filter(|value| (low..=high).contains(value))
        .ok_or(Declined("a value is out of its range"))
}

fn id(bytes: &[u8]) -> Result<Id> {
    bytes.try_into().map_err(|_| Declined("an id has 16 bytes"))
}

fn subject<'a>(reader: &mut Reader<'a>) -> Result<(&'a str, &'a str)> {
    let parts = reader.list()?;
    if parts != 2 {
        return Err(Declined("a subject has two parts"));
    }
    Ok((reader.text()?, reader.text()?))
}

/// The subject that a value refers to; other values are passed over.
fn value_subject<'a>(reader: &mut Reader<'a>) -> Result<Option<(&'a str, &'a str)>> {
    let parts = reader.list()?;
    if parts < 2 {
        return Err(Declined("a value has two parts"));
    }
    let found = if within(reader, 1, 7)? == SUBJECT {
        Some(subject(reader)?)
    } else {
        reader.skip()?;
        None
    };
    for _ in 2..parts {
        reader.skip()?;
    }
    Ok(found)
}

fn source<'a>(reader: &mut Reader<'a>) -> Result<Source<'a>> {
    let parts = reader.list()?;
    if parts < 4 {
        return Err(Declined("a source has four parts"));
    }
    let kind = within(reader, 1, 6)?;
    let episode = if reader.nil() {
        None
    } else {
        let bytes = reader.bytes()?;
        if bytes.is_empty() {
            None
        } else {
            Some(id(bytes)?)
        }
    };
    reader.text()?; // the quote
    let author = reader.text()?;
    for _ in 4..parts {
        reader.skip()?;
    }
    Ok(Source {
        kind,
        episode,
        author,
    })
}

fn texts<'a>(reader: &mut Reader<'a>) -> Result<Vec<&'a str>> {
    let count = reader.list()?;
    let mut found = Vec::with_capacity(count.min(RESERVED_MAX));
    for _ in 0..count {
        found.push(reader.text()?);
    }
    Ok(found)
}

/// The episodes of a recurrence; its count is of no use to a table.
fn recurrence(reader: &mut Reader<'_>) -> Result<Vec<Id>> {
    let parts = reader.list()?;
    if parts < 2 {
        return Err(Declined("a recurrence has two parts"));
    }
    reader.integer()?;
    let count = reader.list()?;
    let mut found = Vec::with_capacity(count.min(RESERVED_MAX));
    for _ in 0..count {
        found.push(id(reader.bytes()?)?);
    }
    for _ in 2..parts {
        reader.skip()?;
    }
    Ok(found)
}
