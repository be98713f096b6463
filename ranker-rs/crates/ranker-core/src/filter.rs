//! Filters: what may be a result, as predicates on single columns.
//!
//! A block is asked by its summary first, which mostly answers for all its rows at once. The
//! predicates that it leaves open run column by column, and the costly ones (large sets, labels)
//! only on the rows that are left.

use crate::chunk::{Block, Chunk};
use crate::error::{Error, Result};
use crate::flags;
use crate::kernels::Kernels;
use crate::limits::{
    BLOCK_ROWS, EVERY_KIND, FILTER_DEPTH_MAX, FILTER_PARTS_MAX, FILTER_VALUES_MAX, STATUS_MAX,
};
use crate::predicate::{Hash, Labels, Predicate, Share, Time, Values};
use crate::summary::{Range, Verdict};

/// Bits of every status: bit n stands for the value n.
const EVERY_STATUS: u8 = (2 << STATUS_MAX) - 2;

/// What a search admits, not yet checked. An empty set and a mask of zero admit everything.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterSpec {
    /// Mask of kinds: bit n for kind n.
    pub kinds: u8,
    /// Mask of statuses: bit n for status n.
    pub statuses: u8,
    /// Subjects, one of which the row must have.
    pub subjects: Vec<u64>,
    /// Contexts, one of which the row must have.
    pub contexts: Vec<u64>,
    /// Attributes, one of which the row must have.
    pub attributes: Vec<u64>,
    /// Labels that the row must all have.
    pub labels_all: Vec<u64>,
    /// Labels of which the row must have one.
    pub labels_any: Vec<u64>,
    /// Labels of which the row must have none.
    pub labels_none: Vec<u64>,
    /// Sets of labels, of each of which the row must have one.
    pub labels_each: Vec<Vec<u64>>,
    /// The row must be valid then: `valid_from <= t < valid_to`.
    pub valid_at: Option<i64>,
    /// The row must have been known then: `recorded <= t`.
    pub recorded_at: Option<i64>,
    /// The row must have been created then or later.
    pub created_from: Option<i64>,
    /// The row must have been created before.
    pub created_to: Option<i64>,
    /// The row must be valid from then on or from a later time.
    pub valid_from_from: Option<i64>,
    /// The row must be valid from an earlier time.
    pub valid_from_to: Option<i64>,
    /// The least importance.
    pub min_importance: f32,
    /// The least confidence.
    pub min_confidence: f32,
    /// Flags that the row must all have.
    pub include_flags: u16,
    /// Flags of which the row must have none.
    pub exclude_flags: u16,
    /// The row must not have expired then: `expires > t`.
    pub not_expired_at: Option<i64>,
    /// The least score. It bounds results and doesn't count as admission.
    pub min_score: f32,
    /// The least relevance. It bounds results and doesn't count as admission.
    pub min_relevance: f32,
    /// Filters of which the row must meet one; none: no further condition. Their least scores and
    /// relevances don't count.
    pub any_of: Vec<Filter>,
    /// Filters of which the row must meet none.
    pub none_of: Vec<Filter>,
}

impl Default for FilterSpec {
    fn default() -> Self {
        Self {
            kinds: 0,
            statuses: (1 << 2) | (1 << 3),
            subjects: Vec::new(),
            contexts: Vec::new(),
            attributes: Vec::new(),
            labels_all: Vec::new(),
            labels_any: Vec::new(),
            labels_none: Vec::new(),
            labels_each: Vec::new(),
            valid_at: None,
            recorded_at: None,
            created_from: None,
            created_to: None,
            valid_from_from: None,
            valid_from_to: None,
            min_importance: 0.0,
            min_confidence: 0.0,
            include_flags: 0,
            exclude_flags: flags::RETRACTED | flags::EXPIRED,
            not_expired_at: None,
            min_score: 0.0,
            min_relevance: 0.0,
            any_of: Vec::new(),
            none_of: Vec::new(),
        }
    }
}

/// A checked filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    spec: FilterSpec,
    /// Cheap ones first.
    predicates: Vec<Predicate>,
}

/// A block's rows: one byte each, 1 where admitted.
pub(crate) type Mask = [u8; BLOCK_ROWS];

impl Filter {
    /// Checks and prepares.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for unknown bits in a mask, a least value outside 0..=1, a set of
    /// more than [`FILTER_VALUES_MAX`] values, more than [`FILTER_PARTS_MAX`] filters or sets in
    /// all, or filters within filters more than [`FILTER_DEPTH_MAX`] deep.
    pub fn new(spec: FilterSpec) -> Result<Self> {
        check(&spec)?;
        let made = Self {
            predicates: predicates(&spec),
            spec,
        };
        for (name, count, max) in [
            (
                "any_of, none_of, labels_each",
                made.parts(),
                FILTER_PARTS_MAX,
            ),
            ("any_of, none_of", made.depth(), FILTER_DEPTH_MAX),
        ] {
            if count > max {
                return Err(Error::argument(
                    name,
                    format!("{count} parts or levels, at most {max}"),
                ));
            }
        }
        Ok(made)
    }

    /// The values that the filter was made of.
    #[must_use]
    pub fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    /// Filters in this one, itself included, and the sets of `labels_each`.
    fn parts(&self) -> usize {
        let spec = &self.spec;
        let nested = spec.any_of.iter().chain(&spec.none_of);
        1 + spec.labels_each.len() + nested.map(Self::parts).sum::<usize>()
    }

    /// Levels of filters, this one included.
    fn depth(&self) -> usize {
        let nested = self.spec.any_of.iter().chain(&self.spec.none_of);
        1 + nested.map(Self::depth).max().unwrap_or(0)
    }

    pub(crate) fn predicates(&self) -> &[Predicate] {
        &self.predicates
    }

    /// Marks the admitted rows of a block and counts them. Columns are read only where the
    /// summary leaves a doubt, and when it tells that there is none, `mask` is left as it was.
    pub(crate) fn admit(&self, kernels: &Kernels, block: &Block<'_>, mask: &mut Mask) -> usize {
        let mut doubts = 0_u32;
        for (number, predicate) in self.predicates.iter().enumerate() {
            match predicate.judge(block) {
                Verdict::None => return 0,
                Verdict::All => {}
                Verdict::Some => doubts |= 1 << number,
            }
        }
        debug_assert!(self.predicates.len() <= u32::BITS as usize);
        *mask = [1; BLOCK_ROWS];
        let mask = &mut mask[..block.len];
        if doubts == 0 {
            return block.len;
        }
        while doubts != 0 {
            self.predicates[doubts.trailing_zeros() as usize].apply(kernels, block, mask);
            doubts &= doubts - 1;
        }
        mask.iter().map(|one| usize::from(*one)).sum()
    }

    /// Whether a row is admitted.
    pub(crate) fn admits(&self, chunk: &Chunk, row: usize) -> bool {
        let mut predicates = self.predicates.iter();
        predicates.all(|predicate| predicate.holds(chunk, row))
    }
}

/// The positions of ones, ascending.
pub(crate) fn ones(mask: &[u8]) -> impl Iterator<Item = usize> {
    let (words, rest) = mask.as_chunks::<8>();
    let words = words.iter().enumerate().flat_map(|(number, word)| {
        let mut word = u64::from_le_bytes(*word);
        std::iter::from_fn(move || {
            (word != 0).then(|| {
                let byte = word.trailing_zeros() as usize / 8;
                word &= word - 1;
                8 * number + byte
            })
        })
    });
    let start = mask.len() - rest.len();
    let rest = rest.iter().enumerate().filter(|(_, one)| **one == 1);
    words.chain(rest.map(move |(position, _)| start + position))
}

fn check(spec: &FilterSpec) -> Result<()> {
    for (name, mask, known) in [
        ("kinds", u16::from(spec.kinds), u16::from(EVERY_KIND)),
        (
            "statuses",
            u16::from(spec.statuses),
            u16::from(EVERY_STATUS),
        ),
        ("include_flags", spec.include_flags, flags::ALL),
        ("exclude_flags", spec.exclude_flags, flags::ALL),
    ] {
        if mask & !known != 0 {
            return Err(Error::argument(
                name,
                format!("unknown bits {:#x}", mask & !known),
            ));
        }
    }
    if spec.include_flags & spec.exclude_flags != 0 {
        return Err(Error::argument(
            "include_flags",
            format!(
                "bits {:#x} are both wanted and unwanted",
                spec.include_flags & spec.exclude_flags
            ),
        ));
    }
    for (name, least) in [
        ("min_importance", spec.min_importance),
        ("min_confidence", spec.min_confidence),
        ("min_score", spec.min_score),
        ("min_relevance", spec.min_relevance),
    ] {
        if !(0.0..=1.0).contains(&least) {
            return Err(Error::argument(name, format!("{least} is not in 0..=1")));
        }
    }
    for (name, values) in [
        ("subjects", &spec.subjects),
        ("contexts", &spec.contexts),
        ("attributes", &spec.attributes),
        ("labels_all", &spec.labels_all),
        ("labels_any", &spec.labels_any),
        ("labels_none", &spec.labels_none),
    ]
    .into_iter()
    .chain(spec.labels_each.iter().map(|one| ("labels_each", one)))
    {
        if values.len() > FILTER_VALUES_MAX {
            return Err(Error::argument(
                name,
                format!("{} values, at most {FILTER_VALUES_MAX}", values.len()),
            ));
        }
    }
    Ok(())
}

fn predicates(spec: &FilterSpec) -> Vec<Predicate> {
    let mut found = vec![Predicate::Kinds(match spec.kinds {
        0 => EVERY_KIND,
        kinds => kinds,
    })];
    if spec.statuses != 0 && spec.statuses != EVERY_STATUS {
        found.push(Predicate::Statuses(spec.statuses));
    }
    let mask = spec.include_flags | spec.exclude_flags;
    if mask != 0 {
        found.push(Predicate::Flags {
            mask,
            wanted: spec.include_flags,
        });
    }
    let hashes = [
        (Hash::Subject, &spec.subjects),
        (Hash::Context, &spec.contexts),
        (Hash::Attribute, &spec.attributes),
    ];
    for (column, values) in hashes {
        if let [value] = values[..] {
            found.push(Predicate::Hash(column, value));
        }
    }
    found.extend(shares(spec));
    found.extend(times(spec));
    for (column, values) in hashes {
        if values.len() > 1 {
            found.push(Predicate::Hashes(column, Values::new(values)));
        }
    }
    for (how, values) in [
        (Labels::All, &spec.labels_all),
        (Labels::Any, &spec.labels_any),
        (Labels::None, &spec.labels_none),
    ] {
        if !values.is_empty() {
            found.push(Predicate::Labels(how, Values::new(values)));
        }
    }
    // One predicate for all of these, so that a filter has few whatever it is made of.
    if !spec.labels_each.is_empty() {
        let each = spec.labels_each.iter();
        found.push(Predicate::LabelsEach(
            each.map(|one| Values::new(one)).collect(),
        ));
    }
    for (wanted, filters) in [(true, &spec.any_of), (false, &spec.none_of)] {
        if !filters.is_empty() {
            let of = filters.iter().map(|one| one.predicates().into()).collect();
            found.push(Predicate::Nested { wanted, of });
        }
    }
    found
}

fn shares(spec: &FilterSpec) -> impl Iterator<Item = Predicate> {
    [
        (Share::Importance, spec.min_importance),
        (Share::Confidence, spec.min_confidence),
    ]
    .into_iter()
    .filter(|(_, least)| *least > 0.0)
    .map(|(column, low)| Predicate::Share(column, Range { low, high: 1.0 }))
}

fn times(spec: &FilterSpec) -> impl Iterator<Item = Predicate> {
    const NEVER: Range<i64> = Range {
        low: i64::MAX,
        high: i64::MIN,
    };
    let until = |high: i64| Range {
        low: i64::MIN,
        high,
    };
    let from = |low: i64| Range {
        low,
        high: i64::MAX,
    };
    let before = |time: i64| time.checked_sub(1).map_or(NEVER, until);
    let after = |time: i64| time.checked_add(1).map_or(NEVER, from);
    [
        (Time::Created, spec.created_from.map(from)),
        (Time::Created, spec.created_to.map(before)),
        (Time::ValidFrom, spec.valid_from_from.map(from)),
        (Time::ValidFrom, spec.valid_from_to.map(before)),
        (Time::ValidFrom, spec.valid_at.map(until)),
        (Time::ValidTo, spec.valid_at.map(after)),
        (Time::Recorded, spec.recorded_at.map(until)),
        (Time::Expires, spec.not_expired_at.map(after)),
    ]
    .into_iter()
    .filter_map(|(column, range)| range.map(|range| Predicate::Time(column, range)))
}
