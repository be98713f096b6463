//! The passes over a store: exact scan, pruned scan, scoring of proposed slots, decay sweep.
//!
//! The pruned scan is exact too. Int8 dot products give each row a lower and an upper bound of
//! its score (see `quantise`; the formulas are monotone). A row whose upper bound is below the
//! k-th best lower bound can't be among the k best, so float32 decides among the others only.

use crate::Id;
use crate::chunk::Chunk;
use crate::filter::Filter;
use crate::flags;
use crate::kernels::Kernels;
use crate::limits::{CHUNK_ROWS, KIND_MAX};
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

/// Buffers of one pass, one chunk long at most.
#[derive(Default)]
struct Scratch {
    mask: Vec<u8>,
    rows: Vec<u16>,
    cosines: Vec<f32>,
    dots: Vec<i32>,
}

/// A row that may be among the best.
struct Candidate {
    slot: u32,
    /// Upper bound of its score.
    high: f32,
}

/// Candidates are sifted when there are this many: it bounds memory where scores only rise.
const CANDIDATES_MAX: usize = 16 * CHUNK_ROWS;

impl Pass<'_> {
    /// The float32 scan of everything.
    pub fn exact(&self, k: usize) -> Hits {
        let mut scratch = Scratch::default();
        let mut top = TopHits::new(k);
        let mut admitted = 0;
        for (number, chunk) in self.store.chunks.iter().enumerate() {
            self.filter
                .select(chunk, &mut scratch.mask, &mut scratch.rows);
            admitted += scratch.rows.len();
            self.score_rows(number, &mut scratch, &mut top);
        }
        Hits {
            hits: top.into_hits(),
            admitted,
            scanned: self.store.len(),
            rescored: admitted,
        }
    }

    /// The int8 scan of everything, then float32 for those that may be among the best.
    pub fn pruned(&self, query: &Query, k: usize) -> Hits {
        let mut scratch = Scratch::default();
        let mut kth = KthScore::new(k);
        let mut candidates = Vec::new();
        let mut admitted = 0;
        for (number, chunk) in self.store.chunks.iter().enumerate() {
            self.filter
                .select(chunk, &mut scratch.mask, &mut scratch.rows);
            admitted += scratch.rows.len();
            self.bound_rows(query, number, &mut scratch, &mut kth, &mut candidates);
            if candidates.len() > CANDIDATES_MAX {
                candidates.retain(|candidate: &Candidate| candidate.high >= kth.value());
            }
        }
        candidates.retain(|candidate| candidate.high >= kth.value());
        let mut top = TopHits::new(k);
        for group in candidates.chunk_by(|a, b| place(a.slot).0 == place(b.slot).0) {
            let rows = group.iter().map(|one| place(one.slot).1 as u16);
            scratch.rows.clear();
            scratch.rows.extend(rows);
            self.score_rows(place(group[0].slot).0, &mut scratch, &mut top);
        }
        Hits {
            hits: top.into_hits(),
            admitted,
            scanned: self.store.len(),
            rescored: candidates.len(),
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
        let mut scratch = Scratch::default();
        let mut top = TopHits::new(k);
        let mut admitted = 0;
        for group in slots.chunk_by(|a, b| place(*a).0 == place(*b).0) {
            let (number, _) = place(group[0]);
            scratch.rows.clear();
            let rows = group.iter().map(|slot| place(*slot).1 as u16);
            scratch.rows.extend(rows);
            self.filter
                .retain(&self.store.chunks[number], &mut scratch.rows);
            admitted += scratch.rows.len();
            self.score_rows(number, &mut scratch, &mut top);
        }
        Hits {
            hits: top.into_hits(),
            admitted,
            scanned: slots.len(),
            rescored: admitted,
        }
    }

    /// Scores the rows in `scratch` with float32.
    fn score_rows(&self, number: usize, scratch: &mut Scratch, top: &mut TopHits) {
        let chunk = &self.store.chunks[number];
        let Scratch { rows, cosines, .. } = scratch;
        cosines.clear();
        cosines.resize(rows.len(), 0.0);
        if let Some(query) = self.query {
            self.kernels
                .scan_f32(&query.unit, &chunk.unit, rows, cosines);
        }
        let spec = self.filter.spec();
        let mut hopeless = self.profile.hopeless_cosine(top.threshold());
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
            // The decay is the dearest part: most rows lose even when taken as brand-new.
            let prior_max = self.profile.prior(1.0, importance);
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
            hopeless = self.profile.hopeless_cosine(top.threshold());
        }
    }

    /// Bounds the scores of the rows in `scratch` and keeps those that may be among the best.
    fn bound_rows(
        &self,
        query: &Query,
        number: usize,
        scratch: &mut Scratch,
        kth: &mut KthScore,
        candidates: &mut Vec<Candidate>,
    ) {
        let chunk = &self.store.chunks[number];
        let Scratch { rows, dots, .. } = scratch;
        dots.clear();
        dots.resize(rows.len(), 0);
        self.kernels
            .scan_i8(&query.quantised, &chunk.quantised, rows, dots);
        let spec = self.filter.spec();
        let profile = self.profile;
        let mut hopeless = profile.hopeless_cosine(kth.value());
        for (row, dot) in rows.iter().zip(dots) {
            let row = usize::from(*row);
            let (low, high) = query.cosine_bounds(*dot, chunk.quantisation[row]);
            if high <= hopeless {
                continue;
            }
            let relevance_high = self.relevance(chunk, row, high);
            let importance = chunk.importance[row];
            let row_flags = chunk.flags[row];
            // The decay is the dearest part: most rows lose even when taken as brand-new.
            let prior_max = profile.prior(1.0, importance);
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
            candidates.push(Candidate {
                slot: (number * CHUNK_ROWS + row) as u32,
                high: score_high,
            });
            // Only a row that certainly is a result may raise the bar for others.
            let relevance_low = self.relevance(chunk, row, low);
            let score_low = profile.score(relevance_low, prior, row_flags);
            if relevance_low >= spec.min_relevance && score_low >= spec.min_score {
                kth.push(score_low);
                hopeless = profile.hopeless_cosine(kth.value());
            }
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
    pub fn count(store: &Store, filter: &Filter) -> usize {
        let mut scratch = Scratch::default();
        let mut admitted = 0;
        for chunk in &store.chunks {
            filter.select(chunk, &mut scratch.mask, &mut scratch.rows);
            admitted += scratch.rows.len();
        }
        admitted
    }

    /// Ids, ascending, of admitted rows whose recency x importance is under their kind's
    /// threshold. Pinned rows are exempt.
    pub fn faded(&self, below: &[f32; KIND_MAX as usize + 1]) -> Vec<Id> {
        let mut scratch = Scratch::default();
        let mut found = Vec::new();
        for chunk in &self.store.chunks {
            self.filter
                .select(chunk, &mut scratch.mask, &mut scratch.rows);
            for row in scratch.rows.iter().map(|row| usize::from(*row)) {
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
