//! The ranking profile and the formulas that it parameterises.
//!
//! Source: retrieval in "Generative Agents" (Park et al., 2023) adds recency, importance and
//! relevance, each scaled to 0..1; here recency is a half-life decay per kind and the sum is
//! weighted (design, section 8). Evaluation order, which every implementation follows:
//!
//! ```text
//! semantic  = clamp((cosine - floor) / (1 - floor), 0, 1)                          float32
//! relevance = of that and the words that match: see `relevance`                    float32
//! recency   = 2 ^ -(max(0, now - anchor) / half_life)                float64, then float32
//! score     = (w_rel * relevance + (w_rec * recency + w_imp * importance))
//!             / ((w_rel + w_rec) + w_imp)                                          float32
//! score     = score * source_factor[source]    of the row's source kind
//! score     = score * consolidated_factor      where the row is consolidated
//! ```
//!
//! The half-life is that of the row's attribute where the profile has one and lets attributes
//! decide for the row's kind, and that of the kind otherwise.
//!
//! Each step is monotone in float32 too, so bounds on a cosine are bounds on the score. Both factors
//! are at most 1, and 1 for flags of 0, so the score with those bounds that of any row.

use crate::error::{Error, Result};
use crate::flags;
use crate::kernels::{FadeReach, PriorReach};
use crate::lexical::Bm25;
use crate::limits::{ATTRIBUTES_MAX, EVERY_KIND, KIND_MAX, SOURCE_MAX};
use crate::relevance::Blend;
use crate::summary::Summary;

const MICROSECONDS_PER_DAY: f64 = 86_400.0 * 1e6;

/// What recency counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecencyAnchor {
    /// `valid_from`.
    ValidFrom,
    /// The later of `valid_from` and `last_used`.
    LastUsed,
}

/// The values of a profile, not yet checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileSpec {
    /// Weight of relevance.
    pub w_relevance: f32,
    /// Weight of recency.
    pub w_recency: f32,
    /// Weight of importance.
    pub w_importance: f32,
    /// Half-life in microseconds by kind; index 0 is unused, infinity means no decay.
    pub half_life: [f64; KIND_MAX as usize + 1],
    /// Half-lives in microseconds by attribute, each attribute once; infinity means no decay.
    pub attribute_half_life: Vec<(u64, f64)>,
    /// Mask of the kinds for whose rows an attribute's half-life goes before the kind's.
    pub attribute_kinds: u8,
    /// What recency counts from.
    pub recency_anchor: RecencyAnchor,
    /// The cosine that unrelated texts have under the embedder, in [-1, 1).
    pub relevance_floor: f32,
    /// Factor, 0..1, on the score of consolidated rows.
    pub consolidated_factor: f32,
    /// Factor, 0..1, on the score of rows by their source kind; index 0, for none, is 1.
    pub source_factor: [f32; SOURCE_MAX + 1],
    /// The part of relevance, 0..=1, that is decided by words where a query has words and a
    /// vector.
    pub lexical_weight: f32,
    /// How words are scored.
    pub bm25: Bm25,
}

impl Default for ProfileSpec {
    fn default() -> Self {
        Self {
            w_relevance: 0.60,
            w_recency: 0.25,
            w_importance: 0.15,
            half_life: [
                0.0,
                30.0 * MICROSECONDS_PER_DAY,
                365.0 * MICROSECONDS_PER_DAY,
                f64::INFINITY,
                30.0 * MICROSECONDS_PER_DAY,
                f64::INFINITY,
            ],
            attribute_half_life: Vec::new(),
            attribute_kinds: EVERY_KIND,
            recency_anchor: RecencyAnchor::ValidFrom,
            relevance_floor: 0.0,
            consolidated_factor: 0.5,
            source_factor: [1.0; SOURCE_MAX + 1],
            lexical_weight: 0.6,
            bm25: Bm25::default(),
        }
    }
}

/// A checked profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// With the half-lives by attribute in the attributes' order.
    spec: ProfileSpec,
    /// The longest half-life of an attribute.
    longest: f64,
    weight_sum: f32,
    floor_to_one: f32,
}

impl Profile {
    /// Checks the values.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a weight that is negative or not finite, weights that add
    /// up to zero, a half-life that is not positive, an attribute that is there twice, more than
    /// [`ATTRIBUTES_MAX`] of them, an unknown kind, a floor outside [-1, 1), a factor outside
    /// 0..=1, a factor other than 1 where no source kind is known, a lexical weight outside 0..=1,
    /// parameters as in [`Bm25::check`].
    pub fn new(mut spec: ProfileSpec) -> Result<Self> {
        for (name, weight) in [
            ("w_relevance", spec.w_relevance),
            ("w_recency", spec.w_recency),
            ("w_importance", spec.w_importance),
        ] {
            if !weight.is_finite() || weight < 0.0 {
                return Err(Error::argument(
                    name,
                    format!("{weight} is not a finite number >= 0"),
                ));
            }
        }
        let weight_sum = (spec.w_relevance + spec.w_recency) + spec.w_importance;
        // A subnormal sum would make the quotient meaningless; an infinite one, zero.
        if !weight_sum.is_normal() {
            return Err(Error::argument(
                "w_relevance",
                format!("the weights must have a positive finite sum, not {weight_sum}"),
            ));
        }
        for (kind, half_life) in spec.half_life.iter().enumerate().skip(1) {
            if half_life.is_nan() || *half_life <= 0.0 {
                return Err(Error::argument(
                    "half_life",
                    format!("{half_life} for kind {kind} is not positive"),
                ));
            }
        }
        spec.attribute_half_life
            .sort_unstable_by_key(|(attribute, _)| *attribute);
        check_attributes(&spec)?;
        if !(-1.0..1.0).contains(&spec.relevance_floor) {
            return Err(Error::argument(
                "relevance_floor",
                format!("{} is not in [-1, 1)", spec.relevance_floor),
            ));
        }
        if !(0.0..=1.0).contains(&spec.consolidated_factor) {
            return Err(Error::argument(
                "consolidated_factor",
                format!("{} is not in 0..=1", spec.consolidated_factor),
            ));
        }
        check_sources(&spec.source_factor)?;
        if !(0.0..=1.0).contains(&spec.lexical_weight) {
            return Err(Error::argument(
                "lexical_weight",
                format!("{} is not in 0..=1", spec.lexical_weight),
            ));
        }
        spec.bm25.check()?;
        Ok(Self {
            weight_sum,
            floor_to_one: 1.0 - spec.relevance_floor,
            longest: spec
                .attribute_half_life
                .iter()
                .fold(0.0, |longest, (_, half_life)| longest.max(*half_life)),
            spec,
        })
    }

    /// The values that the profile was made of.
    #[must_use]
    pub fn spec(&self) -> &ProfileSpec {
        &self.spec
    }

    /// Likeness of meaning, 0..1, of a cosine.
    #[must_use]
    #[inline]
    pub fn semantic(&self, cosine: f32) -> f32 {
        ((cosine - self.spec.relevance_floor) / self.floor_to_one).clamp(0.0, 1.0)
    }

    /// The half-life of a row of a valid kind. The attribute is asked for only where it counts.
    #[must_use]
    #[inline]
    pub fn half_life(&self, kind: u8, attribute: impl FnOnce() -> u64) -> f64 {
        if self.spec.attribute_half_life.is_empty() {
            self.spec.half_life[usize::from(kind)]
        } else {
            self.half_life_by_attribute(kind, attribute())
        }
    }

    // Out of line, so that searches without half-lives by attribute stay as short as they were.
    #[inline(never)]
    fn half_life_by_attribute(&self, kind: u8, attribute: u64) -> f64 {
        let spec = &self.spec;
        let known = &spec.attribute_half_life;
        if (spec.attribute_kinds >> kind) & 1 == 1
            && let Ok(place) = known.binary_search_by_key(&attribute, |(one, _)| *one)
        {
            return known[place].1;
        }
        spec.half_life[usize::from(kind)]
    }

    /// Recency, 0..1, of a row that decays by a half-life. A time ahead of `now` counts as now.
    #[must_use]
    #[inline]
    pub fn recency(&self, half_life: f64, valid_from: i64, last_used: i64, now: i64) -> f32 {
        let anchor = match self.spec.recency_anchor {
            RecencyAnchor::ValidFrom => valid_from,
            RecencyAnchor::LastUsed => valid_from.max(last_used),
        };
        if anchor >= now || half_life == f64::INFINITY {
            return 1.0;
        }
        let age = now.saturating_sub(anchor) as f64;
        (-(age / half_life)).exp2() as f32
    }

    /// The part of the weighted sum that no query changes.
    #[must_use]
    #[inline]
    pub fn prior(&self, recency: f32, importance: f32) -> f32 {
        self.spec.w_recency * recency + self.spec.w_importance * importance
    }

    /// The score, 0..1.
    #[must_use]
    #[inline]
    pub fn score(&self, relevance: f32, prior: f32, row_flags: u16) -> f32 {
        let score = (self.spec.w_relevance * relevance + prior) / self.weight_sum;
        let score = score * self.spec.source_factor[flags::source(row_flags)];
        if row_flags & flags::CONSOLIDATED == 0 {
            score
        } else {
            score * self.spec.consolidated_factor
        }
    }

    /// An upper bound of the recency of rows that a summary covers.
    #[must_use]
    pub(crate) fn recency_max(&self, summary: &Summary, now: i64) -> f32 {
        let (valid_from, last_used) = (summary.valid_from.high, summary.last_used.high);
        let kinds = (1..=KIND_MAX).filter(|kind| (summary.kinds >> kind) & 1 == 1);
        let mut half_life = kinds
            .map(|kind| self.spec.half_life[usize::from(kind)])
            .fold(0.0, f64::max);
        if self.may_decay_by_attribute(summary) {
            half_life = half_life.max(self.longest);
        }
        if half_life == 0.0 {
            return 0.0;
        }
        // `exp2` is right to the last bits but not known to be monotone in them.
        let recency = self.recency(half_life, valid_from, last_used, now);
        recency.next_up().min(1.0)
    }

    /// Whether recency may count from the last use.
    #[must_use]
    pub(crate) fn counts_last_use(&self) -> bool {
        self.spec.recency_anchor == RecencyAnchor::LastUsed
    }

    /// What rows under a summary must come up to for a score of `bar`: no row that falls short
    /// of it has that score.
    #[must_use]
    pub(crate) fn prior_reach(&self, summary: &Summary, now: i64, bar: f32) -> PriorReach {
        let spec = &self.spec;
        let slowest = if self.may_decay_by_attribute(summary) {
            self.longest
        } else {
            0.0
        };
        // The row of another kind decays as fast as can be; there is none.
        let mut decay = [0.0; 8];
        for (decay, half_life) in decay.iter_mut().zip(spec.half_life).skip(1) {
            *decay = (1.0 / half_life.max(slowest)).min(f64::from(f32::MAX)) as f32;
        }
        // Rounding takes off a few units in the last place of numbers no larger than the sum.
        let slack = 1e-6 * f64::from(self.weight_sum);
        PriorReach {
            now: now as f64,
            decay,
            w_relevance: spec.w_relevance,
            w_recency: spec.w_recency,
            w_importance: spec.w_importance,
            least: (f64::from(bar) * f64::from(self.weight_sum) - slack) as f32,
        }
    }

    /// What vitality below thresholds by kind comes to for the kernels; None: rows under the
    /// summary, or the thresholds, are not as kernels take them.
    pub(crate) fn fade_reach(
        &self,
        summary: &Summary,
        now: i64,
        below: &[f32; KIND_MAX as usize + 1],
    ) -> Option<FadeReach> {
        // Recency is a bound from below down to 125 half-lives only.
        let is_taken = |threshold: &f32| *threshold <= 0.0 || *threshold > 1e-30;
        if self.may_decay_by_attribute(summary) || !below.iter().all(is_taken) {
            return None;
        }
        let mut reach = FadeReach {
            now: now as f64,
            decay: [0.0; 8],
            below: [0.0; 8],
        };
        for (decay, half_life) in reach.decay.iter_mut().zip(self.spec.half_life).skip(1) {
            *decay = (1.0 / half_life).min(f64::from(f32::MAX)) as f32;
        }
        for (least, below) in reach.below.iter_mut().zip(below).skip(1) {
            *least = below.max(0.0);
        }
        Some(reach)
    }

    /// Whether there may be rows under a summary whose attribute has a half-life of its own.
    fn may_decay_by_attribute(&self, summary: &Summary) -> bool {
        let known = &self.spec.attribute_half_life;
        let first = known.partition_point(|(attribute, _)| *attribute < summary.attribute.low);
        known
            .get(first)
            .is_some_and(|(attribute, _)| *attribute <= summary.attribute.high)
            && summary.kinds & self.spec.attribute_kinds != 0
    }

    /// A cosine with which no row of a prior up to `prior_max` and without a word of the query can
    /// reach `score`. Scores are monotone, so one comparison rules a row out where the formulas
    /// would take divisions.
    #[must_use]
    pub(crate) fn hopeless_cosine(&self, score: f32, prior_max: f32, blend: Blend) -> f32 {
        let spec = &self.spec;
        let relevance = (score * self.weight_sum - prior_max) / spec.w_relevance;
        // The inverse is rounded, so it is moved to the safe side and then put to the test.
        let semantic = blend.semantic_for(relevance);
        let cosine = spec.relevance_floor + semantic * self.floor_to_one - 1e-5;
        let relevance = blend.relevance(self.semantic(cosine), 0.0);
        if self.score(relevance, prior_max, 0) < score {
            cosine
        } else {
            f32::NEG_INFINITY
        }
    }
}

/// Checks factors by source kind.
fn check_sources(factors: &[f32; SOURCE_MAX + 1]) -> Result<()> {
    const NAME: &str = "source_factor";
    for (source, factor) in factors.iter().enumerate() {
        if !(0.0..=1.0).contains(factor) {
            return Err(Error::argument(
                NAME,
                format!("{factor} for source kind {source} is not in 0..=1"),
            ));
        }
    }
    // Bounds are taken with flags of 0, so no row may score higher than one without a source.
    if factors[0] < 1.0 {
        return Err(Error::argument(
            NAME,
            format!("{} for no source kind is not 1", factors[0]),
        ));
    }
    Ok(())
}

/// Checks half-lives by attribute, which are in order.
fn check_attributes(spec: &ProfileSpec) -> Result<()> {
    const NAME: &str = "attribute_half_life";
    let known = &spec.attribute_half_life;
    if known.len() > ATTRIBUTES_MAX {
        let count = known.len();
        return Err(Error::argument(
            NAME,
            format!("{count} attributes, at most {ATTRIBUTES_MAX} are taken"),
        ));
    }
    for (_, half_life) in known {
        if half_life.is_nan() || *half_life <= 0.0 {
            return Err(Error::argument(
                NAME,
                format!("{half_life} is not positive"),
            ));
        }
    }
    if known.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Error::argument(NAME, "an attribute is there twice"));
    }
    if spec.attribute_kinds & !EVERY_KIND != 0 {
        return Err(Error::argument(
            "attribute_kinds",
            format!("{:#b} has bits of no kind", spec.attribute_kinds),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Range;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_hopeless_cosine_is_hopeless(
            weights in (0.0_f32..3.0, 0.0_f32..3.0, 0.001_f32..3.0),
            floor in -1.0_f32..0.99,
            bar in 0.0_f32..=1.0,
            below in 0.0_f32..2.0,
            less in 0.0_f32..=1.0,
            lexical_weight in prop_oneof![0.0_f32..=1.0, Just(1.0)],
            parts in (any::<bool>(), any::<bool>()),
            row in (0.0_f32..=1.0, 0.0_f32..=1.0, prop_oneof![Just(0), Just(flags::CONSOLIDATED)]),
            source in (0_u16..=7, 0.0_f32..=1.0),
        ) {
            let profile = Profile::new(ProfileSpec {
                w_relevance: weights.0,
                w_recency: weights.1,
                w_importance: weights.2,
                relevance_floor: floor,
                source_factor: {
                    let mut factors = [source.1; SOURCE_MAX + 1];
                    factors[0] = 1.0;
                    factors
                },
                ..ProfileSpec::default()
            }).unwrap();
            let prior_max = profile.prior(row.0, row.1);
            let blend = Blend::new(lexical_weight, parts.0, parts.1);
            let cosine = profile.hopeless_cosine(bar, prior_max, blend) - below;
            let prior = profile.prior(row.0 * less, row.1 * less);
            let relevance = blend.relevance(profile.semantic(cosine), 0.0);
            let row_flags = row.2 | (source.0 << flags::SOURCE_SHIFT);
            let score = profile.score(relevance, prior, row_flags);
            prop_assert!(score < bar || cosine == f32::NEG_INFINITY);
        }
    }

    proptest! {
        #[test]
        fn no_row_is_more_recent_than_the_bound(
            half_life in 1.0_f64..1e15,
            times in (-1_000_000_i64..1_000_000, -1_000_000_i64..1_000_000, 0_i64..1000, 0_i64..3),
            kind in 1_u8..=5,
            anchor in prop_oneof![Just(RecencyAnchor::ValidFrom), Just(RecencyAnchor::LastUsed)],
            attributes in prop::collection::btree_map(0_u64..10, 1.0_f64..1e15, 0..4)
                .prop_map(|known| known.into_iter().collect::<Vec<_>>()),
            attribute_kinds in prop_oneof![Just(EVERY_KIND), Just(0), Just(0b100)],
            covered in (0_u64..10, 0_u64..4).prop_map(|(low, more)| (low, low + more)),
        ) {
            let mut spec = ProfileSpec { recency_anchor: anchor, ..ProfileSpec::default() };
            spec.half_life[2] = half_life;
            spec.attribute_half_life = attributes;
            spec.attribute_kinds = attribute_kinds;
            let profile = Profile::new(spec).unwrap();
            let (valid_from, last_used, earlier, now) = (times.0, times.1, times.2, times.3);
            let summary = Summary {
                kinds: (1 << kind) | (1 << 2),
                valid_from: Range { low: i64::MIN, high: valid_from },
                last_used: Range { low: i64::MIN, high: last_used },
                attribute: Range { low: covered.0, high: covered.1 },
                ..Summary::UNKNOWN
            };
            let bound = profile.recency_max(&summary, now);
            for kind in [kind, 2] {
                for attribute in covered.0..=covered.1 {
                    let half_life = profile.half_life(kind, || attribute);
                    let (from, used) = (valid_from - earlier, last_used - earlier);
                    let recency = profile.recency(half_life, from, used, now);
                    prop_assert!(recency <= bound && bound <= 1.0);
                }
            }
        }
    }

    #[test]
    fn an_attribute_goes_before_the_kind_where_it_may() {
        let profile = Profile::new(ProfileSpec {
            attribute_half_life: vec![(7, 2.0), (3, f64::INFINITY)],
            attribute_kinds: 1 << 2,
            ..ProfileSpec::default()
        })
        .unwrap();
        let kinds = ProfileSpec::default().half_life;
        assert_eq!(profile.half_life(2, || 7), 2.0);
        assert_eq!(profile.half_life(2, || 3), f64::INFINITY);
        assert_eq!(profile.half_life(2, || 5), kinds[2]);
        assert_eq!(profile.half_life(1, || 7), kinds[1]);
    }

    #[test]
    fn a_source_kind_is_weighed_by_its_factor() {
        let mut factors = [1.0; SOURCE_MAX + 1];
        factors[5] = 0.25;
        let spec = ProfileSpec {
            source_factor: factors,
            ..ProfileSpec::default()
        };
        let profile = Profile::new(spec).unwrap();
        let of = |source: u16| profile.score(1.0, 0.4, source << flags::SOURCE_SHIFT);
        assert_eq!(of(5), 0.25 * of(0));
        assert_eq!(of(4), of(0));
    }

    #[test]
    fn a_bad_factor_of_a_source_kind_is_refused() {
        for (source, factor) in [(0, 0.5), (1, -0.1), (2, 1.1), (7, f32::NAN)] {
            let mut spec = ProfileSpec::default();
            spec.source_factor[source] = factor;
            let refusal = Profile::new(spec).unwrap_err();
            assert!(refusal.to_string().contains("source_factor"));
        }
    }

    #[test]
    fn a_bad_half_life_of_an_attribute_is_refused() {
        for half_lives in [
            vec![(1, 0.0)],
            vec![(1, f64::NAN)],
            vec![(1, -1.0)],
            vec![(1, 1.0), (2, 1.0), (1, 1.0)],
            (0..=ATTRIBUTES_MAX as u64).map(|one| (one, 1.0)).collect(),
        ] {
            let spec = ProfileSpec {
                attribute_half_life: half_lives,
                ..ProfileSpec::default()
            };
            let refusal = Profile::new(spec).unwrap_err();
            assert!(refusal.to_string().contains("attribute_half_life"));
        }
        let spec = ProfileSpec {
            attribute_kinds: 1,
            ..ProfileSpec::default()
        };
        assert!(Profile::new(spec).unwrap_err().to_string().contains("kind"));
    }

    #[test]
    fn most_of_the_range_is_hopeless_when_the_bar_is_high() {
        let profile = Profile::new(ProfileSpec::default()).unwrap();
        // 0.6 x relevance + 0.4 reaches 0.7 at a relevance of 0.5.
        assert!(
            (profile.hopeless_cosine(0.7, 0.4, Blend::new(0.6, false, true)) - 0.5).abs() < 1e-4
        );
        assert_eq!(
            profile.hopeless_cosine(f32::NEG_INFINITY, 0.4, Blend::new(0.6, false, true)),
            f32::NEG_INFINITY
        );
    }
}
