//! Keeping the best k of a stream.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::search::Hit;

/// A hit in the total order of results: higher score first, then smaller id. "Greater" is worse,
/// so the heap's top is the one to give up.
struct Ranked(Hit);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.0.score.total_cmp(&self.0.score);
        by_score.then_with(|| self.0.id.cmp(&other.0.id))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// The best k hits seen so far.
pub(crate) struct TopHits {
    k: usize,
    heap: BinaryHeap<Ranked>,
}

impl TopHits {
    pub fn new(k: usize) -> Self {
        Self {
            k,
            heap: BinaryHeap::with_capacity(k + 1),
        }
    }

    /// The most hits that are kept.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The scores of the hits, in no order.
    pub fn scores(&self) -> impl Iterator<Item = f32> {
        self.heap.iter().map(|Ranked(hit)| hit.score)
    }

    /// Below this score nothing can enter any more.
    #[inline]
    pub fn threshold(&self) -> f32 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.k => worst.0.score,
            _ => f32::NEG_INFINITY,
        }
    }

    /// Takes a hit in if it is among the best. Returns whether the threshold may have risen.
    #[inline]
    pub fn push(&mut self, hit: Hit) -> bool {
        let hit = Ranked(hit);
        if self.heap.len() < self.k {
            self.heap.push(hit);
            return self.heap.len() == self.k;
        }
        if let Some(mut worst) = self.heap.peek_mut()
            && hit < *worst
        {
            *worst = hit;
            return true;
        }
        false
    }

    /// Best first.
    pub fn into_hits(self) -> Vec<Hit> {
        let ranked = self.heap.into_sorted_vec();
        ranked.into_iter().map(|Ranked(hit)| hit).collect()
    }
}

/// The k-th largest of the scores seen so far.
pub(crate) struct KthScore {
    k: usize,
    heap: BinaryHeap<Negated>,
}

#[derive(PartialEq)]
struct Negated(f32);

impl Eq for Negated {}

impl Ord for Negated {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0)
    }
}

impl PartialOrd for Negated {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl KthScore {
    pub fn new(k: usize) -> Self {
        Self {
            k,
            heap: BinaryHeap::with_capacity(k + 1),
        }
    }

    /// The k-th largest score; minus infinity before there are k.
    #[inline]
    pub fn value(&self) -> f32 {
        match self.heap.peek() {
            Some(least) if self.heap.len() == self.k => least.0,
            _ => f32::NEG_INFINITY,
        }
    }

    /// Takes a score in. Returns whether the k-th largest may have risen.
    #[inline]
    pub fn push(&mut self, score: f32) -> bool {
        if self.heap.len() < self.k {
            self.heap.push(Negated(score));
            return self.heap.len() == self.k;
        }
        if score > self.value()
            && let Some(mut least) = self.heap.peek_mut()
        {
            *least = Negated(score);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hits() -> impl Strategy<Value = Vec<Hit>> {
        // Few distinct scores and ids, so that ties are common.
        let hit = (0_u8..4, any::<u8>()).prop_map(|(score, id)| {
            let mut bytes = [0; 16];
            bytes[15] = id;
            Hit {
                id: bytes,
                score: f32::from(score) / 3.0,
                ..Hit::default()
            }
        });
        prop::collection::vec(hit, 0..60)
    }

    proptest! {
        #[test]
        fn the_best_k_are_those_of_a_full_sort(hits in hits(), k in 1_usize..20) {
            let mut top = TopHits::new(k);
            let mut kth = KthScore::new(k);
            for hit in &hits {
                top.push(*hit);
                kth.push(hit.score);
            }
            prop_assert_eq!(top.threshold(), kth.value());
            let mut sorted = hits;
            sorted.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
            let expected = sorted.get(k - 1).map_or(f32::NEG_INFINITY, |hit| hit.score);
            prop_assert_eq!(kth.value(), expected);
            sorted.truncate(k);
            prop_assert_eq!(top.into_hits(), sorted);
        }
    }
}
