//! Posting lists: for one term, the rows that have it and how much of it.
//!
//! Invariants:
//! - postings are in ascending order of slots, each slot once;
//! - a long list is cut into segments of at most [`SEGMENT_MAX`] postings, none of them empty, so
//!   that a change in the middle moves few of them;
//! - nothing of a posting stays in a list that it was taken out of.

use crate::limits::TERM_WEIGHT_MAX;

/// Slot and weight of a term in one text, in one number that sorts by slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Posting(u32);

impl Posting {
    const WEIGHT_BITS: u32 = TERM_WEIGHT_MAX.count_ones();

    /// A weight above the most counts as the most.
    pub fn new(slot: u32, weight: u32) -> Self {
        Self((slot << Self::WEIGHT_BITS) | weight.min(TERM_WEIGHT_MAX))
    }

    #[inline]
    pub fn slot(self) -> u32 {
        self.0 >> Self::WEIGHT_BITS
    }

    /// How often the term is in the text, in eighths.
    #[inline]
    pub fn weight(self) -> u32 {
        self.0 & TERM_WEIGHT_MAX
    }
}

/// Slots from here on can't have a text.
pub(crate) const SLOT_END: u32 = 1 << (u32::BITS - Posting::WEIGHT_BITS);

/// Postings of one segment: 4 KiB, which are moved in less time than a cache miss or two take.
const SEGMENT_MAX: usize = 1024;

#[derive(Debug, Clone)]
pub(super) enum PostingList {
    /// Most terms are in few texts: one allocation.
    Short(Vec<Posting>),
    Long(Vec<Vec<Posting>>),
}

impl Default for PostingList {
    fn default() -> Self {
        Self::Short(Vec::new())
    }
}

impl PostingList {
    pub fn segments(&self) -> &[Vec<Posting>] {
        match self {
            Self::Short(postings) => std::slice::from_ref(postings),
            Self::Long(segments) => segments,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Posting> {
        self.segments().iter().flatten().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.segments().iter().all(Vec::is_empty)
    }

    /// Adds a posting of a slot that isn't there.
    pub fn insert(&mut self, posting: Posting) {
        if let Self::Short(postings) = self
            && postings.len() == SEGMENT_MAX
        {
            *self = Self::Long(vec![std::mem::take(postings)]);
        }
        match self {
            Self::Short(postings) => insert(postings, posting),
            Self::Long(segments) => {
                let place = segment_of(segments, posting);
                let mut place = place;
                if segments[place].len() == SEGMENT_MAX {
                    // Rows come mostly in the order of their slots: what is full stays full then.
                    let is_last = segments[place].last().is_some_and(|last| *last < posting);
                    let half = if is_last {
                        SEGMENT_MAX
                    } else {
                        SEGMENT_MAX / 2
                    };
                    let rest = segments[place].split_off(half);
                    segments[place].shrink_to_fit();
                    segments.insert(place + 1, rest);
                    if is_last || segments[place + 1][0] <= posting {
                        place += 1;
                    }
                }
                insert(&mut segments[place], posting);
            }
        }
    }

    /// Takes the posting of a slot out, where there is one.
    pub fn remove(&mut self, slot: u32) {
        let least = Posting::new(slot, 0);
        match self {
            Self::Short(postings) => remove(postings, least),
            Self::Long(segments) => {
                // The slot's posting sorts behind `least`, so it may begin the segment after.
                let place = segment_of(segments, Posting::new(slot, TERM_WEIGHT_MAX));
                remove(&mut segments[place], least);
                if segments[place].is_empty() && segments.len() > 1 {
                    segments.remove(place);
                }
                if let [only] = &mut segments[..]
                    && only.len() <= SEGMENT_MAX / 2
                {
                    *self = Self::Short(std::mem::take(only));
                }
            }
        }
    }

    /// Bytes in use beside the list itself.
    pub fn memory_bytes(&self) -> usize {
        let postings: usize = self.segments().iter().map(Vec::capacity).sum();
        let segments = match self {
            Self::Short(_) => 0,
            Self::Long(segments) => segments.capacity() * size_of::<Vec<Posting>>(),
        };
        postings * size_of::<Posting>() + segments
    }
}

/// The segment that a posting is in or goes into.
fn segment_of(segments: &[Vec<Posting>], posting: Posting) -> usize {
    segments
        .partition_point(|segment| segment.first().is_some_and(|first| *first <= posting))
        .saturating_sub(1)
}

fn insert(postings: &mut Vec<Posting>, posting: Posting) {
    let place = postings.partition_point(|other| *other < posting);
    if postings.capacity() == 0 {
        postings.reserve_exact(1);
    }
    postings.insert(place, posting);
}

fn remove(postings: &mut Vec<Posting>, least: Posting) {
    let place = postings.partition_point(|other| *other < least);
    if postings
        .get(place)
        .is_some_and(|found| found.slot() == least.slot())
    {
        postings.remove(place);
        // What was moved up would stay behind the end.
        if postings.spare_capacity_mut().len() > postings.len() {
            postings.shrink_to_fit();
        } else if let Some(spare) = postings.spare_capacity_mut().first_mut() {
            spare.write(Posting(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_list_is_a_sorted_map(
            start in 0_u32..4 * SEGMENT_MAX as u32,
            steps in prop::collection::vec((0_u32..5000, 0_u32..600, any::<bool>()), 0..200),
        ) {
            let mut list = PostingList::default();
            let mut map: BTreeMap<u32, u32> = BTreeMap::new();
            // Every other slot first, in order, so that later ones go between.
            for slot in (0..start).step_by(2) {
                list.insert(Posting::new(slot, 8));
                map.insert(slot, 8);
            }
            let drop_low = steps.len() % 2 == 1;
            for (slot, weight, is_insert) in steps {
                list.remove(slot);
                map.remove(&slot);
                if is_insert {
                    list.insert(Posting::new(slot, weight));
                    map.insert(slot, weight.min(TERM_WEIGHT_MAX));
                }
            }
            if drop_low {
                for slot in 0..start.saturating_sub(3) {
                    list.remove(slot);
                    map.remove(&slot);
                }
            }
            let found: Vec<(u32, u32)> = list.iter().map(|p| (p.slot(), p.weight())).collect();
            prop_assert_eq!(found, map.into_iter().collect::<Vec<_>>());
            prop_assert!(list.segments().iter().all(|segment| segment.len() <= SEGMENT_MAX));
            let several = list.segments().len() > 1;
            prop_assert!(!several || list.segments().iter().all(|segment| !segment.is_empty()));
        }
    }

    #[test]
    fn rows_in_order_fill_their_segments() {
        let mut list = PostingList::default();
        let slots = 0..10 * SEGMENT_MAX as u32;
        slots
            .clone()
            .for_each(|slot| list.insert(Posting::new(slot, 8)));
        assert_eq!(
            (list.iter().count(), list.segments().len()),
            (slots.len(), 10)
        );
        slots.for_each(|slot| list.remove(slot));
        assert!(list.is_empty() && list.memory_bytes() == 0);
    }
}
