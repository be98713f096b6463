//! `Table`.

// PyO3 hands arrays over by value: they are counted references.
#![allow(clippy::needless_pass_by_value)]

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use ranker_core::lexical::TextPart;
use ranker_core::{Id, Proposal, RowBatch, SearchRequest};

use crate::arguments::{Refusal, flat, id_array, ids, refuse, vectors};
use crate::hits::Hits;
use crate::policy::{Filter, Profile};

/// Slots, their BM25, and what the query's words weigh.
type LexicalColumns = (Py<PyArray1<u32>>, Py<PyArray1<f32>>, f32);

fn text_parts(parts: &[(PyBackedStr, u8)]) -> Vec<TextPart<'_>> {
    let parts = parts.iter();
    parts
        .map(|(text, weight)| TextPart {
            text,
            weight: *weight,
        })
        .collect()
}

/// One partition's rows: columns, int8 vectors, float32 vectors. Safe to share between threads.
#[pyclass(frozen, module = "pillion_ranker")]
pub struct Table(pub(crate) ranker_core::Table);

#[pymethods]
impl Table {
    #[new]
    fn new(dimension: usize) -> Result<Self, Refusal> {
        Ok(Self(ranker_core::Table::new(dimension)?))
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize, Refusal> {
        Ok(py.detach(|| self.0.len())?)
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String, Refusal> {
        let (rows, dimension) = (self.__len__(py)?, self.0.dimension());
        Ok(format!("<Table of {rows} rows, dimension {dimension}>"))
    }

    #[pyo3(signature = (
        *, ids, created, last_used, valid_from, valid_to, recorded, expires, importance,
        confidence, kind, status, flags, subject, context, attribute, label_offsets, label_hashes,
        has_vector, vectors,
    ))]
    // One argument per column, all by keyword.
    #[allow(clippy::too_many_arguments)]
    fn upsert(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray2<'_, u8>,
        created: PyReadonlyArray1<'_, i64>,
        last_used: PyReadonlyArray1<'_, i64>,
        valid_from: PyReadonlyArray1<'_, i64>,
        valid_to: PyReadonlyArray1<'_, i64>,
        recorded: PyReadonlyArray1<'_, i64>,
        expires: PyReadonlyArray1<'_, i64>,
        importance: PyReadonlyArray1<'_, f32>,
        confidence: PyReadonlyArray1<'_, f32>,
        kind: PyReadonlyArray1<'_, u8>,
        status: PyReadonlyArray1<'_, u8>,
        flags: PyReadonlyArray1<'_, u16>,
        subject: PyReadonlyArray1<'_, u64>,
        context: PyReadonlyArray1<'_, u64>,
        attribute: PyReadonlyArray1<'_, u64>,
        label_offsets: PyReadonlyArray1<'_, u32>,
        label_hashes: PyReadonlyArray1<'_, u64>,
        has_vector: PyReadonlyArray1<'_, bool>,
        vectors: PyReadonlyArray2<'_, f32>,
    ) -> PyResult<Py<PyArray1<u32>>> {
        let batch = RowBatch {
            ids: self::ids("ids", &ids)?,
            created: flat("created", &created)?,
            last_used: flat("last_used", &last_used)?,
            valid_from: flat("valid_from", &valid_from)?,
            valid_to: flat("valid_to", &valid_to)?,
            recorded: flat("recorded", &recorded)?,
            expires: flat("expires", &expires)?,
            importance: flat("importance", &importance)?,
            confidence: flat("confidence", &confidence)?,
            kind: flat("kind", &kind)?,
            status: flat("status", &status)?,
            flags: flat("flags", &flags)?,
            subject: flat("subject", &subject)?,
            context: flat("context", &context)?,
            attribute: flat("attribute", &attribute)?,
            label_offsets: flat("label_offsets", &label_offsets)?,
            label_hashes: flat("label_hashes", &label_hashes)?,
            has_vector: flat("has_vector", &has_vector)?,
            vectors: self::vectors(&vectors, self.0.dimension())?,
        };
        let slots = py.detach(|| self.0.upsert(&batch)).map_err(Refusal::from)?;
        Ok(PyArray1::from_vec(py, slots).unbind())
    }

    fn set_vectors(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray2<'_, u8>,
        vectors: PyReadonlyArray2<'_, f32>,
    ) -> Result<usize, Refusal> {
        let ids = self::ids("ids", &ids)?;
        let vectors = self::vectors(&vectors, self.0.dimension())?;
        Ok(py.detach(|| self.0.set_vectors(ids, vectors))?)
    }

    fn set_texts(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray2<'_, u8>,
        texts: Vec<Vec<(PyBackedStr, u8)>>,
    ) -> Result<usize, Refusal> {
        let ids = self::ids("ids", &ids)?;
        let texts: Vec<Vec<TextPart<'_>>> = texts.iter().map(|parts| text_parts(parts)).collect();
        Ok(py.detach(|| self.0.set_texts(ids, &texts))?)
    }

    fn remove(&self, py: Python<'_>, ids: PyReadonlyArray2<'_, u8>) -> Result<usize, Refusal> {
        let ids = self::ids("ids", &ids)?;
        Ok(py.detach(|| self.0.remove(ids))?)
    }

    fn touch(
        &self,
        py: Python<'_>,
        ids: PyReadonlyArray2<'_, u8>,
        last_used: PyReadonlyArray1<'_, i64>,
    ) -> Result<usize, Refusal> {
        let ids = self::ids("ids", &ids)?;
        let last_used = flat("last_used", &last_used)?;
        Ok(py.detach(|| self.0.touch(ids, last_used))?)
    }

    fn contains(&self, py: Python<'_>, id: &[u8]) -> Result<bool, Refusal> {
        let id: Id = id
            .try_into()
            .map_err(|_| refuse("id", "an id has 16 bytes"))?;
        let slots = py.detach(|| self.0.slots(&[id]))?;
        Ok(slots[0] != ranker_core::limits::SLOT_ABSENT)
    }

    fn slots(&self, py: Python<'_>, ids: PyReadonlyArray2<'_, u8>) -> PyResult<Py<PyArray1<u32>>> {
        let ids = self::ids("ids", &ids)?;
        let slots = py.detach(|| self.0.slots(ids)).map_err(Refusal::from)?;
        Ok(PyArray1::from_vec(py, slots).unbind())
    }

    fn ids_of(
        &self,
        py: Python<'_>,
        slots: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<Py<PyArray2<u8>>> {
        let slots = flat("slots", &slots)?;
        let ids = py.detach(|| self.0.ids_of(slots)).map_err(Refusal::from)?;
        id_array(py, &ids)
    }

    fn vectors_of(
        &self,
        py: Python<'_>,
        slots: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<Py<PyArray2<f32>>> {
        let slots = flat("slots", &slots)?;
        let values = py
            .detach(|| self.0.vectors_of(slots))
            .map_err(Refusal::from)?;
        let shape = [slots.len(), self.0.dimension()];
        Ok(PyArray1::from_vec(py, values).reshape(shape)?.unbind())
    }

    fn live_slots(&self, py: Python<'_>) -> PyResult<Py<PyArray1<u32>>> {
        let slots = py.detach(|| self.0.live_slots()).map_err(Refusal::from)?;
        Ok(PyArray1::from_vec(py, slots).unbind())
    }

    fn memory_bytes(&self, py: Python<'_>) -> Result<usize, Refusal> {
        Ok(py.detach(|| self.0.memory_bytes())?)
    }

    fn clear(&self, py: Python<'_>) -> Result<(), Refusal> {
        Ok(py.detach(|| self.0.clear())?)
    }

    #[pyo3(signature = (*, query, now, profile, filter, k, exact_float = false, text = None))]
    // One argument per part of the request, all by keyword.
    #[allow(clippy::too_many_arguments)]
    fn search(
        &self,
        py: Python<'_>,
        query: Option<PyReadonlyArray1<'_, f32>>,
        now: i64,
        profile: &Bound<'_, Profile>,
        filter: &Bound<'_, Filter>,
        k: usize,
        exact_float: bool,
        text: Option<&str>,
    ) -> PyResult<Hits> {
        let request = SearchRequest {
            query: query
                .as_ref()
                .map(|query| flat("query", query))
                .transpose()?,
            text,
            now,
            profile: &profile.get().0,
            filter: &filter.get().0,
            k,
        };
        let hits = py
            .detach(|| self.0.search(&request, exact_float))
            .map_err(Refusal::from)?;
        Ok(Hits(hits))
    }

    #[pyo3(signature = (*, query, now, profile, filter, slots, k, text = None))]
    // One argument per part of the request, all by keyword.
    #[allow(clippy::too_many_arguments)]
    fn score(
        &self,
        py: Python<'_>,
        query: Option<PyReadonlyArray1<'_, f32>>,
        now: i64,
        profile: &Bound<'_, Profile>,
        filter: &Bound<'_, Filter>,
        slots: PyReadonlyArray1<'_, u32>,
        k: usize,
        text: Option<&str>,
    ) -> PyResult<Hits> {
        let slots = flat("slots", &slots)?;
        let request = SearchRequest {
            query: query
                .as_ref()
                .map(|query| flat("query", query))
                .transpose()?,
            text,
            now,
            profile: &profile.get().0,
            filter: &filter.get().0,
            k,
        };
        let hits = py
            .detach(|| self.0.score(&request, slots))
            .map_err(Refusal::from)?;
        Ok(Hits(hits))
    }

    #[pyo3(signature = (*, query, now, profile, filter, slots, horizon, rows_max, k, text = None))]
    // One argument per part of the request and of the proposal, all by keyword.
    #[allow(clippy::too_many_arguments)]
    fn certify(
        &self,
        py: Python<'_>,
        query: Option<PyReadonlyArray1<'_, f32>>,
        now: i64,
        profile: &Bound<'_, Profile>,
        filter: &Bound<'_, Filter>,
        slots: PyReadonlyArray1<'_, u32>,
        horizon: f32,
        rows_max: usize,
        k: usize,
        text: Option<&str>,
    ) -> PyResult<Hits> {
        let proposal = Proposal {
            slots: flat("slots", &slots)?,
            horizon,
            rows_max,
        };
        let request = SearchRequest {
            query: query
                .as_ref()
                .map(|query| flat("query", query))
                .transpose()?,
            text,
            now,
            profile: &profile.get().0,
            filter: &filter.get().0,
            k,
        };
        let hits = py
            .detach(|| self.0.certify(&request, &proposal))
            .map_err(Refusal::from)?;
        Ok(Hits(hits))
    }

    fn lexical_scores(
        &self,
        py: Python<'_>,
        text: &str,
        profile: &Bound<'_, Profile>,
    ) -> Result<LexicalColumns, Refusal> {
        let bm25 = profile.get().0.spec().bm25;
        let found = py.detach(|| self.0.lexical_scores(text, bm25))?;
        let (slots, scores): (Vec<u32>, Vec<f32>) = found.matches().unzip();
        Ok((
            PyArray1::from_vec(py, slots).unbind(),
            PyArray1::from_vec(py, scores).unbind(),
            found.total,
        ))
    }

    /// `now` names the search that the count stands beside. No predicate reads it: a filter
    /// carries its own instants.
    #[pyo3(signature = (filter, now = None))]
    fn count(
        &self,
        py: Python<'_>,
        filter: &Bound<'_, Filter>,
        now: Option<i64>,
    ) -> Result<usize, Refusal> {
        let _ = now;
        let filter = &filter.get().0;
        Ok(py.detach(|| self.0.count(filter))?)
    }

    #[pyo3(signature = (*, now, profile, filter, below))]
    fn vitality(
        &self,
        py: Python<'_>,
        now: i64,
        profile: &Bound<'_, Profile>,
        filter: &Bound<'_, Filter>,
        below: PyReadonlyArray1<'_, f32>,
    ) -> PyResult<Py<PyArray2<u8>>> {
        let below = flat("below", &below)?
            .try_into()
            .map_err(|_| refuse("below", "one threshold per kind: six values"))?;
        let (profile, filter) = (&profile.get().0, &filter.get().0);
        let ids = py
            .detach(|| self.0.vitality(now, profile, filter, below))
            .map_err(Refusal::from)?;
        id_array(py, &ids)
    }

    /// The best dot product of a bare float32 scan of every slot.
    fn bench_scan_f32(
        &self,
        py: Python<'_>,
        query: PyReadonlyArray1<'_, f32>,
    ) -> Result<f32, Refusal> {
        let query = flat("query", &query)?;
        Ok(py.detach(|| self.0.bench_scan_f32(query))?)
    }

    /// The best dot product of a bare int8 scan of every slot.
    fn bench_scan_i8(
        &self,
        py: Python<'_>,
        query: PyReadonlyArray1<'_, f32>,
    ) -> Result<i32, Refusal> {
        let query = flat("query", &query)?;
        Ok(py.detach(|| self.0.bench_scan_i8(query))?)
    }

    /// The sum of a bare read of every float32 vector.
    fn bench_read_f32(&self, py: Python<'_>) -> Result<f32, Refusal> {
        Ok(py.detach(|| self.0.bench_read_f32())?)
    }

    /// The sum of a bare read of every int8 vector.
    fn bench_read_i8(&self, py: Python<'_>) -> Result<i64, Refusal> {
        Ok(py.detach(|| self.0.bench_read_i8())?)
    }
}
