//! `Profile` and `Filter`: immutable, checked when made.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use ranker_core::lexical::Bm25;
use ranker_core::limits::SOURCE_MAX;
use ranker_core::{FilterSpec, ProfileSpec, RecencyAnchor};

use crate::arguments::{Refusal, refuse};

/// Weights, decay and floors of a ranking.
#[pyclass(frozen, module = "pillion_ranker")]
pub struct Profile(pub ranker_core::Profile);

#[pymethods]
impl Profile {
    #[new]
    #[pyo3(signature = (
        *,
        w_relevance = 0.60,
        w_recency = 0.25,
        w_importance = 0.15,
        half_life = None,
        attribute_half_life = BTreeMap::new(),
        attribute_kinds = 0b11_1110,
        recency_anchor = 0,
        relevance_floor = 0.0,
        consolidated_factor = 0.5,
        source_factor = None,
        lexical_weight = 0.6,
        bm25_k1 = 0.9,
        bm25_b = 0.4,
    ))]
    // One argument per part of the profile, all by keyword.
    #[allow(clippy::too_many_arguments)]
    fn new(
        w_relevance: f32,
        w_recency: f32,
        w_importance: f32,
        half_life: Option<[f64; 6]>,
        attribute_half_life: BTreeMap<u64, f64>,
        attribute_kinds: u8,
        recency_anchor: u8,
        relevance_floor: f32,
        consolidated_factor: f32,
        source_factor: Option<[f32; SOURCE_MAX + 1]>,
        lexical_weight: f32,
        bm25_k1: f32,
        bm25_b: f32,
    ) -> Result<Self, Refusal> {
        let recency_anchor = match recency_anchor {
            0 => RecencyAnchor::ValidFrom,
            1 => RecencyAnchor::LastUsed,
            _ => return Err(refuse("recency_anchor", "must be 0 or 1")),
        };
        let spec = ProfileSpec {
            w_relevance,
            w_recency,
            w_importance,
            half_life: half_life.unwrap_or(ProfileSpec::default().half_life),
            attribute_half_life: attribute_half_life.into_iter().collect(),
            attribute_kinds,
            recency_anchor,
            relevance_floor,
            consolidated_factor,
            source_factor: source_factor.unwrap_or(ProfileSpec::default().source_factor),
            lexical_weight,
            bm25: Bm25 {
                k1: bm25_k1,
                b: bm25_b,
            },
        };
        Ok(Self(ranker_core::Profile::new(spec)?))
    }

    #[getter]
    fn w_relevance(&self) -> f32 {
        self.0.spec().w_relevance
    }

    #[getter]
    fn w_recency(&self) -> f32 {
        self.0.spec().w_recency
    }

    #[getter]
    fn w_importance(&self) -> f32 {
        self.0.spec().w_importance
    }

    #[getter]
    fn half_life(&self) -> Vec<f64> {
        self.0.spec().half_life.to_vec()
    }

    #[getter]
    fn attribute_half_life(&self) -> BTreeMap<u64, f64> {
        self.0.spec().attribute_half_life.iter().copied().collect()
    }

    #[getter]
    fn attribute_kinds(&self) -> u8 {
        self.0.spec().attribute_kinds
    }

    #[getter]
    fn recency_anchor(&self) -> u8 {
        match self.0.spec().recency_anchor {
            RecencyAnchor::ValidFrom => 0,
            RecencyAnchor::LastUsed => 1,
        }
    }

    #[getter]
    fn relevance_floor(&self) -> f32 {
        self.0.spec().relevance_floor
    }

    #[getter]
    fn consolidated_factor(&self) -> f32 {
        self.0.spec().consolidated_factor
    }

    #[getter]
    fn lexical_weight(&self) -> f32 {
        self.0.spec().lexical_weight
    }

    #[getter]
    fn bm25_k1(&self) -> f32 {
        self.0.spec().bm25.k1
    }

    #[getter]
    fn bm25_b(&self) -> f32 {
        self.0.spec().bm25.b
    }

    #[getter]
    fn source_factor(&self) -> Vec<f32> {
        self.0.spec().source_factor.to_vec()
    }

    fn __repr__(&self) -> String {
        format!("<{:?}>", self.0.spec())
    }
}

/// What a search admits.
#[pyclass(frozen, module = "pillion_ranker")]
pub struct Filter(pub ranker_core::Filter);

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (
        *,
        kinds = 0,
        statuses = 0b1100,
        subjects = Vec::new(),
        contexts = Vec::new(),
        attributes = Vec::new(),
        labels_all = Vec::new(),
        labels_any = Vec::new(),
        labels_none = Vec::new(),
        valid_at = None,
        recorded_at = None,
        created_from = None,
        created_to = None,
        min_importance = 0.0,
        min_confidence = 0.0,
        include_flags = 0,
        exclude_flags = 0b110,
        not_expired_at = None,
        min_score = 0.0,
        min_relevance = 0.0,
        labels_each = Vec::new(),
        valid_from_from = None,
        valid_from_to = None,
        any_of = Vec::new(),
        none_of = Vec::new(),
    ))]
    // One argument per field of the filter, all by keyword.
    #[allow(clippy::too_many_arguments)]
    fn new(
        kinds: u8,
        statuses: u8,
        subjects: Vec<u64>,
        contexts: Vec<u64>,
        attributes: Vec<u64>,
        labels_all: Vec<u64>,
        labels_any: Vec<u64>,
        labels_none: Vec<u64>,
        valid_at: Option<i64>,
        recorded_at: Option<i64>,
        created_from: Option<i64>,
        created_to: Option<i64>,
        min_importance: f32,
        min_confidence: f32,
        include_flags: u16,
        exclude_flags: u16,
        not_expired_at: Option<i64>,
        min_score: f32,
        min_relevance: f32,
        labels_each: Vec<Vec<u64>>,
        valid_from_from: Option<i64>,
        valid_from_to: Option<i64>,
        any_of: Vec<Bound<'_, Self>>,
        none_of: Vec<Bound<'_, Self>>,
    ) -> Result<Self, Refusal> {
        let filters =
            |of: Vec<Bound<'_, Self>>| of.into_iter().map(|one| one.get().0.clone()).collect();
        let spec = FilterSpec {
            kinds,
            statuses,
            subjects,
            contexts,
            attributes,
            labels_all,
            labels_any,
            labels_none,
            valid_at,
            recorded_at,
            created_from,
            created_to,
            min_importance,
            min_confidence,
            include_flags,
            exclude_flags,
            not_expired_at,
            min_score,
            min_relevance,
            labels_each,
            valid_from_from,
            valid_from_to,
            any_of: filters(any_of),
            none_of: filters(none_of),
        };
        Ok(Self(ranker_core::Filter::new(spec)?))
    }

    #[getter]
    fn kinds(&self) -> u8 {
        self.0.spec().kinds
    }

    #[getter]
    fn statuses(&self) -> u8 {
        self.0.spec().statuses
    }

    #[getter]
    fn subjects(&self) -> Vec<u64> {
        self.0.spec().subjects.clone()
    }

    #[getter]
    fn contexts(&self) -> Vec<u64> {
        self.0.spec().contexts.clone()
    }

    #[getter]
    fn attributes(&self) -> Vec<u64> {
        self.0.spec().attributes.clone()
    }

    #[getter]
    fn labels_all(&self) -> Vec<u64> {
        self.0.spec().labels_all.clone()
    }

    #[getter]
    fn labels_any(&self) -> Vec<u64> {
        self.0.spec().labels_any.clone()
    }

    #[getter]
    fn labels_none(&self) -> Vec<u64> {
        self.0.spec().labels_none.clone()
    }

    #[getter]
    fn valid_at(&self) -> Option<i64> {
        self.0.spec().valid_at
    }

    #[getter]
    fn recorded_at(&self) -> Option<i64> {
        self.0.spec().recorded_at
    }

    #[getter]
    fn created_from(&self) -> Option<i64> {
        self.0.spec().created_from
    }

    #[getter]
    fn created_to(&self) -> Option<i64> {
        self.0.spec().created_to
    }

    #[getter]
    fn min_importance(&self) -> f32 {
        self.0.spec().min_importance
    }

    #[getter]
    fn min_confidence(&self) -> f32 {
        self.0.spec().min_confidence
    }

    #[getter]
    fn include_flags(&self) -> u16 {
        self.0.spec().include_flags
    }

    #[getter]
    fn exclude_flags(&self) -> u16 {
        self.0.spec().exclude_flags
    }

    #[getter]
    fn not_expired_at(&self) -> Option<i64> {
        self.0.spec().not_expired_at
    }

    #[getter]
    fn min_score(&self) -> f32 {
        self.0.spec().min_score
    }

    #[getter]
    fn min_relevance(&self) -> f32 {
        self.0.spec().min_relevance
    }

    #[getter]
    fn labels_each(&self) -> Vec<Vec<u64>> {
        self.0.spec().labels_each.clone()
    }

    #[getter]
    fn valid_from_from(&self) -> Option<i64> {
        self.0.spec().valid_from_from
    }

    #[getter]
    fn valid_from_to(&self) -> Option<i64> {
        self.0.spec().valid_from_to
    }

    #[getter]
    fn any_of(&self) -> Vec<Self> {
        self.0.spec().any_of.iter().cloned().map(Self).collect()
    }

    #[getter]
    fn none_of(&self) -> Vec<Self> {
        self.0.spec().none_of.iter().cloned().map(Self).collect()
    }

    fn __repr__(&self) -> String {
        format!("<{:?}>", self.0.spec())
    }
}
