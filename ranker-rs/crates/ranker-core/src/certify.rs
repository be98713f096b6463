//! The certified search: an index proposes, and whatever else could still win is scored too.
//!
//! An index that returns its n nearest says of every other vector that its cosine is no higher
//! than that of the n-th, the *horizon*. So a row that was not proposed has at most the relevance
//! of the horizon, and its score at most what that and its own recency and importance come to. One
//! pass over the columns of recency and importance finds the rows for which that is enough to be
//! among the k best; they are treated as the pruned scan treats every row. The k best are then
//! exact if the horizon is true (design, section 8). What the query's words come to is known of
//! every row from the postings, and the rows that have most of them are scored with those proposed.
//!
//! Every bound is on the safe side of float32 rounding:
//! - an index adds up its dot products in another order, so the horizon is moved up by what two
//!   such sums can differ by;
//! - a cheap bound on recency rules out most rows of a block at once (see `kernels::columns`); the
//!   others get the recency that a score would be made of, by the same formulas;
//! - a row whose bound equals the k-th best score stays in: it may win by its id.

use crate::chunk::Block;
use crate::filter::ones;
use crate::kernels::{PriorColumns, PriorReach};
use crate::lexical::LexicalScores;
use crate::limits::BLOCK_ROWS;
use crate::prune::Candidates;
use crate::quantise::Query;
use crate::search::{Bound, Hits, Pass, Scratch};
use crate::store::place;
use crate::top::TopHits;

/// What an index says of a query.
#[derive(Debug, Clone, Copy)]
pub struct Proposal<'a> {
    /// Slots to score whatever the horizon says: the nearest that the index knows, and those of
    /// rows that it has not taken up yet. Free ones are skipped, repeated ones count once.
    pub slots: &'a [u32],
    /// The claim: no vector in another slot has a higher cosine with the query.
    pub horizon: f32,
    /// The most rows besides those proposed that may be looked at. Where more could win, the
    /// search gives up on the rest and says what they could come to: [`Hits::bound`].
    pub rows_max: usize,
}

/// Slots in order, some of whose rows are dead.
struct Proposed(Vec<u32>);

impl Proposed {
    fn new(nearest: &[u32], by_words: &[u32]) -> Self {
        let mut slots = [nearest, by_words].concat();
        slots.sort_unstable();
        slots.dedup();
        Self(slots)
    }

    /// Clears the mask of a block's rows that are in it.
    fn clear(&self, block: &Block<'_>, mask: &mut [u8]) {
        let start = block.first_slot();
        let from = self.0.partition_point(|slot| *slot < start);
        let slots = self.0[from..].iter().map(|slot| (slot - start) as usize);
        for row in slots.take_while(|row| *row < block.len) {
            mask[row] = 0;
        }
    }
}

impl Pass<'_> {
    /// The best k of all admitted rows, given that the horizon is true.
    pub fn certified(&self, query: &Query, proposal: &Proposal<'_>, k: usize) -> Hits {
        let mut scratch = Scratch::new();
        let mut top = TopHits::new(k);
        let best = |lexical: &LexicalScores| lexical.best(proposal.slots.len().max(k));
        let by_words = self.lexical.map_or_else(Vec::new, best);
        let proposed = Proposed::new(proposal.slots, &by_words);
        let admitted = self.admitted(&proposed.0);
        self.score_slots(&admitted, &mut scratch, &mut top);

        let mut candidates = Candidates::new(k);
        for score in top.scores() {
            candidates.kth.push(score);
        }
        let horizon = proposal.horizon + query.disagreement();
        let spec = self.filter.spec();
        let (mut examined, mut missed) = (0, None);
        let mut relevance = [0.0; BLOCK_ROWS];
        for block in self.store.blocks() {
            let highest = self.relevance_under(horizon, &block, &mut relevance[..block.len]);
            let bar = candidates.kth.value().max(spec.min_score);
            let bound = self.bound(&block);
            if highest < spec.min_relevance || self.profile.score(highest, bound.prior, 0) < bar {
                continue;
            }
            if self.filter.admit(self.kernels, &block, &mut scratch.mask) == 0 {
                continue;
            }
            let mask = &mut scratch.mask[..block.len];
            proposed.clear(&block, mask);
            let (count, best) = self.keep_hopeful(&block, bound, &relevance, bar, mask);
            if count == 0 {
                continue;
            }
            if examined + count > proposal.rows_max {
                missed = Some(best.max(missed.unwrap_or(best)));
                continue;
            }
            examined += count;
            self.bound_rows(query, &block, count, &mut scratch, &mut candidates);
        }
        let rescored = self.decide(candidates, &mut scratch, &mut top);
        // A missed row that can't come up to what was found in the end was not missed.
        let bound = missed.filter(|missed| *missed >= top.threshold());
        Hits {
            hits: top.into_hits(),
            admitted: admitted.len(),
            scanned: self.store.len(),
            rescored: admitted.len() + rescored,
            examined,
            bound,
        }
    }

    /// Slots of live and admitted rows.
    fn admitted(&self, slots: &[u32]) -> Vec<u32> {
        let is_admitted = |slot: &&u32| {
            let (number, row) = place(**slot);
            self.store.live(**slot).is_some() && self.filter.admits(&self.store.chunks[number], row)
        };
        slots.iter().filter(is_admitted).copied().collect()
    }

    /// Writes the most relevance that each row of a block can have whose cosine is at most that,
    /// and returns the largest. What else relevance is made of is known exactly for every row.
    fn relevance_under(&self, cosine: f32, block: &Block<'_>, relevance: &mut [f32]) -> f32 {
        let semantic = self.profile.semantic(cosine);
        let without_words = self.blend.relevance(semantic, 0.0);
        relevance.fill(without_words);
        let mut highest = without_words;
        if self.bound(block).share > 0.0 {
            for (slot, relevance) in (block.first_slot()..).zip(relevance) {
                let lexical = self.lexical_of(slot);
                if lexical > 0.0 {
                    *relevance = self.blend.relevance(semantic, self.share(lexical));
                    highest = highest.max(*relevance);
                }
            }
        }
        highest
    }

    /// Clears the mask of a block's rows that can't have a score of `bar` with the relevance that
    /// is given for each. Returns how many are left and the most that one of them can have.
    fn keep_hopeful(
        &self,
        block: &Block<'_>,
        bound: Bound,
        relevance: &[f32; BLOCK_ROWS],
        bar: f32,
        mask: &mut [u8],
    ) -> (usize, f32) {
        let (chunk, rows, profile) = (block.chunk, block.rows(), self.profile);
        let columns = PriorColumns {
            valid_from: &chunk.valid_from[rows.clone()],
            last_used: profile
                .counts_last_use()
                .then_some(&chunk.last_used[rows.clone()]),
            kind: &chunk.kind[rows.clone()],
            importance: &chunk.importance[rows],
            relevance: &relevance[..block.len],
        };
        let reach: PriorReach = profile.prior_reach(block.summary, self.now, bar);
        self.kernels.hopeful(&columns, &reach, mask);
        let (mut count, mut best) = (0, f32::NEG_INFINITY);
        let hopeful: Vec<usize> = ones(mask).collect();
        for row in hopeful {
            let at = block.start + row;
            let recency = self.recency(chunk, at).min(bound.recency);
            let prior = profile.prior(recency, chunk.importance[at]);
            let score = profile.score(relevance[row], prior, chunk.flags[at]);
            if score < bar {
                mask[row] = 0;
            } else {
                count += 1;
                best = best.max(score);
            }
        }
        (count, best)
    }
}
