//! Predicates: what a filter asks of a row, each over one column.
//!
//! A predicate is evaluated in three ways that must agree (a property test holds them to it): on a
//! block's summary and signature, on a block's columns as a whole, and on a single row.

use crate::chunk::Block;
use crate::chunk::Chunk;
use crate::kernels::Kernels;
use crate::limits::BLOCK_ROWS;
use crate::summary::{Range, Summary, Verdict};

/// A set of hashes, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Values(Box<[u64]>);

impl Values {
    /// Up to here a comparison with each beats a binary search.
    const WALK_MAX: usize = 8;

    pub fn new(values: &[u64]) -> Self {
        let mut values = values.to_vec();
        values.sort_unstable();
        values.dedup();
        Self(values.into())
    }

    fn contains(&self, value: u64) -> bool {
        if self.0.len() <= Self::WALK_MAX {
            self.0.contains(&value)
        } else {
            self.0.binary_search(&value).is_ok()
        }
    }

    /// Whether hashes that `range` covers are in the set.
    fn judge(&self, range: &Range<u64>) -> Verdict {
        let first = self.0.partition_point(|value| *value < range.low);
        Verdict::of(
            range.low == range.high && self.contains(range.low),
            self.0.get(first).is_none_or(|value| *value > range.high),
        )
    }
}

/// Columns of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    Created,
    ValidFrom,
    ValidTo,
    Recorded,
    Expires,
}

/// Columns of numbers from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    Importance,
    Confidence,
}

/// Columns of hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    Subject,
    Context,
    Attribute,
}

/// How a row's labels relate to a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labels {
    /// The row has all of the set.
    All,
    /// The row has one of the set.
    Any,
    /// The row has none of the set.
    None,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Predicate {
    /// Always present; never has bit 0, so that it also drops free slots.
    Kinds(u8),
    Statuses(u8),
    /// `flags & mask == wanted`
    Flags {
        mask: u16,
        wanted: u16,
    },
    Time(Time, Range<i64>),
    Share(Share, Range<f32>),
    Hash(Hash, u64),
    Hashes(Hash, Values),
    Labels(Labels, Values),
    /// The row has one label of each set.
    LabelsEach(Box<[Values]>),
    /// The row meets all predicates of one of the groups; or, where that is not wanted, of none.
    Nested {
        wanted: bool,
        of: Box<[Box<[Predicate]>]>,
    },
}

/// The verdict on rows that meet all of some predicates.
fn judge_all(predicates: &[Predicate], block: &Block<'_>) -> Verdict {
    let mut all = true;
    for predicate in predicates {
        match predicate.judge(block) {
            Verdict::None => return Verdict::None,
            Verdict::Some => all = false,
            Verdict::All => {}
        }
    }
    Verdict::of(all, false)
}

/// The verdict on rows that have one of these labels, or have all of them.
fn judge_labels(wanted: &Values, block: &Block<'_>, all: bool) -> Verdict {
    let mut absent = wanted
        .0
        .iter()
        .map(|label| !block.signature.may_hold(*label));
    let is_none = if all {
        absent.any(|one| one)
    } else {
        absent.all(|one| one)
    };
    Verdict::of(false, is_none)
}

impl Time {
    fn column(self, chunk: &Chunk) -> &[i64] {
        match self {
            Self::Created => &chunk.created,
            Self::ValidFrom => &chunk.valid_from,
            Self::ValidTo => &chunk.valid_to,
            Self::Recorded => &chunk.recorded,
            Self::Expires => &chunk.expires,
        }
    }

    fn range(self, summary: &Summary) -> &Range<i64> {
        match self {
            Self::Created => &summary.created,
            Self::ValidFrom => &summary.valid_from,
            Self::ValidTo => &summary.valid_to,
            Self::Recorded => &summary.recorded,
            Self::Expires => &summary.expires,
        }
    }
}

impl Share {
    fn column(self, chunk: &Chunk) -> &[f32] {
        match self {
            Self::Importance => &chunk.importance,
            Self::Confidence => &chunk.confidence,
        }
    }

    fn range(self, summary: &Summary) -> &Range<f32> {
        match self {
            Self::Importance => &summary.importance,
            Self::Confidence => &summary.confidence,
        }
    }
}

impl Hash {
    fn column(self, chunk: &Chunk) -> &[u64] {
        match self {
            Self::Subject => &chunk.subject,
            Self::Context => &chunk.context,
            Self::Attribute => &chunk.attribute,
        }
    }

    fn range(self, summary: &Summary) -> &Range<u64> {
        match self {
            Self::Subject => &summary.subject,
            Self::Context => &summary.context,
            Self::Attribute => &summary.attribute,
        }
    }
}

/// The verdict on rows with the bits `present` when those of `wanted` are admitted.
fn judge_bits(present: u8, wanted: u8) -> Verdict {
    Verdict::of(present & !wanted == 0, present & wanted == 0)
}

impl Predicate {
    /// What a block's summary and signature say. Never wrong, but they may not know.
    pub fn judge(&self, block: &Block<'_>) -> Verdict {
        let (summary, signature) = (block.summary, block.signature);
        match self {
            Self::Kinds(wanted) => judge_bits(summary.kinds, *wanted),
            Self::Statuses(wanted) => judge_bits(summary.statuses, *wanted),
            Self::Flags { mask, wanted } => {
                let (any, all) = (summary.flags_any & mask, summary.flags_all & mask);
                Verdict::of(
                    any == *wanted && all == *wanted,
                    wanted & !any != 0 || all & !wanted != 0,
                )
            }
            Self::Time(column, wanted) => column.range(summary).judge(wanted),
            Self::Share(column, wanted) => column.range(summary).judge(wanted),
            Self::Hash(column, wanted) => {
                let range = Range {
                    low: *wanted,
                    high: *wanted,
                };
                column
                    .range(summary)
                    .judge(&range)
                    .unless(|| !signature.may_hold(*wanted))
            }
            Self::Hashes(column, wanted) => wanted
                .judge(column.range(summary))
                .unless(|| wanted.0.iter().all(|one| !signature.may_hold(*one))),
            Self::Labels(Labels::All, wanted) => judge_labels(wanted, block, true),
            Self::Labels(Labels::Any, wanted) => judge_labels(wanted, block, false),
            Self::Labels(Labels::None, wanted) => {
                match judge_labels(wanted, block, false) {
                    // None has one of them, so all have none.
                    Verdict::None => Verdict::All,
                    _ => Verdict::Some,
                }
            }
            Self::LabelsEach(sets) => {
                let verdicts = sets.iter().map(|wanted| judge_labels(wanted, block, false));
                Verdict::of(false, verdicts.into_iter().any(|one| one == Verdict::None))
            }
            Self::Nested { wanted, of } => {
                let mut verdicts = of.iter().map(|predicates| judge_all(predicates, block));
                let any_all = verdicts.clone().any(|one| one == Verdict::All);
                let all_none = verdicts.all(|one| one == Verdict::None);
                if *wanted {
                    Verdict::of(any_all, all_none)
                } else {
                    Verdict::of(all_none, any_all)
                }
            }
        }
    }

    /// Clears the mask of a block's rows that don't meet it.
    pub fn apply(&self, kernels: &Kernels, block: &Block<'_>, mask: &mut [u8]) {
        let (chunk, rows) = (block.chunk, block.rows());
        match self {
            Self::Kinds(wanted) => kernels.members(&chunk.kind[rows], *wanted, mask),
            Self::Statuses(wanted) => kernels.members(&chunk.status[rows], *wanted, mask),
            Self::Flags { mask: bits, wanted } => {
                kernels.masked(&chunk.flags[rows], *bits, *wanted, mask);
            }
            Self::Time(column, wanted) => {
                kernels.within_i64(&column.column(chunk)[rows], wanted.low, wanted.high, mask);
            }
            Self::Share(column, wanted) => {
                kernels.within_f32(&column.column(chunk)[rows], wanted.low, wanted.high, mask);
            }
            Self::Hash(column, wanted) => {
                kernels.among(&column.column(chunk)[rows], &[*wanted], mask);
            }
            Self::Hashes(column, wanted) if wanted.0.len() <= Values::WALK_MAX => {
                kernels.among(&column.column(chunk)[rows], &wanted.0, mask);
            }
            Self::Nested { wanted, of } => {
                let mut met = [0; BLOCK_ROWS];
                let met = &mut met[..mask.len()];
                for predicates in of {
                    let mut one = [0; BLOCK_ROWS];
                    let one = &mut one[..mask.len()];
                    one.copy_from_slice(mask);
                    for predicate in predicates {
                        predicate.apply(kernels, block, one);
                    }
                    for (met, one) in met.iter_mut().zip(one) {
                        *met |= *one;
                    }
                }
                for (mask, met) in mask.iter_mut().zip(met) {
                    *mask &= *met ^ u8::from(!wanted);
                }
            }
            Self::Hashes(..) | Self::Labels(..) | Self::LabelsEach(_) => {
                for (row, mask) in rows.zip(mask) {
                    *mask &= u8::from(*mask != 0 && self.holds(chunk, row));
                }
            }
        }
    }

    /// Whether a row meets it.
    pub fn holds(&self, chunk: &Chunk, row: usize) -> bool {
        match self {
            Self::Kinds(wanted) => (wanted >> chunk.kind[row]) & 1 == 1,
            Self::Statuses(wanted) => (wanted >> chunk.status[row]) & 1 == 1,
            Self::Flags { mask, wanted } => chunk.flags[row] & mask == *wanted,
            Self::Time(column, wanted) => wanted.contains(column.column(chunk)[row]),
            Self::Share(column, wanted) => wanted.contains(column.column(chunk)[row]),
            Self::Hash(column, wanted) => column.column(chunk)[row] == *wanted,
            Self::Hashes(column, wanted) => wanted.contains(column.column(chunk)[row]),
            Self::Labels(how, wanted) => {
                let labels = &chunk.labels[row];
                match how {
                    Labels::All => wanted.0.iter().all(|label| labels.contains(label)),
                    Labels::Any => labels.iter().any(|label| wanted.contains(*label)),
                    Labels::None => !labels.iter().any(|label| wanted.contains(*label)),
                }
            }
            Self::LabelsEach(sets) => {
                let labels = &chunk.labels[row];
                sets.iter()
                    .all(|wanted| labels.iter().any(|label| wanted.contains(*label)))
            }
            Self::Nested { wanted, of } => {
                let mut groups = of.iter();
                let met =
                    groups.any(|predicates| predicates.iter().all(|one| one.holds(chunk, row)));
                met == *wanted
            }
        }
    }
}

#[cfg(test)]
mod tests;
