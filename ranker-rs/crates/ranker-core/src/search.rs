//! The passes over a store: exact scan, scoring of proposed slots, decay sweep. The pruned scan
//! is in `prune`.

use crate::Id;
use crate::chunk::{Block, Chunk};
use crate::filter::{Filter, Mask, ones};
use crate::flags;
use crate::kernels::{Kernels, PriorColumns};
use crate::lexical::LexicalScores;
use crate::limits::{BLOCK_ROWS, CHUNK_ROWS, KIND_MAX};
use crate::profile::Profile;
use crate::quantise::Query;
use crate::relevance::Blend;
use crate::store::{Store, place};
use crate::top::TopHits;

/// One result with the parts of its score.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Hit {
    /// Identity.
    pub id: Id,
    /// Slot at the time of the search.
    pub slot: u32,
    /// Final score, 0..=1.
    pub score: f32,
    /// Relevance, 0..=1.
    pub relevance: f32,
    /// Recency, 0..=1.
    pub recency: f32,
    /// Importance, 0..=1.
    pub importance: f32,
    /// Cosine with the query; 0 without a query or a vector.
    pub cosine: f32,
    /// BM25 of the query's words; 0 where no term matched, above 0 where one did.
    pub lexical: f32,
}

/// Results, best first, and what was done to find them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hits {
    /// Score descending, then id ascending.
    pub hits: Vec<Hit>,
    /// Rows that the filter admitted; of a certified search, of those proposed.
    pub admitted: usize,
    /// Live rows that were looked at.
    pub scanned: usize,
    /// Rows that were scored exactly, with float32.
    pub rescored: usize,
    /// Rows besides those proposed that a certified search found able to win.
    pub examined: usize,
    /// Where a certified search gave up: no row that it left out scores higher. None: no row that
    /// was left out belongs among the hits.
    pub bound: Option<f32>,
}

/// What stays the same during one pass.
pub(crate) struct Pass<'a> {
    pub store: &'a Store,
    pub kernels: &'static Kernels,
    pub query: Option<&'a Query>,
    /// What the query's words come to; none where it has no words.
    pub lexical: Option<&'a LexicalScores>,
    pub blend: Blend,
    pub now: i64,
    pub profile: &'a Profile,
    pub filter: &'a Filter,
}

/// Buffers of one pass.
pub(crate) struct Scratch {
    pub mask: Mask,
    pub dots: [i32; BLOCK_ROWS],
    /// Row numbers in one chunk.
    pub rows: Vec<u16>,
    cosines: Vec<f32>,
}

impl Scratch {
    pub fn new() -> Self {
        Self {
            mask: [0; BLOCK_ROWS],
            dots: [0; BLOCK_ROWS],
            rows: Vec::with_capacity(BLOCK_ROWS),
            cosines: Vec::with_capacity(BLOCK_ROWS),
        }
    }
}

/// The most that rows of a block can have apart from their cosines.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    pub recency: f32,
    pub prior: f32,
    /// Of what words match.
    pub share: f32,
}

impl Pass<'_> {
    /// The float32 scan of everything.
    pub fn exact(&self, k: usize) -> Hits {
        let mut scratch = Scratch::new();
        let mut top = TopHits::new(k);
        let (mut admitted, mut rescored) = (0, 0);
        for block in self.store.blocks_newest_first() {
            let count = self.filter.admit(self.kernels, &block, &mut scratch.mask);
            admitted += count;
            if count == 0 {
                continue;
            }
            let bound = self.bound(&block);
            if self.is_hopeless(bound, top.threshold()) {
                continue;
            }
            rescored += count;
            let rows = ones(&scratch.mask[..block.len]).map(|row| (block.start + row) as u16);
            scratch.rows.clear();
            scratch.rows.extend(rows);
            self.score_rows(block.number, bound, &mut scratch, &mut top);
        }
        Hits {
            hits: top.into_hits(),
            admitted,
            scanned: self.store.len(),
            rescored,
            ..Hits::default()
        }
    }

    /// Exact scores of the given slots. Dead slots are skipped, repeated ones count once.
    pub fn slots(&self, slots: &[u32], k: usize) -> Hits {
        let mut slots: Vec<u32> = slots
            .iter()
            .copied()
            .filter(|slot| self.store.live(*slot).is_some())
            .collect();
        slots.sort_unstable();
        slots.dedup();
        let scanned = slots.len();
        slots.retain(|slot| {
            let (number, row) = place(*slot);
            self.filter.admits(&self.store.chunks[number], row)
        });
        let mut top = TopHits::new(k);
        self.score_slots(&slots, &mut Scratch::new(), &mut top);
        Hits {
            hits: top.into_hits(),
            admitted: slots.len(),
            scanned,
            rescored: slots.len(),
            ..Hits::default()
        }
    }

    /// Scores rows with float32; those of one chunk should be neighbours in `slots`.
    pub fn score_slots(&self, slots: &[u32], scratch: &mut Scratch, top: &mut TopHits) {
        let bound = Bound {
            recency: 1.0,
            prior: self.profile.prior(1.0, 1.0),
            share: 1.0,
        };
        for group in slots.chunk_by(|a, b| place(*a).0 == place(*b).0) {
            let rows = group.iter().map(|slot| place(*slot).1 as u16);
            scratch.rows.clear();
            scratch.rows.extend(rows);
            self.score_rows(place(group[0]).0, bound, scratch, top);
        }
    }

    /// What the rows of a block can have at most.
    pub fn bound(&self, block: &Block<'_>) -> Bound {
        let summary = block.summary;
        let recency = self.profile.recency_max(summary, self.now);
        let prior = self.profile.prior(recency, summary.importance.high);
        let share = self.lexical.map_or(0.0, |lexical| {
            let number = block.first_slot() as usize / BLOCK_ROWS;
            lexical.share(lexical.high_of_block(number))
        });
        Bound {
            recency,
            prior,
            share,
        }
    }

    /// Whether no row under this bound can have a score of `bar`, whatever its cosine.
    pub fn is_hopeless(&self, bound: Bound, bar: f32) -> bool {
        let relevance_max = self.blend.relevance(1.0, bound.share);
        self.profile.score(relevance_max, bound.prior, 0) < bar
    }

    /// Scores the rows in `scratch` with float32.
    fn score_rows(&self, number: usize, bound: Bound, scratch: &mut Scratch, top: &mut TopHits) {
        let chunk = &self.store.chunks[number];
        let Scratch { rows, cosines, .. } = scratch;
        cosines.clear();
        cosines.resize(rows.len(), 0.0);
        if let Some(query) = self.query {
            self.kernels
                .scan_f32(&query.unit, &chunk.unit, rows, cosines);
        }
        let spec = self.filter.spec();
        let hopeless_under = |bar| self.profile.hopeless_cosine(bar, bound.prior, self.blend);
        let mut hopeless = hopeless_under(top.threshold());
        for (row, cosine) in rows.iter().zip(cosines) {
            let row = usize::from(*row);
            let slot = (number * CHUNK_ROWS + row) as u32;
            let lexical = self.lexical_of(slot);
            if *cosine <= hopeless && lexical == 0.0 {
                continue;
            }
            let relevance = self.relevance(chunk, row, *cosine, lexical);
            if relevance < spec.min_relevance {
                continue;
            }
            let importance = chunk.importance[row];
            let row_flags = chunk.flags[row];
            // The decay is the dearest part: most rows lose even when taken as the newest.
            let prior_max = self.profile.prior(bound.recency, importance);
            if self.profile.score(relevance, prior_max, row_flags) < top.threshold() {
                continue;
            }
            let recency = self.recency(chunk, row);
            let prior = self.profile.prior(recency, importance);
            let score = self.profile.score(relevance, prior, row_flags);
            if score < spec.min_score {
                continue;
            }
            let rose = top.push(Hit {
                id: chunk.id[row],
                slot,
                score,
                relevance,
                recency,
                importance,
                cosine: *cosine,
                lexical,
            });
            if rose {
                hopeless = hopeless_under(top.threshold());
            }
        }
    }

    /// BM25 of the row in a slot.
    #[inline]
    pub fn lexical_of(&self, slot: u32) -> f32 {
        self.lexical.map_or(0.0, |lexical| lexical.of(slot))
    }

    /// Relevance of a cosine and a BM25. A row without a vector, or a pass without a query's, has
    /// no likeness of meaning whatever the floor.
    #[inline]
    pub fn relevance(&self, chunk: &Chunk, row: usize, cosine: f32, lexical: f32) -> f32 {
        let semantic = if self.query.is_some() && chunk.has_vector(row) {
            self.profile.semantic(cosine)
        } else {
            0.0
        };
        self.blend.relevance(semantic, self.share(lexical))
    }

    /// The share of the query's words that a BM25 is.
    #[inline]
    pub fn share(&self, lexical: f32) -> f32 {
        match self.lexical {
            Some(scores) if lexical > 0.0 => scores.share(lexical),
            _ => 0.0,
        }
    }

    #[inline]
    pub fn recency(&self, chunk: &Chunk, row: usize) -> f32 {
        let profile = self.profile;
        let half_life = profile.half_life(chunk.kind[row], || chunk.attribute[row]);
        let (valid_from, last_used) = (chunk.valid_from[row], chunk.last_used[row]);
        profile.recency(half_life, valid_from, last_used, self.now)
    }

    /// How many rows the filter admits.
    pub fn count(store: &Store, kernels: &Kernels, filter: &Filter) -> usize {
        let mut mask = [0; BLOCK_ROWS];
        let blocks = store.blocks();
        blocks
            .map(|block| filter.admit(kernels, &block, &mut mask))
            .sum()
    }

    /// Ids, ascending, of admitted rows whose recency x importance is under their kind's
    /// threshold. Pinned rows are exempt.
    pub fn faded(&self, below: &[f32; KIND_MAX as usize + 1]) -> Vec<Id> {
        let mut mask = [0; BLOCK_ROWS];
        let mut found = Vec::new();
        for block in self.store.blocks() {
            if self.filter.admit(self.kernels, &block, &mut mask) == 0 {
                continue;
            }
            let (chunk, rows) = (block.chunk, block.rows());
            if let Some(reach) = self.profile.fade_reach(block.summary, self.now, below) {
                let columns = PriorColumns {
                    valid_from: &chunk.valid_from[rows.clone()],
                    last_used: self
                        .profile
                        .counts_last_use()
                        .then_some(&chunk.last_used[rows.clone()]),
                    kind: &chunk.kind[rows.clone()],
                    importance: &chunk.importance[rows],
                    relevance: &[],
                };
                self.kernels.faded(&columns, &reach, &mut mask[..block.len]);
            }
            for row in ones(&mask[..block.len]).map(|row| block.start + row) {
                let threshold = below[usize::from(chunk.kind[row])];
                if chunk.flags[row] & flags::PINNED == 0
                    && self.recency(chunk, row) * chunk.importance[row] < threshold
                {
                    found.push(chunk.id[row]);
                }
            }
        }
        found.sort_unstable();
        found
    }
}
