//! Relevance: what is made of the likeness of meaning and the likeness of words.
//!
//! ```text
//! semantic  = clamp((cosine - floor) / (1 - floor), 0, 1); 0 for a row without a vector
//! lexical   = BM25 / (the sum of the words' idf), the share of `lexical::LexicalScores`
//! relevance = min(w * lexical + (1 - w) * semantic, 1)                             float32
//! ```
//!
//! w is the profile's `lexical_weight` where the query has both words and a vector, 1 where it has
//! words only, 0 where it has a vector only. A query has words where its text has a term and the
//! table a text. Without either relevance is 0.
//!
//! Both parts are numbers of the query, the row and the table's statistics, never of what else was
//! found: the exact scan, an index's proposals and one row by itself get the same relevance. It
//! grows with each part, so a bound on a cosine is a bound on relevance: the words are known
//! exactly.

/// How a query's relevance is made. See the module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Blend {
    lexical: f32,
    semantic: f32,
}

impl Blend {
    pub fn new(lexical_weight: f32, has_words: bool, has_vector: bool) -> Self {
        let (lexical, semantic) = match (has_words, has_vector) {
            (true, true) => (lexical_weight, 1.0 - lexical_weight),
            (true, false) => (1.0, 0.0),
            (false, true) => (0.0, 1.0),
            (false, false) => (0.0, 0.0),
        };
        Self { lexical, semantic }
    }

    /// Relevance, 0..=1, of two parts in 0..=1.
    #[inline]
    pub fn relevance(self, semantic: f32, lexical: f32) -> f32 {
        (self.lexical * lexical + self.semantic * semantic).min(1.0)
    }

    /// The semantic part that makes this relevance without words. Not exact in the last bits, and
    /// no number where meaning takes no part.
    #[inline]
    pub fn semantic_for(self, relevance: f32) -> f32 {
        relevance / self.semantic
    }
}
