//! A chunk: the columns and vectors of up to `CHUNK_ROWS` rows.
//!
//! Invariants:
//! - all columns have the same length; rows are added at the end and never taken away;
//! - a free row is all zeros, in every column and both vectors: `kind == 0` tells it;
//! - a row has a vector if and only if its `scale` is above 0; without one its vectors are zeros;
//! - `summaries` and `signatures` have one entry per block begun, which covers the block's live rows:
//!   a change of a row widens it, most to `UNKNOWN` ([`Chunk::forget_summary`]).

use std::ops::Range;

use crate::Id;
use crate::batch::RowBatch;
use crate::kernels::{LineF32, LineI8, lines_f32, lines_i8};
use crate::limits::{BLOCK_ROWS, CHUNK_ROWS};
use crate::quantise::{Quantisation, write_quantised, write_unit};
use crate::signature::Signature;
use crate::summary::{SummarisedRow, Summary};

#[derive(Debug)]
pub(crate) struct Chunk {
    lines_f32: usize,
    lines_i8: usize,
    summaries: Vec<Summary>,
    signatures: Vec<Signature>,
    /// Bit n while block n is summarised by `UNKNOWN`.
    unknown: u16,
    pub id: Vec<Id>,
    pub created: Vec<i64>,
    pub last_used: Vec<i64>,
    pub valid_from: Vec<i64>,
    pub valid_to: Vec<i64>,
    pub recorded: Vec<i64>,
    pub expires: Vec<i64>,
    pub importance: Vec<f32>,
    pub confidence: Vec<f32>,
    pub kind: Vec<u8>,
    pub status: Vec<u8>,
    pub flags: Vec<u16>,
    pub subject: Vec<u64>,
    pub context: Vec<u64>,
    pub attribute: Vec<u64>,
    pub labels: Vec<Box<[u64]>>,
    pub scale: Vec<f32>,
    pub residual: Vec<f32>,
    pub unit: Vec<LineF32>,
    pub quantised: Vec<LineI8>,
}

/// Calls a macro once with every column but the vectors.
macro_rules! for_each_column {
    ($chunk:expr, $do:ident) => {{
        let chunk = $chunk;
        $do!(chunk.id);
        $do!(chunk.created);
        $do!(chunk.last_used);
        $do!(chunk.valid_from);
        $do!(chunk.valid_to);
        $do!(chunk.recorded);
        $do!(chunk.expires);
        $do!(chunk.importance);
        $do!(chunk.confidence);
        $do!(chunk.kind);
        $do!(chunk.status);
        $do!(chunk.flags);
        $do!(chunk.subject);
        $do!(chunk.context);
        $do!(chunk.attribute);
        $do!(chunk.labels);
        $do!(chunk.scale);
        $do!(chunk.residual);
    }};
}

/// `BLOCK_ROWS` rows of a chunk, or those that there are at its end.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    pub chunk: &'a Chunk,
    /// The chunk's number.
    pub number: usize,
    /// The first row.
    pub start: usize,
    pub len: usize,
    pub summary: &'a Summary,
    pub signature: &'a Signature,
}

impl<'a> Block<'a> {
    /// The rows' numbers in the chunk.
    pub fn rows(&self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// The slot of the first row.
    pub fn first_slot(&self) -> u32 {
        (self.number * CHUNK_ROWS + self.start) as u32
    }

    /// The int8 vectors.
    pub fn quantised(&self) -> &'a [LineI8] {
        let lines = self.chunk.lines_i8;
        &self.chunk.quantised[self.start * lines..][..self.len * lines]
    }
}

impl Chunk {
    /// An empty chunk. Memory for all its vectors is reserved at once, so that they never move;
    /// the system backs it with pages only as rows are added.
    pub fn new(dimension: usize) -> Self {
        let (lines_f32, lines_i8) = (lines_f32(dimension), lines_i8(dimension));
        Self {
            lines_f32,
            lines_i8,
            summaries: Vec::new(),
            signatures: Vec::new(),
            unknown: 0,
            id: Vec::new(),
            created: Vec::new(),
            last_used: Vec::new(),
            valid_from: Vec::new(),
            valid_to: Vec::new(),
            recorded: Vec::new(),
            expires: Vec::new(),
            importance: Vec::new(),
            confidence: Vec::new(),
            kind: Vec::new(),
            status: Vec::new(),
            flags: Vec::new(),
            subject: Vec::new(),
            context: Vec::new(),
            attribute: Vec::new(),
            labels: Vec::new(),
            scale: Vec::new(),
            residual: Vec::new(),
            unit: Vec::with_capacity(CHUNK_ROWS * lines_f32),
            quantised: Vec::with_capacity(CHUNK_ROWS * lines_i8),
        }
    }

    /// Rows, free ones included.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    pub fn is_full(&self) -> bool {
        self.len() == CHUNK_ROWS
    }

    /// Adds a free row and returns its number.
    pub fn push_free(&mut self) -> usize {
        debug_assert!(!self.is_full());
        macro_rules! grow {
            ($column:expr) => {
                $column.push(Default::default())
            };
        }
        for_each_column!(&mut *self, grow);
        let rows = self.len();
        self.unit.resize(rows * self.lines_f32, LineF32::ZERO);
        self.quantised.resize(rows * self.lines_i8, LineI8::ZERO);
        let blocks = rows.div_ceil(BLOCK_ROWS);
        self.summaries.resize(blocks, Summary::UNKNOWN);
        self.signatures.resize(blocks, Signature::UNKNOWN);
        self.forget_summary(rows - 1);
        rows - 1
    }

    pub fn is_live(&self, row: usize) -> bool {
        self.kind[row] != 0
    }

    pub fn has_vector(&self, row: usize) -> bool {
        self.scale[row] > 0.0
    }

    pub fn quantisation(&self, row: usize) -> Quantisation {
        Quantisation {
            scale: self.scale[row],
            residual: self.residual[row],
        }
    }

    /// The blocks, given the chunk's number.
    pub fn blocks(&self, number: usize) -> impl DoubleEndedIterator<Item = Block<'_>> {
        (0..self.summaries.len()).map(move |block| Block {
            chunk: self,
            number,
            start: block * BLOCK_ROWS,
            len: BLOCK_ROWS.min(self.len() - block * BLOCK_ROWS),
            summary: &self.summaries[block],
            signature: &self.signatures[block],
        })
    }

    /// Forgets what is known of the block of a row, which is about to change.
    fn forget_summary(&mut self, row: usize) {
        let block = row / BLOCK_ROWS;
        self.summaries[block] = Summary::UNKNOWN;
        self.signatures[block] = Signature::UNKNOWN;
        self.unknown |= 1 << block;
    }

    /// Summarises the blocks that were changed. Searches are right without it, and slower.
    pub fn summarise(&mut self) {
        while self.unknown != 0 {
            let block = self.unknown.trailing_zeros() as usize;
            self.unknown &= self.unknown - 1;
            let (mut summary, mut signature) = (Summary::EMPTY, Signature::EMPTY);
            for row in (block * BLOCK_ROWS..self.len()).take(BLOCK_ROWS) {
                summary.add(&self.summarised(row));
                self.hashes(row).for_each(|hash| signature.add(hash));
            }
            self.summaries[block] = summary;
            self.signatures[block] = signature;
        }
    }

    /// What a signature takes in of a row.
    #[inline]
    pub fn hashes(&self, row: usize) -> impl Iterator<Item = u64> {
        let columns = [self.subject[row], self.context[row], self.attribute[row]];
        columns.into_iter().chain(self.labels[row].iter().copied())
    }

    /// What a summary takes in of a row.
    #[inline]
    pub fn summarised(&self, row: usize) -> SummarisedRow {
        SummarisedRow {
            kind: self.kind[row],
            status: self.status[row],
            flags: self.flags[row],
            created: self.created[row],
            last_used: self.last_used[row],
            valid_from: self.valid_from[row],
            valid_to: self.valid_to[row],
            recorded: self.recorded[row],
            expires: self.expires[row],
            importance: self.importance[row],
            confidence: self.confidence[row],
            subject: self.subject[row],
            context: self.context[row],
            attribute: self.attribute[row],
            residual: self.residual[row],
        }
    }

    /// The unit vector of a row, with its padding.
    pub fn unit_of(&self, row: usize) -> &[LineF32] {
        &self.unit[row * self.lines_f32..][..self.lines_f32]
    }

    /// Writes row `from` of a checked batch over `row`.
    pub fn write(&mut self, row: usize, batch: &RowBatch<'_>, from: usize) {
        self.forget_summary(row);
        self.id[row] = batch.ids[from];
        self.created[row] = batch.created[from];
        self.last_used[row] = batch.last_used[from];
        self.valid_from[row] = batch.valid_from[from];
        self.valid_to[row] = batch.valid_to[from];
        self.recorded[row] = batch.recorded[from];
        self.expires[row] = batch.expires[from];
        self.importance[row] = batch.importance[from];
        self.confidence[row] = batch.confidence[from];
        self.kind[row] = batch.kind[from];
        self.status[row] = batch.status[from];
        self.flags[row] = batch.flags[from];
        self.subject[row] = batch.subject[from];
        self.context[row] = batch.context[from];
        self.attribute[row] = batch.attribute[from];
        self.labels[row] = batch.labels_of(from).into();
        match batch.vector_of(from) {
            Some((values, norm)) => self.write_vector(row, values, norm),
            None => self.erase_vector(row),
        }
    }

    /// Sets a row's vector from values with that norm.
    pub fn write_vector(&mut self, row: usize, values: &[f32], norm: f64) {
        let unit = &mut self.unit[row * self.lines_f32..][..self.lines_f32];
        let quantised = &mut self.quantised[row * self.lines_i8..][..self.lines_i8];
        write_unit(values, norm, unit);
        let Quantisation { scale, residual } = write_quantised(unit, quantised);
        (self.scale[row], self.residual[row]) = (scale, residual);
        self.forget_summary(row);
    }

    /// Moves the time of last use forward, never back.
    pub fn touch(&mut self, row: usize, last_used: i64) {
        if last_used > self.last_used[row] {
            self.last_used[row] = last_used;
            // It happens at every read, so the summary is widened in place.
            let summary = &mut self.summaries[row / BLOCK_ROWS];
            summary.last_used.high = summary.last_used.high.max(last_used);
        }
    }

    fn erase_vector(&mut self, row: usize) {
        self.unit[row * self.lines_f32..][..self.lines_f32].fill(LineF32::ZERO);
        self.quantised[row * self.lines_i8..][..self.lines_i8].fill(LineI8::ZERO);
        (self.scale[row], self.residual[row]) = (0.0, 0.0);
    }

    /// Makes a row free: nothing of it stays in memory.
    pub fn erase(&mut self, row: usize) {
        self.forget_summary(row);
        self.labels[row].fill(0);
        macro_rules! zero {
            ($column:expr) => {
                $column[row] = Default::default()
            };
        }
        for_each_column!(&mut *self, zero);
        self.erase_vector(row);
    }

    /// Bytes in use: rows, labels and vectors, without reserved but untouched memory.
    pub fn memory_bytes(&self) -> usize {
        let mut bytes = size_of_val(&self.unit[..]) + size_of_val(&self.quantised[..]);
        bytes += self.summaries.capacity() * size_of::<Summary>();
        bytes += self.signatures.capacity() * size_of::<Signature>();
        macro_rules! add {
            ($column:expr) => {
                bytes += $column.capacity() * element_size(&$column)
            };
        }
        for_each_column!(self, add);
        bytes
            + self
                .labels
                .iter()
                .map(|labels| size_of_val(&labels[..]))
                .sum::<usize>()
    }
}

const _: () =
    assert!(CHUNK_ROWS.is_multiple_of(BLOCK_ROWS) && CHUNK_ROWS / BLOCK_ROWS <= u16::BITS as usize);

fn element_size<T>(_: &[T]) -> usize {
    size_of::<T>()
}
