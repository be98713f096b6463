//! The pruned scan: int8 rules out most rows, float32 decides among the others.
//!
//! It is exact. Int8 dot products give each row a lower and an upper bound of its score (see
//! `quantise`; the formulas are monotone). A row whose upper bound is below the k-th best lower
//! bound can't be among the k best.
//!
//! Rows are taken in blocks. The block's summary bounds recency and importance, which gives one
//! cosine that rows of the block must exceed to come up to the bar; comparing the whole block's
//! dot products with it leaves few rows to look at one by one. Rows with a word of the query need
//! less of a cosine than the others: they are looked at one by one in any case.

use crate::chunk::Block;
use crate::filter::ones;
use crate::kernels::Reach;
use crate::limits::{BLOCK_ROWS, CHUNK_ROWS};
use crate::quantise::Query;
use crate::search::{Bound, Hits, Pass, Scratch};
use crate::top::{KthScore, TopHits};

/// A row that may be among the best.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    slot: u32,
    /// Upper bound of its score.
    high: f32,
}

/// The rows that may be among the best k, and the bar that others must come up to.
pub(crate) struct Candidates {
    pub kth: KthScore,
    found: Vec<Candidate>,
}

impl Candidates {
    pub fn new(k: usize) -> Self {
        Self {
            kth: KthScore::new(k),
            found: Vec::with_capacity(4 * BLOCK_ROWS),
        }
    }
}

/// Candidates are sifted when there are this many: it bounds memory where scores only rise.
const CANDIDATES_MAX: usize = 16 * CHUNK_ROWS;

/// Where at least one row in this many is admitted, dot products of all are cheaper than those of
/// the admitted, whose addresses the prefetcher can't guess.
const DENSE: usize = 2;

impl Pass<'_> {
    /// The int8 scan of everything, then float32 for those that may be among the best.
    pub fn pruned(&self, query: &Query, k: usize) -> Hits {
        let mut scratch = Scratch::new();
        let mut candidates = Candidates::new(k);
        let mut admitted = 0;
        for block in self.store.blocks() {
            let count = self.filter.admit(self.kernels, &block, &mut scratch.mask);
            admitted += count;
            if count > 0 {
                self.bound_rows(query, &block, count, &mut scratch, &mut candidates);
            }
        }
        let mut top = TopHits::new(k);
        let rescored = self.decide(candidates, &mut scratch, &mut top);
        Hits {
            hits: top.into_hits(),
            admitted,
            scanned: self.store.len(),
            rescored,
            ..Hits::default()
        }
    }

    /// Scores with float32 first the k candidates that int8 puts highest, because what they come
    /// to rules out most others. Returns how many rows were scored.
    pub fn decide(
        &self,
        candidates: Candidates,
        scratch: &mut Scratch,
        top: &mut TopHits,
    ) -> usize {
        let Candidates { kth, mut found } = candidates;
        found.retain(|one| one.high >= kth.value());
        let k = top.k();
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
            self.score_slots(&first, scratch, top);
            rescored += first.len();
            found.retain(|one| one.high >= top.threshold());
        }
        let rest: Vec<u32> = found.iter().map(|one| one.slot).collect();
        self.score_slots(&rest, scratch, top);
        rescored + rest.len()
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

    /// Puts those of a block's marked rows that have a word of the query into `scratch.rows`, by
    /// their places in the block.
    fn note_matches(&self, bound: Bound, block: &Block<'_>, scratch: &mut Scratch) {
        let Scratch { mask, rows, .. } = scratch;
        rows.clear();
        if bound.share > 0.0 {
            let start = block.first_slot();
            let marked = ones(&mask[..block.len]);
            let matches = marked.filter(|row| self.lexical_of(start + *row as u32) > 0.0);
            rows.extend(matches.map(|row| row as u16));
        }
    }

    /// Bounds the scores of a block's marked rows and keeps those that may be among the best.
    pub fn bound_rows(
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
        self.note_matches(bound, block, scratch);
        let mask = &mut scratch.mask[..block.len];
        let hopeless_under = |bar| profile.hopeless_cosine(bar, bound.prior, self.blend);
        let mut hopeless = hopeless_under(bar);
        let reach = Reach {
            step: query.scale,
            error: query.error(block.summary.residual.high),
            above: hopeless,
        };
        let (chunk, dots) = (block.chunk, &scratch.dots[..block.len]);
        let is_reached = self
            .kernels
            .reach(dots, &chunk.scale[block.rows()], reach, mask);
        if !is_reached && scratch.rows.is_empty() {
            return;
        }
        for row in &scratch.rows {
            mask[usize::from(*row)] = 1;
        }
        for (row, dot) in ones(mask).map(|row| (block.start + row, dots[row])) {
            let slot = (block.number * CHUNK_ROWS + row) as u32;
            let lexical = self.lexical_of(slot);
            let (low, high) = query.cosine_bounds(dot, chunk.quantisation(row));
            if high <= hopeless && lexical == 0.0 {
                continue;
            }
            let relevance_high = self.relevance(chunk, row, high, lexical);
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
                slot,
                high: score_high,
            });
            // Only a row that certainly is a result may raise the bar for others.
            let relevance_low = self.relevance(chunk, row, low, lexical);
            let score_low = profile.score(relevance_low, prior, row_flags);
            let is_result = relevance_low >= spec.min_relevance && score_low >= spec.min_score;
            if is_result && kth.push(score_low) {
                let bar = kth.value().max(spec.min_score);
                hopeless = hopeless_under(bar);
            }
        }
        if found.len() > CANDIDATES_MAX {
            found.retain(|one| one.high >= kth.value());
        }
    }
}
