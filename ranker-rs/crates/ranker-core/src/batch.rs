//! Rows on their way in: borrowed columns, checked as a whole before anything is changed.

use crate::Id;
use crate::error::{Error, Result};
use crate::flags;
use crate::limits::{KIND_MAX, ROW_LABELS_MAX, STATUS_MAX};
use crate::quantise::norm_of;

/// A batch of rows, column by column; row `i` is the `i`-th value of each.
#[derive(Debug, Clone, Copy)]
pub struct RowBatch<'a> {
    /// Identities. The all-zero id is refused: it marks free slots.
    pub ids: &'a [Id],
    /// When the row was created. All times are microseconds since the Unix epoch.
    pub created: &'a [i64],
    /// When it was last used.
    pub last_used: &'a [i64],
    /// From when it is so in the world.
    pub valid_from: &'a [i64],
    /// Until when (exclusive); [`crate::limits::TIME_OPEN`] while open.
    pub valid_to: &'a [i64],
    /// When it became known.
    pub recorded: &'a [i64],
    /// When it leaves recall; [`crate::limits::TIME_OPEN`] for never.
    pub expires: &'a [i64],
    /// Importance, 0..=1.
    pub importance: &'a [f32],
    /// Confidence, 0..=1.
    pub confidence: &'a [f32],
    /// Kind, 1..=5.
    pub kind: &'a [u8],
    /// Status, 1..=3.
    pub status: &'a [u8],
    /// Bits of [`crate::flags`].
    pub flags: &'a [u16],
    /// Hash of the subject.
    pub subject: &'a [u64],
    /// Hash of the context.
    pub context: &'a [u64],
    /// Hash of the attribute.
    pub attribute: &'a [u64],
    /// Row `i` has the labels `label_hashes[label_offsets[i]..label_offsets[i + 1]]`.
    pub label_offsets: &'a [u32],
    /// Hashes of all labels.
    pub label_hashes: &'a [u64],
    /// Whether the row has a vector.
    pub has_vector: &'a [bool],
    /// Vectors of any length above zero, row after row; those of rows without one are ignored.
    pub vectors: &'a [f32],
}

impl<'a> RowBatch<'a> {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(crate) fn labels_of(&self, row: usize) -> &'a [u64] {
        &self.label_hashes[self.label_offsets[row] as usize..self.label_offsets[row + 1] as usize]
    }

    /// The vector of a row of a checked batch, with its norm.
    pub(crate) fn vector_of(&self, row: usize) -> Option<(&'a [f32], f64)> {
        if !self.has_vector[row] {
            return None;
        }
        let dimension = self.vectors.len() / self.len();
        let values = &self.vectors[row * dimension..][..dimension];
        norm_of(values).map(|norm| (values, norm))
    }

    pub(crate) fn check(&self, dimension: usize) -> Result<()> {
        self.check_lengths(dimension)?;
        self.check_labels()?;
        for row in 0..self.len() {
            self.check_row(row)?;
        }
        Ok(())
    }

    fn check_lengths(&self, dimension: usize) -> Result<()> {
        let rows = self.len();
        for (name, length, wanted) in [
            ("created", self.created.len(), rows),
            ("last_used", self.last_used.len(), rows),
            ("valid_from", self.valid_from.len(), rows),
            ("valid_to", self.valid_to.len(), rows),
            ("recorded", self.recorded.len(), rows),
            ("expires", self.expires.len(), rows),
            ("importance", self.importance.len(), rows),
            ("confidence", self.confidence.len(), rows),
            ("kind", self.kind.len(), rows),
            ("status", self.status.len(), rows),
            ("flags", self.flags.len(), rows),
            ("subject", self.subject.len(), rows),
            ("context", self.context.len(), rows),
            ("attribute", self.attribute.len(), rows),
            ("label_offsets", self.label_offsets.len(), rows + 1),
            ("has_vector", self.has_vector.len(), rows),
            ("vectors", self.vectors.len(), rows * dimension),
        ] {
            if length != wanted {
                return Err(Error::argument(
                    name,
                    format!("{length} values where {rows} rows want {wanted}"),
                ));
            }
        }
        Ok(())
    }

    fn check_labels(&self) -> Result<()> {
        let offsets = self.label_offsets;
        if offsets[0] != 0 || offsets[self.len()] as usize != self.label_hashes.len() {
            return Err(Error::argument(
                "label_offsets",
                format!(
                    "must begin at 0 and end at {}, the number of label_hashes",
                    self.label_hashes.len()
                ),
            ));
        }
        for (row, pair) in offsets.windows(2).enumerate() {
            if pair[0] > pair[1] {
                return Err(Error::row(row, "label_offsets", "offsets go backwards"));
            }
            if (pair[1] - pair[0]) as usize > ROW_LABELS_MAX {
                return Err(Error::row(
                    row,
                    "label_offsets",
                    format!("more than {ROW_LABELS_MAX} labels"),
                ));
            }
        }
        Ok(())
    }

    fn check_row(&self, row: usize) -> Result<()> {
        if self.ids[row] == Id::default() {
            return Err(Error::row(row, "ids", "the all-zero id is reserved"));
        }
        for (column, value) in [
            ("importance", self.importance[row]),
            ("confidence", self.confidence[row]),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::row(row, column, format!("{value} is not in 0..=1")));
            }
        }
        for (column, value, max) in [
            ("kind", self.kind[row], KIND_MAX),
            ("status", self.status[row], STATUS_MAX),
        ] {
            if !(1..=max).contains(&value) {
                return Err(Error::row(
                    row,
                    column,
                    format!("{value} is not in 1..={max}"),
                ));
            }
        }
        let unknown = self.flags[row] & !flags::KNOWN;
        if unknown != 0 {
            return Err(Error::row(
                row,
                "flags",
                format!("unknown bits {unknown:#x}"),
            ));
        }
        if self.has_vector[row] && self.vector_of(row).is_none() {
            return Err(Error::row(
                row,
                "vectors",
                "a vector must be finite and not all zeros",
            ));
        }
        Ok(())
    }
}
