//! The ranking profile and the formulas that it parameterises.
//!
//! Source: retrieval in "Generative Agents" (Park et al., 2023) adds recency, importance and
//! relevance, each scaled to 0..1; here recency is a half-life decay per kind and the sum is
//! weighted (design, section 8). Evaluation order, which every implementation follows:
//!
//! ```text
//! relevance = clamp((cosine - floor) / (1 - floor), 0, 1)                          float32
//! recency   = 2 ^ -(max(0, now - anchor) / half_life[kind])          float64, then float32
//! score     = (w_rel * relevance + (w_rec * recency + w_imp * importance))
//!             / ((w_rel + w_rec) + w_imp)                                          float32
//! score     = score * consolidated_factor      where the row is consolidated
//! ```
//!
//! Each step is monotone in float32 too, so bounds on a cosine are bounds on the score.

use crate::error::{Error, Result};
use crate::flags;
use crate::limits::KIND_MAX;

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
    /// What recency counts from.
    pub recency_anchor: RecencyAnchor,
    /// The cosine that unrelated texts have under the embedder, in [-1, 1).
    pub relevance_floor: f32,
    /// Factor, 0..1, on the score of consolidated rows.
    pub consolidated_factor: f32,
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
            recency_anchor: RecencyAnchor::ValidFrom,
            relevance_floor: 0.0,
            consolidated_factor: 0.5,
        }
    }
}

/// A checked profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    spec: ProfileSpec,
    weight_sum: f32,
    floor_to_one: f32,
}

impl Profile {
    /// Checks the values.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a weight that is negative or not finite, weights that add
    /// up to zero, a half-life that is not positive, a floor outside [-1, 1), a factor outside
    /// 0..=1.
    pub fn new(spec: ProfileSpec) -> Result<Self> {
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
        Ok(Self {
            weight_sum,
            floor_to_one: 1.0 - spec.relevance_floor,
            spec,
        })
    }

    /// The values that the profile was made of.
    #[must_use]
    pub fn spec(&self) -> &ProfileSpec {
        &self.spec
    }

    /// Relevance, 0..1, of a cosine.
    #[must_use]
    #[inline]
    pub fn relevance(&self, cosine: f32) -> f32 {
        ((cosine - self.spec.relevance_floor) / self.floor_to_one).clamp(0.0, 1.0)
    }

    /// Recency, 0..1, of a row of a valid kind. A time ahead of `now` counts as now.
    #[must_use]
    #[inline]
    pub fn recency(&self, kind: u8, valid_from: i64, last_used: i64, now: i64) -> f32 {
        let anchor = match self.spec.recency_anchor {
            RecencyAnchor::ValidFrom => valid_from,
            RecencyAnchor::LastUsed => valid_from.max(last_used),
        };
        let half_life = self.spec.half_life[usize::from(kind)];
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
        if row_flags & flags::CONSOLIDATED == 0 {
            score
        } else {
            score * self.spec.consolidated_factor
        }
    }

    /// An upper bound of the recency of rows of kinds whose bit is set and with times up to those
    /// given.
    #[must_use]
    pub(crate) fn recency_max(&self, kinds: u8, valid_from: i64, last_used: i64, now: i64) -> f32 {
        let kinds = (1..=KIND_MAX).filter(|kind| (kinds >> kind) & 1 == 1);
        let recency = kinds.map(|kind| self.recency(kind, valid_from, last_used, now));
        // `exp2` is right to the last bits but not known to be monotone in them.
        recency.fold(0.0_f32, f32::max).next_up().min(1.0)
    }

    /// A cosine with which no row of a prior up to `prior_max` can reach `score`. Scores are
    /// monotone, so one comparison rules a row out where the formulas would take two divisions.
    #[must_use]
    pub(crate) fn hopeless_cosine(&self, score: f32, prior_max: f32) -> f32 {
        let spec = &self.spec;
        let relevance = (score * self.weight_sum - prior_max) / spec.w_relevance;
        // The inverse is rounded, so it is moved to the safe side and then put to the test.
        let cosine = spec.relevance_floor + relevance * self.floor_to_one - 1e-5;
        if self.score(self.relevance(cosine), prior_max, 0) < score {
            cosine
        } else {
            f32::NEG_INFINITY
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_hopeless_cosine_is_hopeless(
            weights in (0.0_f32..3.0, 0.0_f32..3.0, 0.001_f32..3.0),
            floor in -1.0_f32..0.99,
            bar in 0.0_f32..=1.0,
            below in 0.0_f32..2.0,
            less in 0.0_f32..=1.0,
            row in (0.0_f32..=1.0, 0.0_f32..=1.0, prop_oneof![Just(0), Just(flags::CONSOLIDATED)]),
        ) {
            let profile = Profile::new(ProfileSpec {
                w_relevance: weights.0,
                w_recency: weights.1,
                w_importance: weights.2,
                relevance_floor: floor,
                ..ProfileSpec::default()
            }).unwrap();
            let prior_max = profile.prior(row.0, row.1);
            let cosine = profile.hopeless_cosine(bar, prior_max) - below;
            let prior = profile.prior(row.0 * less, row.1 * less);
            let score = profile.score(profile.relevance(cosine), prior, row.2);
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
        ) {
            let mut spec = ProfileSpec { recency_anchor: anchor, ..ProfileSpec::default() };
            spec.half_life[2] = half_life;
            let profile = Profile::new(spec).unwrap();
            let (valid_from, last_used, earlier, now) = (times.0, times.1, times.2, times.3);
            let bound = profile.recency_max((1 << kind) | (1 << 2), valid_from, last_used, now);
            for kind in [kind, 2] {
                let recency = profile.recency(kind, valid_from - earlier, last_used - earlier, now);
                prop_assert!(recency <= bound && bound <= 1.0);
            }
        }
    }

    #[test]
    fn most_of_the_range_is_hopeless_when_the_bar_is_high() {
        let profile = Profile::new(ProfileSpec::default()).unwrap();
        // 0.6 x relevance + 0.4 reaches 0.7 at a relevance of 0.5.
        assert!((profile.hopeless_cosine(0.7, 0.4) - 0.5).abs() < 1e-4);
        assert_eq!(
            profile.hopeless_cosine(f32::NEG_INFINITY, 0.4),
            f32::NEG_INFINITY
        );
    }
}
