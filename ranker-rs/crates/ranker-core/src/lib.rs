//! Pillion's ranker: one pass over a partition's columns and vectors that filters, scores and
//! keeps the exact top k.
//!
//! A [`Table`] holds one partition: the columns that filters read, an int8 copy of each vector
//! for a cheap first look, and the float32 vector that decides. A search prunes with int8 and a
//! proven error bound, so that what it returns is what a float32 scan of everything would.
//!
//! What was given up: there is no approximate index here (the caller may propose candidates and
//! have them scored with [`Table::score`], or made into an exact answer by [`Table::certify`]),
//! one search uses one core, and rows live in memory only. Of texts only hashes of their terms are
//! kept ([`lexical`]). The crate knows nothing of Python.
//!
//! `unsafe` is confined to [`kernels`]: loads of whole cache lines and calls of functions that
//! want a CPU feature.

#![deny(unsafe_code)]

mod batch;
mod calibrate;
mod certify;
mod chunk;
mod error;
mod filter;
#[allow(unsafe_code)] // SIMD loads and feature-gated calls; each states why it is sound.
pub mod kernels;
pub mod lexical;
pub mod limits;
mod predicate;
mod profile;
mod prune;
mod quantise;
mod relevance;
mod search;
mod signature;
mod store;
mod summary;
mod table;
mod texts;
mod top;

pub use batch::RowBatch;
pub use calibrate::{Costs, calibrate};
pub use certify::Proposal;
pub use error::{Error, Result};
pub use filter::{Filter, FilterSpec};
pub use profile::{Profile, ProfileSpec, RecencyAnchor};
pub use search::{Hit, Hits};
pub use table::{SearchRequest, Table};

/// A memory's identity: the sixteen bytes of its UUID, compared as bytes.
pub type Id = [u8; 16];

/// Flag bits of a row.
pub mod flags {
    /// Kept by decay sweeps whatever its vitality.
    pub const PINNED: u16 = 1;
    /// Closed without a successor.
    pub const RETRACTED: u16 = 2;
    /// Taken out of recall.
    pub const EXPIRED: u16 = 4;
    /// Folded into another memory; its score is multiplied by the profile's factor.
    pub const CONSOLIDATED: u16 = 8;
    /// The row is a raw source and not a memory.
    pub const EPISODE: u16 = 16;
    /// Every bit that says yes or no, which filters may ask for.
    pub const ALL: u16 = PINNED | RETRACTED | EXPIRED | CONSOLIDATED | EPISODE;
    /// The bits of the number of the row's source kind, by which a profile may weigh its score.
    pub const SOURCE: u16 = 0b111 << SOURCE_SHIFT;
    /// How far the number of the source kind is shifted.
    pub const SOURCE_SHIFT: u16 = 8;
    /// Every bit that has a meaning.
    pub const KNOWN: u16 = ALL | SOURCE;

    /// The number of a row's source kind; 0: none is known.
    #[must_use]
    #[inline]
    pub fn source(row_flags: u16) -> usize {
        usize::from((row_flags & SOURCE) >> SOURCE_SHIFT)
    }
}
