//! Lexical relevance: how well the words of a row's text answer the words of a query.
//!
//! A text becomes terms ([`tokenize`]), terms become postings, and a query scores the rows that
//! share terms with it by BM25. The same analysis reads texts and queries.
//!
//! What was given up: there are no phrases and no positions, the language of a text is guessed
//! from its script and its commonest words, and terms are kept as keyed hashes only, so the index
//! can't be listed or searched by prefix. In exchange nothing that it holds can be read as text.

mod index;
mod language;
mod postings;
mod scores;
mod stop_words;
mod terms;
mod words;

pub use language::{Language, Languages};
pub use scores::{Bm25, LexicalScores};
pub use terms::{query_words, tokenize};

pub use index::TextPart;
pub(crate) use index::{LexicalIndex, Preparer, fingerprint};
pub(crate) use postings::SLOT_END;
