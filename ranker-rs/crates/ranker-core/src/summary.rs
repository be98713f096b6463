//! Summaries of blocks: what can be said of `BLOCK_ROWS` neighbouring rows without reading them.
//!
//! The invariant that search rests on: a summary covers every live row of its block. It may be
//! wider than the rows are, never narrower. So a changed block is summarised by
//! [`Summary::UNKNOWN`], which covers anything, until it is summarised again.

use crate::flags;
use crate::limits::{KIND_MAX, STATUS_MAX};

/// Values from `low` to `high`, both included; none where `low > high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range<T> {
    pub low: T,
    pub high: T,
}

/// Whether a criterion is met by the rows of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    All,
    None,
    /// The rows must be asked.
    Some,
}

impl Verdict {
    pub fn of(all: bool, none: bool) -> Self {
        match (all, none) {
            (_, true) => Self::None,
            (true, false) => Self::All,
            (false, false) => Self::Some,
        }
    }
}

impl Verdict {
    /// The same, or `None` where a doubt is settled so.
    pub fn unless(self, is_none: impl FnOnce() -> bool) -> Self {
        if self == Self::Some && is_none() {
            Self::None
        } else {
            self
        }
    }
}

impl<T: PartialOrd + Copy> Range<T> {
    pub fn contains(&self, value: T) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether values that this range covers are in `wanted`.
    pub fn judge(&self, wanted: &Self) -> Verdict {
        Verdict::of(
            wanted.low <= self.low && self.high <= wanted.high,
            self.high < wanted.low || wanted.high < self.low,
        )
    }

    fn add(&mut self, value: T) {
        // Not `else if`: the first value is both.
        if value < self.low {
            self.low = value;
        }
        if value > self.high {
            self.high = value;
        }
    }
}

/// What is known of the live rows of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    /// Bit n when there is a row of kind n; bit 0 when there is a free row.
    pub kinds: u8,
    /// Bit n when there is a row of status n.
    pub statuses: u8,
    /// Flags that some row has.
    pub flags_any: u16,
    /// Flags that all rows have.
    pub flags_all: u16,
    pub created: Range<i64>,
    pub last_used: Range<i64>,
    pub valid_from: Range<i64>,
    pub valid_to: Range<i64>,
    pub recorded: Range<i64>,
    pub expires: Range<i64>,
    pub importance: Range<f32>,
    pub confidence: Range<f32>,
    pub subject: Range<u64>,
    pub context: Range<u64>,
    pub attribute: Range<u64>,
    pub residual: Range<f32>,
}

/// The columns of one row that summaries are made of.
pub(crate) struct SummarisedRow {
    pub kind: u8,
    pub status: u8,
    pub flags: u16,
    pub created: i64,
    pub last_used: i64,
    pub valid_from: i64,
    pub valid_to: i64,
    pub recorded: i64,
    pub expires: i64,
    pub importance: f32,
    pub confidence: f32,
    pub subject: u64,
    pub context: u64,
    pub attribute: u64,
    pub residual: f32,
}

const TIMES: Range<i64> = Range {
    low: i64::MIN,
    high: i64::MAX,
};
const SHARES: Range<f32> = Range {
    low: 0.0,
    high: 1.0,
};
const HASHES: Range<u64> = Range {
    low: u64::MIN,
    high: u64::MAX,
};

/// A range that covers nothing.
const fn inverted<T: Copy>(range: Range<T>) -> Range<T> {
    Range {
        low: range.high,
        high: range.low,
    }
}

impl Summary {
    /// Covers whatever the rows are.
    pub const UNKNOWN: Self = Self {
        kinds: (2 << KIND_MAX) - 1,
        statuses: (2 << STATUS_MAX) - 1,
        flags_any: flags::KNOWN,
        flags_all: 0,
        created: TIMES,
        last_used: TIMES,
        valid_from: TIMES,
        valid_to: TIMES,
        recorded: TIMES,
        expires: TIMES,
        importance: SHARES,
        confidence: SHARES,
        subject: HASHES,
        context: HASHES,
        attribute: HASHES,
        residual: Range {
            low: 0.0,
            high: f32::INFINITY,
        },
    };

    /// Covers no row.
    pub const EMPTY: Self = Self {
        kinds: 0,
        statuses: 0,
        flags_any: 0,
        flags_all: flags::KNOWN,
        created: inverted(TIMES),
        last_used: inverted(TIMES),
        valid_from: inverted(TIMES),
        valid_to: inverted(TIMES),
        recorded: inverted(TIMES),
        expires: inverted(TIMES),
        importance: inverted(SHARES),
        confidence: inverted(SHARES),
        subject: inverted(HASHES),
        context: inverted(HASHES),
        attribute: inverted(HASHES),
        residual: inverted(Self::UNKNOWN.residual),
    };

    /// Widens the summary to cover a row.
    #[inline]
    pub fn add(&mut self, row: &SummarisedRow) {
        self.kinds |= 1 << row.kind;
        if row.kind == 0 {
            return;
        }
        self.statuses |= 1 << row.status;
        self.flags_any |= row.flags;
        self.flags_all &= row.flags;
        self.created.add(row.created);
        self.last_used.add(row.last_used);
        self.valid_from.add(row.valid_from);
        self.valid_to.add(row.valid_to);
        self.recorded.add(row.recorded);
        self.expires.add(row.expires);
        self.importance.add(row.importance);
        self.confidence.add(row.confidence);
        self.subject.add(row.subject);
        self.context.add(row.context);
        self.attribute.add(row.attribute);
        self.residual.add(row.residual);
    }
}
