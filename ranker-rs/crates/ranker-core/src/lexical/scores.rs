//! BM25.
//!
//! Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond"
//! (2009), in the variant of Lucene, whose idf is never negative and which leaves out the constant
//! factor `k1 + 1`. Evaluation order, which every implementation follows:
//!
//! ```text
//! idf(w)     = ln(1 + (N - df + 0.5) / (df + 0.5))               float64, then float32
//! average    = total length / N                                  float64, then float32
//! norm(t)    = k1 * ((1 - b) + b * (length(t) / average))                      float32
//! score(t)   = sum of idf(w) * (tf / (tf + norm(t))), w in order               float32
//! ```
//!
//! The words w of a query are those of [`query_words`](super::query_words), in its order. N texts
//! have a term; df of them have one of the word's, and `tf` says how often the text t has, up to
//! [`TERM_WEIGHT_MAX`](crate::limits::TERM_WEIGHT_MAX) eighths. A text of several parts is one bag
//! of terms: each part counts by its weight, in `tf` and in the length, the number of terms.
//!
//! A score is above 0 exactly where a term matched, and no higher than the sum of the words' idf,
//! those that no text has included. So their quotient, the *share*, is 0..=1, grows with the
//! score and depends on no other row's score.

use crate::error::{Error, Result};
use crate::limits::BLOCK_ROWS;

/// The two parameters of BM25.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bm25 {
    /// How soon repetitions of a term stop counting, >= 0.
    pub k1: f32,
    /// How much a long text must say more, 0..=1.
    pub b: f32,
}

impl Default for Bm25 {
    fn default() -> Self {
        Self { k1: 0.9, b: 0.4 }
    }
}

impl Bm25 {
    /// # Errors
    /// [`Error::InvalidArgument`] for a k1 that is negative or not finite, a b outside 0..=1.
    pub fn check(self) -> Result<()> {
        if !self.k1.is_finite() || self.k1 < 0.0 {
            return Err(Error::argument(
                "bm25_k1",
                format!("{} is not a finite number >= 0", self.k1),
            ));
        }
        if !(0.0..=1.0).contains(&self.b) {
            return Err(Error::argument(
                "bm25_b",
                format!("{} is not in 0..=1", self.b),
            ));
        }
        Ok(())
    }

    pub(super) fn idf(texts: usize, having: usize) -> f32 {
        let (texts, having) = (texts as f64, having as f64);
        ((texts - having + 0.5) / (having + 0.5)).ln_1p() as f32
    }

    #[inline]
    pub(super) fn norm(self, length: u32, average: f32) -> f32 {
        self.k1 * ((1.0 - self.b) + self.b * (length as f32 / average))
    }
}

/// What a query's words come to in each row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LexicalScores {
    /// By slot; empty when no term matched.
    pub(super) scores: Vec<f32>,
    /// The highest score in each block of [`BLOCK_ROWS`] slots.
    pub(super) highs: Vec<f32>,
    /// The sum of the words' idf; 0 when the query has no word.
    pub total: f32,
}

impl LexicalScores {
    pub(super) fn summarise(&mut self) {
        let highs = self.scores.chunks(BLOCK_ROWS);
        self.highs = highs
            .map(|block| block.iter().copied().fold(0.0, f32::max))
            .collect();
    }

    /// The score of the row in a slot; 0 where no term matched.
    #[must_use]
    #[inline]
    pub fn of(&self, slot: u32) -> f32 {
        self.scores.get(slot as usize).copied().unwrap_or(0.0)
    }

    /// The highest score in the block of that number, counted through all chunks.
    #[must_use]
    #[inline]
    pub fn high_of_block(&self, block: usize) -> f32 {
        self.highs.get(block).copied().unwrap_or(0.0)
    }

    /// How much of the query's weight a score is, 0..=1.
    #[must_use]
    #[inline]
    pub fn share(&self, score: f32) -> f32 {
        (score / self.total).min(1.0)
    }

    /// The highest score of any row.
    #[must_use]
    pub fn high(&self) -> f32 {
        self.highs.iter().copied().fold(0.0, f32::max)
    }

    /// The slots of the `count` highest scores, in no order; all that match where those are fewer.
    /// Of equal scores any.
    #[must_use]
    pub(crate) fn best(&self, count: usize) -> Vec<u32> {
        let mut matches: Vec<(u32, f32)> = self.matches().collect();
        if count < matches.len() {
            matches.select_nth_unstable_by(count, |a, b| b.1.total_cmp(&a.1));
            matches.truncate(count);
        }
        matches.into_iter().map(|(slot, _)| slot).collect()
    }

    /// Slots whose rows have a matching term, ascending, with their scores.
    pub fn matches(&self) -> impl Iterator<Item = (u32, f32)> {
        let scores = self.scores.iter().enumerate();
        scores
            .filter(|(_, score)| **score > 0.0)
            .map(|(slot, score)| (slot as u32, *score))
    }
}
