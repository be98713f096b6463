//! `Hits`.

use numpy::{Element, PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use ranker_core::Id;

use crate::arguments::id_array;

/// Results, best first, and what was done to find them. Arrays are made when they are asked for.
#[pyclass(frozen, module = "pillion_ranker")]
pub struct Hits(pub ranker_core::Hits);

impl Hits {
    fn column<T: Element>(
        &self,
        py: Python<'_>,
        value: fn(&ranker_core::Hit) -> T,
    ) -> Py<PyArray1<T>> {
        PyArray1::from_iter(py, self.0.hits.iter().map(value)).unbind()
    }
}

/// Identity, score, relevance, recency, importance, cosine, lexical.
type HitRow<'py> = (Bound<'py, PyBytes>, f32, f32, f32, f32, f32, f32);

#[pymethods]
impl Hits {
    #[getter]
    fn ids(&self, py: Python<'_>) -> PyResult<Py<PyArray2<u8>>> {
        let ids: Vec<Id> = self.0.hits.iter().map(|hit| hit.id).collect();
        id_array(py, &ids)
    }

    #[getter]
    fn slots(&self, py: Python<'_>) -> Py<PyArray1<u32>> {
        self.column(py, |hit| hit.slot)
    }

    #[getter]
    fn scores(&self, py: Python<'_>) -> Py<PyArray1<f32>> {
        self.column(py, |hit| hit.score)
    }

    #[getter]
    fn relevance(&self, py: Python<'_>) -> Py<PyArray1<f32>> {
        self.column(py, |hit| hit.relevance)
    }

    #[getter]
    fn recency(&self, py: Python<'_>) -> Py<PyArray1<f32>> {
        self.column(py, |hit| hit.recency)
    }

    #[getter]
    fn importance(&self, py: Python<'_>) -> Py<PyArray1<f32>> {
        self.column(py, |hit| hit.importance)
    }

    #[getter]
    fn cosine(&self, py: Python<'_>) -> Py<PyArray1<f32>> {
        self.column(py, |hit| hit.cosine)
    }

    #[getter]
    fn lexical(&self, py: Python<'_>) -> Py<PyArray1<f32>> {
        self.column(py, |hit| hit.lexical)
    }

    #[getter]
    fn admitted(&self) -> usize {
        self.0.admitted
    }

    #[getter]
    fn scanned(&self) -> usize {
        self.0.scanned
    }

    #[getter]
    fn rescored(&self) -> usize {
        self.0.rescored
    }

    #[getter]
    fn examined(&self) -> usize {
        self.0.examined
    }

    #[getter]
    fn bound(&self) -> Option<f32> {
        self.0.bound
    }

    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.0.hits.iter().map(|hit| -> HitRow<'py> {
            (
                PyBytes::new(py, &hit.id),
                hit.score,
                hit.relevance,
                hit.recency,
                hit.importance,
                hit.cosine,
                hit.lexical,
            )
        });
        PyList::new(py, rows)
    }

    fn __len__(&self) -> usize {
        self.0.hits.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<Hits {} of {} admitted of {} scanned>",
            self.0.hits.len(),
            self.0.admitted,
            self.0.scanned
        )
    }
}
