//! The passes over a store: exact scan, pruned scan, scoring of proposed slots, decay sweep.
//!
//! The pruned scan is exact too. Int8 dot products give each row a lower and an upper bound of
//! its score (see `quantise`; the formulas are monotone). A row whose upper bound is below the
//! k-th best lower bound can't be among the k best, so float32 decides among the others only.
//!
//! Rows are taken in blocks. The block's summary bounds recency and importance, which gives one
//! cosine that rows of the block must exceed to come up to the bar; comparing the whole block's
//! dot products with it leaves few rows to look at one by one.

use crate::Id;
use crate::chunk::{Block, Chunk};
use crate::filter::{Filter, Mask, ones};
use crate::flags;
use crate::kernels::{Kernels, Reach};
use crate::limits::{BLOCK_ROWS, CHUNK_ROWS, KIND_MAX};
use crate::profile::Profile;
use crate::quantise::Query;
use crate::store::{Store, place};
use crate::top::{KthScore, TopHits};

/// One result with the parts of its score.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Hit {
    /// Identity.
    pub id: Id,
    /// Slot at the time of the search.
    pub slot: u32,
    /// Final score, 0..=1.
    pub score: f32,
    /// Relevance, 0..=1; 0 without a query or a vector.
    pub relevance: f32,
    /// Recency, 0..=1.
    pub recency: f32,
    /// Importance, 0..=1.
    pub importance: f32,
    /// Cosine with the query; 0 without a query or a vector.
    pub cosine: f32,
}

/// Results, best first, and what was done to find them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hits {
    /// Score descending, then id ascending.
    pub hits: Vec<Hit>,
    /// Rows that the filter admitted.
    pub admitted: usize,
    /// Live rows that were looked at.
    pub scanned: usize,
    /// Rows that were scored exactly, with float32.
    pub rescored: usize,
}

/// What stays the same during one pass.
pub(crate) struct Pass<'a> {
    pub store: &'a Store,
    pub kernels: &'static Kernels,
    pub query: Option<&'a Query>,
    pub now: i64,
    pub profile: &'a Profile,
    pub filter: &'a Filter,
}

/// Buffers of one pass.
struct Scratch {
    mask: Mask,
    dots: [i32; BLOCK_ROWS],
    /// Row numbers in one chunk.
    rows: Vec<u16>,
    cosines: Vec<f32>,
}

impl Scratch {
    fn new() -> Self {
        Self {
            mask: [0; BLOCK_ROWS],
            dots: [0; BLOCK_ROWS],
            rows: Vec::with_capacity(BLOCK_ROWS),
            cosines: Vec::with_capacity(BLOCK_ROWS),
        }
    }
}

/// A row that may be among the best.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    slot: u32,
    /// Upper bound of its score.
    high: f32,
}

/// The rows that may be among the best k, and the bar that others must come up to.
struct Candidates {
    kth: KthScore,
    found: Vec<Candidate>,
}

/// The most that rows of a block can have apart from relevance.
#[derive(Clone, Copy)]
struct Bound {
    recency: f32,
    prior: f32,
}

/// Candidates are sifted when there are this many: it bounds memory where scores only rise.
const CANDIDATES_MAX: usize = 16 * CHUNK_ROWS;

/// Where at least one row in this many is admitted, dot products of all are cheaper than those of
/// the admitted, whose addresses the prefetcher can't guess.
const DENSE: usize = 2;

impl Pass<'_> {
    /// The float32 scan of everything.
    pub fn exact(&self, k: usize) -> Hits {
        let mut scratch = Scratch::new();
        let mut top = TopHits::new(k);
        let (mut admitted, mut rescored) = (0, 0);
        for block in self.store.blocks() {
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
        }
    }

    /// The int8 scan of everything, then float32 for those that may be among the best.
    pub fn pruned(&self, query: &Query, k: usize) -> Hits {
        let mut scratch = Scratch::new();
        let mut candidates = Candidates {
            kth: KthScore::new(k),
            found: Vec::with_capacity(4 * BLOCK_ROWS),
        };
        let mut admitted = 0;
        for block in self.store.blocks() {
            let count = self.filter.admit(self.kernels, &block, &mut scratch.mask);
            admitted += count;
            if count > 0 {
                self.bound_rows(query, &block, count, &mut scratch, &mut candidates);
            }
        }
        let (hits, rescored) = self.decide(candidates, k, &mut scratch);
        Hits {
            hits,
            admitted,
            scanned: self.store.len(),
            rescored,
        }
    }

    /// Scores with float32 first the k candidates that int8 puts highest, because what they come
    /// to rules out most others. Returns the hits and how many rows were scored.
    fn decide(&self, candidates: Candidates, k: usize, scratch: &mut Scratch) -> (Vec<Hit>, usize) {
        let Candidates { kth, mut found } = candidates;
        found.retain(|one| one.high >= kth.value());
        let mut top = TopHits::new(k);
        let mut rescored = 0;
        if found.len() > k {
            let mut highs: Vec<f32> = found.iter().map(|one| one.high).collect();
            let (_, bar, _) = highs.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
            let (bar, mut first) = (*bar, Vec::with_capacity(k));
            found.retain(|one| {
                let is_first = one.high >= bar && first.len() < k;
                if is_first {
                    first.push(one.slot);
                }
                !is_first
            });
            self.score_slots(&first, scratch, &mut top);
            rescored += first.len();
            found.retain(|one| one.high >= top.threshold());
        }
        let rest: Vec<u32> = found.iter().map(|one| one.slot).collect();
        self.score_slots(&rest, scratch, &mut top);
        (top.into_hits(), rescored + rest.len())
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
        }
    }

    /// Scores rows with float32; those of one chunk should be neighbours in `slots`.
    fn score_slots(&self, slots: &[u32], scratch: &mut Scratch, top: &mut TopHits) {
        let bound = Bound {
            recency: 1.0,
            prior: self.profile.prior(1.0, 1.0),
        };
        for group in slots.chunk_by(|a, b| place(*a).0 == place(*b).0) {
            let rows = group.iter().map(|slot| place(*slot).1 as u16);
            scratch.rows.clear();
            scratch.rows.extend(rows);
            self.score_rows(place(group[0]).0, bound, scratch, top);
        }
    }

    /// What the rows of a block can have at most.
    fn bound(&self, block: &Block<'_>) -> Bound {
        let summary = block.summary;
        let recency = self.profile.recency_max(
            summary.kinds,
            summary.valid_from.high,
            summary.last_used.high,
            self.now,
        );
        let prior = self.profile.prior(recency, summary.importance.high);
        Bound { recency, prior }
    }

    /// Whether no row under this bound can have a score of `bar`, whatever its relevance.
    fn is_hopeless(&self, bound: Bound, bar: f32) -> bool {
        let relevance_max = if self.query.is_some() { 1.0 } else { 0.0 };
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
        let mut hopeless = self.profile.hopeless_cosine(top.threshold(), bound.prior);
        for (row, cosine) in rows.iter().zip(cosines) {
            if *cosine <= hopeless {
                continue;
            }
            let row = usize::from(*row);
            let relevance = self.relevance(chunk, row, *cosine);
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
            top.push(Hit {
                id: chunk.id[row],
                slot: (number * CHUNK_ROWS + row) as u32,
                score,
                relevance,
                recency,
                importance,
                cosine: *cosine,
            });
            hopeless = self.profile.hopeless_cosine(top.threshold(), bound.prior);
        }
    }

    /// The dot products of a block's marked rows, of which there are `count`; what stands at the
    /// others has no meaning.
    fn dots(&self, query: &Query, block: &Block<'_>, count: usize, scratch: &mut Scratch) {
        let Scratch {
            mask, dots, rows, ..
        } = scratch;
        if count * DENSE >= block.len {
            let dots = &mut dots[..block.len];
            self.kernels
                .scan_all_i8(&query.quantised, block.quantised(), dots);
            return;
        }
        rows.clear();
        rows.extend(ones(&mask[..block.len]).map(|row| row as u16));
        let mut found = [0; BLOCK_ROWS];
        let found = &mut found[..rows.len()];
        self.kernels
            .scan_i8(&query.quantised, block.quantised(), rows, found);
        for (row, dot) in rows.iter().zip(found) {
            dots[usize::from(*row)] = *dot;
        }
    }

    /// Bounds the scores of a block's marked rows and keeps those that may be among the best.
    fn bound_rows(
        &self,
        query: &Query,
        block: &Block<'_>,
        count: usize,
        scratch: &mut Scratch,
        candidates: &mut Candidates,
    ) {
        let profile = self.profile;
        let spec = self.filter.spec();
        let Candidates { kth, found } = candidates;
        let bound = self.bound(block);
        // A score under the least is no result, and one under the k-th best not among the best.
        let bar = kth.value().max(spec.min_score);
        if self.is_hopeless(bound, bar) {
            return;
        }
        self.dots(query, block, count, scratch);
        let mask = &mut scratch.mask[..block.len];
        let mut hopeless = profile.hopeless_cosine(bar, bound.prior);
        let reach = Reach {
            step: query.scale,
            error: query.error(block.summary.residual.high),
            above: hopeless,
        };
        let (chunk, dots) = (block.chunk, &scratch.dots[..block.len]);
        if !self
            .kernels
            .reach(dots, &chunk.scale[block.rows()], reach, mask)
        {
            return;
        }
        for (row, dot) in ones(mask).map(|row| (block.start + row, dots[row])) {
            let (low, high) = query.cosine_bounds(dot, chunk.quantisation(row));
            if high <= hopeless {
                continue;
            }
            let relevance_high = self.relevance(chunk, row, high);
            let importance = chunk.importance[row];
            let row_flags = chunk.flags[row];
            // The decay is the dearest part: most rows lose even when taken as the newest.
            let prior_max = profile.prior(bound.recency, importance);
            if relevance_high < spec.min_relevance
                || profile.score(relevance_high, prior_max, row_flags) < kth.value()
            {
                continue;
            }
            let prior = profile.prior(self.recency(chunk, row), importance);
            let score_high = profile.score(relevance_high, prior, row_flags);
            if score_high < kth.value() || score_high < spec.min_score {
                continue;
            }
            found.push(Candidate {
                slot: (block.number * CHUNK_ROWS + row) as u32,
                high: score_high,
            });
            // Only a row that certainly is a result may raise the bar for others.
            let relevance_low = self.relevance(chunk, row, low);
            let score_low = profile.score(relevance_low, prior, row_flags);
            if relevance_low >= spec.min_relevance && score_low >= spec.min_score {
                kth.push(score_low);
                let bar = kth.value().max(spec.min_score);
                hopeless = profile.hopeless_cosine(bar, bound.prior);
            }
        }
        if found.len() > CANDIDATES_MAX {
            found.retain(|one| one.high >= kth.value());
        }
    }

    /// A row without a vector, or a pass without a query, has no relevance whatever the floor.
    #[inline]
    fn relevance(&self, chunk: &Chunk, row: usize, cosine: f32) -> f32 {
        if self.query.is_some() && chunk.has_vector(row) {
            self.profile.relevance(cosine)
        } else {
            0.0
        }
    }

    #[inline]
    fn recency(&self, chunk: &Chunk, row: usize) -> f32 {
        self.profile.recency(
            chunk.kind[row],
            chunk.valid_from[row],
            chunk.last_used[row],
            self.now,
        )
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
            let chunk = block.chunk;
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
