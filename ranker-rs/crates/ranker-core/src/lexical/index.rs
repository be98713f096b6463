//! The postings: which rows' texts have a term, and how often.
//!
//! Invariants:
//! - no term has an empty list;
//! - `texts[slot]` names exactly the terms whose lists have the slot;
//! - `count`, `total_length` and `languages` are the sums over the texts that have a term;
//! - a term is kept as its keyed hash: two of 64 bits that are equal would make two words one,
//!   which among a million terms happens once in thirty million partitions;
//! - nothing of a term stays when its last text goes.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use super::language::{Language, Languages};
use super::postings::{Posting, PostingList};
use super::scores::{Bm25, LexicalScores};
use super::terms::{Reading, query_words, term_of};

#[derive(Debug, Default)]
struct Term {
    hash: u64,
    postings: PostingList,
}

/// What the index knows of one row's text.
#[derive(Debug, Default)]
struct Text {
    /// Numbers of its terms.
    terms: Box<[u32]>,
    /// Tells whether a text is the one that is there already; 0 for no text.
    fingerprint: u64,
    languages: Languages,
}

/// The lexical index of one table.
#[derive(Debug, Default)]
pub(crate) struct LexicalIndex {
    /// Numbers of terms by their hashes.
    numbers: HashTable<u32>,
    terms: Vec<Term>,
    free: Vec<u32>,
    /// By slot.
    texts: Vec<Text>,
    lengths: Vec<u32>,
    count: usize,
    total_length: u64,
    /// How many texts were read in each language.
    languages: [u32; Language::COUNT],
}

/// One part of a row's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextPart<'a> {
    /// Any text of up to [`TEXT_BYTES_MAX`](crate::limits::TEXT_BYTES_MAX) bytes.
    pub text: &'a str,
    /// How much its terms count, in eighths:
    /// 1..=[`PART_WEIGHT_MAX`](crate::limits::PART_WEIGHT_MAX).
    pub weight: u8,
}

/// A text as it goes into the index.
#[derive(Debug)]
pub(crate) struct Prepared {
    fingerprint: u64,
    /// Hash and weight of each term.
    terms: Vec<(u64, u32)>,
    /// In eighths.
    length: u32,
    languages: Languages,
}

/// Makes terms of texts. Needs no index, so it works before the lock is taken.
pub(crate) struct Preparer<'a> {
    hasher: &'a RandomState,
    /// Hashes of terms by language and word: stemming is the dearest part, and texts repeat their
    /// words.
    known: [HashMap<String, u64>; Language::COUNT],
}

impl<'a> Preparer<'a> {
    pub fn new(hasher: &'a RandomState) -> Self {
        Self {
            hasher,
            known: std::array::from_fn(|_| HashMap::new()),
        }
    }

    pub fn prepare(&mut self, parts: &[TextPart<'_>]) -> Prepared {
        let mut hashes: Vec<(u64, u32)> = Vec::new();
        let mut languages = Languages::NONE;
        for part in parts {
            let reading = Reading::of(part.text, Languages::ALL);
            for (language, word) in reading.words() {
                hashes.push((self.hash_of(language, word), u32::from(part.weight)));
            }
            languages = Languages(languages.0 | reading.languages.0);
        }
        hashes.sort_unstable();
        let weight_of = |terms: &[(u64, u32)]| terms.iter().map(|(_, weight)| weight).sum();
        let terms = hashes
            .chunk_by(|one, other| one.0 == other.0)
            .map(|same| (same[0].0, weight_of(same)))
            .collect();
        Prepared {
            fingerprint: fingerprint(self.hasher, parts),
            length: weight_of(&hashes),
            terms,
            languages,
        }
    }

    fn hash_of(&mut self, language: Option<Language>, word: &str) -> u64 {
        let hash = || hash_of(self.hasher, &term_of(language, word));
        let Some(known) = language.map(|language| &mut self.known[language as usize]) else {
            return hash();
        };
        if let Some(hash) = known.get(word) {
            return *hash;
        }
        let hash = hash();
        known.insert(word.to_owned(), hash);
        hash
    }
}

/// Tells texts apart without keeping them; never 0.
pub(crate) fn fingerprint(hasher: &RandomState, parts: &[TextPart<'_>]) -> u64 {
    hasher.hash_one(parts).max(1)
}

/// The hash that a term is known by; never 0.
fn hash_of(hasher: &RandomState, term: &str) -> u64 {
    hasher.hash_one(term).max(1)
}

impl LexicalIndex {
    /// The fingerprint of the text in a slot; 0 where there is none.
    pub fn fingerprint(&self, slot: u32) -> u64 {
        self.texts
            .get(slot as usize)
            .map_or(0, |text| text.fingerprint)
    }

    /// Puts a text in a slot, in place of the one that is there. The slot is below [`SLOT_END`].
    pub fn put(&mut self, slot: u32, text: &Prepared) {
        self.remove(slot);
        let place = slot as usize;
        if self.texts.len() <= place {
            self.texts.resize_with(place + 1, Text::default);
            self.lengths.resize(place + 1, 0);
        }
        let numbers: Box<[u32]> = text
            .terms
            .iter()
            .map(|(hash, weight)| self.add_posting(*hash, Posting::new(slot, *weight)))
            .collect();
        if text.length > 0 {
            self.count += 1;
            self.total_length += u64::from(text.length);
            for language in text.languages.iter() {
                self.languages[language as usize] += 1;
            }
        }
        self.lengths[place] = text.length;
        self.texts[place] = Text {
            terms: numbers,
            fingerprint: text.fingerprint,
            languages: text.languages,
        };
    }

    /// Takes the text of a slot out, where there is one.
    pub fn remove(&mut self, slot: u32) {
        let Some(text) = self.texts.get_mut(slot as usize).map(std::mem::take) else {
            return;
        };
        for number in &text.terms {
            self.remove_posting(*number, slot);
        }
        let length = std::mem::take(&mut self.lengths[slot as usize]);
        if length > 0 {
            self.count -= 1;
            self.total_length -= u64::from(length);
            for language in text.languages.iter() {
                self.languages[language as usize] -= 1;
            }
        }
    }

    /// Adds to a term's list; returns the term's number.
    fn add_posting(&mut self, hash: u64, posting: Posting) -> u32 {
        let Self {
            numbers,
            terms,
            free,
            ..
        } = self;
        let known = numbers.find(hash, |number| terms[*number as usize].hash == hash);
        let number = if let Some(number) = known {
            *number
        } else {
            let number = free.pop().unwrap_or_else(|| {
                terms.push(Term::default());
                (terms.len() - 1) as u32
            });
            terms[number as usize].hash = hash;
            numbers.insert_unique(hash, number, |number| terms[*number as usize].hash);
            number
        };
        terms[number as usize].postings.insert(posting);
        number
    }

    fn remove_posting(&mut self, number: u32, slot: u32) {
        let term = &mut self.terms[number as usize];
        term.postings.remove(slot);
        if term.postings.is_empty() {
            let hash = std::mem::take(term).hash;
            if let Ok(entry) = self.numbers.find_entry(hash, |other| *other == number) {
                entry.remove();
            }
            self.free.push(number);
        }
    }

    /// The languages that texts were read in.
    pub fn languages(&self) -> Languages {
        let counts = self.languages.iter().enumerate();
        let mask = counts.fold(0, |mask, (number, count)| {
            mask | (u32::from(*count > 0) << number)
        });
        Languages(mask)
    }

    /// The scores of all texts for a query.
    pub fn score(&self, hasher: &RandomState, query: &str, bm25: Bm25) -> LexicalScores {
        let mut found = LexicalScores::default();
        if self.count == 0 {
            return found;
        }
        let average = (self.total_length as f64 / self.count as f64) as f32;
        for word in query_words(query, self.languages()) {
            let lists: Vec<&PostingList> = word
                .iter()
                .filter_map(|term| self.postings_of(hash_of(hasher, term)))
                .collect();
            let merged = if lists.len() > 1 {
                merge(&lists)
            } else {
                Vec::new()
            };
            let segments = match lists[..] {
                [] => &[],
                [one] => one.segments(),
                _ => std::slice::from_ref(&merged),
            };
            let idf = Bm25::idf(self.count, segments.iter().map(Vec::len).sum());
            found.total += idf;
            if segments.is_empty() {
                continue;
            }
            found.scores.resize(self.texts.len(), 0.0);
            for posting in segments.iter().flatten() {
                let slot = posting.slot() as usize;
                let norm = bm25.norm(self.lengths[slot], average);
                let weight = posting.weight() as f32 / 8.0;
                found.scores[slot] += idf * (weight / (weight + norm));
            }
        }
        found.summarise();
        found
    }

    fn postings_of(&self, hash: u64) -> Option<&PostingList> {
        let is_it = |number: &u32| self.terms[*number as usize].hash == hash;
        let number = self.numbers.find(hash, is_it)?;
        Some(&self.terms[*number as usize].postings)
    }

    /// Bytes in use.
    pub fn memory_bytes(&self) -> usize {
        let lists = self.terms.iter().map(|term| term.postings.memory_bytes());
        let texts = self.texts.iter().map(|text| size_of_val(&text.terms[..]));
        self.numbers.allocation_size()
            + self.terms.capacity() * size_of::<Term>()
            + self.free.capacity() * size_of::<u32>()
            + self.texts.capacity() * size_of::<Text>()
            + self.lengths.capacity() * size_of::<u32>()
            + lists.sum::<usize>()
            + texts.sum::<usize>()
    }
}

/// The texts that have one of several terms, with the sum of the weights.
fn merge(lists: &[&PostingList]) -> Vec<Posting> {
    let mut merged: Vec<Posting> = lists.iter().flat_map(|list| list.iter()).collect();
    merged.sort(); // stable: made for stretches that are in order already
    merged.dedup_by(|other, kept| {
        let is_same = other.slot() == kept.slot();
        if is_same {
            *kept = Posting::new(kept.slot(), kept.weight() + other.weight());
        }
        is_same
    });
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXTS: [&[(&str, u8)]; 6] = [
        &[],
        &[("", 8), ("the and of", 1)],
        &[("one cat and one dog", 8)],
        &[("die Katze und der Hund", 8), ("the cat", 4)],
        &[("cat cat cat ORD-7", 8)],
        &[("собака и кошка", 8)],
    ];

    fn parts(text: &'static [(&str, u8)]) -> Vec<TextPart<'static>> {
        let parts = text.iter();
        parts
            .map(|(text, weight)| TextPart {
                text,
                weight: *weight,
            })
            .collect()
    }

    proptest! {
        /// After any history the index is the one that is made of the texts that are left.
        #[test]
        fn nothing_stays_of_what_was_taken_out(
            steps in prop::collection::vec((0_u32..6, prop::option::of(0_usize..TEXTS.len())), 0..40),
        ) {
            let hasher = RandomState::new();
            let mut preparer = Preparer::new(&hasher);
            let mut index = LexicalIndex::default();
            let mut texts = [None; 6];
            for (slot, text) in steps {
                match text {
                    Some(text) => index.put(slot, &preparer.prepare(&parts(TEXTS[text]))),
                    None => index.remove(slot),
                }
                texts[slot as usize] = text;
            }
            let mut fresh = LexicalIndex::default();
            for (slot, text) in (0..).zip(texts) {
                if let Some(text) = text {
                    fresh.put(slot, &preparer.prepare(&parts(TEXTS[text])));
                }
            }
            let content = |index: &LexicalIndex| {
                let live = index.terms.iter().filter(|term| term.hash != 0);
                let mut lists: Vec<(u64, Vec<Posting>)> =
                    live.map(|term| (term.hash, term.postings.iter().collect())).collect();
                lists.sort();
                (lists, index.count, index.total_length, index.languages, index.numbers.len())
            };
            prop_assert_eq!(content(&index), content(&fresh));
            for term in &index.terms {
                prop_assert_eq!(term.hash == 0, term.postings.is_empty());
            }
            prop_assert_eq!(index.free.len() + index.numbers.len(), index.terms.len());
            let query = "cat Katze dog кошка 7";
            let (score, expected) = (
                index.score(&hasher, query, Bm25::default()),
                fresh.score(&hasher, query, Bm25::default()),
            );
            prop_assert!(score.matches().eq(expected.matches()));
            prop_assert_eq!(score.total, expected.total);
        }
    }

    #[test]
    fn a_score_is_no_higher_than_the_words_weigh_and_above_nothing() {
        let hasher = RandomState::new();
        let mut preparer = Preparer::new(&hasher);
        let mut index = LexicalIndex::default();
        let many = "cat ".repeat(1000);
        for (slot, text) in [&many, "cat", "dog"].into_iter().enumerate() {
            index.put(
                slot as u32,
                &preparer.prepare(&[TextPart { text, weight: 8 }]),
            );
        }
        let scores = index.score(&hasher, "cats", Bm25::default());
        assert!(scores.of(0) <= scores.total && scores.of(1) > 0.0);
        assert!(scores.share(scores.of(0)) > 0.9);
        assert_eq!(
            (scores.of(2), scores.of(3), scores.high_of_block(1)),
            (0.0, 0.0, 0.0)
        );
        assert_eq!(scores.high(), scores.of(0).max(scores.of(1)));
        // A word that no text has takes its part of the share.
        let more = index.score(&hasher, "cats elephants", Bm25::default());
        assert_eq!(more.of(1), scores.of(1));
        assert!(more.share(more.of(1)) < scores.share(scores.of(1)));
    }
}
